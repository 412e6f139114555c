//! Equality of programs up to the names and numbers of variables.
//!
//! Functions are matched by name, derived functions by what they are derived from. Sites and spans do not count, sizes
//! are compared as axes, a variable that is bound to a size (`let m = n - 1`) being that size; all NaNs are one. `sum i in 0..p` equals `sum i in 0..max(0, p)`, as the axes do.
//!
//! Where `q` could fail, a reader takes `p and q` for `if p then q else false`, and `[p and q] * e` for a guard in a guard.
//! These count as equal too: they differ only in whether `q` is evaluated where `p` decides.

use super::build::exp_size;
use super::print::print_exp_untyped;
use super::*;
use rustc_hash::FxHashMap;

/// `Err` says where the programs differ first.
pub fn equal_up_to_renaming(a: &Program, b: &Program) -> Result<(), String> {
    for (from, to) in [(a, b), (b, a)] {
        for f in from.functions.iter().filter(|f| matches!(f.body, Body::Exp(_))) {
            if !to.find(&f.name).is_some_and(|id| matches!(to.function(id).body, Body::Exp(_))) {
                return Err(format!("only one program defines `{}`", f.name));
            }
        }
    }
    for (k, f) in a.functions.iter().enumerate().filter(|(_, f)| matches!(f.body, Body::Exp(_))) {
        let other = b.find(&f.name).expect("just found");
        function_equal(a, FunctionId(k as u32), b, other).map_err(|e| format!("in `{}`: {e}", f.name))?;
    }
    Ok(())
}

/// Two functions, with the functions they call compared by name alone.
pub fn function_equal(a: &Program, f: FunctionId, b: &Program, g: FunctionId) -> Result<(), String> {
    let mut pairing = Pairing { a, b, right: FxHashMap::default(), left: FxHashMap::default(), defined: FxHashMap::default() };
    let (f, g) = (a.function(f), b.function(g));
    if f.sizes.len() != g.sizes.len() || f.params.len() != g.params.len() {
        return Err("the parameters differ in number".to_string());
    }
    if f.statics != g.statics {
        return Err("other parameters are `static`".to_string());
    }
    // The order of sizes is that of their appearance in the parameters' types, so it is the same.
    f.sizes.iter().zip(&g.sizes).for_each(|(v, w)| pairing.pair(*v, *w));
    f.params.iter().zip(&g.params).for_each(|(v, w)| pairing.pair(*v, *w));
    for (v, w) in f.params.iter().zip(&g.params) {
        if !pairing.types(a.vars.ty(*v), b.vars.ty(*w)) {
            return Err(format!("the types of `{}` differ", a.vars.name(*v)));
        }
    }
    if !pairing.types(&f.result, &g.result) {
        return Err("the result types differ".to_string());
    }
    match (&f.body, &g.body) {
        (Body::Exp(x), Body::Exp(y)) => pairing.exps(x, y),
        (Body::Derived { .. }, Body::Derived { .. })
        | (Body::Entries(_), Body::Entries(_))
        | (Body::Jacobian { .. }, Body::Jacobian { .. }) => Ok(()),
        _ => Err("only one of them is derived".to_string()),
    }
}

struct Pairing<'a> {
    a: &'a Program,
    b: &'a Program,
    right: FxHashMap<Var, Var>,
    left: FxHashMap<Var, Var>,
    /// Variables of the second program that are sizes of others.
    defined: FxHashMap<Var, Size>,
}

impl Pairing<'_> {
    fn pair(&mut self, v: Var, w: Var) {
        self.right.insert(v, w);
        self.left.insert(w, v);
    }
    fn vars(&self, v: Var, w: Var) -> bool {
        self.right.get(&v) == Some(&w) && self.left.get(&w) == Some(&v)
    }
    fn sizes(&self, s: &Size, t: &Size) -> bool {
        let s = s.substitute(&|v| self.right.get(&v).map(|w| Size::var(*w)));
        let expand = |s: &Size| s.substitute(&|v| self.defined.get(&v).cloned()).axis();
        s.axis() == t.axis() || expand(&s) == expand(t)
    }
    fn types(&self, s: &Type, t: &Type) -> bool {
        match (s, t) {
            (Type::Scalar(a), Type::Scalar(b)) => a == b,
            (Type::Array(xs, a), Type::Array(ys, b)) => a == b && xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.sizes(x, y)),
            (Type::Tuple(xs), Type::Tuple(ys)) => xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.types(x, y)),
            _ => false,
        }
    }

    /// Functions are the same by name, derived ones by mode, source and positions.
    fn functions(&self, f: FunctionId, g: FunctionId) -> bool {
        let (f, g) = (self.a.function(f), self.b.function(g));
        match (&f.body, &g.body) {
            (Body::Exp(_), Body::Exp(_)) => f.name == g.name,
            (Body::Derived { mode, of, wrt }, Body::Derived { mode: m, of: o, wrt: w }) => mode == m && wrt == w && self.functions(*of, *o),
            (Body::Entries(x), Body::Entries(y)) => {
                let modes = |e: &Entries| (e.forward.is_some(), e.reverse.is_some());
                let own = |e: &Entries| (e.part, e.wrt.clone(), e.stack, e.triangle, modes(e));
                own(x) == own(y) && self.functions(x.of, y.of)
            }
            (Body::Jacobian { of, wrt }, Body::Jacobian { of: o, wrt: w }) => wrt == w && self.functions(*of, *o),
            _ => false,
        }
    }

    fn lists(&mut self, xs: &[Exp], ys: &[Exp]) -> Result<bool, String> {
        if xs.len() != ys.len() {
            return Ok(false);
        }
        xs.iter().zip(ys).try_for_each(|(x, y)| self.exps(x, y))?;
        Ok(true)
    }

    fn ranges(&mut self, r: &Range, s: &Range) -> Result<(), String> {
        self.exps(&r.lo, &s.lo)?;
        let axes = exp_size(&r.hi).zip(exp_size(&s.hi));
        let as_axes = r.lo == build::i64(0) && axes.is_some_and(|(x, y)| self.sizes(&x, &y));
        if !as_axes {
            self.exps(&r.hi, &s.hi)?;
        }
        self.pair(r.index, s.index);
        Ok(())
    }

    fn exps(&mut self, x: &Exp, y: &Exp) -> Result<(), String> {
        let same = match (x, y) {
            (Exp::Var(v), Exp::Var(w)) => self.vars(*v, *w),
            (Exp::Lit(a), Exp::Lit(b)) if a.as_float().is_some_and(f64::is_nan) && a.scalar() == b.scalar() => {
                b.as_float().is_some_and(f64::is_nan)
            }
            (Exp::Lit(a), Exp::Lit(b)) => a == b,
            (Exp::Op(a, xs, _), Exp::Op(b, ys, _)) => a == b && self.lists(xs, ys)?,
            (Exp::Partial(a, j, xs), Exp::Partial(b, k, ys)) => a == b && j == k && self.lists(xs, ys)?,
            (Exp::Index(..), Exp::Index(..)) => {
                let ((array, keys), (other, others)) = (flat_index(x), flat_index(y));
                self.exps(array, other)?;
                keys.len() == others.len() && {
                    keys.iter().zip(&others).try_for_each(|(k, l)| self.exps(k, l))?;
                    true
                }
            }
            (Exp::Singleton(..), Exp::Singleton(..)) => {
                let ((keys, value), (others, other)) = (flat_singleton(x), flat_singleton(y));
                keys.len() == others.len() && {
                    for ((k, s), (l, t)) in keys.iter().zip(&others) {
                        self.exps(k, l)?;
                        if !self.sizes(s, t) {
                            return Err(self.difference("the sizes differ", x, y));
                        }
                    }
                    self.exps(value, other)?;
                    true
                }
            }
            (Exp::For(v, s, a), Exp::For(w, t, b)) => {
                let sizes = self.sizes(s, t);
                self.pair(*v, *w);
                sizes && {
                    self.exps(a, b)?;
                    true
                }
            }
            (Exp::Sum(r, a), Exp::Sum(s, b)) => {
                self.ranges(r, s)?;
                self.exps(a, b)?;
                true
            }
            (Exp::Reduce(j, r, a, _), Exp::Reduce(k, s, b, _)) => {
                j == k && {
                    self.ranges(r, s)?;
                    self.exps(a, b)?;
                    true
                }
            }
            (Exp::History(g), Exp::History(h)) => {
                self.exps(&g.init, &h.init)?;
                let alike = g.state.len() == h.state.len() && self.sizes(&g.size, &h.size);
                g.state.iter().zip(&h.state).for_each(|(v, w)| self.pair(*v, *w));
                self.pair(g.index, h.index);
                alike && {
                    self.exps(&g.body, &h.body)?;
                    true
                }
            }
            (Exp::Loop(g), Exp::Loop(h)) => {
                self.exps(&g.init, &h.init)?;
                let noted = g.annotations.len() == h.annotations.len()
                    && g.annotations.iter().zip(&h.annotations).all(|((a, s), (b, t))| a == b && self.sizes(s, t));
                let alike = g.state.len() == h.state.len() && noted;
                g.state.iter().zip(&h.state).for_each(|(v, w)| self.pair(*v, *w));
                match (&g.trip, &h.trip) {
                    (Trip::For(r), Trip::For(s)) => self.ranges(r, s)?,
                    (Trip::While(p), Trip::While(q)) => self.exps(p, q)?,
                    _ => return Err(format!("one loop counts and the other has a condition")),
                }
                alike && {
                    self.exps(&g.body, &h.body)?;
                    true
                }
            }
            (Exp::Update(a, j, u, _), Exp::Update(b, k, w, _)) => {
                self.exps(a, b)?;
                let alike = self.lists(j, k)?;
                self.exps(u, w)?;
                alike
            }
            (Exp::Op(Op::And, ps, _), Exp::If(c, a, b)) | (Exp::If(c, a, b), Exp::Op(Op::And, ps, _))
                if **b == build::bool(false) && can_fail(a) =>
            {
                let read = [(**c).clone(), (**a).clone()];
                if matches!(x, Exp::If(..)) { self.lists(&read, ps)? } else { self.lists(ps, &read)? }
            }
            (Exp::Op(Op::Or, ps, _), Exp::If(c, a, b)) | (Exp::If(c, a, b), Exp::Op(Op::Or, ps, _))
                if **a == build::bool(true) && can_fail(b) =>
            {
                let read = [(**c).clone(), (**b).clone()];
                if matches!(x, Exp::If(..)) { self.lists(&read, ps)? } else { self.lists(ps, &read)? }
            }
            (Exp::Guard(p, a), Exp::Guard(q, b)) => {
                if self.exps(p, q).is_ok() {
                    self.exps(a, b)?;
                    true
                } else {
                    let ((ps, a), (qs, b)) = (conditions(x), conditions(y));
                    if ps.len() != qs.len() || !ps[1..].iter().any(|p| can_fail(p)) {
                        return Err(self.difference("the conditions differ", x, y));
                    }
                    ps.iter().zip(&qs).try_for_each(|(p, q)| self.exps(p, q))?;
                    self.exps(a, b)?;
                    true
                }
            }
            (Exp::If(p, a, b), Exp::If(q, c, d)) => {
                self.exps(p, q)?;
                self.exps(a, c)?;
                self.exps(b, d)?;
                true
            }
            (Exp::Let(vs, a, b), Exp::Let(ws, c, d)) => {
                self.exps(a, c)?;
                vs.len() == ws.len() && {
                    vs.iter().zip(ws).for_each(|(v, w)| self.pair(*v, *w));
                    if let ([w], Some(size)) = (ws.as_slice(), exp_size(c)) {
                        let size = size.substitute(&|v| self.defined.get(&v).cloned());
                        self.defined.insert(*w, size);
                    }
                    self.exps(b, d)?;
                    true
                }
            }
            (Exp::Tuple(xs), Exp::Tuple(ys)) | (Exp::Array(xs), Exp::Array(ys)) => self.lists(xs, ys)?,
            (Exp::Call(f, xs, _), Exp::Call(g, ys, _)) => self.functions(*f, *g) && self.lists(xs, ys)?,
            _ => false,
        };
        if same { Ok(()) } else { Err(self.difference("the expressions differ", x, y)) }
    }

    fn difference(&self, what: &str, x: &Exp, y: &Exp) -> String {
        format!("{what}:\n  {}\nand\n  {}", print_exp_untyped(self.a, x), print_exp_untyped(self.b, y))
    }
}

/// The conditions of guards in guards, conjunctions taken apart, and what they guard.
fn conditions(exp: &Exp) -> (Vec<&Exp>, &Exp) {
    fn conjuncts<'e>(p: &'e Exp, out: &mut Vec<&'e Exp>) {
        match p {
            Exp::Op(Op::And, ps, _) => ps.iter().for_each(|p| conjuncts(p, out)),
            Exp::If(p, q, no) if **no == build::bool(false) => {
                conjuncts(p, out);
                conjuncts(q, out);
            }
            other => out.push(other),
        }
    }
    let mut all = vec![];
    let mut rest = exp;
    while let Exp::Guard(p, e) = rest {
        conjuncts(p, &mut all);
        rest = e;
    }
    (all, rest)
}

/// Whether evaluating the expression could be an error.
fn can_fail(exp: &Exp) -> bool {
    let own = match exp {
        Exp::Index(..) | Exp::Singleton(..) | Exp::Update(..) | Exp::Call(..) => true,
        Exp::Reduce(kind, ..) => matches!(kind, Reduction::ArgMax | Reduction::ArgMin),
        Exp::Op(op, _, _) => op.cases().iter().any(|case| op.can_fail(case.args())),
        Exp::Var(_)
        | Exp::Lit(_)
        | Exp::Partial(..)
        | Exp::For(..)
        | Exp::Sum(..)
        | Exp::History(_)
        | Exp::Loop(_)
        | Exp::Guard(..)
        | Exp::If(..)
        | Exp::Let(..)
        | Exp::Tuple(_)
        | Exp::Array(_) => false,
    };
    let mut found = own;
    exp.for_each_child(&mut |e| found = found || can_fail(e));
    found
}

/// `x[i][j]` is `x[i, j]`.
fn flat_index(exp: &Exp) -> (&Exp, Vec<&Exp>) {
    match exp {
        Exp::Index(array, keys, _) => {
            let (base, mut all) = flat_index(array);
            all.extend(keys);
            (base, all)
        }
        other => (other, vec![]),
    }
}

/// `{i -> {j -> v}}` is `{(i, j) -> v}`.
fn flat_singleton(exp: &Exp) -> (Vec<&(Exp, Size)>, &Exp) {
    match exp {
        Exp::Singleton(keys, value, _) => {
            let (more, value) = flat_singleton(value);
            (keys.iter().chain(more).collect(), value)
        }
        other => (vec![], other),
    }
}
