//! `array[k, l]`: a load, or a view of a row. What is not proven to be in range is checked.

use super::*;

impl Lowering<'_> {
    pub fn read(&mut self, array: &Exp, keys: &[Exp], site: Site) -> Val {
        // The indices of an axis, read at one place: a key that is checked.
        if let (Exp::For(index, size, body), [key]) = (array, keys) {
            if **body == Exp::Var(*index) {
                let value = self.value(key);
                let read = |index, size, site| Check::Read { index, size, site };
                return Val::Scalar(self.checked_keys(keys, vec![value], std::slice::from_ref(size), site, read).remove(0));
            }
        }
        let whole = self.evaluate(array, "whole");
        let values: Vec<Expr> = keys.iter().map(|k| self.value(k)).collect();
        let axes: Vec<Size> = whole.first_shape().unwrap_or(&[]).to_vec();
        if site.certain {
            return self.val_at(&whole, &values);
        }
        let values = self.checked_keys(keys, values, &axes, site, |index, size, site| Check::Read { index, size, site });
        self.val_at(&whole, &values)
    }

    /// Emits the checks that the keys need, and gives the keys so that they may be mentioned again.
    pub fn checked_keys(
        &mut self,
        keys: &[Exp],
        values: Vec<Expr>,
        axes: &[Size],
        site: Site,
        check: impl Fn(Expr, Expr, usize) -> Check,
    ) -> Vec<Expr> {
        let mut checked = vec![];
        for (k, value) in values.into_iter().enumerate() {
            let Some(axis) = axes.get(k).map(Size::axis) else {
                checked.push(value);
                continue;
            };
            if self.facts.in_range(&keys[k], &axis) {
                checked.push(value);
                continue;
            }
            let key = self.named("key", value);
            let extent = self.extent(&axis);
            let number = self.site(site);
            self.emit(Stmt::Check(check(key.clone(), extent, number)));
            // Behind the check it is known.
            if let Some(size) = build::exp_size(&keys[k]) {
                self.facts.assume_nonneg(size.clone());
                self.facts.assume_nonneg(axis.sub(&size).sub(&Size::constant(1)));
            }
            checked.push(key);
        }
        checked
    }

    /// The number of a place that is known.
    pub fn known_site(&mut self, site: Site) -> Option<usize> {
        site.known().map(|_| self.site(site))
    }

    fn site(&mut self, site: Site) -> usize {
        // All sites compare equal, so they are told apart by what they say.
        let sites = &mut self.kernel.sites;
        sites.iter().position(|s| (s.span, s.called) == (site.span, site.called)).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        })
    }
}
