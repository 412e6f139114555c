//! Growing loops, lambdas and combinators.
//!
//! What goes round a loop or through an operator passes a sine, so that it stays moderate. Operators that the checker
//! knows are associative; others are applied in the order of the elements, so they need not be.

use super::grammar::{Class, Kind};
use super::grow::{Grower, node};
use super::{Dim, Tree, Ty};

impl Grower<'_> {
    /// A tree in which these names stand for values.
    pub(super) fn under(&mut self, here: (Kind, Class), ty: &Ty, d: usize, names: &[(&str, Ty)]) -> Tree {
        self.env.extend(names.iter().map(|(name, ty)| (name.to_string(), ty.clone())));
        let tree = self.tree(Some(here), ty, d, false);
        self.env.truncate(self.env.len() - names.len());
        tree
    }

    /// `loop v = e for i in 0..n do e`, and `while`
    pub(super) fn counted(&mut self, ty: &Ty, d: usize) -> Option<Tree> {
        let here = (Kind::Loop, Class::of(ty));
        let init = self.tree(Some(here), ty, d, false);
        let (state, index, steps) = (self.fresh("v"), self.fresh("i"), self.dim());
        let inner = |index: &str| (index.to_string(), Ty::Place(steps));
        let note = if self.random.chance(30) { *self.random.pick(&["#[checkpoint(every = 2)] ", "#[stripmine(2)] "]) } else { "" };
        let head = format!("{note}loop {state} = {{}} for {index} in 0..{} do", steps.text());
        match ty {
            Ty::F64 if self.random.chance(30) => {
                let (count, last) = (self.fresh("v"), self.fresh("v"));
                let body = self.under(here, ty, d, &[(&state, Ty::F64), (&count, Ty::I64)]);
                let pattern = format!(
                    "let ({last}, _) = (#[bound(4)] loop ({state}, {count}) = ({{}}, 0) while {count} < 3 do (sin({{}}), {count} + 1)); {last}"
                );
                Some(node(Kind::Loop, ty, &pattern, vec![init, body]))
            }
            Ty::F64 => {
                let (name, place) = inner(&index);
                let body = self.under(here, ty, d, &[(&state, Ty::F64), (&name, place)]);
                Some(node(Kind::Loop, ty, &format!("{head} sin({{}})"), vec![init, body]))
            }
            Ty::Floats(dims) if dims.len() == 1 => {
                let (name, place) = inner(&index);
                let names = [(state.as_str(), ty.clone()), (name.as_str(), place)];
                let at = self.under(here, &Ty::Place(dims[0]), d, &names);
                let value = self.under(here, &Ty::F64, d, &names);
                let pattern = *self.random.pick(&["with [{}] = sin({})", "with [{}] = 0.5 * cos({})"]);
                Some(node(Kind::Loop, ty, &format!("{head} {state} {pattern}"), vec![init, at, value]))
            }
            Ty::Tuple(parts) if parts.iter().all(|t| *t == Ty::F64) => {
                let (first, second) = (self.fresh("v"), self.fresh("v"));
                let names = [(first.as_str(), Ty::F64), (second.as_str(), Ty::F64), (index.as_str(), Ty::Place(steps))];
                let (a, b) = (self.under(here, &Ty::F64, d, &names), self.under(here, &Ty::F64, d, &names));
                let pattern = format!("loop ({first}, {second}) = {{}} for {index} in 0..{} do (sin({{}}), cos({{}}))", steps.text());
                Some(node(Kind::Loop, ty, &pattern, vec![init, a, b]))
            }
            _ => None,
        }
    }

    /// Lambdas and combinators.
    pub(super) fn functional(&mut self, kind: Kind, ty: &Ty, d: usize) -> Option<Tree> {
        let here = (kind, Class::of(ty));
        let grow = |c: &mut Self, ty: &Ty| c.tree(Some(here), ty, d, false);
        match kind {
            Kind::Map => self.map(here, ty, d),
            Kind::Reduce => match ty {
                Ty::F64 => {
                    let (op, body) = self.operator(here, &Ty::F64, d, &["(+)", "(*)", "max", "min"]);
                    let dim = self.dim();
                    let (ne, xs) = (grow(self, ty), grow(self, &Ty::Floats(vec![dim])));
                    Some(node(kind, ty, &format!("reduce({op}, {{}}, {{}})"), body.into_iter().chain([ne, xs]).collect()))
                }
                Ty::I64 | Ty::Bool => {
                    let ops: &[(&str, &str)] = if *ty == Ty::Bool {
                        &[("(and)", "true"), ("(or)", "false")]
                    } else {
                        &[("(+)", "0"), ("max", "-5"), ("min", "7")]
                    };
                    let (op, ne) = *self.random.pick(ops);
                    let (element, dim) = (self.fresh("v"), self.dim());
                    let body = self.under(here, ty, d, &[(&element, Ty::F64)]);
                    let xs = grow(self, &Ty::Floats(vec![dim]));
                    Some(node(kind, ty, &format!("reduce({op}, {ne}, map(|{element}| {{}}, {{}}))"), vec![body, xs]))
                }
                Ty::Floats(dims) if dims.len() == 1 => {
                    let (op, body) = self.operator(here, ty, d, &["(+)", "(+)", "(-)"]);
                    let rows = self.dim();
                    let (ne, xs) = (grow(self, ty), grow(self, &Ty::Floats(vec![rows, dims[0]])));
                    Some(node(kind, ty, &format!("reduce({op}, {{}}, {{}})"), body.into_iter().chain([ne, xs]).collect()))
                }
                Ty::Tuple(parts) if parts.iter().all(|t| *t == Ty::F64) => {
                    let dim = self.dim();
                    let (op, bodies) = self.pair_operator(here, d);
                    let xs = grow(self, &Ty::Tuple(vec![Ty::Floats(vec![dim]), Ty::Floats(vec![dim])]));
                    Some(node(kind, ty, &format!("reduce({op}, (0.5, -0.25), {{}})"), bodies.into_iter().chain([xs]).collect()))
                }
                _ => None,
            },
            Kind::Scan => match ty {
                Ty::Floats(dims) => {
                    let element = if dims.len() == 1 { Ty::F64 } else { Ty::Floats(dims[1..].to_vec()) };
                    let known: &[&str] = if dims.len() == 1 { &["(+)", "(*)", "max", "min"] } else { &["(+)", "(-)"] };
                    let (op, body) = self.operator(here, &element, d, known);
                    let (ne, xs) = (grow(self, &element), grow(self, ty));
                    Some(node(kind, ty, &format!("scan({op}, {{}}, {{}})"), body.into_iter().chain([ne, xs]).collect()))
                }
                Ty::Tuple(parts) => match parts.as_slice() {
                    [Ty::Floats(a), Ty::Floats(b)] if a == b && a.len() == 1 => {
                        let (op, bodies) = self.pair_operator(here, d);
                        let xs = grow(self, ty);
                        Some(node(kind, ty, &format!("scan({op}, (0.5, -0.25), {{}})"), bodies.into_iter().chain([xs]).collect()))
                    }
                    _ => None,
                },
                _ => None,
            },
            Kind::Bins => {
                let Ty::Floats(dims) = ty else { return None };
                let element = if dims.len() == 1 { Ty::F64 } else { Ty::Floats(dims[1..].to_vec()) };
                let known: &[&str] = if dims.len() == 1 { &["(+)", "(+)", "(*)", "max"] } else { &["(+)", "(+)", "(-)"] };
                let (op, body) = self.operator(here, &element, d, known);
                let count = self.dim();
                let mut parts: Vec<Tree> = body.into_iter().collect();
                parts.push(grow(self, &element));
                let (places, place) = self.places(here, count, d);
                parts.extend(place);
                let shape: Vec<Dim> = [count].into_iter().chain(dims[1..].iter().copied()).collect();
                parts.push(grow(self, &Ty::Floats(shape)));
                Some(node(kind, ty, &format!("reduce_by_index({op}, {{}}, {}, {places}, {{}})", dims[0].text()), parts))
            }
            Kind::Scatter => {
                let Ty::Floats(dims) = ty else { return None };
                let count = self.dim();
                let dest = grow(self, ty);
                let (places, place) = self.places(here, count, d);
                let shape: Vec<Dim> = [count].into_iter().chain(dims[1..].iter().copied()).collect();
                let values = grow(self, &Ty::Floats(shape));
                let parts = [dest].into_iter().chain(place).chain([values]).collect();
                Some(node(kind, ty, &format!("scatter({{}}, {places}, {{}})"), parts))
            }
            Kind::Apply => {
                let (f, x) = (self.fresh("v"), self.fresh("v"));
                let arg = if self.random.chance(60) { Ty::F64 } else { Ty::Floats(vec![self.dim()]) };
                let body = self.under(here, ty, d, &[(&x, arg.clone())]);
                let pattern = match ty {
                    Ty::F64 if self.random.chance(40) => format!("let {f} = |{x}| {{}}; {f}({{}}) - {f}({{}})"),
                    _ if self.random.chance(50) => format!("let {f} = |{x}| {{}}; {f}({{}})"),
                    _ => format!("(|{x}| {{}})({{}})"),
                };
                let args = pattern.matches("{}").count() - 1;
                let parts = std::iter::once(body).chain((0..args).map(|_| grow(self, &arg))).collect();
                Some(node(kind, ty, &pattern, parts))
            }
            Kind::LambdaDerivative => {
                let x = self.fresh("v");
                let (operator, body, at) = match ty {
                    Ty::F64 => ("grad", Ty::F64, Ty::F64),
                    Ty::Floats(dims) if dims.len() == 1 => ("grad", Ty::F64, ty.clone()),
                    _ => return None,
                };
                let body = self.under(here, &body, d.min(3), &[(&x, at.clone())]);
                let at = grow(self, &at);
                Some(node(kind, ty, &format!("{operator}(|{x}| {{}})({{}})"), vec![body, at]))
            }
            _ => None,
        }
    }

    fn map(&mut self, here: (Kind, Class), ty: &Ty, d: usize) -> Option<Tree> {
        let kind = here.0;
        let (a, b) = (self.fresh("v"), self.fresh("v"));
        match ty {
            Ty::Floats(dims) if dims.len() == 1 => {
                let tables: Vec<(String, Dim)> = self
                    .env
                    .iter()
                    .filter_map(|(name, t)| match t {
                        Ty::Places(at, to) if *at == dims[0] => Some((name.clone(), *to)),
                        _ => None,
                    })
                    .collect();
                match self.random.below(5) {
                    0 => {
                        let (name, pattern) =
                            *self.random.pick(&[("sin", "map(sin, {})"), ("-", "map((-), {}, {})"), ("max", "map(max, {}, {})")]);
                        let count = if name == "sin" { 1 } else { 2 };
                        let parts = (0..count).map(|_| self.tree(Some(here), ty, d, false)).collect();
                        Some(node(kind, ty, pattern, parts))
                    }
                    1 if !tables.is_empty() => {
                        let (table, to) = self.random.pick(&tables).clone();
                        let index = self.fresh("i");
                        let body = self.under(here, &Ty::F64, d, &[(&index, Ty::Place(to))]);
                        Some(node(kind, ty, &format!("map(|{index}| {{}}, {table})"), vec![body]))
                    }
                    2 => {
                        let body = self.under(here, &Ty::F64, d, &[(&a, Ty::F64), (&b, Ty::F64)]);
                        let (x, y) = (self.tree(Some(here), ty, d, false), self.tree(Some(here), ty, d, false));
                        let pattern = *self.random.pick(&["map(|A, B| {}, {}, {})", "map(|(A, B)| {}, ({}, {}))"]);
                        Some(node(kind, ty, &pattern.replace('A', &a).replace('B', &b), vec![body, x, y]))
                    }
                    _ => {
                        let body = self.under(here, &Ty::F64, d, &[(&a, Ty::F64)]);
                        let x = self.tree(Some(here), ty, d, false);
                        Some(node(kind, ty, &format!("map(|{a}| {{}}, {{}})"), vec![body, x]))
                    }
                }
            }
            Ty::Floats(dims) => {
                let columns = self.dim();
                let row = Ty::Floats(vec![columns]);
                let body = self.under(here, &Ty::Floats(dims[1..].to_vec()), d, &[(&a, row)]);
                let x = self.tree(Some(here), &Ty::Floats(vec![dims[0], columns]), d, false);
                Some(node(kind, ty, &format!("map(|{a}| {{}}, {{}})"), vec![body, x]))
            }
            Ty::Tuple(parts) => match parts.as_slice() {
                [Ty::Floats(x), Ty::Floats(y)] if x == y && x.len() == 1 => {
                    let body = self.under(here, &Ty::Tuple(vec![Ty::F64, Ty::F64]), d, &[(&a, Ty::F64)]);
                    let x = self.tree(Some(here), &Ty::Floats(x.clone()), d, false);
                    Some(node(kind, ty, &format!("map(|{a}| {{}}, {{}})"), vec![body, x]))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// An operator on two values of a type: one that is known, or a lambda with its body.
    fn operator(&mut self, here: (Kind, Class), ty: &Ty, d: usize, known: &[&str]) -> (String, Option<Tree>) {
        // Reductions of rows by `-` are loops: they go from the first to the last.
        if self.random.chance(45) {
            return (self.random.pick(known).to_string(), None);
        }
        let (a, b) = (self.fresh("v"), self.fresh("v"));
        let body = self.under(here, ty, d, &[(&a, ty.clone()), (&b, ty.clone())]);
        let wrapped = if *ty == Ty::F64 { "sin({})" } else { "0.5 * {}" };
        (format!("|{a}, {b}| {wrapped}"), Some(body))
    }

    /// An operator on two pairs of floats, with its two bodies.
    fn pair_operator(&mut self, here: (Kind, Class), d: usize) -> (String, Vec<Tree>) {
        let names: Vec<String> = (0..4).map(|_| self.fresh("v")).collect();
        let visible: Vec<(&str, Ty)> = names.iter().map(|n| (n.as_str(), Ty::F64)).collect();
        let bodies = (0..2).map(|_| self.under(here, &Ty::F64, d, &visible)).collect();
        (format!("|({}, {}), ({}, {})| (sin({{}}), cos({{}}))", names[0], names[1], names[2], names[3]), bodies)
    }

    /// So many places, some of them out of range: a table, or any integers.
    fn places(&mut self, here: (Kind, Class), count: Dim, d: usize) -> (String, Option<Tree>) {
        let fits = |t: &Ty| matches!(t, Ty::Places(at, _) if *at == count);
        let tables: Vec<String> = self.env.iter().filter(|(_, t)| fits(t)).map(|(n, _)| n.clone()).collect();
        if !tables.is_empty() && self.random.chance(40) {
            return (self.random.pick(&tables).clone(), None);
        }
        let index = self.fresh("i");
        let body = self.under(here, &Ty::I64, d, &[(&index, Ty::Place(count))]);
        (format!("(for {index} in 0..{}. {{}})", count.text()), Some(body))
    }
}
