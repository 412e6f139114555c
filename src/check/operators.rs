//! Operators, and Iverson brackets in chains of `*` and `/`.
//!
//! `+` is the IR's own on arrays and tuples; `a - b`, `-a` and scaling of arrays stand for nests of `for`, those of tuples
//! and records for tuples of these.
//! Every bracket in a chain guards the whole chain: `a * [p] * b / c` is `[p] * (a * b / c)`. Where the right side of
//! `and`/`or` could fail (a read, a call), it is evaluated only if the left side does not decide, and in a bracket
//! it becomes an inner guard.

use super::hints::{Strength, is_condition, is_literal, is_number, needs_hint, rank};
use super::messages::{brief, operand, symbol};
use super::scope::Place;
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{bool, for_, guard, if_, index, lets, op1, op2, type_of};
use crate::ir::{Exp, Op, Reduction, Scalar, Site, Size, Type};
use crate::syntax::ast::{self, BinaryOp, ExpKind, UnaryOp};

impl<'a> Checker<'a> {
    pub fn unary(&mut self, op: UnaryOp, a: &ast::Exp, span: Span, hint: Option<&Type>) -> Typed {
        match (op, &a.kind) {
            // A negative literal is one literal.
            (UnaryOp::Neg, ExpKind::Int(value)) => return self.whole_number(*value, true, span, hint),
            (UnaryOp::Neg, ExpKind::Name(name)) if name == "infinity" && self.lookup(name).is_none() => {
                return self.float_number(f64::NEG_INFINITY, span, hint);
            }
            (UnaryOp::Neg, ExpKind::Float(value)) => return self.float_number(-value, span, hint),
            _ => {}
        }
        match op {
            UnaryOp::Not => {
                let found = self.condition(a);
                Typed { exp: op1(Op::Not, found.exp), ty: found.ty }
            }
            UnaryOp::Neg => {
                let found = self.infer(a, hint);
                let Some(ty) = found.ty else { return Typed::poison() };
                match &ty {
                    Type::Scalar(s) if s.is_number() => Typed::new(op1(Op::Neg, found.exp), ty),
                    Type::Array(_, s) if s.is_number() => {
                        let exp = self.elementwise(vec![(found.exp, ty.clone())], &ty, |mut e| op1(Op::Neg, e.remove(0)));
                        Typed::new(exp, ty)
                    }
                    Type::Tuple(_) if is_additive(&ty) => {
                        let exp = self.partwise(vec![(found.exp, ty.clone())], &ty, &mut |c, operands, ty| {
                            c.elementwise(operands, ty, |e| Exp::Op(Op::Neg, e, Site::default()))
                        });
                        Typed::new(exp, ty)
                    }
                    Type::Scalar(_) | Type::Array(..) | Type::Tuple(_) => {
                        let text = format!("`-` does not take a `{}`", self.describe(&ty));
                        self.report(Diagnostic::error(span, text).note("it takes numbers and arrays of numbers"));
                        Typed::poison()
                    }
                }
            }
        }
    }

    pub fn binary(&mut self, exp: &ast::Exp, op: BinaryOp, op_span: Span, a: &ast::Exp, b: &ast::Exp, hint: Option<&Type>) -> Typed {
        match op {
            BinaryOp::Mul | BinaryOp::Div => self.chain(exp, hint),
            BinaryOp::Add | BinaryOp::Sub => self.additive(op, op_span, a, b, hint),
            BinaryOp::And | BinaryOp::Or => self.logic(op, a, b),
            BinaryOp::Pow => self.power(op_span, a, b, hint),
            BinaryOp::IDiv | BinaryOp::IMod => {
                let hint = hint.filter(|h| matches!(h, Type::Scalar(s) if s.is_integer())).unwrap_or(&Type::I64);
                let (left, right) = self.pair(a, b, Some(hint));
                let op = if op == BinaryOp::IDiv { Op::IDiv } else { Op::IMod };
                self.scalar_operator(op, op_span, (a, left), (b, right))
            }
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                let (left, right) = self.pair(a, b, None);
                let op = match op {
                    BinaryOp::Eq => Op::Eq,
                    BinaryOp::Ne => Op::Ne,
                    BinaryOp::Lt => Op::Lt,
                    BinaryOp::Le => Op::Le,
                    BinaryOp::Gt => Op::Gt,
                    _ => Op::Ge,
                };
                self.scalar_operator(op, op_span, (a, left), (b, right))
            }
        }
    }

    /// An operator that takes two scalars.
    fn scalar_operator(&mut self, op: Op, op_span: Span, (a, left): (&ast::Exp, Typed), (b, right): (&ast::Exp, Typed)) -> Typed {
        let (Some(lt), Some(rt)) = (left.ty, right.ty) else {
            // A comparison is a `bool` whatever is wrong with its operands.
            return Typed::poison();
        };
        if let (Type::Scalar(x), Type::Scalar(y)) = (&lt, &rt) {
            if let Some(result) = op.result(&[*x, *y]) {
                let site = Site::new(a.span.to(b.span));
                return Typed::new(Exp::Op(op, vec![left.exp, right.exp], site), Type::Scalar(result));
            }
        }
        let sign = op.infix().map_or(op.name(), |(sign, _)| sign);
        let diagnostic = self.operator_mismatch(sign, op_span, (a, &lt), (b, &rt));
        let diagnostic = match (op, &lt, &rt) {
            (Op::IDiv | Op::IMod, Type::Scalar(s), _) | (Op::IDiv | Op::IMod, _, Type::Scalar(s)) if s.is_float() => {
                diagnostic.note("`div` and `mod` are for integers; floats are divided by `/`")
            }
            (_, Type::Array(..), _) | (_, _, Type::Array(..)) => {
                diagnostic.note(format!("`{sign}` takes scalars; go through the elements with `for`, `any` or `all`"))
            }
            _ => self.offer_conversion(diagnostic, (a, &lt), (b, &rt)),
        };
        self.report(diagnostic);
        Typed::poison()
    }

    /// "`+` does not take `f64` and `i64`", with a label on each operand.
    fn operator_mismatch(&self, sign: &str, op_span: Span, (a, lt): (&ast::Exp, &Type), (b, rt): (&ast::Exp, &Type)) -> Diagnostic {
        let (left, right) = (self.describe(lt), self.describe(rt));
        Diagnostic::error(op_span, format!("`{sign}` does not take `{left}` and `{right}`"))
            .here(format!("`{sign}`"))
            .label(a.span, format!("`{left}`"))
            .label(b.span, format!("`{right}`"))
    }

    fn additive(&mut self, op: BinaryOp, op_span: Span, a: &ast::Exp, b: &ast::Exp, hint: Option<&Type>) -> Typed {
        let (left, right) = self.pair(a, b, hint);
        let (Some(lt), Some(rt)) = (left.ty, right.ty) else { return Typed::poison() };
        let ir_op = if op == BinaryOp::Add { Op::Add } else { Op::Sub };
        if is_additive(&lt) && self.same_type(&lt, &rt) {
            match (&lt, ir_op) {
                (Type::Scalar(_), _) | (_, Op::Add) => return Typed::new(op2(ir_op, left.exp, right.exp), lt),
                (Type::Array(..), _) => {
                    let operands = vec![(left.exp, lt.clone()), (right.exp, rt)];
                    let exp = self.elementwise(operands, &lt, |e| Exp::Op(ir_op, e, Site::default()));
                    return Typed::new(exp, lt);
                }
                (Type::Tuple(_), _) => {
                    let operands = vec![(left.exp, lt.clone()), (right.exp, rt)];
                    let exp = self.partwise(operands, &lt, &mut |c, operands, ty| {
                        c.elementwise(operands, ty, |e| Exp::Op(ir_op, e, Site::default()))
                    });
                    return Typed::new(exp, lt);
                }
            }
        }
        let sign = symbol(op);
        let diagnostic = self.operator_mismatch(sign, op_span, (a, &lt), (b, &rt));
        let diagnostic = match (&lt, &rt) {
            (Type::Array(..), Type::Array(..)) if lt.scalar() == rt.scalar() => self.explain_difference(diagnostic, &lt, &rt),
            (Type::Array(shape, s), Type::Scalar(t)) if s == t => {
                let i = index_names(shape.len());
                diagnostic.note(format!("to do it for each element, write `for {i}. {}[{i}] {sign} {}`", operand(a), operand(b)))
            }
            (Type::Scalar(s), Type::Array(shape, t)) if s == t => {
                let i = index_names(shape.len());
                diagnostic.note(format!("to do it for each element, write `for {i}. {} {sign} {}[{i}]`", operand(a), operand(b)))
            }
            _ => self.offer_conversion(diagnostic, (a, &lt), (b, &rt)),
        };
        self.report(diagnostic);
        Typed::poison()
    }

    /// `for i, j. f(a[i, j], b[i, j])`, scalars among the operands taken as they are.
    fn elementwise(&mut self, operands: Vec<(Exp, Type)>, ty: &Type, f: impl FnOnce(Vec<Exp>) -> Exp) -> Exp {
        let mut bindings = vec![];
        let mut shared = vec![];
        for (exp, ty) in operands {
            match exp {
                Exp::Var(_) | Exp::Lit(_) => shared.push((exp, ty)),
                exp => {
                    let var = self.program.vars.fresh("t", ty.clone());
                    bindings.push((vec![var], exp));
                    shared.push((Exp::Var(var), ty));
                }
            }
        }
        let shape = ty.shape().to_vec();
        let indices: Vec<_> = (0..shape.len()).map(|k| self.program.vars.fresh(index_name(k), Type::I64)).collect();
        let keys: Vec<Exp> = indices.iter().map(|v| Exp::Var(*v)).collect();
        let elements = shared
            .into_iter()
            .map(|(exp, ty)| if ty.shape().is_empty() { exp } else { index(exp, keys.clone(), Site::default()) })
            .collect();
        let body = indices.iter().zip(&shape).rev().fold(f(elements), |body, (v, size)| for_(*v, size.clone(), body));
        lets(bindings, body)
    }

    /// `stop_gradient` of each number; what has no derivative is as it is.
    pub fn stopped(&mut self, mut operands: Vec<(Exp, Type)>, ty: &Type) -> Exp {
        match ty.has_float() {
            true => self.elementwise(operands, ty, |e| Exp::Op(Op::StopGradient, e, Site::default())),
            false => operands.remove(0).0,
        }
    }

    fn power(&mut self, op_span: Span, a: &ast::Exp, b: &ast::Exp, hint: Option<&Type>) -> Typed {
        // An integer literal exponent stays an integer, whatever the base is.
        let (left, right) = if is_number(b) {
            (self.infer(a, hint), self.infer(b, Some(&Type::I64)))
        } else if is_literal(b) && rank(a) > rank(b) {
            let left = self.infer(a, hint);
            let right = self.infer(b, left.ty.as_ref());
            (left, right)
        } else {
            let right = self.infer(b, if is_literal(b) { hint } else { None });
            let float = right.ty.clone().filter(|t| matches!(t, Type::Scalar(s) if s.is_float()));
            (self.infer(a, float.as_ref().or(hint)), right)
        };
        self.scalar_operator(Op::Pow, op_span, (a, left), (b, right))
    }

    fn logic(&mut self, op: BinaryOp, a: &ast::Exp, b: &ast::Exp) -> Typed {
        let left = self.condition(a);
        let right = self.conditional(|c| c.scoped(&Place::Branch, b.span, |c| c.condition(b)));
        let ty = left.ty.filter(|_| right.ty.is_some());
        let exp = match (op, self.can_fail(&right.exp)) {
            (BinaryOp::And, false) => op2(Op::And, left.exp, right.exp),
            (BinaryOp::And, true) => if_(left.exp, right.exp, bool(false)),
            (_, false) => op2(Op::Or, left.exp, right.exp),
            (_, true) => if_(left.exp, bool(true), right.exp),
        };
        Typed { exp, ty }
    }

    /// Whether evaluating the expression may be an error.
    fn can_fail(&self, exp: &Exp) -> bool {
        // What has errors has no types to ask for, and is not used.
        self.error_count() == 0 && self.may_fail(exp)
    }

    fn may_fail(&self, exp: &Exp) -> bool {
        let own = match exp {
            Exp::Index(..) | Exp::Singleton(..) | Exp::Call(..) => true,
            Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, ..) => true,
            // A literal divisor is no cause of failure.
            Exp::Op(Op::IDiv | Op::IMod, args, _) if matches!(args[1], Exp::Lit(d) if d.as_integer().is_some_and(|d| d > 0)) => false,
            Exp::Op(op, args, _) if op.cases().iter().any(|case| op.can_fail(case.args())) => {
                let kinds: Option<Vec<Scalar>> = args.iter().map(|a| type_of(&self.program, a).scalar()).collect();
                kinds.is_some_and(|kinds| op.result(&kinds).is_some() && op.can_fail(&kinds))
            }
            Exp::Op(..) => false,
            Exp::Reduce(..)
            | Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Partial(..)
            | Exp::For(..)
            | Exp::Sum(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Let(..)
            | Exp::Tuple(_)
            | Exp::Array(_) => false,
        };
        let mut found = own;
        exp.for_each_child(&mut |e| found = found || self.may_fail(e));
        found
    }

    /// `[p]` alone is 1 where `p`; any other bracket is an array literal.
    pub fn bracket(&mut self, exp: &ast::Exp, items: &[ast::Exp], hint: Option<&Type>) -> Typed {
        match items {
            [item] if !needs_hint(item) && !matches!(hint, Some(Type::Array(_, Scalar::Bool))) => self.chain(exp, hint),
            _ => self.array_literal(items, exp.span, hint),
        }
    }

    /// A chain of `*` and `/` (or a bracket alone), with its brackets as guards around it.
    fn chain(&mut self, exp: &ast::Exp, hint: Option<&Type>) -> Typed {
        let mut factors = vec![];
        let mut head = exp;
        while let ExpKind::Binary(op @ (BinaryOp::Mul | BinaryOp::Div), span, a, b) = &head.kind {
            factors.push((Some((*op, *span)), &**b));
            head = a;
        }
        factors.push((None, head));
        factors.reverse();

        let mut predicates: Vec<Exp> = vec![];
        let mut rest: Vec<Factor<'_>> = vec![];
        let mut poisoned = false;
        for (op, factor) in factors {
            let item = match &factor.kind {
                ExpKind::Bracket(items) if items.len() == 1 && !needs_hint(&items[0]) => &items[0],
                _ => {
                    rest.push(Factor { op, exp: factor, found: None });
                    continue;
                }
            };
            if is_condition(item) {
                let found = self.predicates(item);
                poisoned |= found.is_none();
                predicates = self.conjunction(predicates, found.unwrap_or_default());
            } else {
                let found = self.infer(item, None);
                match found.ty {
                    Some(Type::Scalar(Scalar::Bool)) => predicates = self.conjunction(predicates, vec![found.exp]),
                    Some(ty) => {
                        let array = Typed::new(self.array_of(vec![found.exp], &ty), ty.with_axis(&Size::constant(1)));
                        rest.push(Factor { op, exp: factor, found: Some(array) });
                    }
                    None => poisoned = true,
                }
            }
        }
        if predicates.is_empty() {
            let found = self.product(rest, exp.span, hint);
            return if poisoned { Typed::poison() } else { found };
        }
        let found = self.conditional(|c| c.scoped(&Place::Guarded, exp.span, |c| c.product(rest, exp.span, hint)));
        let ty = found.ty.filter(|_| !poisoned);
        Typed { exp: predicates.into_iter().rev().fold(found.exp, |e, p| guard(p, e)), ty }
    }

    /// A bracket's condition as guards, outermost first: a conjunct that could fail is inside of those before it.
    fn predicates(&mut self, exp: &ast::Exp) -> Option<Vec<Exp>> {
        if let ExpKind::Binary(BinaryOp::And, _, a, b) = &exp.kind {
            let left = self.predicates(a);
            let right = self.conditional(|c| c.scoped(&Place::Branch, b.span, |c| c.condition(b)));
            let (left, _) = (left?, right.ty?);
            return Some(self.conjunction(left, vec![right.exp]));
        }
        let found = self.conditional(|c| c.scoped(&Place::Branch, exp.span, |c| c.condition(exp)));
        found.ty.map(|_| vec![found.exp])
    }

    fn conjunction(&self, mut left: Vec<Exp>, right: Vec<Exp>) -> Vec<Exp> {
        for p in right {
            match left.pop() {
                Some(last) if self.can_fail(&p) => left.extend([last, p]),
                Some(last) => left.push(op2(Op::And, last, p)),
                None => left.push(p),
            }
        }
        left
    }

    /// The product of factors from the left; of none it is 1.
    fn product(&mut self, factors: Vec<Factor<'_>>, span: Span, hint: Option<&Type>) -> Typed {
        // A factor that knows its type is the hint of those that do not.
        let strength = |f: &Factor| if f.found.is_some() { Strength::Known } else { rank(f.exp) };
        let best = factors.iter().map(strength).max().filter(|best| *best > Strength::Whole);
        let known = best.and_then(|best| factors.iter().position(|f| strength(f) == best));
        let mut found: Vec<Option<Typed>> = vec![];
        let mut exps = vec![];
        for factor in factors {
            exps.push((factor.op, factor.exp));
            found.push(factor.found);
        }
        let mut lead: Option<Type> = None;
        if let Some(k) = known {
            let typed = found[k].take().unwrap_or_else(|| self.infer(exps[k].1, hint));
            lead = typed.ty.clone();
            found[k] = Some(typed);
        }
        let mut total: Option<(Typed, &ast::Exp)> = None;
        for ((op, exp), typed) in exps.into_iter().zip(found) {
            // A number follows the other factors, a singleton's size comes from outside.
            let wanted = if is_literal(exp) { lead.as_ref().or(hint) } else { hint.or(lead.as_ref()) };
            let scalar = wanted.filter(|ty| is_literal(exp) && matches!(ty, Type::Tuple(_))).and_then(common_scalar);
            let typed = typed.unwrap_or_else(|| self.infer(exp, scalar.as_ref().or(wanted)));
            total = Some(match (total, op) {
                (None, Some((BinaryOp::Div, op_span))) => {
                    let one = self.float_number(1.0, exp.span, typed.ty.as_ref());
                    (self.times(BinaryOp::Div, op_span, (exp, one), (exp, typed)), exp)
                }
                (None, _) => (typed, exp),
                (Some((left, left_exp)), op) => {
                    let (op, op_span) = op.unwrap_or((BinaryOp::Mul, span));
                    let product = self.times(op, op_span, (left_exp, left), (exp, typed));
                    // The product so far stands for its last factor in messages.
                    (product, exp)
                }
            });
        }
        match total {
            Some((found, _)) => found,
            None => self.whole_number(1, false, span, hint),
        }
    }

    /// `a * b` and `a / b` of scalars, and the scaling of arrays.
    fn times(&mut self, op: BinaryOp, op_span: Span, (a, left): (&ast::Exp, Typed), (b, right): (&ast::Exp, Typed)) -> Typed {
        let (Some(lt), Some(rt)) = (left.ty, right.ty) else { return Typed::poison() };
        let ir_op = if op == BinaryOp::Mul { Op::Mul } else { Op::Div };
        let result = |x: Scalar, y: Scalar| ir_op.result(&[x, y]);
        match (&lt, &rt) {
            (Type::Scalar(x), Type::Scalar(y)) => {
                if let Some(s) = result(*x, *y) {
                    return Typed::new(op2(ir_op, left.exp, right.exp), Type::Scalar(s));
                }
            }
            (Type::Array(_, x), Type::Scalar(y)) if result(*x, *y).is_some() => {
                let ty = lt.clone();
                let exp = self.elementwise(vec![(left.exp, lt), (right.exp, rt)], &ty, |e| Exp::Op(ir_op, e, Site::default()));
                return Typed::new(exp, ty);
            }
            (Type::Tuple(_), Type::Scalar(y)) if leaf_scalars(&lt).iter().all(|x| result(*x, *y) == Some(*x)) => {
                let operands = vec![(left.exp, lt.clone()), (right.exp, rt)];
                let exp = self
                    .partwise(operands, &lt, &mut |c, operands, ty| c.elementwise(operands, ty, |e| Exp::Op(ir_op, e, Site::default())));
                return Typed::new(exp, lt);
            }
            (Type::Scalar(x), Type::Tuple(_)) if op == BinaryOp::Mul && leaf_scalars(&rt).iter().all(|y| result(*x, *y) == Some(*y)) => {
                let operands = vec![(left.exp, lt), (right.exp, rt.clone())];
                let exp = self
                    .partwise(operands, &rt, &mut |c, operands, ty| c.elementwise(operands, ty, |e| Exp::Op(ir_op, e, Site::default())));
                return Typed::new(exp, rt);
            }
            (Type::Scalar(x), Type::Array(_, y)) if op == BinaryOp::Mul && result(*x, *y).is_some() => {
                let ty = rt.clone();
                let exp = self.elementwise(vec![(left.exp, lt), (right.exp, rt)], &ty, |e| Exp::Op(ir_op, e, Site::default()));
                return Typed::new(exp, ty);
            }
            _ => {}
        }
        let sign = symbol(op);
        let diagnostic = self.operator_mismatch(sign, op_span, (a, &lt), (b, &rt));
        let (x, y) = (brief(a), brief(b));
        let diagnostic = match (&lt, &rt) {
            (Type::Array(s, _), Type::Array(t, _)) if s.len() == t.len() => {
                let i = index_names(s.len());
                let note = format!("for the products of elements write `for {i}. {x}[{i}] {sign} {y}[{i}]`");
                let note = if s.len() == 1 { format!("{note}, for their sum `sum i. {x}[i] * {y}[i]`") } else { note };
                diagnostic.note(if op == BinaryOp::Mul { note } else { format!("write `for {i}. {x}[{i}] / {y}[{i}]`") })
            }
            (Type::Array(..), Type::Array(..)) => {
                diagnostic.note("say which elements are multiplied, as in `for i. sum j. A[i, j] * x[j]`")
            }
            (Type::Scalar(s), Type::Scalar(t)) if op == BinaryOp::Div && s.is_integer() && t.is_integer() => {
                diagnostic.note(format!("`/` is for floats; integers are divided by `div`, as in `{x} div {y}`"))
            }
            (_, Type::Array(..)) if op == BinaryOp::Div => {
                let i = index_names(rt.shape().len());
                diagnostic.note(format!("write `for {i}. {x} / {y}[{i}]`"))
            }
            _ => self.offer_conversion(diagnostic, (a, &lt), (b, &rt)),
        };
        self.report(diagnostic);
        Typed::poison()
    }
}

struct Factor<'e> {
    op: Option<(BinaryOp, Span)>,
    exp: &'e ast::Exp,
    found: Option<Typed>,
}

/// What `+` and `sum` take: numbers, arrays of them, tuples of these.
pub fn is_additive(ty: &Type) -> bool {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => *s != Scalar::Bool,
        Type::Tuple(parts) => parts.iter().all(is_additive),
    }
}

/// The scalars of all parts of a type.
fn leaf_scalars(ty: &Type) -> Vec<Scalar> {
    match ty {
        Type::Scalar(s) | Type::Array(_, s) => vec![*s],
        Type::Tuple(parts) => parts.iter().flat_map(leaf_scalars).collect(),
    }
}

/// The scalar of all parts of a type, if it is one.
fn common_scalar(ty: &Type) -> Option<Type> {
    let scalars = leaf_scalars(ty);
    let first = *scalars.first()?;
    scalars.iter().all(|s| *s == first).then_some(Type::Scalar(first))
}

pub fn index_name(k: usize) -> String {
    ["i", "j", "k", "l"].get(k).map_or_else(|| format!("i{k}"), |s| s.to_string())
}
fn index_names(count: usize) -> String {
    (0..count).map(index_name).collect::<Vec<_>>().join(", ")
}
