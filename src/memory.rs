//! How much memory there is: what derivatives may keep by default, and how large stacks may be.
//!
//! A process may have a limit on its address space (`ulimit -v`), which all that is mapped counts for, used or not: stacks
//! of threads and reserves of the allocator too. What is taken by default follows what is left of it.
//!
//! Long arrays ask for large pages: with small ones, loops that are bound by memory wait for the translation of addresses too.

/// What a derivative may keep for its way back, in bytes, if nothing else is asked for: half of the machine's memory, or of
/// what a limit leaves. A power of two, so that the same program is compiled alike from call to call.
pub fn budget() -> u64 {
    let most = left().map_or(physical(), |left| left.min(physical()));
    let half = (most / 2).max(1 << 20);
    1 << half.ilog2()
}

/// A stack of so many bytes, or what a limit on address space has room for.
pub fn stack(bytes: usize) -> usize {
    match left() {
        Some(left) => bytes.min((left / 8) as usize).max(1 << 21),
        None => bytes,
    }
}

/// How many threads a limit on address space has room for: each has a stack and a reserve of the allocator.
pub fn threads(wanted: usize) -> usize {
    const EACH: u64 = 160 << 20;
    match left() {
        Some(left) => wanted.min((left / 2 / EACH) as usize).max(1),
        None => wanted,
    }
}

/// Whether memory has been written to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    NotYet,
    Already,
}

/// Asks for large pages below memory that is long enough to gain by them. It is only advice.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn large_pages(start: *const u8, bytes: usize, filled: Filled) {
    const LONG: usize = 4 << 20;
    if bytes < LONG {
        return;
    }
    let page = page() as usize;
    let first = (start as usize).next_multiple_of(page);
    let length = (start as usize + bytes - first) / page * page;
    let advice = match filled {
        Filled::NotYet => libc::MADV_HUGEPAGE,
        Filled::Already => libc::MADV_COLLAPSE,
    };
    // SAFETY: the pages lie within the memory, and keep what is in them.
    unsafe {
        libc::madvise(first as *mut libc::c_void, length, advice);
    }
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn large_pages(_: *const u8, _: usize, _: Filled) {}

/// What is left of the address space, if it is limited.
fn left() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes to the structure that it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    let limited = known && limit.rlim_cur != libc::RLIM_INFINITY;
    limited.then(|| (limit.rlim_cur as u64).saturating_sub(mapped()))
}

/// The address space in use.
fn mapped() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    pages.unwrap_or(0) * page()
}

fn physical() -> u64 {
    // SAFETY: the call takes a number and gives one.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    if pages > 0 { pages as u64 * page() } else { 4 << 30 }
}

fn page() -> u64 {
    // SAFETY: as above.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if bytes > 0 { bytes as u64 } else { 4096 }
}
