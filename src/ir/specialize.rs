//! A function at chosen sizes and values of parameters.
//!
//! ```text
//! f(k: i64, x: [n, d]f64)   at d = 3, k = 2:   f(k: i64, x: [n, 3]f64) = f_generic(2, x)
//! ```
//!
//! The new function has the old one's name and takes what it took; it only says what is known. Inlining does the rest: the
//! body is read at the constants, so that small axes are constant ones.
//!
//! What is likely of a call is no constant: code that is made in the light of it is right for all others, too.

use super::build::{bind_sizes, type_of};
use super::*;

/// What is known of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    pub sizes: Vec<(Var, i64)>,
    /// Parameters by their positions.
    pub params: Vec<(usize, Lit)>,
    /// Parameters, by their positions, of which most numbers are zero: not to be relied upon, but worth a question.
    pub mostly_zero: Vec<usize>,
}

impl Known {
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty() && self.params.is_empty() && self.mostly_zero.is_empty()
    }

    /// `d = 3, k = 2`
    pub fn describe(&self, program: &Program, id: FunctionId) -> Vec<(String, String)> {
        let params = &program.function(id).params;
        let sizes = self.sizes.iter().map(|(v, n)| (program.vars.name(*v).to_string(), n.to_string()));
        let name = |k: usize| program.vars.name(params[k]).to_string();
        let values = self.params.iter().map(|(k, lit)| (name(*k), lit.digits()));
        let zeros = self.mostly_zero.iter().map(|k| (name(*k), "mostly zeros".to_string()));
        sizes.chain(values).chain(zeros).collect()
    }
}

/// Whether callers still give the parameters that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Still,
    Dropped,
}

/// The sizes of a function that are worth knowing if they are small: those that are the first axis of no parameter, so of
/// the parts of an item and not of how many there are.
pub fn inner_sizes(program: &Program, id: FunctionId) -> Vec<Var> {
    fn leads(ty: &Type, size: Var) -> bool {
        match ty {
            Type::Scalar(_) => false,
            Type::Array(shape, _) => shape.first().is_some_and(|s| s.mentions(size)),
            Type::Tuple(parts) => parts.iter().any(|t| leads(t, size)),
        }
    }
    let f = program.function(id);
    let leading = |v: Var| f.params.iter().any(|p| leads(program.vars.ty(*p), v));
    f.sizes.iter().copied().filter(|v| !leading(*v)).collect()
}

/// The function at what is known, in place of itself: its identity is new, and so is the program.
pub fn specialize(program: &Program, id: FunctionId, known: &Known, taken: Taken) -> (Program, FunctionId) {
    let mut program = program.clone();
    let f = program.function(id).clone();
    let mut renamed: rustc_hash::FxHashMap<Var, Size> = known.sizes.iter().map(|(v, n)| (*v, Size::constant(*n))).collect();
    for (k, lit) in &known.params {
        if let Lit::I64(n) = lit {
            renamed.insert(f.params[*k], Size::constant(*n));
        }
    }
    let mut sizes = vec![];
    for v in &f.sizes {
        if !renamed.contains_key(v) {
            let new = program.vars.fresh(program.vars.name(*v).to_string(), Type::I64);
            renamed.insert(*v, Size::var(new));
            sizes.push(new);
        }
    }
    let literal = |k: usize| known.params.iter().find(|(at, _)| *at == k).map(|(_, lit)| *lit);
    // Integers may be sizes of what stands beside them.
    let params: Vec<Var> = f.params.iter().map(|p| program.vars.fresh(program.vars.name(*p).to_string(), Type::I64)).collect();
    for (old, new) in f.params.iter().zip(&params) {
        renamed.entry(*old).or_insert_with(|| Size::var(*new));
    }
    let rename = |ty: &Type| ty.map_sizes(&mut |s| s.substitute(&|v| renamed.get(&v).cloned()));
    for (old, new) in f.params.iter().zip(&params) {
        let ty = rename(program.vars.ty(*old));
        program.vars.set_ty(*new, ty);
    }
    for k in &known.mostly_zero {
        program.vars.set_mostly_zero(params[*k]);
    }
    let args: Vec<Exp> = params.iter().enumerate().map(|(k, v)| literal(k).map_or(Exp::Var(*v), Exp::Lit)).collect();
    let stays = |k: &usize| taken == Taken::Still || literal(*k).is_none();
    let positions: Vec<usize> = (0..params.len()).filter(stays).collect();
    let signature = f
        .signature
        .as_ref()
        .map(|s| Box::new(Signature { params: positions.iter().map(|k| rename(&s.params[*k])).collect(), result: rename(&s.result) }));
    let hidden = f.hidden.map(|h| Hidden { at: positions.iter().filter(|k| **k < h.at).count(), ..h });
    let statics = f.statics.iter().filter_map(|k| positions.iter().position(|p| p == k)).collect();
    let new = Function {
        name: f.name.clone(),
        sizes,
        params: positions.iter().map(|k| params[*k]).collect(),
        result: rename(&f.result),
        body: Body::Exp(Exp::Call(id, args, Site::new(f.span))),
        signature,
        hidden,
        statics,
        span: f.span,
    };
    program.functions[id.0 as usize].name = format!("{}_generic", f.name);
    program.functions.push(new);
    let made = FunctionId(program.functions.len() as u32 - 1);
    (program, made)
}

/// Says what sizes a function is called with: what is likely of its calls is likely of the calls in it.
pub fn expect(program: &mut Program, id: FunctionId, size: &dyn Fn(Var) -> Option<i64>) {
    for v in program.function(id).sizes.clone() {
        if let Some(n) = size(v) {
            program.vars.set_likely(v, n);
        }
    }
    let mut seen = rustc_hash::FxHashSet::default();
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        for (callee, args) in calls(program, id) {
            let types: Vec<Type> = args.iter().map(|e| type_of(program, e)).collect();
            let sizes = bind_sizes(program, callee, &types, &args);
            for v in program.function(callee).sizes.clone() {
                if let Some(n) = sizes.get(&v).and_then(|size| program.vars.likely(size)) {
                    program.vars.set_likely(v, n);
                }
            }
            let params = program.function(callee).params.clone();
            for (param, arg) in params.iter().zip(&args) {
                if matches!(arg, Exp::Var(v) if program.vars.is_mostly_zero(*v)) && !program.vars.is_mostly_zero(*param) {
                    program.vars.set_mostly_zero(*param);
                }
            }
            waiting.push(callee);
        }
    }
}

/// The functions that a function calls, or is derived from, with what they are given.
fn calls(program: &Program, id: FunctionId) -> Vec<(FunctionId, Vec<Exp>)> {
    fn in_exp(exp: &Exp, found: &mut Vec<(FunctionId, Vec<Exp>)>) {
        if let Exp::Call(id, args, _) = exp {
            found.push((*id, args.clone()));
        }
        exp.for_each_child(&mut |e| in_exp(e, found));
    }
    let f = program.function(id);
    // A derivative has the parameters of its function before others.
    let alike = |of: FunctionId| {
        let count = program.function(of).params.len();
        (of, f.params.iter().take(count).map(|v| Exp::Var(*v)).collect())
    };
    let mut found = vec![];
    match &f.body {
        Body::Exp(body) => in_exp(body, &mut found),
        Body::Derived { of, .. } | Body::Jacobian { of, .. } => found.push(alike(*of)),
        Body::Entries(entries) => found.push(alike(entries.of)),
    }
    found
}
