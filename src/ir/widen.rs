//! The program with `f64` in place of every `f32`.
//!
//! It computes the same function with more digits, so it is what derivatives in `f32` are measured by: differences of a
//! function that is rounded to `f32` say little of its slope.

use super::*;

pub fn widen(program: &Program) -> Program {
    let mut wide = program.clone();
    for k in 0..wide.vars.count() {
        let v = Var(k as u32);
        let ty = wide.vars.ty(v).map_scalars(&mut widened);
        wide.vars.set_ty(v, ty);
    }
    for f in &mut wide.functions {
        f.result = f.result.map_scalars(&mut widened);
        if let Some(signature) = &mut f.signature {
            signature.params.iter_mut().for_each(|t| *t = t.map_scalars(&mut widened));
            signature.result = signature.result.map_scalars(&mut widened);
        }
        if let Body::Exp(e) = &mut f.body {
            *e = exp(std::mem::replace(e, Exp::Tuple(vec![])));
        }
    }
    wide
}

/// Whether there is an `f32` anywhere in the function, or in one that it calls.
pub fn has_f32(program: &Program, id: FunctionId) -> bool {
    let f = program.function(id);
    let inside = match &f.body {
        Body::Exp(e) => uses_f32(program, e),
        Body::Derived { of, .. } => has_f32(program, *of),
        Body::Entries(entries) => has_f32(program, entries.of),
        Body::Jacobian { of, .. } => has_f32(program, *of),
    };
    inside || mentions_f32(&f.result) || f.params.iter().any(|v| mentions_f32(program.vars.ty(*v)))
}

fn uses_f32(program: &Program, e: &Exp) -> bool {
    let own = match e {
        Exp::Lit(lit) => lit.scalar() == Scalar::F32,
        Exp::Op(op, _, _) => *op == Op::ToF32,
        Exp::Call(id, _, _) => has_f32(program, *id),
        other => other.binds().iter().any(|v| mentions_f32(program.vars.ty(*v))),
    };
    let mut found = own;
    e.for_each_child(&mut |e| found = found || uses_f32(program, e));
    found
}

fn mentions_f32(ty: &Type) -> bool {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => *s == Scalar::F32,
        Type::Tuple(parts) => parts.iter().any(mentions_f32),
    }
}

fn widened(scalar: Scalar) -> Scalar {
    if scalar == Scalar::F32 { Scalar::F64 } else { scalar }
}

fn exp(e: Exp) -> Exp {
    match e.map_children(&mut exp) {
        Exp::Lit(Lit::F32(x)) => Exp::Lit(Lit::F64(x.into())),
        Exp::Op(Op::ToF32, args, site) => Exp::Op(Op::ToF64, args, site),
        e => e,
    }
}
