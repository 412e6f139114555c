//! Symbolic costs against the interpreter's counts.

mod build;

use build::*;
use iverson::cost::{Cost, cost};
use iverson::interpret::call_measured;
use iverson::ir::build::*;
use iverson::ir::{Exp, FunctionId, Op, Range, Reduction, Scalar, Site, Size, Type, Var};
use iverson::value::{Array, Value};

fn last(b: &Build) -> FunctionId {
    FunctionId(b.program.functions.len() as u32 - 1)
}

/// The cost of a function of `A: [n, m]f64`, after comparing it with the counts of calls.
fn checked(b: &Build) -> Cost {
    iverson::ir::verify::verify(&b.program).unwrap();
    let id = last(b);
    let cost = cost(&b.program, id);
    for (n, m) in [(0, 0), (0, 3), (1, 1), (1, 4), (2, 3), (3, 2), (5, 7), (8, 8), (7, 4)] {
        let data = (0..n * m).map(|k| (k as f64 * 0.7).sin()).collect();
        let (_, counts, memory) = call_measured(&b.program, id, &[Value::Array(Array::f64(vec![n, m], data))]).unwrap();
        let counted = [counts.additions, counts.multiplications, counts.calls].map(|c| c as i64);
        let value = |v: Var| {
            if v == b.n {
                Some(n as i64)
            } else if v == b.m {
                Some(m as i64)
            } else {
                None
            }
        };
        let saved = cost.saved.evaluate(&value).unwrap();
        let fits = if cost.saved_exact { memory.saved as i64 == saved } else { memory.saved as i64 <= saved };
        assert!(fits, "n = {n}, m = {m}: {} saved, {saved} by {}", memory.saved, cost.saved.display(&b.program.vars));
        let wanted = cost.evaluate(&value).unwrap();
        let fits = if cost.exact { counted == wanted } else { counted.iter().zip(&wanted).all(|(c, w)| c <= w) };
        assert!(fits, "n = {n}, m = {m}: {counted:?} counted, {wanted:?} by {}", shown(b, &cost));
    }
    cost
}

fn shown(b: &Build, cost: &Cost) -> String {
    let vars = &b.program.vars;
    format!("{}; {}; {}", cost.additions.display(vars), cost.multiplications.display(vars), cost.calls.display(vars))
}

/// The cost of the body that `f` makes of `A: [n, m]f64` and fresh indices, which is a float, as text.
fn cost_of(f: impl FnOnce(&mut Build, Var, [Var; 4]) -> Exp) -> (String, bool) {
    cost_of_typed(Type::F64, f)
}
fn cost_of_typed(result: Type, f: impl FnOnce(&mut Build, Var, [Var; 4]) -> Exp) -> (String, bool) {
    let mut b = start();
    let a = b.var("A", Type::Array(vec![b.n(), b.m()], Scalar::F64));
    let indices = ["i", "j", "k", "l"].map(|name| b.index(name));
    let body = f(&mut b, a, indices);
    b.define("f", &[a], result, body);
    let cost = checked(&b);
    (shown(&b, &cost), cost.exact)
}

fn exactly(text: &str) -> (String, bool) {
    (text.to_string(), true)
}
fn at_most(text: &str) -> (String, bool) {
    (text.to_string(), false)
}

#[test]
fn loops_multiply() {
    let got = cost_of(|b, a, [i, j, ..]| {
        let e = at(a, &[i.into(), j.into()]);
        sum(i, i64(0), b.n.into(), sum(j, i64(0), b.m.into(), mul(e.clone(), op1(Op::Sin, e))))
    });
    assert_eq!(got, exactly("n m; n m; n m"));
}

#[test]
fn triangles_are_summed_by_faulhaber() {
    let got = cost_of(|b, _, [i, j, k, _]| {
        let innermost = sum(k, i64(0), j.into(), op1(Op::Sin, f64(1.0)));
        sum(i, i64(0), b.n.into(), sum(j, i64(0), i.into(), innermost))
    });
    assert_eq!(got, exactly("1/6 n^3 - 1/2 n^2 + 1/3 n; 0; 1/6 n^3 - 1/2 n^2 + 1/3 n"));
    let got = cost_of(|b, _, [i, j, ..]| {
        let above = sum(j, i.into(), b.n.into(), mul(f64(2.0), op1(Op::ToF64, j)));
        sum(i, i64(0), b.n.into(), above)
    });
    assert_eq!(got, exactly("1/2 n^2 + 1/2 n; 1/2 n^2 + 1/2 n; 0"));
}

#[test]
fn ranges_that_may_be_empty_are_clamped() {
    let got = cost_of(|b, _, [i, ..]| sum(i, i64(2), b.n.into(), f64(1.0)));
    assert_eq!(got, exactly("max(2, n) - 2; 0; 0"));
    let got = cost_of(|b, _, [i, j, ..]| {
        let inner = sum(j, i64(1), sub(i, i64(1)), f64(1.0));
        sum(i, i64(0), b.n.into(), inner)
    });
    assert!(got.1, "{}", got.0);
    let got = cost_of(|b, _, [i, ..]| sum(i, b.n.into(), b.m.into(), op1(Op::ToF64, i)));
    assert_eq!(got, exactly("max(n, m) - n; 0; 0"));
}

#[test]
fn brackets_on_indices_are_solved() {
    let one_hot = cost_of(|b, a, [i, j, ..]| {
        let e = guard(op2(Op::Eq, i, j), at(a, &[i.into(), j.into()]));
        sum(i, i64(0), b.n.into(), sum(j, i64(0), b.m.into(), e))
    });
    assert_eq!(one_hot, exactly("min(n, m); 0; 0"));
    let below = cost_of(|b, a, [i, j, ..]| {
        let e = guard(op2(Op::Lt, j, i), at(a, &[i.into(), i64(0)]));
        sum(i, i64(0), b.n.into(), sum(j, i64(0), b.n.into(), guard(op2(Op::Gt, b.m, i64(0)), e)))
    });
    assert_eq!(below, exactly("1/2 n^2 [m >= 1] - 1/2 n [m >= 1]; 0; 0"));
    let even = cost_of(|b, _, [i, ..]| {
        let e = guard(op2(Op::Eq, op2(Op::IMod, i, i64(2)), i64(0)), op1(Op::Sin, f64(1.0)));
        sum(i, i64(0), b.n.into(), e)
    });
    assert!(even.1, "{}", even.0);
    let band = cost_of(|b, _, [i, j, ..]| {
        let near = op2(Op::And, op2(Op::Le, sub(i, j), i64(1)), op2(Op::Ge, sub(i, j), i64(-1)));
        sum(i, i64(0), b.n.into(), sum(j, i64(0), b.n.into(), guard(near, f64(1.0))))
    });
    assert!(band.1, "{}", band.0);
    let either = cost_of(|b, _, [i, ..]| {
        let edge = op2(Op::Or, op2(Op::Eq, i, i64(0)), op2(Op::Ge, mul(i64(2), i), b.m));
        sum(i, i64(0), b.n.into(), if_(op1(Op::Not, edge), op1(Op::Sin, f64(1.0)), f64(3.0)))
    });
    assert!(either.1, "{}", either.0);
}

#[test]
fn guards_on_data_are_bounds() {
    let got = cost_of(|b, a, [i, ..]| {
        let e = at(a, &[i.into(), i64(0)]);
        let p = op2(Op::And, op2(Op::Gt, b.m, i64(0)), op2(Op::Lt, i, i64(3)));
        let positive = op2(Op::Gt, e.clone(), f64(0.0));
        sum(i, i64(0), b.n.into(), guard(p, guard(positive, op1(Op::Sqrt, e))))
    });
    assert!(!got.1);
    let got = cost_of(|b, a, [i, j, ..]| {
        let e = at(a, &[i.into(), j.into()]);
        let p = op2(Op::Gt, e.clone(), f64(0.0));
        let branch = if_(p, op1(Op::Sqrt, e.clone()), mul(e.clone(), op1(Op::Exp, e)));
        sum(i, i64(0), b.n.into(), sum(j, i64(0), b.m.into(), branch))
    });
    assert_eq!(got, at_most("n m; n m; n m"));
}

#[test]
fn destinations_are_added_into() {
    let n = |b: &Build| Size::var(b.n);
    // sum i. {i -> sin(A[i, 0])} with rows: one addition per row
    let mut b = start();
    let a = b.var("A", Type::Array(vec![b.n(), b.m()], Scalar::F64));
    let [i, j, k] = ["i", "j", "k"].map(|name| b.index(name));
    let row = singleton(vec![(i.into(), n(&b))], at(a, &[i.into()]), Site::default());
    let rows = sum(i, i64(0), b.n.into(), row);
    let doubled = for_(j, n(&b), for_(k, b.m(), mul(f64(2.0), at(a, &[j.into(), k.into()]))));
    let result = Type::Array(vec![b.n(), b.m()], Scalar::F64);
    b.define("f", &[a], result, add(doubled, rows));
    let cost = checked(&b);
    assert_eq!((shown(&b, &cost).as_str(), cost.exact), ("n m; n m; 0", true));
}

#[test]
fn reductions_lets_and_calls_are_counted() {
    let mut b = start();
    let a = b.var("A", Type::Array(vec![b.n(), b.m()], Scalar::F64));
    let [i, j, p] = ["i", "j", "p"].map(|name| b.index(name));
    let largest =
        |index: Var, hi: Exp, e: Exp| Exp::Reduce(Reduction::Max, Box::new(Range { index, lo: i64(0), hi }), Box::new(e), Site::default());
    let body = for_(i, b.n(), largest(j, b.m.into(), at(a, &[i.into(), j.into()])));
    let rows = b.define("rows", &[a], vector(b.n()), body);
    // The caller has its own sizes and indices.
    (b.n, b.m) = (b.index("n"), b.index("m"));
    let [i, k] = ["i", "k"].map(|name| b.index(name));
    let (p_size, c) = (b.n().mul(&b.m()), b.var("C", Type::Array(vec![b.n(), b.m()], Scalar::F64)));
    let r = b.var("r", vector(b.n()));
    let inner = sum(k, i64(0), p.into(), mul(f64(2.0), op1(Op::ToF64, k)));
    let total = sum(i, i64(0), b.n.into(), at(r, &[i.into()]));
    let body = let_(vec![p], size_exp(&p_size), add(inner, total));
    let body = let_(vec![r], Exp::Call(rows, vec![c.into()], Site::default()), body);
    b.define("f", &[c], Type::F64, body);
    let cost = checked(&b);
    assert_eq!((shown(&b, &cost).as_str(), cost.exact), ("n m + n + 1; n m; n m", true));
}

#[test]
fn convolutions_are_exact() {
    let got = cost_of_typed(
        {
            // [n + m]f64, in the sizes of `start`
            let b = start();
            vector(b.n().add(&b.m()))
        },
        |b, _, [k, j, ..]| {
            let inside = op2(Op::And, op2(Op::Ge, sub(k, j), i64(0)), op2(Op::Lt, sub(k, j), b.n));
            let e = mul(op1(Op::ToF64, j), f64(2.0));
            for_(k, b.n().add(&b.m()), sum(j, i64(0), b.m.into(), guard(inside, e)))
        },
    );
    assert_eq!(got, exactly("n m; n m; 0"));
}
