//! Scalar operations: their operands from left to right, then one expression.

use super::*;

impl Lowering<'_> {
    pub fn operation(&mut self, op: Op, args: &[Exp], site: Site) -> Expr {
        let values = args.iter().map(|a| self.value(a)).collect();
        self.defined(op, args, values, site)
    }

    /// The operation on these values, checked to have one.
    pub fn defined(&mut self, op: Op, args: &[Exp], mut values: Vec<Expr>, site: Site) -> Expr {
        // What is known to fit an `i32` needs no check.
        let fits = op == Op::ToI32 && site.passed;
        if !fits && self.can_fail(op, args, &values) {
            values = values.into_iter().map(|v| self.named("operand", v)).collect();
            let site = self.known_site(site);
            self.emit(Stmt::Check(Check::Defined { op, args: values.clone(), site }));
        }
        Expr::Op(op, values)
    }

    /// Whether the operation may have no value here.
    fn can_fail(&self, op: Op, args: &[Exp], values: &[Expr]) -> bool {
        let kinds: Vec<Scalar> = values.iter().map(|v| self.kernel.scalar_of(v)).collect();
        if !op.can_fail(&kinds) {
            return false;
        }
        let literal = |e: &Exp| if let Exp::Lit(lit) = e { lit.as_integer().map(Size::constant) } else { None };
        let Some(second) = args.get(1).and_then(|e| literal(e).or_else(|| build::exp_size(e))) else { return true };
        let at_least = |least: i64| self.facts.prove_nonneg(&second.sub(&Size::constant(least)));
        let negative = || self.facts.prove_nonneg(&second.scale(-1).sub(&Size::constant(1)));
        match op {
            Op::IDiv | Op::IMod => !at_least(1) && !negative(),
            Op::Pow => !at_least(0),
            _ => true,
        }
    }

    pub fn store_scalar(&mut self, e: &Exp, dest: &Dest) {
        let Dest::Scalar(target) = dest else { panic!("lower: a scalar destination was expected") };
        let value = self.value(e);
        self.emit(Stmt::Set(target.clone(), value));
    }

    pub fn add_scalar(&mut self, e: &Exp, dest: &Dest) {
        let Dest::Scalar(target) = dest else { panic!("lower: a scalar destination was expected") };
        let value = self.value(e);
        self.emit(Stmt::Add(target.clone(), value));
    }
}
