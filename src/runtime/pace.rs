//! How many threads a short call is given.
//!
//! Threads that work on one call exchange what they have written, line by line of their caches. How long a line takes on its way
//! depends on where the system has put the threads: next to each other, or at the two ends of the machine, where a call of a
//! tenth of a millisecond may take twice as long on two threads as on one. That can be measured alone. So of calls of the same
//! sizes some are made on all threads and some on one, and the others as was faster; now and then it is measured again, since the
//! system moves threads. No result depends on it. Long calls are given all threads that were asked for.

use std::time::Duration;

/// Calls that take longer are given all threads.
const LONG: Duration = Duration::from_millis(2);
/// How many calls each of the two ways is tried for.
const TRIALS: u32 = 4;
/// After how many calls they are tried again.
const AGAIN: u32 = 1000;

#[derive(Debug)]
pub struct Pace {
    calls: u32,
    together: Duration,
    alone: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { calls: 0, together: Duration::MAX, alone: Duration::MAX }
    }
}

impl Pace {
    /// The threads of the next call, of those that were asked for.
    pub fn threads(&self, asked: i32) -> i32 {
        let is_long = self.calls > 0 && self.together > LONG;
        if asked < 2 || is_long || self.calls < TRIALS {
            return asked;
        }
        let is_trial = self.calls < 2 * TRIALS;
        if is_trial || self.alone <= self.together { 1 } else { asked }
    }

    /// What a call on so many threads took, of those that were asked for.
    pub fn took(&mut self, threads: i32, asked: i32, time: Duration) {
        if asked < 2 {
            return;
        }
        let best = if threads < asked { &mut self.alone } else { &mut self.together };
        *best = time.min(*best);
        self.calls += 1;
        if self.calls == AGAIN {
            *self = Pace::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threads of so many calls that take a time on each number of threads.
    fn given(calls: usize, time: impl Fn(i32) -> u64) -> Vec<i32> {
        let mut pace = Pace::default();
        let mut all = vec![];
        for _ in 0..calls {
            let threads = pace.threads(2);
            pace.took(threads, 2, Duration::from_micros(time(threads)));
            all.push(threads);
        }
        all
    }

    #[test]
    fn short_calls_take_what_was_faster() {
        let both = [vec![2; TRIALS as usize], vec![1; TRIALS as usize]].concat();
        assert_eq!(given(20, |threads| if threads == 1 { 100 } else { 180 }), [both.clone(), vec![1; 12]].concat());
        assert_eq!(given(20, |threads| if threads == 1 { 100 } else { 60 }), [both, vec![2; 12]].concat());
    }

    #[test]
    fn long_calls_take_all_threads() {
        assert_eq!(given(50, |_| 3000), vec![2; 50]);
    }

    #[test]
    fn it_is_tried_again() {
        let all = given(AGAIN as usize + 1, |threads| if threads == 1 { 100 } else { 180 });
        assert_eq!(all[AGAIN as usize - 1..], [1, 2]);
    }

    #[test]
    fn one_thread_is_one_thread() {
        let mut pace = Pace::default();
        pace.took(1, 1, Duration::from_micros(1));
        assert_eq!(pace.threads(1), 1);
    }
}
