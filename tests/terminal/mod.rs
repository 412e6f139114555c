//! Commands on a terminal of their own: what they show, and what a person types.
#![allow(dead_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Who types waits until nothing more is shown for so long.
const PAUSE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a command on a terminal and types inputs one after another. Gives all that is shown, stdout and stderr together.
pub fn talk(mut command: Command, inputs: &[&str]) -> (String, ExitStatus) {
    let (mut ours, theirs) = terminal();
    let copy = || theirs.try_clone().unwrap();
    command.stdin(copy()).stdout(copy()).stderr(copy()).env("TERM", "xterm").env("NO_COLOR", "1");
    // SAFETY: two system calls, between the fork and the program.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY as _, 0);
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    // The terminal ends when nobody has its other side.
    drop((command, theirs));
    let shown = reader(ours.try_clone().unwrap());
    let mut text = vec![];
    for input in inputs {
        until_quiet(&shown, &mut text);
        ours.write_all(input.as_bytes()).unwrap();
    }
    let start = Instant::now();
    while let Ok(more) = shown.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
        text.extend(more);
    }
    let status = child.wait().unwrap();
    (String::from_utf8_lossy(&text).replace("\r\n", "\n"), status)
}

/// Both sides of a new terminal, of 80 columns.
fn terminal() -> (File, OwnedFd) {
    let (mut ours, mut theirs) = (0, 0);
    let mut size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the descriptors are new and ours; the pointers are to what lives long enough.
    unsafe {
        let made = libc::openpty(&mut ours, &mut theirs, std::ptr::null_mut(), std::ptr::null_mut(), &mut size);
        assert_eq!(made, 0, "no terminal: {}", std::io::Error::last_os_error());
        // Other programs that are started meanwhile do not keep it open.
        libc::fcntl(ours, libc::F_SETFD, libc::FD_CLOEXEC);
        libc::fcntl(theirs, libc::F_SETFD, libc::FD_CLOEXEC);
        (File::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}

fn reader(mut terminal: File) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        // An error is the end.
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            if send.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receive
}

/// Waits for something to be shown, and then for a pause.
fn until_quiet(shown: &Receiver<Vec<u8>>, text: &mut Vec<u8>) {
    let mut wait = PATIENCE;
    loop {
        match shown.recv_timeout(wait) {
            Ok(more) => text.extend(more),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
        wait = PAUSE;
    }
}
