//! What C and its relatives share: names, types, literals and expressions.
//!
//! A name is the user's, with an underscore and a number behind it (`x_1`), so that it can be no keyword, macro or function
//! of a library, and none of the names that emitted code has for itself, which do not end so (`chunk1`).

use crate::loops::{Buffer, Expr, Kernel, Local};
use crate::scalar::{Formula, Op};
use crate::types::{Lit, Scalar};
use rustc_hash::FxHashMap;

/// The kernel and how its locals and buffers are called.
pub struct Names<'a> {
    pub kernel: &'a Kernel,
    locals: Vec<String>,
    buffers: Vec<String>,
}

impl<'a> Names<'a> {
    pub fn new(kernel: &'a Kernel) -> Names<'a> {
        let mut counts: FxHashMap<String, usize> = FxHashMap::default();
        let mut number = |name: &str| {
            let base = identifier(name);
            let count = counts.entry(base.clone()).or_insert(0);
            *count += 1;
            format!("{base}_{count}")
        };
        let locals = kernel.locals.iter().map(|l| number(&l.name)).collect();
        let buffers = kernel.buffers.iter().map(|b| number(&b.name)).collect();
        Names { kernel, locals, buffers }
    }
    pub fn local(&self, l: Local) -> &str {
        &self.locals[l.0 as usize]
    }
    pub fn buffer(&self, b: Buffer) -> &str {
        &self.buffers[b.0 as usize]
    }

    pub fn expr(&self, e: &Expr) -> String {
        self.spell(e).0
    }
    /// The expression as an operand of something that binds at this level.
    pub fn at_level(&self, e: &Expr, level: u8) -> String {
        let (text, own) = self.spell(e);
        if own < level { format!("({text})") } else { text }
    }

    /// The text and how tightly it binds.
    fn spell(&self, e: &Expr) -> (String, u8) {
        match e {
            Expr::Lit(lit) => literal(*lit),
            Expr::Local(l) => (self.local(*l).to_string(), PRIMARY),
            Expr::Load(b, offset) => (format!("{}[{}]", self.buffer(*b), self.expr(offset)), PRIMARY),
            Expr::Op(op, args) => {
                let kinds: Vec<Scalar> = args.iter().map(|a| self.kernel.scalar_of(a)).collect();
                self.apply(op.c_template(&kinds), args)
            }
            Expr::Partial(op, k, args) => self.spell(&self.expand(*op, *k, args)),
            Expr::Select(p, a, b) => {
                let text = format!("{} ? {} : {}", self.at_level(p, OR), self.at_level(a, OR), self.at_level(b, OR));
                (text, SELECT)
            }
        }
    }

    /// A template as `scalar` has it: `({0} + {1})`, `(-{0})` or `f({0}, {1})`.
    fn apply(&self, template: &str, args: &[Expr]) -> (String, u8) {
        if template == "{0}" {
            return self.spell(&args[0]);
        }
        if let Some(inner) = template.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            if let Some(symbol) = inner.strip_prefix("{0} ").and_then(|t| t.strip_suffix(" {1}")) {
                let level = infix_level(symbol);
                // Operators of one level group to the left; comparisons get parentheses on both sides.
                let left = if level == COMPARISON { level + 1 } else { level };
                return (format!("{} {symbol} {}", self.at_level(&args[0], left), self.at_level(&args[1], level + 1)), level);
            }
            if let Some(symbol) = inner.strip_suffix("{0}") {
                return (format!("{symbol}{}", self.at_level(&args[0], PRIMARY)), UNARY);
            }
        }
        let mut text = template.to_string();
        for (k, arg) in args.iter().enumerate().rev() {
            text = text.replace(&format!("{{{k}}}"), &self.at_level(arg, SELECT));
        }
        (text, PRIMARY)
    }

    /// The formula of a partial derivative with its operands put in.
    pub fn expand(&self, op: Op, k: usize, args: &[Expr]) -> Expr {
        let kinds: Vec<Scalar> = args.iter().map(|a| self.kernel.scalar_of(a)).collect();
        let (_, formula) = op.partial_of(k, &kinds).unwrap_or_else(|| panic!("emit: {op:?} has no partial {k} of {kinds:?}"));
        let uses = formula.uses();
        let mut given = args.iter();
        let x = if uses.x { given.next() } else { None };
        let y = if uses.y { given.next() } else { None };
        let r = if uses.r { given.next() } else { None };
        fn build(formula: &Formula, operands: [Option<&Expr>; 3]) -> Expr {
            match formula {
                Formula::X => operands[0].expect("a formula of x has x").clone(),
                Formula::Y => operands[1].expect("a formula of y has y").clone(),
                Formula::R => operands[2].expect("a formula of r has r").clone(),
                Formula::Lit(lit) => Expr::Lit(*lit),
                Formula::Apply(op, args) => Expr::Op(*op, args.iter().map(|a| build(a, operands)).collect()),
                Formula::If(p, a, b) => {
                    Expr::Select(Box::new(build(p, operands)), Box::new(build(a, operands)), Box::new(build(b, operands)))
                }
            }
        }
        build(formula, [x, y, r])
    }
}

const SELECT: u8 = 1;
const OR: u8 = 2;
pub const AND: u8 = 3;
const COMPARISON: u8 = 4;
const SUM: u8 = 5;
const PRODUCT: u8 = 6;
pub const UNARY: u8 = 7;
pub const PRIMARY: u8 = 8;

fn infix_level(symbol: &str) -> u8 {
    match symbol {
        "*" | "/" => PRODUCT,
        "+" | "-" => SUM,
        "&&" => AND,
        "||" => OR,
        _ => COMPARISON,
    }
}

pub fn type_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F64 => "double",
        Scalar::F32 => "float",
        Scalar::I64 => "int64_t",
        Scalar::I32 => "int32_t",
        Scalar::Bool => "bool",
    }
}

fn literal(lit: Lit) -> (String, u8) {
    match lit {
        Lit::F64(x) if x.is_nan() => ("NAN".into(), PRIMARY),
        Lit::F64(x) if x.is_infinite() => (if x > 0.0 { "INFINITY" } else { "-INFINITY" }.into(), UNARY),
        Lit::F64(x) => (format!("{x:?}"), if x.is_sign_negative() { UNARY } else { PRIMARY }),
        Lit::F32(x) if !x.is_finite() => literal(Lit::F64(x.into())),
        Lit::F32(x) => (format!("{x:?}f"), if x.is_sign_negative() { UNARY } else { PRIMARY }),
        Lit::I32(i32::MIN) => ("INT32_MIN".into(), PRIMARY),
        Lit::I32(x) => (x.to_string(), if x < 0 { UNARY } else { PRIMARY }),
        Lit::I64(i64::MIN) => ("INT64_MIN".into(), PRIMARY),
        Lit::I64(x) if x.unsigned_abs() > i32::MAX as u64 => (format!("INT64_C({x})"), PRIMARY),
        Lit::I64(x) => (x.to_string(), if x < 0 { UNARY } else { PRIMARY }),
        Lit::Bool(x) => (x.to_string(), PRIMARY),
    }
}

/// The part of a name that C accepts.
pub fn identifier(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        text.insert(0, 'v');
    }
    text
}
