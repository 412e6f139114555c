//! What is going on, on the terminal: a line on stderr that appears after a second and goes when the work is done.
//! Where stderr is no terminal nothing is ever written.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What takes less is over before anybody wonders. `$IVERSON_PATIENCE` is another number of milliseconds.
fn patience() -> Duration {
    let chosen = std::env::var("IVERSON_PATIENCE").ok().and_then(|ms| ms.parse().ok());
    Duration::from_millis(chosen.unwrap_or(1000))
}
const PACE: Duration = Duration::from_millis(200);

/// Work that is shown as long as this lives.
pub struct Progress {
    shown: Option<(Arc<Shared>, JoinHandle<()>)>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    what: String,
    /// How many of how many.
    count: Option<(u64, u64)>,
    done: bool,
}

/// Whether a person looks at stderr.
pub fn is_watched() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

impl Progress {
    /// `what` as it is said: "compiling `f`".
    pub fn new(what: impl Into<String>) -> Progress {
        Progress::start(what.into(), None)
    }

    /// Work of so many parts.
    pub fn counted(what: impl Into<String>, total: u64) -> Progress {
        Progress::start(what.into(), Some((0, total)))
    }

    fn start(what: String, count: Option<(u64, u64)>) -> Progress {
        if !is_watched() {
            return Progress { shown: None };
        }
        let state = Mutex::new(State { what, count, done: false });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let other = shared.clone();
        let drawing = std::thread::Builder::new().name("progress".into()).spawn(move || draw(&other));
        Progress { shown: drawing.ok().map(|handle| (shared, handle)) }
    }

    /// So many parts are done.
    pub fn at(&self, done: u64) {
        if let Some((shared, _)) = &self.shown
            && let Ok(mut state) = shared.state.lock()
            && let Some((at, _)) = &mut state.count
        {
            *at = done;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((shared, drawing)) = self.shown.take() {
            if let Ok(mut state) = shared.state.lock() {
                state.done = true;
            }
            shared.changed.notify_all();
            let _ = drawing.join();
        }
    }
}

fn draw(shared: &Shared) {
    let start = Instant::now();
    let mut pause = patience();
    let mut drawn = false;
    let Ok(mut state) = shared.state.lock() else { return };
    while !state.done {
        let Ok((next, waited)) = shared.changed.wait_timeout(state, pause) else { return };
        state = next;
        if waited.timed_out() && !state.done {
            let count = state.count.map_or(String::new(), |(at, total)| format!(" {} of {total}", (at + 1).min(total)));
            write(&format!("\r\x1b[K{}{count} … {:.0} s", state.what, start.elapsed().as_secs_f64()));
            (pause, drawn) = (PACE, true);
        }
    }
    if drawn {
        write("\r\x1b[K");
    }
}

fn write(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}
