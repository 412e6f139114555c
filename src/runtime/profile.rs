//! Where the time of calls goes: code with marks is called again and again while a clock samples them.

use super::Compiled;
use crate::diagnostic::Span;
use crate::interpret::Failure;
use crate::value::Value;
use std::time::{Duration, Instant};

/// Nanoseconds between samples; no round number, so that no loop keeps pace with it.
const PERIOD: i64 = 99_700;

pub type Start = unsafe extern "C" fn(*mut i64, i32, i64) -> i32;
pub type Stop = unsafe extern "C" fn();

/// The clock in profiling code, and what its marks stand for.
pub struct Sampler {
    pub start: Start,
    pub stop: Stop,
    pub origins: Vec<Vec<Span>>,
}

/// What was seen.
pub struct Profile {
    pub calls: u64,
    /// Seconds of a call, with marks.
    pub call: f64,
    /// How often each set of places was at work; what belongs to no loop has no place.
    pub samples: Vec<(Vec<Span>, u64)>,
}

impl Compiled {
    /// Samples calls for this long, and for one call at least; nothing where the system has no clock for it. The code must
    /// have been compiled for profiling.
    pub fn profile(&self, args: &[Value], threads: usize, long: Duration) -> Result<Option<Profile>, Failure> {
        let sampler = self.sampler.as_ref().expect("code is compiled for profiling");
        let mut result = None;
        let mut counts = vec![0i64; sampler.origins.len()];
        // SAFETY: the counts live until the clock is stopped, and there are as many as marks.
        let status = unsafe { (sampler.start)(counts.as_mut_ptr(), counts.len() as i32, PERIOD) };
        if status != 0 {
            return Ok(None);
        }
        let start = Instant::now();
        let mut calls = 0;
        let mut outcome = Ok(());
        while outcome.is_ok() && (calls == 0 || start.elapsed() < long) {
            outcome = self.call_into(args, &mut result, threads).map(|_| ());
            calls += 1;
        }
        let elapsed = start.elapsed().as_secs_f64();
        // SAFETY: it was started.
        unsafe { (sampler.stop)() };
        outcome?;
        let samples = sampler.origins.iter().cloned().zip(counts.into_iter().map(|n| n as u64)).collect();
        Ok(Some(Profile { calls, call: elapsed / calls as f64, samples }))
    }
}
