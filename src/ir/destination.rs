//! Which variables of a `let` are only passed on to where its body is added.
//!
//! In `dest += let (x, y) = value; body`, a body that does nothing with `y` but add it whole to some part of the
//! destination needs no value of `y`: the value may be added to that part right away, while `x` is computed beside it.
//! Adjoints need this. The adjoint of an array that is free in a nest of loops leaves every level by such a `let`, and
//! is never built on the way.

use super::*;

/// Which part of a destination: of a tuple the part of this number, then of that.
pub type Path = Vec<usize>;

/// For each variable of `let vars = value; body` the part of the body's destination that it is added to and used
/// nowhere else; `None` for a variable that is used otherwise, and for scalars, which cost nothing to build.
pub fn passed_on(table: &Vars, vars: &[Var], body: &Exp) -> Vec<Option<Path>> {
    let passed = |v: &Var| match table.ty(*v) {
        Type::Scalar(_) => None,
        Type::Array(..) | Type::Tuple(_) => path(*v, body).filter(|_| uses(*v, body) == 1),
    };
    vars.iter().map(passed).collect()
}

/// Whether what a `let` names is memory of its own: another name, and names of a tuple's parts, are not.
pub fn held(value: &Exp) -> bool {
    !matches!(value, Exp::Var(_))
}

fn path(var: Var, body: &Exp) -> Option<Path> {
    match body {
        Exp::Var(v) if *v == var => Some(vec![]),
        Exp::Tuple(parts) => {
            let k = parts.iter().position(|e| e.mentions(var))?;
            let mut rest = path(var, &parts[k])?;
            rest.insert(0, k);
            Some(rest)
        }
        Exp::Op(Op::Add, args, _) => path(var, args.iter().find(|e| e.mentions(var))?),
        Exp::Let(_, value, body) if !value.mentions(var) => path(var, body),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Op(..)
        | Exp::Partial(..)
        | Exp::Index(..)
        | Exp::Singleton(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::Reduce(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Update(..)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Let(..)
        | Exp::Array(_)
        | Exp::Call(..) => None,
    }
}

/// How often a variable is mentioned, sizes left aside.
pub fn uses(var: Var, exp: &Exp) -> usize {
    let mut count = (*exp == Exp::Var(var)) as usize;
    exp.for_each_child(&mut |e| count += uses(var, e));
    count
}
