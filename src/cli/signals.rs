//! Interrupts: what was begun is removed, then the process ends as the signal would have ended it, so that whoever
//! started it knows (shells show 130 for Ctrl-C, 143 for `kill`).
//!
//! A thread of its own waits for them, since nothing can be removed in a handler, and the others may be anywhere: in a long
//! call of native code, or in the interpreter.

use super::progress::is_watched;
use iverson::unfinished;
use std::io::Write;

const ENDING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// From now on signals that end this process let it clean up. Threads started before are not to be there.
pub fn watch() {
    // A file that grows too large is an error of writing, as a full disk is.
    // SAFETY: signals of this process; the sets are initialised before they are read.
    let set = unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in ENDING {
            let mut action: libc::sigaction = std::mem::zeroed();
            // Who starts a program in the background has it ignore some of them.
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction != libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
                libc::sigaddset(&mut set, signal);
            }
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        set
    };
    let waiting = std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and its signals are blocked in all threads.
        while unsafe { libc::sigwait(&set, &mut signal) } != 0 {}
        end(signal);
    });
    if waiting.is_err() {
        // SAFETY: as it was.
        unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut()) };
    }
}

fn end(signal: libc::c_int) {
    unfinished::give_up();
    if is_watched() {
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
    // SAFETY: the signal has its default action, which ends the process.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::_exit(128 + signal)
    }
}
