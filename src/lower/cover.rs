//! `sum i in 0..n, j in 0..i + 1. {i * (i + 1) div 2 + j -> e}`: singletons that meet every place of the result, and none twice.
//!
//! Nothing is added to anything, so nothing is zeroed and added to: each is stored in its place, in any order.
//!
//! That places are met once each is seen from the inside out. The part of the result that iteration `v` of a loop writes
//! is `start(v)..start(v + 1)`; of the innermost loop it is one place. If so, the whole loop writes `start(lo)..start(hi)`,
//! and this is again such a part for the loop around it, if it ends where the next begins. The outermost writes all places.

use super::*;

impl Lowering<'_> {
    /// Stores a sum of singletons if it is known that they cover the destination; says whether it did.
    pub fn covering(&mut self, e: &Exp, dest: &Dest) -> bool {
        let Dest::Array(view) = dest else { return false };
        // The additions count.
        if self.options.count {
            return false;
        }
        let mut ranges = vec![];
        let covers = key_of(e, &mut ranges).is_some_and(|key| self.covers(&ranges, &key, &view.shape[0]));
        if covers {
            self.store_each(e, dest);
        }
        covers
    }

    fn covers(&mut self, ranges: &[(Var, Size, Size)], key: &Size, axis: &Size) -> bool {
        let facts = self.facts.clone();
        let mut rise = true;
        for (v, lo, hi) in ranges {
            rise = rise && self.facts.prove_nonneg(&hi.sub(lo));
            self.facts.enter(*v, lo, hi);
        }
        self.facts = facts;
        let mut start = key.reduced();
        let mut end = start.add(&Size::constant(1));
        for (v, lo, hi) in ranges.iter().rev() {
            let at = |size: &Size| start.substitute(&|w| (w == *v).then(|| size.clone())).reduced();
            rise = rise && at(&Size::var(*v).add(&Size::constant(1))) == end;
            (start, end) = (at(lo), at(hi));
        }
        rise && start.as_constant() == Some(0) && end == axis.reduced()
    }

    fn store_each(&mut self, e: &Exp, dest: &Dest) {
        match e {
            Exp::Let(vars, value, body) => {
                self.bind(vars, value, Then { body: Some(body), dest: None });
                self.store_each(body, dest);
            }
            Exp::Sum(range, body) => self.loop_over(range, Order::Independent, |l, _| l.store_each(body, dest)),
            Exp::Singleton(keys, value, site) => {
                let place = self.place(keys, *site, dest);
                self.store(value, &place);
            }
            _ => panic!("lower: a sum of singletons was expected"),
        }
    }
}

/// The first key of the singletons that are summed, and the indices that they are summed over.
fn key_of(e: &Exp, ranges: &mut Vec<(Var, Size, Size)>) -> Option<Size> {
    match e {
        Exp::Let(vars, _, body) => {
            let outer = ranges.len();
            let key = key_of(body, ranges)?;
            // What is bound here may be another number in each iteration.
            let fixed = |size: &Size| vars.iter().all(|v| !size.mentions(*v));
            let known = fixed(&key) && ranges[outer..].iter().all(|(_, lo, hi)| fixed(lo) && fixed(hi));
            known.then_some(key)
        }
        Exp::Sum(range, body) => {
            ranges.push((range.index, build::exp_size(&range.lo)?, build::exp_size(&range.hi)?));
            key_of(body, ranges)
        }
        Exp::Singleton(keys, ..) => match keys.as_slice() {
            [(key, _)] => build::exp_size(key),
            _ => None,
        },
        _ => None,
    }
}
