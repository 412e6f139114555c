//! The core IR: what Iverson programs mean, differentiate and optimise as.
//!
//! It is a small pure expression language. Its constructs come in transposed pairs, so that the adjoint of a program
//! is a program:
//!
//! | construct              | its transpose               |
//! |------------------------|-----------------------------|
//! | `x[k]` read            | `{k -> v}` singleton        |
//! | `for i. e` generate    | `sum i. e`                  |
//! | a variable used twice  | `a + b`                     |
//! | `[p] * e` guard        | itself                      |
//! | scalar operation       | scaling by its partials     |
//!
//! Every expression prints as Iverson and reads back as the same expression up to renaming (`print.rs`).
//! Every variable is bound once in a program; its name and type stand in `Vars`.
//! Sizes are `i64` variables like others, so that a size may stand wherever a number may.
//!
//! **Meaning.** Evaluation is strict and left to right, but: `[p] * e` and `if` evaluate only what is chosen, and
//! `e` under a binder is evaluated once for each index. A read or singleton out of range is an error.
//! `sum` starts at zero; `prod max min any all` of nothing are their neutral elements; `argmax`/`argmin` of nothing are
//! errors. A `loop` that runs no iteration is its first state. Ties go to the lowest index; NaN wins in `max min argmax argmin`.
//! A binder over a tuple acts on each part: `for i. (a, b)` is two arrays, `sum i. (a, b)` two sums.

pub mod build;
pub mod destination;
pub mod facts;
pub mod fingerprint;
pub mod graft;
pub mod equal;
pub mod print;
pub mod specialize;
pub mod summed;
pub mod traverse;
pub mod verify;
pub mod widen;

use crate::diagnostic::Span;
pub use crate::scalar::Op;
pub use crate::types::{Lit, Scalar, Size, Type, Var};

/// Where in the source a construct that can fail came from. All sites are equal: programs are compared without them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    pub span: Span,
    /// The adjoint of a read: it stands where the read did not fail, so it may be dissolved without being checked.
    pub passed: bool,
    /// A read at a place that the compiler put there itself: it never fails, wherever it stands, and is not checked.
    pub certain: bool,
    /// The program's call of the library that the construct stands in, if the construct is the library's.
    pub called: Option<Span>,
}
impl Site {
    pub fn new(span: Span) -> Site {
        Site { span, passed: false, certain: false, called: None }
    }
    /// The same place in a body that is put in the place of a call.
    pub fn called_from(self, call: Span) -> Site {
        match self.called {
            None if self.span.is_of_library() && !call.is_of_library() && call != Span::default() => Site { called: Some(call), ..self },
            _ => self,
        }
    }
    /// The place, if it is known.
    pub fn known(self) -> Option<Span> {
        Some(self.span).filter(|span| *span != Span::default())
    }
    pub fn passed(self) -> Site {
        Site { passed: true, ..self }
    }
    pub fn certain(self) -> Site {
        Site { certain: true, ..self }
    }
}
impl PartialEq for Site {
    fn eq(&self, _: &Site) -> bool {
        true
    }
}
impl Eq for Site {}
impl std::hash::Hash for Site {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// Reductions other than `sum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    Prod,
    Max,
    Min,
    ArgMax,
    ArgMin,
    Any,
    All,
}

impl Reduction {
    /// What a reduction of nothing is; `argmax` and `argmin` compare their first element with it.
    pub fn neutral(self, scalar: Scalar) -> Lit {
        match self {
            Reduction::Prod => Lit::one(scalar),
            Reduction::Max | Reduction::ArgMax => Lit::lowest(scalar),
            Reduction::Min | Reduction::ArgMin => Lit::highest(scalar),
            Reduction::Any => Lit::Bool(false),
            Reduction::All => Lit::Bool(true),
        }
    }
}

/// `index in lo..hi`, empty where `hi <= lo`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    pub index: Var,
    pub lo: Exp,
    pub hi: Exp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Exp {
    Var(Var),
    Lit(Lit),
    /// A scalar operation on scalars. `Op::Add` alone also acts on arrays and tuples of one type, part by part.
    Op(Op, Vec<Exp>, Site),
    /// The partial derivative of a scalar operation by one argument. It counts as one call, with the product that applies
    /// it to a tangent or an adjoint. The operands are those of `x`, `y` (its arguments) and `r` (its result) that the
    /// formula in `scalar.rs` uses, in this order.
    Partial(Op, usize, Vec<Exp>),
    /// `array[k, l]`: at least one index, at most one per axis.
    Index(Box<Exp>, Vec<Exp>, Site),
    /// `{(k, l) -> value}`: zero but for one place. Each key has the size of its axis.
    Singleton(Vec<(Exp, Size)>, Box<Exp>, Site),
    /// `for index in 0..size. body`
    For(Var, Size, Box<Exp>),
    /// `sum index in lo..hi. body`, of any type with floats or integers.
    Sum(Box<Range>, Box<Exp>),
    /// A reduction of scalars.
    Reduce(Reduction, Box<Range>, Box<Exp>, Site),
    /// `history state = init for index in 0..size do body`: every state of a loop, the first included, so one place
    /// more than `size` in front of the state's axes.
    History(Box<History>),
    /// `loop state = init for index in lo..hi do body`, or `… while condition do body`: the last state.
    Loop(Box<Iteration>),
    /// `array with [k, l] = value`: the array but for one place, or one row if there are fewer keys than axes.
    Update(Box<Exp>, Vec<Exp>, Box<Exp>, Site),
    /// `[p] * e`: `e` where `p`, else the zero of its type; `e` is not evaluated where `p` is false.
    Guard(Box<Exp>, Box<Exp>),
    If(Box<Exp>, Box<Exp>, Box<Exp>),
    /// `let x = value; body`, or with several variables `let (x, y) = value; body` of a tuple.
    Let(Vec<Var>, Box<Exp>, Box<Exp>),
    /// Not of length 1.
    Tuple(Vec<Exp>),
    /// `[a, b, c]`, at least one element, none a tuple.
    Array(Vec<Exp>),
    Call(FunctionId, Vec<Exp>, Site),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct History {
    /// The carried state at the start of an iteration: one variable, or several for a tuple state.
    pub state: Vec<Var>,
    pub init: Exp,
    pub index: Var,
    pub size: Size,
    /// The state after the iteration, of the state's type.
    pub body: Exp,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iteration {
    /// The carried state at the start of an iteration: one variable, or several for a tuple state.
    pub state: Vec<Var>,
    pub init: Exp,
    pub trip: Trip,
    /// The state after the iteration, of the state's type.
    pub body: Exp,
    /// How the loop is to be differentiated, and `#[bound(n)]`; they change no value. Each at most once.
    pub annotations: Vec<(Annotation, Size)>,
}

impl Iteration {
    /// How often it runs at most, where that is said.
    pub fn bound(&self) -> Option<&Size> {
        self.annotations.iter().find(|(a, _)| *a == Annotation::Bound).map(|(_, n)| n)
    }
}

/// What may be asked for a loop, with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Annotation {
    /// `#[stripmine(k)]`: as `k` loops in one another, so that fewer states are kept and more is run again.
    Stripmine,
    /// `#[checkpoint(every = k)]`: keep every `k`-th state, and run what is between them again.
    Checkpoint,
    /// `#[bound(n)]`: a `while` loop runs at most `n` times; that it goes on is an error.
    Bound,
}

impl Annotation {
    pub const ALL: [Annotation; 3] = [Annotation::Stripmine, Annotation::Checkpoint, Annotation::Bound];

    pub fn name(self) -> &'static str {
        match self {
            Annotation::Stripmine => "stripmine",
            Annotation::Checkpoint => "checkpoint",
            Annotation::Bound => "bound",
        }
    }
    /// The name of its argument, where it has one.
    pub fn argument(self) -> Option<&'static str> {
        match self {
            Annotation::Checkpoint => Some("every"),
            Annotation::Stripmine | Annotation::Bound => None,
        }
    }
}

/// How often a loop runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trip {
    For(Range),
    /// As long as the condition on the state holds.
    While(Exp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Sizes bound by the parameters' types, in order of appearance; `i64` variables in the body.
    pub sizes: Vec<Var>,
    pub params: Vec<Var>,
    /// In the sizes and the `i64` parameters.
    pub result: Type,
    pub body: Body,
    /// The types as they are written, where there are records among them: here they are tuples.
    pub signature: Option<Box<Signature>>,
    /// Parameters that no caller gives: sizes of the result that depend on data.
    pub hidden: Option<Hidden>,
    /// The positions of parameters that change seldom: code may be made for their values. They change no value.
    pub statics: Vec<usize>,
    pub span: Span,
}

/// The derivatives of a function that the program gives, one of them at least: `jvp f(params.., tangents..)`, linear in the
/// tangents of all float parameters, and `vjp f(params.., seed)`, linear in the seed. Calls of such a function stay in a
/// program until no derivative is taken any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub jvp: Option<FunctionId>,
    pub vjp: Option<FunctionId>,
    /// Where one is missing, the other's transpose takes its place: its `vjp` by the tangents, or by the seed.
    pub transposed: Option<FunctionId>,
}

impl Rules {
    /// The functions that the program gives.
    pub fn given(&self) -> impl Iterator<Item = FunctionId> + use<> {
        self.jvp.into_iter().chain(self.vjp)
    }
}

/// What the types of a function's calls are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    pub sizes: Vec<Var>,
    pub params: Vec<Var>,
    pub result: Type,
    pub rules: Option<Rules>,
    /// The parameter from which on it is linear in them: in a rule, what stands behind its function's parameters.
    pub linear_from: usize,
}

/// `count` parameters from `at` on are the results of another function on the parameters before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    pub at: usize,
    pub count: usize,
    pub sizes: FunctionId,
}

impl Function {
    /// Whether a parameter is one that no caller gives.
    pub fn hides(&self, k: usize) -> bool {
        self.hidden.is_some_and(|h| (h.at..h.at + h.count).contains(&k))
    }
    /// The parameters that callers give, with their positions.
    pub fn visible(&self) -> impl Iterator<Item = (usize, Var)> + '_ {
        self.params.iter().copied().enumerate().filter(|(k, _)| !self.hides(*k))
    }
}

/// The types of parameters and result with the names of fields, for who calls a function from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub params: Vec<Type>,
    pub result: Type,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Exp(Exp),
    /// To be defined by `differentiate`. With respect to the parameters `wrt` (positions, ascending):
    /// * `jvp_f(params.., tangents of wrt..) -> (result, tangent of the result)`
    /// * `vjp_f(params.., seed) -> (result, adjoints of wrt)`, the adjoints a tuple if several
    Derived {
        mode: Mode,
        of: FunctionId,
        wrt: Vec<usize>,
    },
    /// To be defined by `sparse`: the entries of the Jacobian of a function.
    Entries(Box<Entries>),
    /// The dense Jacobian of `of` by the parameters `wrt` (positions, in the order of the columns), in the mode that `pipeline`
    /// finds cheaper.
    Jacobian {
        of: FunctionId,
        wrt: Vec<usize>,
    },
}

/// The entries of the Jacobian of `of` by the parameters `wrt` (positions, in the order of the columns).
/// * `EntriesPart::Count`: `count_f(params..) -> i64`, a tuple over the matrices if there are several
/// * `EntriesPart::Entries`: `entries_f(params.., counts..) -> ([count]i64, [count]i64, [count]T)`, rows, columns and
///   values of each matrix
/// * `EntriesPart::Stored`: `stored_f(params.., counts..) -> i64`, how many places the compressed rows of each matrix have
/// * `EntriesPart::Rows`: `rows_f(params.., counts.., stored..) -> ([rows + 1]i64, [stored]i64, [stored]T)`, where each row
///   begins, and columns and values of the places, of each matrix
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries {
    pub part: EntriesPart,
    pub of: FunctionId,
    pub wrt: Vec<usize>,
    /// `jvp_f` and `vjp_f` by these parameters; the cheaper one is taken where there are both.
    pub forward: Option<FunctionId>,
    pub reverse: Option<FunctionId>,
    /// One matrix of all results by all parameters; else one for each part of the result and each of the parameters.
    pub stack: bool,
    pub triangle: Option<Triangle>,
    /// Of `Rows` the type of indices, `i64` or `i32`.
    pub index: Scalar,
    /// For `Stored` and `Rows` the library's functions for compressed rows.
    pub library: Vec<FunctionId>,
}

impl Entries {
    /// How many parameters there are behind those of the function, for so many matrices.
    pub fn extra(&self, matrices: usize) -> usize {
        match self.part {
            EntriesPart::Count => 0,
            EntriesPart::Entries | EntriesPart::Stored => matrices,
            EntriesPart::Rows => 2 * matrices,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntriesPart {
    Count,
    Entries,
    Stored,
    Rows,
}

/// The part of a square matrix on one side of its diagonal, which is in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Triangle {
    Lower,
    Upper,
}

impl Triangle {
    pub fn name(self) -> &'static str {
        match self {
            Triangle::Lower => "lower",
            Triangle::Upper => "upper",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Jvp,
    Vjp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarInfo {
    /// As the user wrote it; the printer numbers names only where they clash.
    pub name: String,
    pub ty: Type,
    /// Where it was bound, if a user bound it; copies of a variable have it too.
    pub origin: Site,
}

/// The table of variables. Cloned with its program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vars {
    infos: Vec<VarInfo>,
    /// The functions with rules and the rules themselves: calls of them are differentiated and optimised.
    headings: std::collections::BTreeMap<FunctionId, Heading>,
    retyped: Retyped,
    /// Parameters of which most numbers are zero in the calls that the program is for.
    mostly_zero: Vec<Var>,
    /// Sizes in these calls: what they are worth is asked, and nothing is right for them alone.
    likely: std::collections::BTreeMap<Var, i64>,
}

/// How often a variable got another type: what is remembered of expressions holds as long as this is the same. It says
/// nothing about a program, so all are equal.
#[derive(Clone, Copy, Debug, Default)]
struct Retyped(u64);
impl PartialEq for Retyped {
    fn eq(&self, _: &Retyped) -> bool {
        true
    }
}
impl Eq for Retyped {}

impl Vars {
    pub fn heading(&self, id: FunctionId) -> &Heading {
        self.headings.get(&id).expect("calls of functions without rules are inlined before")
    }
    /// The derivatives that the program gives for a function itself.
    pub fn rules(&self, id: FunctionId) -> Option<Rules> {
        self.headings.get(&id).and_then(|heading| heading.rules)
    }
    /// The parameters that a function is known to be linear in.
    pub fn linear_params(&self, id: FunctionId) -> &[Var] {
        self.headings.get(&id).map_or(&[], |heading| &heading.params[heading.linear_from..])
    }
    /// For a program whose functions have other numbers.
    pub fn forget_headings(&mut self) {
        self.headings.clear();
    }
    pub fn set_heading(&mut self, id: FunctionId, heading: Heading) {
        self.headings.insert(id, heading);
    }

    pub fn fresh(&mut self, name: impl Into<String>, ty: Type) -> Var {
        self.infos.push(VarInfo { name: name.into(), ty, origin: Site::default() });
        Var(self.infos.len() as u32 - 1)
    }
    /// A variable of the same name and origin.
    pub fn fresh_like(&mut self, var: Var, ty: Type) -> Var {
        let VarInfo { name, origin, .. } = &self.infos[var.0 as usize];
        self.infos.push(VarInfo { name: name.clone(), ty, origin: *origin });
        Var(self.infos.len() as u32 - 1)
    }
    pub fn set_origin(&mut self, var: Var, span: Span) {
        self.infos[var.0 as usize].origin = Site::new(span);
    }
    pub fn origin(&self, var: Var) -> Option<Span> {
        self.infos.get(var.0 as usize).map(|info| info.origin.span).filter(|span| span.end > span.start)
    }
    pub fn name(&self, var: Var) -> &str {
        &self.infos[var.0 as usize].name
    }
    pub fn ty(&self, var: Var) -> &Type {
        &self.infos[var.0 as usize].ty
    }
    pub fn set_ty(&mut self, var: Var, ty: Type) {
        let own = &mut self.infos[var.0 as usize].ty;
        if *own != ty {
            *own = ty;
            self.retyped.0 += 1;
        }
    }
    /// A number that changes whenever a variable gets another type.
    pub fn retyped(&self) -> u64 {
        self.retyped.0
    }
    pub fn set_mostly_zero(&mut self, var: Var) {
        self.mostly_zero.push(var);
    }
    pub fn is_mostly_zero(&self, var: Var) -> bool {
        self.mostly_zero.contains(&var)
    }
    pub fn has_mostly_zero(&self) -> bool {
        !self.mostly_zero.is_empty()
    }
    pub fn set_likely(&mut self, size: Var, value: i64) {
        self.likely.entry(size).or_insert(value);
    }
    /// What a size is in the calls that the program is for, where that is known.
    pub fn likely(&self, size: &Size) -> Option<i64> {
        size.evaluate(&|v| self.likely.get(&v).copied())
    }
    pub fn has_likely(&self) -> bool {
        !self.likely.is_empty()
    }
    pub fn rename(&mut self, var: Var, name: impl Into<String>) {
        self.infos[var.0 as usize].name = name.into();
    }
    pub fn count(&self) -> usize {
        self.infos.len()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub vars: Vars,
    pub functions: Vec<Function>,
}

impl Program {
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }
    /// The type of a parameter as it is written, records with their fields.
    pub fn param_type(&self, id: FunctionId, k: usize) -> &Type {
        let f = self.function(id);
        f.signature.as_ref().map_or_else(|| self.vars.ty(f.params[k]), |s| &s.params[k])
    }
    /// The type of the result as it is written, records with their fields.
    pub fn result_type(&self, id: FunctionId) -> &Type {
        let f = self.function(id);
        f.signature.as_ref().map_or(&f.result, |s| &s.result)
    }
    pub fn find(&self, name: &str) -> Option<FunctionId> {
        self.functions.iter().position(|f| f.name == name).map(|k| FunctionId(k as u32))
    }
}
