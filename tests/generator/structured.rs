//! Growing records, loops with summed results, arrays whose size depends on data, calls of definitions that take functions
//! or values of any type, or whose derivatives are given.

use super::grammar::{Class, Kind};
use super::grow::{Grower, node};
use super::{Tree, Ty};

/// Definitions that stand in front of the programs that use them: the positive elements; functions of functions; of values
/// of any type the one chosen.
pub const HELPERS: &[(&str, &str)] = &[
    (
        "kept(",
        "def kept(u: [p]f64) -> [?c]f64 =
  let place = for i in 0..p. sum j in 0..i. [u[j] > 0.0] * 1;
  let c = sum i. [u[i] > 0.0] * 1;
  (sum i. [u[i] > 0.0] * {place[i] -> u[i]} : [c]f64)
",
    ),
    ("both(", "type Pair = {first: f64, second: f64}\ndef both(t: f64 -> f64, p: Pair) -> f64 = t(p.first) - 0.5 * t(sin(p.second))\n"),
    ("each(", "def each(t: (f64, i64) -> f64, u: [p]f64) -> [p]f64 = for i. t(u[i], i)\n"),
    ("chosen(", "def chosen(k: i64, a: T, b: T) -> T = if k mod 2 == 0 then a else b\n"),
    (
        "bent(",
        "def bent(t: f64) -> f64 = t * sin(t)
def jvp bent(t: f64, dt: f64) -> f64 = (sin(t) + t * cos(t)) * dt
",
    ),
    (
        "curved(",
        "def curved(u: [p]f64, t: f64) -> [p]f64 = for i. sin(u[i]) * t
def vjp curved(u: [p]f64, t: f64, seed: [p]f64) -> ([p]f64, f64) =
  (for i. cos(u[i]) * t * seed[i], sum i. sin(u[i]) * seed[i])
",
    ),
    ("swapped(", "def swapped(u: [p]T, v: [p]T) -> [p]T = for i. if i mod 2 == 0 then u[i] else v[i]\n"),
];

/// Where this stands, differences are not derivatives.
pub const STOP: &str = "stop_gradient";

impl Grower<'_> {
    pub(super) fn structured(&mut self, kind: Kind, ty: &Ty, d: usize) -> Option<Tree> {
        let here = (kind, Class::of(ty));
        match kind {
            Kind::Record => self.record(here, ty, d),
            Kind::Summed => self.summed(here, ty, d),
            Kind::Filter => {
                let dim = self.dim();
                let (kept, index) = (self.fresh("v"), self.fresh("i"));
                let from = self.tree(Some(here), &Ty::Floats(vec![dim]), d, false);
                let factor = self.under(here, &Ty::F64, d, &[(&index, Ty::I64)]);
                Some(node(kind, ty, &format!("let {kept} = kept({{}}); sum {index}. {kept}[{index}] * {{}}"), vec![from, factor]))
            }
            Kind::HigherOrder => self.higher_order(here, ty, d),
            Kind::Generic => {
                let pattern = match ty {
                    Ty::Floats(_) => "swapped({}, {})".to_string(),
                    // Literals alone would be floats.
                    Ty::I64 => format!("chosen({}, i64({{}}), i64({{}}))", self.random.below(2)),
                    _ => format!("chosen({}, {{}}, {{}})", self.random.below(2)),
                };
                let parts = (0..2).map(|_| self.tree(Some(here), ty, d, false)).collect();
                Some(node(kind, ty, &pattern, parts))
            }
            Kind::Given => match ty {
                Ty::F64 => Some(node(kind, ty, "bent(sin({}))", vec![self.tree(Some(here), ty, d, false)])),
                _ => {
                    let parts = vec![self.tree(Some(here), ty, d, false), self.tree(Some(here), &Ty::F64, d, false)];
                    Some(node(kind, ty, "curved({}, {})", parts))
                }
            },
            Kind::Stopped => Some(node(kind, ty, &format!("{STOP}({{}})"), vec![self.tree(Some(here), ty, d, false)])),
            _ => None,
        }
    }

    /// A call of a definition that takes a function: a lambda, which may use what is around, or a name.
    fn higher_order(&mut self, here: (Kind, Class), ty: &Ty, d: usize) -> Option<Tree> {
        let (kind, v, index) = (here.0, self.fresh("v"), self.fresh("i"));
        match ty {
            Ty::F64 => {
                let (a, b) = (self.tree(Some(here), ty, d, false), self.tree(Some(here), ty, d, false));
                if self.random.chance(30) {
                    return Some(node(kind, ty, "both(cos, {first: {}, second: {}})", vec![a, b]));
                }
                let body = self.under(here, &Ty::F64, d, &[(&v, Ty::F64)]);
                Some(node(kind, ty, &format!("both(|{v}| {{}}, {{first: {{}}, second: {{}}}})"), vec![body, a, b]))
            }
            _ => {
                let body = self.under(here, &Ty::F64, d, &[(&v, Ty::F64), (&index, Ty::I64)]);
                let of = self.tree(Some(here), ty, d, false);
                Some(node(kind, ty, &format!("each(|{v}, {index}| {{}}, {{}})"), vec![body, of]))
            }
        }
    }

    /// A field of a record: of a written one, of a sum or a loop of records, of an array of records.
    fn record(&mut self, here: (Kind, Class), ty: &Ty, d: usize) -> Option<Tree> {
        let (kind, r) = (here.0, self.fresh("v"));
        let grow = |me: &mut Self, ty: &Ty| me.tree(Some(here), ty, d, false);
        let dim = self.dim();
        match ty {
            Ty::F64 if self.random.chance(40) => {
                let index = self.fresh("i");
                let names = [(index.as_str(), Ty::Place(dim))];
                let (a, b) = (self.under(here, &Ty::F64, d, &names), self.under(here, &Ty::F64, d, &names));
                let pattern = format!("let {r} = (sum {index} in 0..{}. {{a: {{}}, b: {{}}}}); {r}.a - {r}.b", dim.text());
                Some(node(kind, ty, &pattern, vec![a, b]))
            }
            Ty::F64 if self.random.chance(40) => {
                let (state, index) = (self.fresh("v"), self.fresh("i"));
                let (a, b) = (grow(self, &Ty::F64), grow(self, &Ty::F64));
                let step = self.under(here, &Ty::F64, d, &[(&index, Ty::Place(dim))]);
                let pattern = format!(
                    "let {r} = (loop {state} = {{a: {{}}, b: {{}}}} for {index} in 0..{} do {{a: {state}.b, b: sin({state}.a * {{}})}}); {r}.a",
                    dim.text()
                );
                Some(node(kind, ty, &pattern, vec![a, b, step]))
            }
            Ty::Floats(dims) if dims.len() == 1 && self.random.chance(60) => {
                let index = self.fresh("i");
                let names = [(index.as_str(), Ty::Place(dims[0]))];
                let (a, b) = (self.under(here, &Ty::F64, d, &names), self.under(here, &Ty::F64, d, &names));
                let pattern = format!("let {r} = (for {index} in 0..{}. {{a: {{}}, b: {{}}}}); {r}.a + {r}.b", dims[0].text());
                Some(node(kind, ty, &pattern, vec![a, b]))
            }
            _ => {
                let other = if self.random.chance(50) { Ty::F64 } else { Ty::Floats(vec![dim]) };
                let (a, b) = (grow(self, ty), grow(self, &other));
                Some(node(kind, ty, &format!("let {r} = {{b: {{}}, a: {{}}}}; {r}.a"), vec![b, a]))
            }
        }
    }

    /// `loop (v, sum w) = … for i in 0..n do (…, …)`
    fn summed(&mut self, here: (Kind, Class), ty: &Ty, d: usize) -> Option<Tree> {
        let (state, total, last, index) = (self.fresh("v"), self.fresh("v"), self.fresh("v"), self.fresh("i"));
        let steps = self.dim();
        let init = self.tree(Some(here), &Ty::F64, d, false);
        let start = self.tree(Some(here), ty, d, false);
        let names = [(state.as_str(), Ty::F64), (index.as_str(), Ty::Place(steps))];
        let step = self.under(here, &Ty::F64, d, &names);
        let term = self.under(here, ty, d, &names);
        let result = if *ty == Ty::F64 { format!("sin({last} + {total})") } else { total.clone() };
        let pattern = format!(
            "let ({last}, {total}) = (loop ({state}, sum {total}) = ({{}}, {{}}) for {index} in 0..{} do (sin({{}}), 0.1 * {{}})); {result}",
            steps.text()
        );
        Some(node(here.0, ty, &pattern, vec![init, start, step, term]))
    }
}
