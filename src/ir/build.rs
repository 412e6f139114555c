//! Building expressions: short constructors, types of expressions, sizes as expressions and back, zeros.

use super::*;
use crate::types::size::Atom;

impl From<Var> for Exp {
    fn from(var: Var) -> Exp {
        Exp::Var(var)
    }
}

pub fn f64(value: f64) -> Exp {
    Exp::Lit(Lit::F64(value))
}
/// A float of the type that is nearest.
pub fn float(scalar: Scalar, value: f64) -> Exp {
    Exp::Lit(Lit::float(scalar, value))
}
pub fn i64(value: i64) -> Exp {
    Exp::Lit(Lit::I64(value))
}
pub fn bool(value: bool) -> Exp {
    Exp::Lit(Lit::Bool(value))
}
pub fn op1(op: Op, a: impl Into<Exp>) -> Exp {
    Exp::Op(op, vec![a.into()], Site::default())
}
pub fn op2(op: Op, a: impl Into<Exp>, b: impl Into<Exp>) -> Exp {
    Exp::Op(op, vec![a.into(), b.into()], Site::default())
}
pub fn add(a: impl Into<Exp>, b: impl Into<Exp>) -> Exp {
    op2(Op::Add, a, b)
}
pub fn sub(a: impl Into<Exp>, b: impl Into<Exp>) -> Exp {
    op2(Op::Sub, a, b)
}
pub fn mul(a: impl Into<Exp>, b: impl Into<Exp>) -> Exp {
    op2(Op::Mul, a, b)
}

/// `array[keys]`; of no keys the array itself, of an index of an index one index.
pub fn index(array: impl Into<Exp>, keys: Vec<Exp>, site: Site) -> Exp {
    if keys.is_empty() {
        return array.into();
    }
    match array.into() {
        Exp::Index(inner, mut first, _) => {
            first.extend(keys);
            Exp::Index(inner, first, site)
        }
        array => Exp::Index(Box::new(array), keys, site),
    }
}
/// `{keys -> value}`; of no keys the value itself, of a singleton of a singleton one singleton.
pub fn singleton(keys: Vec<(Exp, Size)>, value: impl Into<Exp>, site: Site) -> Exp {
    if keys.is_empty() {
        return value.into();
    }
    match value.into() {
        Exp::Singleton(inner, value, _) => Exp::Singleton(keys.into_iter().chain(inner).collect(), value, site),
        value => Exp::Singleton(keys, Box::new(value), site),
    }
}
pub fn for_(var: Var, size: Size, body: impl Into<Exp>) -> Exp {
    Exp::For(var, size, Box::new(body.into()))
}
pub fn sum(index: Var, lo: Exp, hi: Exp, body: impl Into<Exp>) -> Exp {
    Exp::Sum(Box::new(Range { index, lo, hi }), Box::new(body.into()))
}
pub fn guard(p: impl Into<Exp>, e: impl Into<Exp>) -> Exp {
    Exp::Guard(Box::new(p.into()), Box::new(e.into()))
}
pub fn if_(p: impl Into<Exp>, a: impl Into<Exp>, b: impl Into<Exp>) -> Exp {
    Exp::If(Box::new(p.into()), Box::new(a.into()), Box::new(b.into()))
}
pub fn let_(vars: Vec<Var>, value: impl Into<Exp>, body: impl Into<Exp>) -> Exp {
    Exp::Let(vars, Box::new(value.into()), Box::new(body.into()))
}
/// A tuple, or the part itself if there is one.
pub fn tuple(mut parts: Vec<Exp>) -> Exp {
    if parts.len() == 1 { parts.pop().unwrap() } else { Exp::Tuple(parts) }
}
pub fn tuple_type(mut parts: Vec<Type>) -> Type {
    if parts.len() == 1 { parts.pop().unwrap() } else { Type::tuple(parts) }
}

/// Whether a product applies a partial derivative: the two count as one call.
pub fn applies_partial(op: Op, args: &[Exp]) -> bool {
    op == Op::Mul && args.iter().any(|e| matches!(e, Exp::Partial(..)))
}

/// The expression in another type of number.
pub fn convert(exp: Exp, from: Scalar, to: Scalar) -> Exp {
    match Op::conversion(to) {
        Some(op) if from != to => op1(op, exp),
        _ => exp,
    }
}

/// Nested lets around a body, the first binding outermost.
pub fn lets(bindings: Vec<(Vec<Var>, Exp)>, body: Exp) -> Exp {
    bindings.into_iter().rev().fold(body, |body, (vars, value)| let_(vars, value, body))
}

/// The zero of a type: a literal under `for`s.
pub fn zero(vars: &mut Vars, ty: &Type) -> Exp {
    match ty {
        Type::Scalar(s) => Exp::Lit(Lit::zero(*s)),
        Type::Array(shape, s) => shape.iter().rev().fold(Exp::Lit(Lit::zero(*s)), |body, size| {
            let k = vars.fresh("i", Type::I64);
            for_(k, size.clone(), body)
        }),
        Type::Tuple(parts) => Exp::Tuple(parts.iter().map(|t| zero(vars, t)).collect()),
    }
}
/// Whether the expression is `zero` of its type (its bits are +0, false or 0 everywhere).
pub fn is_zero(exp: &Exp) -> bool {
    match exp {
        Exp::Lit(lit) => *lit == Lit::zero(lit.scalar()),
        Exp::For(_, _, body) => is_zero(body),
        Exp::Tuple(parts) => parts.iter().all(is_zero),
        Exp::Guard(p, e) => **p == bool(false) && is_zero(e),
        _ => false,
    }
}

/// A size as an expression.
pub fn size_exp(size: &Size) -> Exp {
    let mut total: Option<Exp> = None;
    for (monomial, coefficient) in ordered_terms(size) {
        let mut product: Option<Exp> = None;
        for atom in monomial.iter() {
            let factor = match atom {
                Atom::Var(v) => Exp::Var(*v),
                Atom::Div(a, b) => op2(Op::IDiv, size_exp(a), size_exp(b)),
                Atom::Mod(a, b) => op2(Op::IMod, size_exp(a), size_exp(b)),
                Atom::Min(a, b) => op2(Op::Min, size_exp(a), size_exp(b)),
                Atom::Max(a, b) => op2(Op::Max, size_exp(a), size_exp(b)),
            };
            product = Some(match product {
                None => factor,
                Some(p) => mul(p, factor),
            });
        }
        let magnitude = coefficient.wrapping_abs();
        let term = match product {
            None => i64(magnitude),
            Some(p) if magnitude == 1 => p,
            Some(p) => mul(i64(magnitude), p),
        };
        total = Some(match total {
            None if coefficient < 0 => match term {
                Exp::Lit(Lit::I64(c)) => i64(c.wrapping_neg()),
                term => op1(Op::Neg, term),
            },
            None => term,
            Some(t) if coefficient < 0 => sub(t, term),
            Some(t) => add(t, term),
        });
    }
    total.unwrap_or_else(|| i64(0))
}
/// Higher degrees first, constants last, positive before negative: `n - 1`, not `-1 + n`.
fn ordered_terms(size: &Size) -> Vec<(&crate::types::size::Monomial, i64)> {
    let mut terms: Vec<_> = size.terms().collect();
    terms.sort_by_key(|(m, c)| (m.is_empty(), *c < 0, std::cmp::Reverse(m.len())));
    terms
}

/// An integer expression as a size; `None` where it is no polynomial in variables, `div`, `mod`, `min`, `max`.
pub fn exp_size(exp: &Exp) -> Option<Size> {
    Some(match exp {
        Exp::Var(v) => Size::var(*v),
        Exp::Lit(Lit::I64(c)) => Size::constant(*c),
        Exp::Op(op, args, _) => {
            let sizes: Vec<Size> = args.iter().map(exp_size).collect::<Option<_>>()?;
            match (op, sizes.as_slice()) {
                (Op::Add, [a, b]) => a.add(b),
                (Op::Sub, [a, b]) => a.sub(b),
                (Op::Mul, [a, b]) => a.mul(b),
                (Op::Neg, [a]) => a.scale(-1),
                (Op::IDiv, [a, b]) => a.div(b),
                (Op::IMod, [a, b]) => a.modulo(b),
                (Op::Min, [a, b]) => a.minimum(b),
                (Op::Max, [a, b]) => a.maximum(b),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// The type of a well-typed expression.
pub fn type_of(program: &Program, exp: &Exp) -> Type {
    type_in(&program.vars, Some(program), exp)
}
/// The type of an expression without calls.
pub fn type_of_exp(vars: &Vars, exp: &Exp) -> Type {
    type_in(vars, None, exp)
}

/// The scalar that an expression without calls is; `None` where it is no scalar. Nothing is allocated to know it.
pub fn scalar_of(vars: &Vars, exp: &Exp) -> Option<Scalar> {
    let whole = |e: &Exp| match type_of_exp(vars, e) {
        Type::Scalar(s) => Some(s),
        Type::Array(..) | Type::Tuple(_) => None,
    };
    match exp {
        Exp::Var(v) => match vars.ty(*v) {
            Type::Scalar(s) => Some(*s),
            Type::Array(..) | Type::Tuple(_) => None,
        },
        Exp::Lit(lit) => Some(lit.scalar()),
        Exp::Op(op, args, _) => match op.result_of(scalar_of(vars, &args[0])?) {
            Some(s) => Some(s),
            None => whole(exp),
        },
        Exp::Index(array, keys, _) => match &**array {
            Exp::Var(v) => match vars.ty(*v) {
                Type::Array(shape, s) => (shape.len() == keys.len()).then_some(*s),
                Type::Scalar(_) | Type::Tuple(_) => None,
            },
            _ => whole(exp),
        },
        Exp::Reduce(kind, _, body, _) => match kind {
            Reduction::ArgMax | Reduction::ArgMin => Some(Scalar::I64),
            Reduction::Any | Reduction::All => Some(Scalar::Bool),
            Reduction::Prod | Reduction::Max | Reduction::Min => scalar_of(vars, body),
        },
        Exp::Sum(_, e) | Exp::Guard(_, e) | Exp::If(_, e, _) | Exp::Let(_, _, e) => scalar_of(vars, e),
        Exp::Loop(l) => scalar_of(vars, &l.init),
        Exp::Singleton(..) | Exp::For(..) | Exp::History(_) | Exp::Update(..) | Exp::Tuple(_) | Exp::Array(_) => None,
        Exp::Partial(..) | Exp::Call(..) => whole(exp),
    }
}

fn type_in(vars: &Vars, program: Option<&Program>, exp: &Exp) -> Type {
    let of = |e: &Exp| type_in(vars, program, e);
    match exp {
        Exp::Var(v) => vars.ty(*v).clone(),
        Exp::Lit(lit) => Type::Scalar(lit.scalar()),
        Exp::Op(op, args, _) => match of(&args[0]) {
            // The first operand's type tells the result's, so a chain of operations is walked along one side only.
            Type::Scalar(s) => Type::Scalar(op.result_of(s).unwrap_or_else(|| {
                let kinds: Vec<Scalar> = args.iter().filter_map(|a| of(a).scalar()).collect();
                op.result(&kinds).unwrap_or_else(|| panic!("{op:?} on {kinds:?}"))
            })),
            other => other,
        },
        // The floats among the operands have the type of the result.
        Exp::Partial(op, _, operands) => {
            operands.iter().map(of).find(Type::has_float).unwrap_or_else(|| panic!("a partial of {op:?} has no float operand"))
        }
        Exp::Index(array, keys, _) => of(array).without_axes(keys.len()).expect("at most one index per axis"),
        Exp::Singleton(keys, value, _) => keys.iter().rev().fold(of(value), |ty, (_, size)| ty.with_axis(size)),
        Exp::For(_, size, body) => of(body).with_axis(size),
        Exp::Sum(_, body) => of(body),
        Exp::Reduce(kind, _, body, _) => match kind {
            Reduction::ArgMax | Reduction::ArgMin => Type::I64,
            Reduction::Any | Reduction::All => Type::BOOL,
            Reduction::Prod | Reduction::Max | Reduction::Min => of(body),
        },
        Exp::History(h) => of(&h.init).with_axis(&h.size.add(&Size::constant(1))),
        Exp::Loop(l) => of(&l.init),
        Exp::Update(array, _, _, _) => of(array),
        Exp::Guard(_, e) => of(e),
        Exp::If(_, a, _) => of(a),
        Exp::Let(_, _, body) => of(body),
        Exp::Tuple(parts) => Type::Tuple(parts.iter().map(of).collect()),
        Exp::Array(items) => of(&items[0]).with_axis(&Size::constant(items.len() as i64)),
        Exp::Call(id, args, _) => {
            let types: Vec<Type> = args.iter().map(of).collect();
            match program {
                Some(program) => call_type(program, *id, &types, args),
                None => {
                    let heading = vars.heading(*id);
                    let bound = bind_sizes_of(vars, &heading.sizes, &heading.params, &types, args);
                    heading.result.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()))
                }
            }
        }
    }
}

/// The result type of a call: the callee's sizes are read off the arguments' types, its `i64` parameters replaced
/// by the arguments (where these are sizes).
pub fn call_type(program: &Program, id: FunctionId, arg_types: &[Type], args: &[Exp]) -> Type {
    let f = program.function(id);
    let bound = bind_sizes(program, id, arg_types, args);
    f.result.map_sizes(&mut |s| s.substitute(&|v| bound.get(&v).cloned()))
}

/// What the sizes and `i64` parameters of a function stand for in a call.
pub fn bind_sizes(program: &Program, id: FunctionId, arg_types: &[Type], args: &[Exp]) -> rustc_hash::FxHashMap<Var, Size> {
    let f = program.function(id);
    bind_sizes_of(&program.vars, &f.sizes, &f.params, arg_types, args)
}
fn bind_sizes_of(vars: &Vars, sizes: &[Var], params: &[Var], arg_types: &[Type], args: &[Exp]) -> rustc_hash::FxHashMap<Var, Size> {
    let mut bound = rustc_hash::FxHashMap::default();
    fn bind(sizes: &[Var], param: &Type, arg: &Type, bound: &mut rustc_hash::FxHashMap<Var, Size>) {
        match (param, arg) {
            (Type::Array(p, _), Type::Array(a, _)) => {
                for (p, a) in p.iter().zip(a) {
                    if let Some(v) = p.as_var().filter(|v| sizes.contains(v)) {
                        bound.entry(v).or_insert_with(|| a.clone());
                    }
                }
            }
            (Type::Tuple(p), Type::Tuple(a)) => p.iter().zip(a).for_each(|(p, a)| bind(sizes, p, a, bound)),
            _ => {}
        }
    }
    for ((param, ty), arg) in params.iter().zip(arg_types).zip(args) {
        bind(sizes, vars.ty(*param), ty, &mut bound);
        if *ty == Type::I64 {
            if let Some(size) = exp_size(arg) {
                bound.insert(*param, size);
            }
        }
    }
    let pairs: Vec<(&Type, &Type)> = params.iter().map(|p| vars.ty(*p)).zip(arg_types).collect();
    solve_sizes(sizes, &pairs, &mut bound);
    bound
}

/// Sizes that no axis is alone: `n` of `[n + 1]`, whose axis is given.
pub fn solve_sizes(sizes: &[Var], pairs: &[(&Type, &Type)], bound: &mut rustc_hash::FxHashMap<Var, Size>) {
    fn axes<'t>(param: &'t Type, arg: &'t Type, out: &mut Vec<(&'t Size, &'t Size)>) {
        match (param, arg) {
            (Type::Array(p, _), Type::Array(a, _)) if p.len() == a.len() => out.extend(p.iter().zip(a)),
            (Type::Tuple(p), Type::Tuple(a)) => {
                p.iter().zip(a).for_each(|(p, a)| axes(p, a, out));
                out.extend(p.structure().zip(a.structure()).map(|(p, a)| (&p.size, &a.size)));
            }
            _ => {}
        }
    }
    if sizes.iter().all(|v| bound.contains_key(v)) {
        return;
    }
    let mut all = vec![];
    pairs.iter().for_each(|(p, a)| axes(p, a, &mut all));
    loop {
        let found = all.iter().find_map(|(p, a)| {
            let p = p.substitute(&|v| bound.get(&v).cloned());
            let mut unknown = vec![];
            p.variables(&mut unknown);
            unknown.retain(|v| sizes.contains(v) && !bound.contains_key(v));
            unknown.dedup();
            match unknown.as_slice() {
                [v] => p.solve(*v, a).map(|size| (*v, size)),
                _ => None,
            }
        });
        match found {
            Some((v, size)) => bound.insert(v, size),
            None => return,
        };
    }
}

/// Whether an axis of a parameter is this size alone.
pub fn is_axis(program: &Program, id: FunctionId, size: Var) -> bool {
    fn alone(ty: &Type, size: Var) -> bool {
        match ty {
            Type::Scalar(_) => false,
            Type::Array(shape, _) => shape.iter().any(|s| s.as_var() == Some(size)),
            Type::Tuple(parts) => parts.iter().any(|t| alone(t, size)),
        }
    }
    program.function(id).params.iter().any(|p| alone(program.vars.ty(*p), size))
}
