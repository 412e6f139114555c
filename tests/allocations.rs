//! A call takes memory a number of times that does not depend on the sizes of its arguments, and none inside loops.

use iverson::check::{DerivativeKind, check, derive};
use iverson::pipeline::prepare;
use iverson::runtime::{self, Options};
use iverson::syntax::parse;
use iverson::value::{Array, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(start, layout, size) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_number_of_allocations_does_not_depend_on_sizes() {
    let text = "def f(A: [n, m]f64, x: [m]f64) -> f64 =
      sum i. let z = for j. tanh(A[i, j] * x[j]); let s = sum j. z[j]; sum j. (z[j] - s)^2 * (sum k in 0..j. z[k])";
    let (module, wrong) = parse(0, text);
    assert!(wrong.is_empty());
    let (mut program, wrong) = check(&module);
    assert!(wrong.is_empty(), "{wrong:?}");
    let f = program.find("f").unwrap();
    let grad = derive(&mut program, f, DerivativeKind::Grad, None).unwrap();
    let compiled = runtime::compile(&prepare(&program, grad, None), grad, Options::default()).unwrap();
    // The only memory that compiled code may take itself grows with data, and this program has none.
    assert!(!compiled.c_source.contains("iv_reserve_bytes("), "{}", compiled.c_source);
    let mut counts = vec![];
    for n in [1, 7, 100, 1000] {
        let m = n / 2 + 1;
        let args = [Value::Array(Array::f64(vec![n, m], vec![0.5; n * m])), Value::from(vec![0.25; m])];
        let mut result = None;
        compiled.call_into(&args, &mut result, 1).unwrap();
        let before = COUNT.load(Ordering::Relaxed);
        compiled.call_into(&args, &mut result, 1).unwrap();
        counts.push(COUNT.load(Ordering::Relaxed) - before);
    }
    assert!(counts.iter().all(|c| *c == counts[0]), "{counts:?}");
}
