//! Growing programs by the grammar.
//!
//! Values stay moderate (functions are used on safe domains), so that differences and products of them mean something.
//! Reads are in range if no size is zero.

use super::grammar::{Class, Kind, dims, producers, slots};
use super::matrix::Matrix;
use super::{Definition, Dim, Generated, Piece, Random, Tree, Ty, Width};

/// A program from a seed; `seen` says what to prefer.
pub fn grow(seed: u64, seen: &Matrix) -> Generated {
    let mut random = Random(seed);
    let helper_params = || vec![("u".to_string(), Ty::Floats(vec![Dim::Named("p")])), ("s".to_string(), Ty::F64)];
    let main_params = vec![
        ("x".to_string(), Ty::Floats(vec![Dim::Named("n")])),
        ("a".to_string(), Ty::Floats(vec![Dim::Named("n"), Dim::Named("m")])),
        ("w".to_string(), Ty::Floats(vec![Dim::Named("m")])),
        ("y".to_string(), Ty::F64),
        ("k".to_string(), Ty::I64),
        ("ix".to_string(), Ty::Places(Dim::Named("m"), Dim::Named("n"))),
        ("jx".to_string(), Ty::Places(Dim::Named("n"), Dim::Named("m"))),
        ("z".to_string(), Ty::Floats(vec![Dim::Plus1("n")])),
    ];
    let result = match random.below(8) {
        0 => Ty::Floats(vec![Dim::Named("n")]),
        1 => Ty::Floats(vec![Dim::Named("m"), Dim::Const(2)]),
        2 => Ty::Tuple(vec![Ty::F64, Ty::Floats(vec![Dim::Named("m")])]),
        _ => Ty::F64,
    };
    let mut definitions: Vec<Definition> = vec![];
    let vector = Ty::Floats(vec![Dim::Named("p")]);
    let pair = Ty::Tuple(vec![Ty::F64, vector.clone()]);
    for (name, params, result, sizes, fuel) in [
        ("g", helper_params(), Ty::F64, &["p"][..], 10),
        ("h", helper_params(), vector, &["p"][..], 8),
        ("q", helper_params(), pair, &["p"][..], 8),
        ("f", main_params, result, &["n", "m"][..], 45),
    ] {
        let mut grower = Grower {
            random: Random(random.next()),
            seen,
            env: params.clone(),
            callable: definitions.iter().map(|d| d.name.clone()).collect(),
            sizes,
            fuel,
            names: 0,
        };
        let body = grower.tree(None, &result, 7, true);
        definitions.push(Definition { name: name.to_string(), params, result, body });
    }
    let width = match seed % 6 {
        1 => Width::Single,
        4 => Width::Mixed,
        _ => Width::Wide,
    };
    Generated { definitions, width }
}

pub(super) struct Grower<'a> {
    pub(super) random: Random,
    seen: &'a Matrix,
    pub(super) env: Vec<(String, Ty)>,
    callable: Vec<String>,
    sizes: &'a [&'static str],
    /// How many more constructs there may be, roughly.
    fuel: i64,
    names: usize,
}

/// `{}` in a pattern stands for the next part.
pub(super) fn node(kind: Kind, ty: &Ty, pattern: &str, parts: Vec<Tree>) -> Tree {
    let mut pieces = vec![];
    let mut parts = parts.into_iter();
    for (k, text) in pattern.split("{}").enumerate() {
        if k > 0 {
            pieces.push(Piece::Child(parts.next().expect("a part for every place")));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_string()));
        }
    }
    assert!(parts.next().is_none(), "a place for every part");
    Tree { kind, ty: ty.clone(), pieces }
}

impl Grower<'_> {
    pub(super) fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    /// Whether the definition may be called here.
    pub(super) fn calls(&self, name: &str) -> bool {
        self.callable.iter().any(|c| c == name)
    }

    pub(super) fn dim(&mut self) -> Dim {
        let mut all = dims(self.sizes);
        if self.random.chance(20) {
            all.push(Dim::Plus1(self.sizes[0]));
        }
        *self.random.pick(&all)
    }

    /// A tree of the type; `context` says whether its type reaches it from outside.
    pub(super) fn tree(&mut self, parent: Option<(Kind, Class)>, ty: &Ty, depth: usize, context: bool) -> Tree {
        let class = Class::of(ty);
        if let Some((parent, of)) = parent {
            assert!(slots(parent, of).contains(&class), "{parent:?} has no part of class {class:?}");
        }
        self.fuel -= 1;
        if depth > 0 && self.fuel > 0 {
            let mut kinds: Vec<Kind> = producers(class).to_vec();
            while !kinds.is_empty() {
                let k = self.choose(parent.map(|p| p.0), &kinds);
                let kind = kinds.swap_remove(k);
                if let Some(tree) = self.make(kind, ty, depth, context) {
                    return tree;
                }
            }
        }
        self.leaf(ty)
    }

    fn choose(&mut self, parent: Option<Kind>, kinds: &[Kind]) -> usize {
        let start = self.random.below(kinds.len());
        // Those that lack parts come first now and then.
        if self.random.chance(20) {
            let order = (0..kinds.len()).map(|k| (start + k) % kinds.len());
            return order.max_by_key(|k| self.seen.lacking(kinds[*k])).expect("there are kinds");
        }
        match parent {
            Some(parent) if self.random.chance(75) => {
                let order = (0..kinds.len()).map(|k| (start + k) % kinds.len());
                order.min_by_key(|k| self.seen.count(parent, kinds[*k])).expect("there are kinds")
            }
            _ => start,
        }
    }

    fn variable(&mut self, ty: &Ty) -> Option<Tree> {
        let fits = |t: &Ty| t == ty || (*ty == Ty::I64 && matches!(t, Ty::Place(_)));
        let names: Vec<String> = self.env.iter().filter(|(_, t)| fits(t)).map(|(n, _)| n.clone()).collect();
        (!names.is_empty()).then(|| node(Kind::Var, ty, self.random.pick(&names).as_str(), vec![]))
    }
    fn literal(&mut self, ty: &Ty) -> Option<Tree> {
        let text = match ty {
            Ty::F64 => self.random.pick(&["0.5", "1.25", "-0.75", "2.0", "1e-2", "-1.5", "0.1"]).to_string(),
            Ty::I64 => self.random.pick(&["0", "1", "2", "-3", "5"]).to_string(),
            Ty::Place(Dim::Const(c)) => self.random.below(*c as usize).to_string(),
            Ty::Place(_) => "0".to_string(),
            Ty::Bool => self.random.pick(&["true", "false"]).to_string(),
            Ty::Floats(_) | Ty::Places(..) | Ty::Tuple(_) => return None,
        };
        Some(node(Kind::Lit, ty, &text, vec![]))
    }

    fn leaf(&mut self, ty: &Ty) -> Tree {
        if self.random.chance(85) {
            if let Some(variable) = self.variable(ty) {
                return variable;
            }
        }
        if *ty == Ty::Bool && self.random.chance(80) {
            let (a, b) = (self.leaf(&Ty::F64), self.leaf(&Ty::F64));
            return node(Kind::Compare, ty, "{} < {}", vec![a, b]);
        }
        if let Some(literal) = self.literal(ty) {
            return literal;
        }
        match ty {
            Ty::Floats(dims) => {
                let index = self.fresh("i");
                self.env.push((index.clone(), Ty::Place(dims[0])));
                let inner = if dims.len() == 1 { Ty::F64 } else { Ty::Floats(dims[1..].to_vec()) };
                let body = self.leaf(&inner);
                self.env.pop();
                node(Kind::For, ty, &format!("for {index} in 0..{}. {{}}", dims[0].text()), vec![body])
            }
            Ty::Tuple(parts) => {
                let parts: Vec<Tree> = parts.iter().map(|t| self.leaf(t)).collect();
                let places = vec!["{}"; parts.len()].join(", ");
                node(Kind::Tuple, ty, &format!("({places})"), parts)
            }
            Ty::F64 | Ty::I64 | Ty::Place(_) | Ty::Bool | Ty::Places(..) => unreachable!("scalars have literals"),
        }
    }

    /// The construct of this type, or `None` where it has no such type (here).
    fn make(&mut self, kind: Kind, ty: &Ty, depth: usize, context: bool) -> Option<Tree> {
        let class = Class::of(ty);
        let here = Some((kind, class));
        let d = depth - 1;
        macro_rules! part {
            ($ty:expr) => {
                self.tree(here, &$ty, d, false)
            };
        }
        macro_rules! same {
            () => {
                self.tree(here, ty, d, context)
            };
        }
        let made = |pattern: &str, parts: Vec<Tree>| Some(node(kind, ty, pattern, parts));
        match kind {
            Kind::Var => self.variable(ty),
            Kind::Lit => self.literal(ty),
            Kind::Add => made("{} + {}", vec![same!(), same!()]),
            Kind::Sub => match ty {
                Ty::Place(dim) => {
                    let last = match dim {
                        Dim::Named(n) => format!("{n} - 1"),
                        Dim::Plus1(n) => n.to_string(),
                        Dim::Const(c) => (c - 1).to_string(),
                    };
                    made(&format!("{last} - {{}}"), vec![same!()])
                }
                _ => made("{} - {}", vec![part!(*ty), part!(*ty)]),
            },
            Kind::Mul => {
                let pattern = if self.random.chance(50) { "{} * {}" } else { "{} * sin({})" };
                let pattern = if *ty == Ty::I64 { "{} * {}" } else { pattern };
                made(pattern, vec![part!(*ty), part!(*ty)])
            }
            Kind::Div => {
                let pattern = *self.random.pick(&["{} / (2.0 + {} ^ 2)", "{} / (1.5 + cos({}))"]);
                made(pattern, vec![part!(*ty), part!(*ty)])
            }
            Kind::Neg => made("-{}", vec![part!(*ty)]),
            Kind::Pow if *ty == Ty::I64 => made("({} mod 5) ^ 2", vec![part!(*ty)]),
            Kind::Pow => match self.random.below(4) {
                0 => made("{} ^ 2", vec![part!(*ty)]),
                1 => made("sin({}) ^ 3", vec![part!(*ty)]),
                2 => made("(2.0 + {} ^ 2) ^ (-1)", vec![part!(*ty)]),
                _ => made("(1.5 + sin({})) ^ (0.5 * cos({}))", vec![part!(*ty), part!(*ty)]),
            },
            Kind::Function if *ty == Ty::I64 => {
                let pattern = *self.random.pick(&["abs({})", "sign({})"]);
                made(pattern, vec![part!(*ty)])
            }
            Kind::Function => {
                #[rustfmt::skip]
                let pattern = *self.random.pick(&[
                    "sin({})", "cos({})", "tanh({})", "sigmoid({})", "atan({})", "erf({})", "erfc({})", "abs({})", "sign({})",
                    "floor({})", "ceil({})", "round({})", "exp(sin({}))", "exp2(cos({}))", "expm1(sin({}))", "sqrt(1.5 + sin({}))",
                    "cbrt(2.0 + cos({}))", "log(1.5 + sin({}))", "log2(1.5 + cos({}))", "log10(2.0 + sin({}))", "log1p(0.9 * sin({}))",
                    "tan(0.7 * sin({}))", "asin(0.8 * sin({}))", "acos(0.8 * cos({}))", "sinh(sin({}))", "cosh(sin({}))",
                    "lgamma(2.0 + sin({}))", "digamma(2.0 + sin({}))",
                ]);
                made(pattern, vec![part!(*ty)])
            }
            Kind::Function2 => {
                let pattern = match ty {
                    Ty::F64 => *self.random.pick(&["min({}, {})", "max({}, {})", "atan2({}, 2.0 + cos({}))", "hypot(1.5 + sin({}), {})"]),
                    _ => *self.random.pick(&["min({}, {})", "max({}, {})"]),
                };
                made(pattern, vec![part!(*ty), part!(*ty)])
            }
            Kind::Index if class == Class::Tuple => {
                let Ty::Tuple(parts) = ty else { return None };
                if parts.iter().any(|t| *t != Ty::F64) {
                    return None;
                }
                let a = self.dim();
                let arrays = Ty::Tuple(parts.iter().map(|_| Ty::Floats(vec![a])).collect());
                made("{}[{}]", vec![part!(arrays), part!(Ty::Place(a))])
            }
            Kind::Index => {
                if self.random.chance(65) {
                    let a = self.dim();
                    made("{}[{}]", vec![part!(Ty::Floats(vec![a])), part!(Ty::Place(a))])
                } else {
                    let (a, b) = (self.dim(), self.dim());
                    made("{}[{}, {}]", vec![part!(Ty::Floats(vec![a, b])), part!(Ty::Place(a)), part!(Ty::Place(b))])
                }
            }
            Kind::Gather => {
                let wanted = match ty {
                    Ty::Place(dim) => Some(*dim),
                    _ => None,
                };
                let tables: Vec<(String, Dim, Dim)> = self
                    .env
                    .iter()
                    .filter_map(|(name, t)| match t {
                        Ty::Places(at, to) if wanted.is_none_or(|dim| dim == *to) => Some((name.clone(), *at, *to)),
                        _ => None,
                    })
                    .collect();
                if tables.is_empty() {
                    return None;
                }
                let (name, at, to) = self.random.pick(&tables).clone();
                if wanted.is_some() {
                    return made(&format!("{name}[{{}}]"), vec![part!(Ty::Place(at))]);
                }
                let vector = self.variable(&Ty::Floats(vec![to]))?.text();
                made(&format!("{vector}[{name}[{{}}]]"), vec![part!(Ty::Place(at))])
            }
            Kind::Row => {
                let Ty::Floats(dims) = ty else { return None };
                let rows = self.dim();
                made("{}[{}]", vec![part!(Ty::Floats(vec![rows, dims[0]])), part!(Ty::Place(rows))])
            }
            Kind::Kept => {
                let Ty::Floats(dims) = ty else { return None };
                let columns = self.dim();
                made("{}[:, {}]", vec![part!(Ty::Floats(vec![dims[0], columns])), part!(Ty::Place(columns))])
            }
            Kind::Slice => match ty {
                Ty::Floats(dims) if dims.len() == 1 => {
                    let low = self.random.below(2);
                    match dims[0] {
                        Dim::Named(n) => {
                            let pattern = if low == 0 { format!("{{}}[0..{n}]") } else { format!("{{}}[1..{n} + 1]") };
                            made(&pattern, vec![part!(Ty::Floats(vec![Dim::Plus1(n)]))])
                        }
                        Dim::Const(c) if c < 4 => {
                            made(&format!("{{}}[{low}..{}]", low + c as usize), vec![part!(Ty::Floats(vec![Dim::Const(c + 1)]))])
                        }
                        Dim::Plus1(_) | Dim::Const(_) => None,
                    }
                }
                _ => None,
            },
            Kind::Singleton => {
                let Ty::Floats(dims) = ty else { return None };
                let (pattern, parts) = match dims.as_slice() {
                    [a] => ("{{} -> {}}", vec![part!(Ty::Place(*a)), part!(Ty::F64)]),
                    [a, b] if self.random.chance(50) => {
                        ("{({}, {}) -> {}}", vec![part!(Ty::Place(*a)), part!(Ty::Place(*b)), part!(Ty::F64)])
                    }
                    [a, b] => {
                        let key = part!(Ty::Place(*a));
                        ("{{} -> {}}", vec![key, self.tree(here, &Ty::Floats(vec![*b]), d, true)])
                    }
                    _ => return None,
                };
                let ascribed = format!("({pattern} : {})", ty.text());
                made(if context && self.random.chance(80) { pattern } else { &ascribed }, parts)
            }
            Kind::For if class == Class::Tuple => {
                let Ty::Tuple(parts) = ty else { return None };
                let [Ty::Floats(dims), Ty::Floats(others)] = parts.as_slice() else { return None };
                if dims != others {
                    return None;
                }
                let index = self.fresh("i");
                self.env.push((index.clone(), Ty::Place(dims[0])));
                let body = self.tree(here, &Ty::Tuple(vec![Ty::F64, Ty::F64]), d, context);
                self.env.pop();
                made(&format!("for {index} in 0..{}. {{}}", dims[0].text()), vec![body])
            }
            Kind::For => {
                let Ty::Floats(dims) = ty else { return None };
                let inner = if dims.len() == 1 { Ty::F64 } else { Ty::Floats(dims[1..].to_vec()) };
                let index = self.fresh("i");
                self.env.push((index.clone(), Ty::Place(dims[0])));
                let body = self.tree(here, &inner, d, context);
                self.env.pop();
                made(&format!("for {index} in 0..{}. {{}}", dims[0].text()), vec![body])
            }
            Kind::Sum | Kind::Prod | Kind::Max | Kind::Min => {
                let word = format!("{kind:?}").to_lowercase();
                let (index, range) = self.range(matches!(kind, Kind::Max | Kind::Min));
                let body = same!();
                self.env.pop();
                // Of nothing, `max` and `min` are infinite, and a product may be huge: neither is moderate, nor are sines of it.
                match (kind, ty) {
                    (Kind::Prod | Kind::Max | Kind::Min, Ty::F64) => made(&format!("atan({word} {index} in {range}. {{}})"), vec![body]),
                    _ => made(&format!("{word} {index} in {range}. {{}}"), vec![body]),
                }
            }
            Kind::ArgMax | Kind::ArgMin => {
                let word = format!("{kind:?}").to_lowercase();
                let dim = match ty {
                    Ty::Place(dim) => *dim,
                    _ => self.dim(),
                };
                let index = self.fresh("i");
                self.env.push((index.clone(), Ty::Place(dim)));
                let body = part!(Ty::F64);
                self.env.pop();
                made(&format!("{word} {index} in 0..{}. {{}}", dim.text()), vec![body])
            }
            Kind::Any | Kind::All => {
                let word = format!("{kind:?}").to_lowercase();
                let (index, range) = self.range(false);
                let body = part!(Ty::Bool);
                self.env.pop();
                made(&format!("{word} {index} in {range}. {{}}"), vec![body])
            }
            Kind::Guard => made("[{}] * {}", vec![part!(Ty::Bool), same!()]),
            Kind::If => made("if {} then {} else {}", vec![part!(Ty::Bool), same!(), same!()]),
            Kind::IfZero => made("if {} then {}", vec![part!(Ty::Bool), same!()]),
            Kind::Let => {
                let bound = match self.random.below(6) {
                    0 => Ty::I64,
                    1 => Ty::Bool,
                    2 => Ty::Floats(vec![self.dim()]),
                    3 => self.tuple(),
                    _ => Ty::F64,
                };
                let annotated = self.random.chance(40);
                let annotation = if annotated { format!(": {}", bound.text()) } else { String::new() };
                let value = self.tree(here, &bound, d, annotated);
                let name = self.fresh("v");
                self.env.push((name.clone(), bound));
                let body = same!();
                self.env.pop();
                made(&format!("let {name}{annotation} = {{}}; {{}}"), vec![value, body])
            }
            Kind::LetTuple => {
                let bound = self.tuple();
                let annotated = self.random.chance(40);
                let annotation = if annotated { format!(": {}", bound.text()) } else { String::new() };
                let value = self.tree(here, &bound, d, annotated);
                let Ty::Tuple(parts) = bound else { unreachable!("tuples are tuples") };
                let names: Vec<String> = parts.iter().map(|_| self.fresh("v")).collect();
                self.env.extend(names.iter().cloned().zip(parts));
                let body = same!();
                self.env.truncate(self.env.len() - names.len());
                made(&format!("let ({}){annotation} = {{}}; {{}}", names.join(", ")), vec![value, body])
            }
            Kind::Tuple => {
                let Ty::Tuple(parts) = ty else { return None };
                let parts: Vec<Tree> = parts.iter().map(|t| self.tree(here, t, d, context)).collect();
                made(&format!("({})", vec!["{}"; parts.len()].join(", ")), parts)
            }
            Kind::Array => {
                let Ty::Floats(dims) = ty else { return None };
                let Dim::Const(count) = dims[0] else { return None };
                let inner = if dims.len() == 1 { Ty::F64 } else { Ty::Floats(dims[1..].to_vec()) };
                let parts: Vec<Tree> = (0..count).map(|_| part!(inner)).collect();
                made(&format!("[{}]", vec!["{}"; parts.len()].join(", ")), parts)
            }
            Kind::Call => {
                let (function, dim) = match ty {
                    Ty::F64 => ("g", self.dim()),
                    Ty::Floats(dims) if dims.len() == 1 => ("h", dims[0]),
                    Ty::Tuple(parts) => match parts.as_slice() {
                        [Ty::F64, Ty::Floats(dims)] => ("q", dims[0]),
                        _ => return None,
                    },
                    _ => return None,
                };
                if !self.calls(function) {
                    return None;
                }
                made(&format!("{function}({{}}, {{}})"), vec![part!(Ty::Floats(vec![dim])), part!(Ty::F64)])
            }
            Kind::Compare => {
                if self.random.chance(60) {
                    let pattern = *self.random.pick(&["{} < {}", "{} <= {}", "{} > {}", "{} >= {}"]);
                    made(pattern, vec![part!(Ty::F64), part!(Ty::F64)])
                } else {
                    let pattern = *self.random.pick(&["{} == {}", "{} != {}", "{} < {}", "{} >= {}"]);
                    made(pattern, vec![part!(Ty::I64), part!(Ty::I64)])
                }
            }
            Kind::Logic => match self.random.below(3) {
                0 => made("{} and {}", vec![part!(Ty::Bool), part!(Ty::Bool)]),
                1 => made("{} or {}", vec![part!(Ty::Bool), part!(Ty::Bool)]),
                _ => made("not {}", vec![part!(Ty::Bool)]),
            },
            Kind::Convert => match ty {
                Ty::F64 => made("0.25 * f64({} mod 5)", vec![part!(Ty::I64)]),
                _ => made("i64(floor(3.0 * sin({})))", vec![part!(Ty::F64)]),
            },
            Kind::DivMod => match ty {
                Ty::Place(dim) => made(&format!("{{}} mod ({})", dim.text()), vec![part!(Ty::I64)]),
                _ => {
                    let pattern = *self.random.pick(&["{} div 3", "{} mod 4", "{} div (-2)", "{} mod (-3)"]);
                    made(pattern, vec![part!(Ty::I64)])
                }
            },
            Kind::Scale => made("{} * {}", vec![part!(Ty::F64), part!(*ty)]),
            Kind::History => {
                let Ty::Floats(dims) = ty else { return None };
                let steps = match dims.as_slice() {
                    [Dim::Plus1(n)] => Dim::Named(n),
                    [Dim::Const(c)] => Dim::Const(c - 1),
                    _ => return None,
                };
                let init = part!(Ty::F64);
                let (state, index) = (self.fresh("v"), self.fresh("i"));
                self.env.push((state.clone(), Ty::F64));
                self.env.push((index.clone(), Ty::Place(steps)));
                let body = part!(Ty::F64);
                self.env.truncate(self.env.len() - 2);
                let pattern = format!("history {state} = {{}} for {index} in 0..{} do sin({{}})", steps.text());
                made(&pattern, vec![init, body])
            }
            Kind::Derivative => self.derivative(ty, d),
            Kind::Loop => self.counted(ty, d),
            Kind::With => {
                let Ty::Floats(dims) = ty else { return None };
                let (array, at) = (same!(), part!(Ty::Place(dims[0])));
                match dims.as_slice() {
                    [_] => made("{} with [{}] = {}", vec![array, at, part!(Ty::F64)]),
                    [_, b] if self.random.chance(50) => {
                        let other = part!(Ty::Place(*b));
                        made("{} with [{}, {}] = {}", vec![array, at, other, part!(Ty::F64)])
                    }
                    [_, b] => made("{} with [{}] = {}", vec![array, at, part!(Ty::Floats(vec![*b]))]),
                    _ => None,
                }
            }
            Kind::Map | Kind::Reduce | Kind::Scan | Kind::Bins | Kind::Scatter | Kind::Apply | Kind::LambdaDerivative => {
                self.functional(kind, ty, d)
            }
            Kind::Record | Kind::Summed | Kind::Filter | Kind::HigherOrder | Kind::Generic | Kind::Given | Kind::Stopped => {
                self.structured(kind, ty, d)
            }
        }
    }

    fn derivative(&mut self, ty: &Ty, d: usize) -> Option<Tree> {
        if !self.calls("h") {
            return None;
        }
        let here = Some((Kind::Derivative, Class::of(ty)));
        let vector = |dim: Dim| Ty::Floats(vec![dim]);
        let (patterns, dim, extra): (&[&str], Dim, Vec<Ty>) = match ty {
            Ty::F64 => (&["grad(g, wrt = s)({}, {})", "hessian(g, wrt = s)({}, {})"], self.dim(), vec![]),
            Ty::Floats(dims) if dims.len() == 1 => {
                if self.random.chance(40) {
                    (&["hvp(g, ({}, {}), {}, wrt = u)"], dims[0], vec![vector(dims[0])])
                } else {
                    (&["grad(g, wrt = u)({}, {})", "jacobian(h, wrt = s)({}, {})", "jacrev(h, wrt = s)({}, {})"], dims[0], vec![])
                }
            }
            Ty::Tuple(parts) => match parts.as_slice() {
                [Ty::F64, Ty::F64] => {
                    let dim = self.dim();
                    (&["jvp(g, ({}, {}), ({}, {}))"], dim, vec![vector(dim), Ty::F64])
                }
                [Ty::F64, Ty::Floats(dims)] => (&["value_and_grad(g, wrt = u)({}, {})"], dims[0], vec![]),
                [Ty::Floats(dims), Ty::F64] => {
                    if self.random.chance(50) {
                        (&["vjp(h, ({}, {}), {}, wrt = s)"], dims[0], vec![vector(dims[0])])
                    } else {
                        (&["grad(g)({}, {})"], dims[0], vec![])
                    }
                }
                _ => return None,
            },
            _ => return None,
        };
        let pattern = *self.random.pick(patterns);
        let mut parts = vec![self.tree(here, &vector(dim), d, false), self.tree(here, &Ty::F64, d, false)];
        for t in &extra {
            parts.push(self.tree(here, t, d, false));
        }
        Some(node(Kind::Derivative, ty, pattern, parts))
    }

    fn tuple(&mut self) -> Ty {
        let dim = self.dim();
        match self.random.below(4) {
            0 => Ty::Tuple(vec![Ty::F64, Ty::F64]),
            1 => Ty::Tuple(vec![Ty::F64, Ty::Floats(vec![dim])]),
            2 => Ty::Tuple(vec![Ty::Floats(vec![dim]), Ty::Floats(vec![dim])]),
            _ => Ty::Tuple(vec![Ty::Floats(vec![dim]), Ty::F64]),
        }
    }

    /// An index, made visible, and its range: all of an axis or a part of it, which holds something if it must (no axis
    /// being empty). Of nothing, `max` and `min` are infinite, and what infinities meet in is not the same in every order.
    fn range(&mut self, some: bool) -> (String, String) {
        let dim = self.dim();
        let outer: Vec<String> = self.env.iter().filter(|(_, t)| *t == Ty::Place(dim)).map(|(n, _)| n.clone()).collect();
        let end = dim.text();
        let range = match self.random.below(6) {
            0 if !outer.is_empty() && !some => format!("0..{}", self.random.pick(&outer)),
            1 if !outer.is_empty() => format!("{}..{end}", self.random.pick(&outer)),
            2 if !some => format!("1..{end}"),
            _ => format!("0..{end}"),
        };
        let index = self.fresh("i");
        self.env.push((index.clone(), Ty::Place(dim)));
        (index, range)
    }
}
