//! Threads for work with whole arrays that is not compiled: those of OpenMP, which compiled code has too. Threads of another
//! kind would take the processors from these, which wait for the next loop by looking again and again.

use crate::loops::workspace::LEAST_SHARED;
use std::ffi::c_void;
use std::sync::OnceLock;

/// Runs parts of some work, each once, by as many threads.
pub fn each_part(parts: usize, work: &(dyn Fn(usize) + Sync)) {
    match (parts, openmp()) {
        (0 | 1, _) => (0..parts).for_each(work),
        (_, Some(openmp)) => {
            let job = Job { parts, work, openmp };
            // SAFETY: the job lives until all threads are done with it.
            unsafe { (openmp.parallel)(run, (&raw const job).cast_mut().cast(), parts as u32, 0) }
        }
        (_, None) => std::thread::scope(|scope| {
            (1..parts).for_each(|part| drop(scope.spawn(move || work(part))));
            work(0);
        }),
    }
}

struct Job<'a> {
    parts: usize,
    work: &'a (dyn Fn(usize) + Sync),
    openmp: &'a OpenMp,
}

/// What a thread does: there may be fewer of them than parts.
unsafe extern "C" fn run(job: *mut c_void) {
    // SAFETY: it is the job that `each_part` has handed over, and only read.
    let job = unsafe { &*job.cast::<Job>() };
    // SAFETY: these take nothing, and threads of a team may call them.
    let (own, threads) = unsafe { ((job.openmp.number)() as usize, (job.openmp.count)() as usize) };
    (own..job.parts).step_by(threads.max(1)).for_each(job.work);
}

struct OpenMp {
    parallel: unsafe extern "C" fn(unsafe extern "C" fn(*mut c_void), *mut c_void, u32, u32),
    number: unsafe extern "C" fn() -> i32,
    count: unsafe extern "C" fn() -> i32,
}

/// The library of OpenMP that compiled code runs with: gcc's, or clang's, which has the same entries.
fn openmp() -> Option<&'static OpenMp> {
    static FOUND: OnceLock<Option<OpenMp>> = OnceLock::new();
    FOUND.get_or_init(|| ["libgomp.so.1", "libomp.so.5", "libomp.so"].into_iter().find_map(load)).as_ref()
}

fn load(name: &str) -> Option<OpenMp> {
    // SAFETY: loading it runs nothing but its own initialisation; the entries have these types in all its versions. It stays
    // loaded, since its threads wait in it.
    unsafe {
        let library = libloading::Library::new(name).ok()?;
        let found = OpenMp {
            parallel: *library.get(b"GOMP_parallel\0").ok()?,
            number: *library.get(b"omp_get_thread_num\0").ok()?,
            count: *library.get(b"omp_get_num_threads\0").ok()?,
        };
        std::mem::forget(library);
        Some(found)
    }
}

/// Into how many parts a side of a matrix product is cut for so many threads: `iv_parts` of iverson.h.
pub fn parts_of_product(side: i64, other: i64, depth: i64, threads: i64) -> i64 {
    let least = if other > 64 || depth <= 512 { 32 } else { 72 };
    if threads < 2 || side as f64 * other as f64 * (depth as f64) < LEAST_SHARED || other < 16 {
        return 1;
    }
    threads.min(side / least).max(1)
}

/// Where a part begins: `iv_part_start` of iverson.h.
pub fn part_start(side: i64, parts: i64, part: i64) -> i64 {
    let blocks = (side + 15) / 16;
    side.min(16 * (part * (blocks / parts) + part.min(blocks % parts)))
}

/// Into how many parts so many bytes are cut that are moved or filled.
pub fn parts_of_bytes(bytes: usize, threads: i32) -> usize {
    (bytes / LEAST_BYTES).clamp(1, threads.max(1) as usize)
}
const LEAST_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_part_is_done_once() {
        for parts in [0, 1, 2, 3, 7] {
            let done: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
            each_part(parts, &|part| _ = done[part].fetch_add(1, Ordering::Relaxed));
            assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1), "{parts} parts");
        }
    }

    #[test]
    fn parts_of_products_are_those_of_the_support_code() {
        let text = include_str!("support/iverson.h");
        assert!(text.contains("other > 64 || depth <= 512 ? 32 : 72;"));
        for (side, parts) in [(100, 3), (256, 2), (17, 1), (1000, 7), (64, 2)] {
            assert_eq!((part_start(side, parts, 0), part_start(side, parts, parts)), (0, side));
            assert!((0..parts).all(|p| part_start(side, parts, p) < part_start(side, parts, p + 1)));
        }
    }
}
