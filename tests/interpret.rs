//! The interpreter on programs built by hand: values, counts and failures.

mod build;

use build::*;
use iverson::diagnostic::Span;
use iverson::interpret::{Counts, Failure, call};
use iverson::ir::build::*;
use iverson::ir::{Exp, FunctionId, History, Op, Range, Reduction, Scalar, Site, Size, Type};
use iverson::value::{Array, Value};

fn counts(additions: u64, multiplications: u64, calls: u64) -> Counts {
    Counts { additions, multiplications, calls }
}
#[test]
fn a_dot_product_adds_and_multiplies_once_per_element() {
    let mut b = start();
    let (x, y, i) = (b.var("x", vector(b.n())), b.var("y", vector(b.n())), b.index("i"));
    let body = sum(i, i64(0), b.n.into(), mul(at(x, &[i.into()]), at(y, &[i.into()])));
    b.define("dot", &[x, y], Type::F64, body);
    assert_eq!(b.run(&[floats(&[1.0, 2.0, 3.0]), floats(&[4.0, 5.0, 6.0])]), Ok((Value::from(32.0), counts(3, 3, 0))));
    assert_eq!(b.run(&[floats(&[]), floats(&[])]), Ok((Value::from(0.0), counts(0, 0, 0))));
    let failure = b.run(&[floats(&[1.0]), floats(&[])]).unwrap_err();
    assert_eq!(failure.message, "`y` has shape [0], but `n` = 1 from `x`");
}

#[test]
fn a_sum_of_singletons_adds_once_per_singleton() {
    let mut b = start();
    let (k, w, i) = (b.var("k", Type::Array(vec![b.n()], Scalar::I64)), b.var("w", vector(b.n())), b.index("i"));
    let four = Size::constant(4);
    let key = at(k, &[i.into()]);
    let body = sum(i, i64(0), b.n.into(), singleton(vec![(key, four.clone())], at(w, &[i.into()]), Site::new(Span::new(0, 1, 2))));
    b.define("hist", &[k, w], vector(four), body);
    let bins = Value::from(vec![1i64, 3, 1]);
    assert_eq!(b.run(&[bins, floats(&[1.0, 2.0, 4.0])]), Ok((floats(&[0.0, 5.0, 0.0, 2.0]), counts(3, 0, 0))));
    let failure = b.run(&[Value::from(vec![1i64, 4, 1]), floats(&[1.0, 2.0, 4.0])]).unwrap_err();
    assert_eq!((failure.site, failure.message.as_str()), (Span::new(0, 1, 2), "index 4 is out of range for an axis of size 4"));
    assert_eq!(failure.note, "indices run from 0 to 3");
}

#[test]
fn a_false_guard_reads_nothing_and_costs_nothing() {
    let mut b = start();
    let (x, i) = (b.var("x", vector(b.n())), b.index("i"));
    let previous = at(x, &[sub(i, i64(1))]);
    let body = sum(i, i64(0), b.n.into(), guard(op2(Op::Gt, i, i64(0)), previous.clone()));
    b.define("shifted", &[x], Type::F64, body);
    assert_eq!(b.run(&[floats(&[1.0, 2.0, 3.0])]), Ok((Value::from(3.0), counts(2, 0, 0))));

    let mut b = start();
    let (x, i) = (b.var("x", vector(b.n())), b.index("i"));
    let body = for_(i, b.n(), at(x, &[sub(i, i64(1))]));
    b.define("shifted", &[x], vector(b.n()), body);
    let failure = b.run(&[floats(&[1.0])]).unwrap_err();
    assert_eq!((failure.site, failure.message.as_str()), (Span::new(0, 3, 7), "index -1 is out of range for an axis of size 1"));
    assert_eq!(b.run(&[floats(&[])]), Ok((floats(&[]), counts(0, 0, 0))));
}

#[test]
fn arrays_are_added_into_the_first() {
    // for i. x[i] * 2, plus a guarded row sum: the first is stored, the second added
    let mut b = start();
    let (a, i, j) = (b.var("A", Type::Array(vec![b.n(), b.m()], Scalar::F64)), b.index("i"), b.index("j"));
    let doubled = for_(j, b.m(), mul(f64(2.0), at(a, &[i64(0), j.into()])));
    let rows = sum(i, i64(1), b.n.into(), at(a, &[i.into()]));
    b.define("f", &[a], vector(b.m()), add(doubled, rows));
    let value = Value::Array(Array::f64(vec![3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(b.run(&[value]), Ok((floats(&[10.0, 14.0]), counts(4, 2, 0))));
}

#[test]
fn sums_of_tuples_are_tuples_of_sums() {
    let mut b = start();
    let (x, i) = (b.var("x", vector(b.n())), b.index("i"));
    let e = at(x, &[i.into()]);
    let keyed = singleton(vec![(i.into(), b.n())], mul(e.clone(), e.clone()), Site::default());
    let body = sum(i, i64(0), b.n.into(), Exp::Tuple(vec![e, keyed]));
    b.define("f", &[x], Type::tuple(vec![Type::F64, vector(b.n())]), body);
    let result = Value::Tuple(vec![Value::from(5.0), floats(&[4.0, 9.0])]);
    assert_eq!(b.run(&[floats(&[2.0, 3.0])]), Ok((result, counts(4, 2, 0))));
    let empty = Value::Tuple(vec![Value::from(0.0), floats(&[])]);
    assert_eq!(b.run(&[floats(&[])]), Ok((empty, counts(0, 0, 0))));
}

fn reduction(kind: Reduction, result: Type, values: &[f64]) -> Result<(Value, Counts), Failure> {
    let mut b = start();
    let (x, i) = (b.var("x", vector(b.n())), b.index("i"));
    let range = Box::new(Range { index: i, lo: i64(0), hi: b.n.into() });
    let mut element = at(x, &[i.into()]);
    if matches!(kind, Reduction::Any | Reduction::All) {
        element = op2(Op::Gt, element, f64(0.0));
    }
    b.define("f", &[x], result, Exp::Reduce(kind, range, Box::new(element), Site::default()));
    b.run(&[floats(values)])
}

#[test]
fn reductions_have_neutral_elements_ties_and_nan() {
    use Reduction::*;
    let float = |kind, values: &[f64]| reduction(kind, Type::F64, values).unwrap();
    assert_eq!(float(Prod, &[2.0, 3.0]), (Value::from(6.0), counts(0, 2, 0)));
    assert_eq!(float(Prod, &[]), (Value::from(1.0), counts(0, 0, 0)));
    assert_eq!(float(Max, &[2.0, 3.0, 1.0]), (Value::from(3.0), counts(0, 0, 3)));
    assert_eq!(float(Max, &[]).0, Value::from(f64::NEG_INFINITY));
    assert_eq!(float(Min, &[]).0, Value::from(f64::INFINITY));
    assert!(float(Min, &[2.0, f64::NAN, 1.0]).0.as_f64().unwrap().is_nan());
    let position = |kind, values: &[f64]| reduction(kind, Type::I64, values).unwrap().0.as_i64().unwrap();
    assert_eq!(position(ArgMax, &[1.0, 3.0, 3.0]), 1);
    assert_eq!(position(ArgMin, &[2.0, 1.0, 1.0]), 1);
    assert_eq!(position(ArgMin, &[2.0, f64::NAN, 1.0, f64::NAN]), 1);
    assert_eq!(position(ArgMax, &[f64::NEG_INFINITY, f64::NEG_INFINITY]), 0);
    let failure = reduction(ArgMax, Type::I64, &[]).unwrap_err();
    assert_eq!(failure.message, "the index of the extreme of nothing was asked for");
    let truth = |kind, values: &[f64]| reduction(kind, Type::BOOL, values).unwrap();
    assert_eq!(truth(Any, &[-1.0, 2.0]), (Value::from(true), counts(0, 0, 0)));
    assert_eq!(truth(All, &[-1.0, 2.0]).0, Value::from(false));
    assert_eq!((truth(Any, &[]).0, truth(All, &[]).0), (Value::from(false), Value::from(true)));
}

#[test]
fn a_history_holds_every_state() {
    let mut b = start();
    let (x, p, q, i) = (b.var("x", vector(b.n())), b.var("p", Type::F64), b.var("q", Type::F64), b.index("i"));
    let body = Exp::Tuple(vec![mul(p, at(x, &[i.into()])), add(q, p)]);
    let init = Exp::Tuple(vec![f64(1.0), f64(0.0)]);
    let history = Exp::History(Box::new(History { state: vec![p, q], init, index: i, size: b.n(), body }));
    let length = b.n().add(&Size::constant(1));
    b.define("f", &[x], Type::tuple(vec![vector(length.clone()), vector(length)]), history);
    let result = Value::Tuple(vec![floats(&[1.0, 2.0, 6.0]), floats(&[0.0, 1.0, 3.0])]);
    assert_eq!(b.run(&[floats(&[2.0, 3.0])]), Ok((result, counts(2, 2, 0))));
    let start = Value::Tuple(vec![floats(&[1.0]), floats(&[0.0])]);
    assert_eq!(b.run(&[floats(&[])]), Ok((start, counts(0, 0, 0))));
}

#[test]
fn calls_bind_sizes_and_applied_partials_count_as_calls() {
    let mut b = start();
    let (x, i) = (b.var("x", vector(b.n())), b.index("i"));
    let slope = Exp::Partial(Op::Sin, 0, vec![at(x, &[i.into()])]);
    let body = for_(i, b.n(), mul(slope, op1(Op::ToF64, b.n)));
    let f = b.define("f", &[x], vector(b.n()), body);
    let (y, j) = (b.var("y", vector(b.m())), b.index("j"));
    let row = Exp::Call(f, vec![y.into()], Site::default());
    let body = sum(j, i64(0), i64(2), row);
    b.define("g", &[y], vector(b.m()), body);
    let doubled = 2.0 * 2.0;
    assert_eq!(b.run(&[floats(&[0.0, 0.0])]), Ok((floats(&[doubled, doubled]), counts(4, 0, 4))));
}

#[test]
fn faults_of_operations_are_failures() {
    let mut b = start();
    let k = b.var("k", Type::I64);
    b.define("f", &[k], Type::I64, op2(Op::IDiv, i64(7), k));
    assert_eq!(b.run(&[Value::from(-2i64)]).unwrap().0, Value::from(-4i64));
    assert_eq!(b.run(&[Value::from(0i64)]).unwrap_err().message, "integer division by zero");
}

#[test]
fn a_size_bound_by_a_let_inside_a_sum_is_found() {
    // sum i in 0..0. let k = n - 1; for j in 0..k. x[j]
    let mut b = start();
    let (x, i, j, k) = (b.var("x", vector(b.n())), b.index("i"), b.index("j"), b.index("k"));
    let inner = let_(vec![k], sub(b.n, i64(1)), for_(j, Size::var(k), at(x, &[j.into()])));
    let body = sum(i, i64(0), i64(0), inner);
    b.define("f", &[x], vector(b.n().sub(&Size::constant(1))), body);
    let result = call(&b.program, FunctionId(0), &[floats(&[1.0, 2.0, 3.0])]);
    assert_eq!(result, Ok((floats(&[0.0, 0.0]), counts(0, 0, 0))));
}
