//! `for t in 0..n. if t < a then e else if t < b then f else g`: one loop for each piece of the range.
//!
//! A piece that is an array written out row by row, `x[t div m, t mod m]`, is a copy of it. Where such an array is bound
//! just for that, it is built in its place in the destination (`binding.rs` asks for it), and nothing is copied:
//!
//! ```text
//! let x = for i, j in 0..m. e; for t in 0..n * m. x[t div m, t mod m]   =   for i { for j in 0..m { dest[i * m + j] = e } }
//! ```

use super::binding::shares;
use super::*;
use crate::ir::build::{exp_size, size_exp};

/// The part `lo..hi` of a range, and what stands there.
pub(super) struct Piece<'e> {
    pub lo: Size,
    pub hi: Size,
    pub element: &'e Exp,
}

impl Lowering<'_> {
    /// The pieces of a generated array, where their ends are known to rise; `None` where there is one, which is no copy.
    pub fn pieces_of<'e>(&self, e: &'e Exp) -> Option<Vec<Piece<'e>>> {
        let Exp::For(t, size, body) = e else { return None };
        let mut rest: &Exp = body;
        let mut lo = Size::default();
        let mut out = vec![];
        while let Exp::If(p, element, other) = rest {
            let Exp::Op(Op::Lt, sides, _) = &**p else { break };
            if sides[0] != Exp::Var(*t) {
                break;
            }
            let Some(hi) = exp_size(&sides[1]).filter(|hi| !hi.mentions(*t)) else { break };
            if !self.facts.prove_nonneg(&hi.sub(&lo)) || !self.facts.prove_nonneg(&size.sub(&hi)) {
                return None;
            }
            out.push(Piece { lo: lo.clone(), hi: hi.clone(), element });
            lo = hi;
            rest = other;
        }
        if out.is_empty() && self.flattened(*t, &lo, size, rest).is_none() {
            return None;
        }
        out.push(Piece { lo, hi: size.clone(), element: rest });
        Some(out)
    }

    /// The array that a piece has in the order of its places, all of it.
    fn flattened(&self, t: Var, lo: &Size, hi: &Size, element: &Exp) -> Option<Var> {
        let Exp::Index(array, keys, _) = element else { return None };
        let Exp::Var(x) = **array else { return None };
        let shape = self.vars.ty(x).shape();
        let axes: Vec<Size> = shape.iter().map(Size::axis).collect();
        if keys.len() != axes.len() || axes.iter().any(|a| !self.facts.prove_nonneg(a)) {
            return None;
        }
        let count = axes.iter().fold(Size::constant(1), |n, a| n.mul(a));
        if hi.sub(lo) != count {
            return None;
        }
        let mut rest = Size::var(t).sub(lo);
        for (k, axis) in axes.iter().enumerate().rev() {
            let place = if k == 0 { rest.clone() } else { rest.modulo(axis) };
            let key = exp_size(&keys[k])?;
            // Of an axis of one place the key is known.
            if key != place && !(axis.as_constant() == Some(1) && key.as_constant() == Some(0)) {
                return None;
            }
            if k > 0 {
                rest = rest.div(axis);
            }
        }
        Some(x)
    }

    pub fn store_pieces(&mut self, t: Var, pieces: &[Piece], dest: &Dest) {
        let Dest::Array(view) = dest else { panic!("lower: an array destination was expected") };
        for Piece { lo, hi, element } in pieces {
            if let Some(x) = self.flattened(t, lo, hi, element) {
                let Val::Array(from) = self.evaluate(&Exp::Var(x), "piece") else { panic!("lower: an array was expected") };
                let offset = view.offset.clone().plus(self.size(lo));
                let to = View { buffer: view.buffer, offset, shape: from.shape.clone() };
                self.copy(&Val::Array(from), &Dest::Array(to));
                continue;
            }
            let range = Range { index: t, lo: size_exp(lo), hi: size_exp(hi) };
            let ends = (self.size(lo), self.size(hi));
            self.places(&range, ends, dest, &mut |l, place| l.store(element, place));
        }
    }

    /// Where in the destination of what follows an array that is written out there ends up.
    pub fn piece_place(&mut self, var: Var, body: &Exp, dest: &Dest) -> Option<Dest> {
        match body {
            Exp::Let(_, _, rest) => self.piece_place(var, rest, dest),
            Exp::Tuple(parts) => {
                let Dest::Tuple(dests) = dest else { return None };
                let k = parts.iter().position(|p| p.mentions(var))?;
                self.piece_place(var, &parts[k], &dests[k])
            }
            Exp::For(t, ..) => {
                let Dest::Array(view) = dest else { return None };
                // Nothing that lives there may be needed still.
                let lives = |v: &Var, val: &Val| shares(val, view.buffer) && !self.pieces.contains(v);
                if !matches!(self.kernel.buffer(view.buffer).home, Home::Output(_)) || self.env.iter().any(|(v, val)| lives(v, val)) {
                    return None;
                }
                let pieces = self.pieces_of(body)?;
                let piece = pieces.iter().find(|p| self.flattened(*t, &p.lo, &p.hi, p.element) == Some(var))?;
                let mut vars = vec![];
                piece.lo.variables(&mut vars);
                if !vars.iter().all(|v| self.env.contains_key(v)) {
                    return None;
                }
                let offset = view.offset.clone().plus(self.size(&piece.lo));
                self.pieces.insert(var);
                Some(Dest::Array(View { buffer: view.buffer, offset, shape: self.vars.ty(var).shape().to_vec() }))
            }
            Exp::Var(_)
            | Exp::Lit(_)
            | Exp::Op(..)
            | Exp::Partial(..)
            | Exp::Index(..)
            | Exp::Singleton(..)
            | Exp::Sum(..)
            | Exp::Reduce(..)
            | Exp::History(_)
            | Exp::Loop(_)
            | Exp::Update(..)
            | Exp::Guard(..)
            | Exp::If(..)
            | Exp::Array(_)
            | Exp::Call(..) => None,
        }
    }
}
