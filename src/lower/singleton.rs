//! `{(k, l) -> v}`: one place of the destination. Stored, the rest is zeroed first; accumulated, nothing else is touched.

use super::*;

impl Lowering<'_> {
    /// The place that the keys name.
    pub fn place(&mut self, keys: &[(Exp, Size)], site: Site, dest: &Dest) -> Dest {
        let (exps, axes): (Vec<Exp>, Vec<Size>) = keys.iter().cloned().unzip();
        let values: Vec<Expr> = exps.iter().map(|k| self.value(k)).collect();
        let values = self.checked_keys(&exps, values, &axes, site, |index, size, site| Check::Key { index, size, site });
        self.dest_at(dest, &values)
    }

    pub fn store_singleton(&mut self, keys: &[(Exp, Size)], value: &Exp, site: Site, dest: &Dest) {
        let place = self.place(keys, site, dest);
        self.zero(dest);
        self.store(value, &place);
    }
}
