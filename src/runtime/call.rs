//! Calling compiled code: values in, values out.
//!
//! The entry takes sizes, and pointers to the leaves of the parameters and of the result; scalars go by pointer as well.
//! Outputs belong to the caller, who may use them again for the next call. The workspace is kept between calls, and so are
//! the sizes: arguments of the same shapes have the same.

use super::cache::{self, Loaded};
use super::pace::Pace;
use super::profile::{Sampler, Start, Stop};
use super::steps::{Fitted, Steps};
use super::{Effort, Error, InLanes, Options};
use crate::bind;
use crate::emit::c::{ABI_VERSION, FAILS_IN_LANES, OTHER_SIZES, entry_name};
use crate::fault::Fault;
use crate::interpret::{Counts, Failure};
use crate::ir::{FunctionId, Program, Type};
use crate::loops::Kernel;
use crate::loops::Site;
use crate::memory::{Filled, large_pages};
use crate::types::Lit;
use crate::value::{Data, Value};
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// `iv_context` of `support/iverson.h`.
#[repr(C)]
struct Context {
    threads: i32,
    code: i32,
    site: i32,
    a: i64,
    b: i64,
    gemm: Option<Gemm<f64>>,
    gemm32: Option<Gemm<f32>>,
    additions: i64,
    multiplications: i64,
    calls: i64,
    copied_bytes: i64,
}

type Entry = unsafe extern "C" fn(*const i64, *const *const c_void, *const *mut c_void, *mut c_void, *mut Context) -> i32;
type Work = unsafe extern "C" fn(*const i64, *const *const c_void) -> i64;
pub(super) type Gemm<T> = extern "C" fn(i64, i64, i64, *mut T, i64, i64, *const T, i64, i64, *const T, i64, i64, T, i32);

const NO_MEMORY: i32 = 100;

pub struct Compiled {
    /// What is called, as it was compiled.
    program: Program,
    id: FunctionId,
    options: Options,
    /// Code for calls of other sizes, and code that runs iteration by iteration, where they were asked for.
    general: OnceLock<Result<Box<Compiled>, Error>>,
    plain: OnceLock<Result<Box<Compiled>, Error>>,
    sites: Vec<Site>,
    code: Code,
    /// What the last call left, unless one is using it.
    spare: Mutex<Option<Spare>>,
    /// Of code for profiling.
    pub(super) sampler: Option<Sampler>,
    /// What the last call copied, in counting builds.
    copied_bytes: AtomicI64,
    pub compile_ms: f64,
    pub from_cache: bool,
    pub c_source: String,
}

enum Code {
    Native {
        entry: Entry,
        work: Work,
        /// Whether it has loops that run on several.
        threads: bool,
        /// Code that uses threads stays loaded: OpenMP's threads wait in a library that would go with it.
        _library: Option<libloading::Library>,
    },
    Steps(Steps),
}

impl Compiled {
    /// The code of a kernel that has been made since `start`.
    pub(super) fn new(
        program: &Program,
        id: FunctionId,
        options: Options,
        kernel: &Kernel,
        c_source: String,
        start: Instant,
    ) -> Result<Compiled, Error> {
        let says_more = options.count || options.profile || options.flush;
        let (code, sampler, from_cache) = match if says_more { None } else { Steps::of(kernel) } {
            Some(steps) => (Code::Steps(steps), None, false),
            None => native(kernel, options, &c_source)?,
        };
        let function = program.function(id).clone();
        let program = Program { vars: program.vars.clone(), functions: vec![function] };
        Ok(Compiled {
            program,
            id: FunctionId(0),
            options,
            general: OnceLock::new(),
            plain: OnceLock::new(),
            sites: kernel.sites.clone(),
            code,
            spare: Mutex::new(None),
            sampler,
            copied_bytes: AtomicI64::new(0),
            compile_ms: start.elapsed().as_secs_f64() * 1e3,
            from_cache,
            c_source,
        })
    }

    /// The value at arguments, of the parameters' types.
    pub fn call(&self, args: &[Value], threads: usize) -> Result<Value, Failure> {
        let mut result = None;
        self.call_into(args, &mut result, threads)?;
        Ok(result.expect("a call that succeeds has a value"))
    }

    /// How many bytes of arrays the last call copied. Only counting builds know.
    pub fn copied_bytes(&self) -> i64 {
        self.copied_bytes.load(Ordering::Relaxed)
    }

    /// The value at arguments, written over `result` where that has the right shape already. Counting builds say what
    /// was executed.
    pub fn call_into(&self, args: &[Value], result: &mut Option<Value>, threads: usize) -> Result<Counts, Failure> {
        let f = self.program.function(self.id);
        let failed = |message: String, note: &str| Failure { site: f.span, called: None, message, note: note.to_string() };
        let spare = self.spare.lock().unwrap_or_else(|e| e.into_inner()).take();
        let (known, kept, leaves) = spare.map_or((None, None, None), |s| (Some(s.sizes), Some(s.workspace), Some(s.leaves)));
        let Leaves { mut inputs, mut outputs } = leaves.unwrap_or_default();
        let mut known = match known.filter(|known| known.are_of(args)) {
            Some(known) => known,
            None => {
                let sizes = bind::sizes(&self.program, self.id, args).map_err(|e| failed(e.message, &e.notes.join("\n")))?;
                let given: Vec<i64> = f.sizes.iter().map(|v| sizes[v]).collect();
                let steps = if let Code::Steps(steps) = &self.code { steps.fitted(&given) } else { None };
                KnownSizes::new(args, given, sizes, steps)
            }
        };
        let (given, sizes) = (&known.given, &known.sizes);
        args.iter().for_each(|a| input_leaves(a, &mut inputs));

        let evaluate = |size: &crate::types::Size| size.evaluate(&|v| sizes.get(&v).copied()).and_then(|n| usize::try_from(n.max(0)).ok());
        if !result.as_ref().is_some_and(|r| fits(r, &f.result, &evaluate)) {
            let made = Value::zero(&f.result, &|v| sizes.get(&v).copied()).map_err(|e| e.about("the result"));
            *result = Some(made.map_err(|e| failed(e.message, &e.notes.join("\n")))?);
        }
        output_leaves(result.as_mut().expect("made above"), &mut outputs);

        let asked = threads.min(i32::MAX as usize) as i32;
        let paced = matches!(self.code, Code::Native { threads: true, .. });
        let mut context = Context {
            threads: if paced { known.pace.threads(asked) } else { asked },
            code: 0,
            site: -1,
            a: 0,
            b: 0,
            gemm: Some(gemm::<f64>),
            gemm32: Some(gemm::<f32>),
            additions: 0,
            multiplications: 0,
            calls: 0,
            copied_bytes: 0,
        };
        // SAFETY: sizes, inputs and outputs are those of the function's type (bound and made above), the workspace is as
        // long as the code asks for, and the library is loaded as long as `self` lives.
        let status = unsafe {
            let bytes = match (&self.code, &known.steps) {
                (Code::Native { work, .. }, _) => usize::try_from(work(given.as_ptr(), inputs.as_ptr())).ok(),
                (Code::Steps(_), Some(steps)) => steps.work,
                (Code::Steps(_), None) => Some(0),
            };
            let bytes = bytes.ok_or_else(|| failed("the call does not fit in memory".into(), "its sizes are too large"))?;
            let workspace = match kept.filter(|w| w.layout.size() >= bytes) {
                Some(w) => w,
                None => Workspace::new(bytes).ok_or_else(|| {
                    failed(format!("the call needs a workspace of {bytes} bytes, which is not to be had"), "take smaller inputs")
                })?,
            };
            let start = paced.then(Instant::now);
            let status = match (&self.code, &known.steps) {
                (Code::Native { entry, .. }, _) => {
                    entry(given.as_ptr(), inputs.as_ptr(), outputs.as_ptr(), workspace.start.cast(), &mut context)
                }
                (Code::Steps(steps), Some(fitted)) => {
                    steps.run(fitted, &inputs, &outputs, workspace.start, context.threads);
                    0
                }
                (Code::Steps(_), None) => {
                    context.code = OTHER_SIZES;
                    OTHER_SIZES
                }
            };
            if let Some(start) = start.filter(|_| status == 0) {
                known.pace.took(context.threads, asked, start.elapsed());
            }
            inputs.clear();
            outputs.clear();
            let leaves = Leaves { inputs, outputs };
            *self.spare.lock().unwrap_or_else(|e| e.into_inner()) = Some(Spare { workspace, sizes: known, leaves });
            status
        };
        self.copied_bytes.store(context.copied_bytes, Ordering::Relaxed);
        if status == 0 {
            let count = |n: i64| n as u64;
            return Ok(Counts {
                additions: count(context.additions),
                multiplications: count(context.multiplications),
                calls: count(context.calls),
            });
        }
        if let Some(other) = self.instead(context.code) {
            return other.map_err(|e| failed(e.message, &e.notes.join("\n")))?.call_into(args, result, threads);
        }
        let site = usize::try_from(context.site).ok().and_then(|k| self.sites.get(k).copied()).unwrap_or(Site::new(f.span));
        Err(match Fault::decode(context.code, context.a, context.b) {
            Some(fault) => Failure::new(site, fault),
            None if context.code == NO_MEMORY => failed("the call does not fit in memory".into(), "take smaller inputs"),
            None => panic!("runtime: compiled code ended with status {status}"),
        })
    }
}

impl Compiled {
    /// The code that runs a call that this code does not.
    fn instead(&self, status: i32) -> Option<Result<&Compiled, Error>> {
        let (place, options) = match status {
            OTHER_SIZES => (&self.general, self.options),
            FAILS_IN_LANES => (&self.plain, Options { lanes: InLanes::None, effort: Effort::Quick, ..self.options }),
            _ => return None,
        };
        let compiled = place.get_or_init(|| super::compile(&self.program, self.id, options).map(Box::new));
        Some(compiled.as_deref().map_err(Error::clone))
    }
}

/// The code of a text, compiled now or before, what profiles it, and whether it was compiled before.
fn native(kernel: &Kernel, options: Options, text: &str) -> Result<(Code, Option<Sampler>, bool), Error> {
    let threads = kernel.has_threads() || options.threads && (options.flush || kernel.shares_products());
    let Loaded { library, from_cache } = cache::library(text, Options { threads, ..options })?;
    let name = entry_name(kernel);
    let missing = |e: libloading::Error| Error::new(format!("the compiled code lacks an entry: {e}"));
    // SAFETY: the symbols have these types in emitted code of this version, which is checked first.
    let (entry, work, sampler) = unsafe {
        let abi: libloading::Symbol<*const i32> = library.get(format!("{name}_abi\0").as_bytes()).map_err(missing)?;
        if **abi != ABI_VERSION {
            return Err(Error::new(format!("the compiled code is of version {}, not {ABI_VERSION}", **abi)));
        }
        let entry: libloading::Symbol<Entry> = library.get(format!("{name}\0").as_bytes()).map_err(missing)?;
        let work: libloading::Symbol<Work> = library.get(format!("{name}_work\0").as_bytes()).map_err(missing)?;
        let clock = library.get::<Start>(b"iv_profile_start\0").ok().zip(library.get::<Stop>(b"iv_profile_stop\0").ok());
        let sampler = clock.map(|(start, stop)| Sampler { start: *start, stop: *stop, origins: kernel.origins.clone() });
        (*entry, *work, sampler)
    };
    Ok((Code::Native { entry, work, threads, _library: keep(library, threads) }, sampler, from_cache))
}

fn keep(library: libloading::Library, threads: bool) -> Option<libloading::Library> {
    if threads {
        std::mem::forget(library);
        None
    } else {
        Some(library)
    }
}

/// What a call leaves for the next.
struct Spare {
    workspace: Workspace,
    sizes: KnownSizes,
    leaves: Leaves,
}

/// Where the arrays and numbers of a call are: empty between calls, so that only the memory is kept.
#[derive(Default)]
struct Leaves {
    inputs: Vec<*const c_void>,
    outputs: Vec<*mut c_void>,
}
// SAFETY: there are no pointers in it when it is kept.
unsafe impl Send for Leaves {}

/// The sizes of a call, and the shapes of arguments that they follow from.
struct KnownSizes {
    shapes: Vec<i64>,
    given: Vec<i64>,
    sizes: bind::Sizes,
    /// Of code that is no more than steps, if it is for such sizes.
    steps: Option<Fitted>,
    pace: Pace,
}

impl KnownSizes {
    fn new(args: &[Value], given: Vec<i64>, sizes: bind::Sizes, steps: Option<Fitted>) -> KnownSizes {
        let mut shapes = vec![];
        args.iter().for_each(|a| shape_words(a, &mut |word| shapes.push(word)));
        KnownSizes { shapes, given, sizes, steps, pace: Pace::default() }
    }
    fn are_of(&self, args: &[Value]) -> bool {
        let mut known = self.shapes.iter();
        let mut same = true;
        args.iter().for_each(|a| shape_words(a, &mut |word| same = same && known.next() == Some(&word)));
        same && known.next().is_none()
    }
}

/// All of a value that sizes may follow from, so that they are the same where it is the same.
fn shape_words(value: &Value, word: &mut impl FnMut(i64)) {
    match value {
        Value::Scalar(lit) => {
            word(0);
            word(lit.scalar() as i64);
            if let Lit::I64(k) = lit {
                word(*k);
            }
        }
        Value::Array(a) => {
            word(1);
            word(a.scalar() as i64);
            word(a.shape.len() as i64);
            a.shape.iter().for_each(|n| word(*n as i64));
        }
        Value::Tuple(parts) => {
            word(2);
            word(parts.len() as i64);
            parts.iter().for_each(|p| shape_words(p, word));
        }
    }
}

/// Memory aligned for vectors.
struct Workspace {
    start: *mut u8,
    layout: std::alloc::Layout,
}
// SAFETY: the memory is owned, and used by one call at a time.
unsafe impl Send for Workspace {}

impl Workspace {
    fn new(bytes: usize) -> Option<Workspace> {
        let layout = std::alloc::Layout::from_size_align(bytes.max(64), 64).ok()?;
        // SAFETY: the layout is not empty.
        let start = unsafe { std::alloc::alloc(layout) };
        if start.is_null() {
            return None;
        }
        large_pages(start, bytes, Filled::NotYet);
        Some(Workspace { start, layout })
    }
}
impl Drop for Workspace {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.start, self.layout) }
    }
}

fn input_leaves(value: &Value, out: &mut Vec<*const c_void>) {
    match value {
        Value::Scalar(Lit::F64(x)) => out.push((x as *const f64).cast()),
        Value::Scalar(Lit::F32(x)) => out.push((x as *const f32).cast()),
        Value::Scalar(Lit::I64(x)) => out.push((x as *const i64).cast()),
        Value::Scalar(Lit::I32(x)) => out.push((x as *const i32).cast()),
        Value::Scalar(Lit::Bool(x)) => out.push((x as *const bool).cast()),
        Value::Array(a) => out.push(match &a.data {
            Data::F64(v) => v.as_ptr().cast(),
            Data::F32(v) => v.as_ptr().cast(),
            Data::I64(v) => v.as_ptr().cast(),
            Data::I32(v) => v.as_ptr().cast(),
            Data::Bool(v) => v.as_ptr().cast(),
        }),
        Value::Tuple(parts) => parts.iter().for_each(|p| input_leaves(p, out)),
    }
}
fn output_leaves(value: &mut Value, out: &mut Vec<*mut c_void>) {
    match value {
        Value::Scalar(Lit::F64(x)) => out.push((x as *mut f64).cast()),
        Value::Scalar(Lit::F32(x)) => out.push((x as *mut f32).cast()),
        Value::Scalar(Lit::I64(x)) => out.push((x as *mut i64).cast()),
        Value::Scalar(Lit::I32(x)) => out.push((x as *mut i32).cast()),
        Value::Scalar(Lit::Bool(x)) => out.push((x as *mut bool).cast()),
        Value::Array(a) => out.push(match &mut a.data {
            Data::F64(v) => v.as_mut_ptr().cast(),
            Data::F32(v) => v.as_mut_ptr().cast(),
            Data::I64(v) => v.as_mut_ptr().cast(),
            Data::I32(v) => v.as_mut_ptr().cast(),
            Data::Bool(v) => v.as_mut_ptr().cast(),
        }),
        Value::Tuple(parts) => parts.iter_mut().for_each(|p| output_leaves(p, out)),
    }
}

type Evaluate<'a> = dyn Fn(&crate::types::Size) -> Option<usize> + 'a;

fn fits(value: &Value, ty: &Type, evaluate: &Evaluate) -> bool {
    match (value, ty) {
        (Value::Scalar(lit), Type::Scalar(s)) => lit.scalar() == *s,
        (Value::Array(a), Type::Array(shape, s)) => {
            a.data.scalar() == *s && a.shape.len() == shape.len() && shape.iter().zip(&a.shape).all(|(size, n)| evaluate(size) == Some(*n))
        }
        (Value::Tuple(values), Type::Tuple(types)) => {
            values.len() == types.len() && values.iter().zip(types).all(|(v, t)| fits(v, t, evaluate))
        }
        _ => false,
    }
}

/// The matrix product of large contractions, by one thread.
pub(super) extern "C" fn gemm<T: Float>(
    rows: i64,
    columns: i64,
    depth: i64,
    dest: *mut T,
    dest_row: i64,
    dest_column: i64,
    left: *const T,
    left_row: i64,
    left_column: i64,
    right: *const T,
    right_row: i64,
    right_column: i64,
    scale: T,
    accumulate: i32,
) {
    // SAFETY: emitted code passes matrices that lie within their buffers.
    unsafe {
        gemm::gemm(
            rows as usize,
            columns as usize,
            depth as usize,
            dest,
            dest_column as isize,
            dest_row as isize,
            accumulate != 0,
            left,
            left_column as isize,
            left_row as isize,
            right,
            right_column as isize,
            right_row as isize,
            T::ONE,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        )
    }
}

/// The floats that there are matrix products of.
pub(super) trait Float: 'static {
    const ONE: Self;
}
impl Float for f64 {
    const ONE: f64 = 1.0;
}
impl Float for f32 {
    const ONE: f32 = 1.0;
}
