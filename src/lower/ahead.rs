//! Which loops of a body in lanes fetch what their next step needs.
//!
//! A block of points goes through all components of a mixture, and each component has a triangle of its own. Where all
//! triangles are more than the near caches hold, each is away again when the next block comes to it; and within it one reads
//! and adds here and there, so that no processor sees what comes next. So a step begins by asking for the triangle of the next.
//! This is for calls whose sizes say that it is so.

use super::*;

/// The bytes of what a step has of an array, at least and at most, and those of all steps, from which on it is done.
const LEAST_ROW: i128 = 2048;
const MOST_ROW: i128 = 65536;
const NEAR_CACHES: i128 = 1 << 20;

/// The arrays by the loops' indices, with the elements of a step.
pub(super) fn ahead(kernel: &Kernel, entry: &Entry, lanes: &Lanes, body: &[Stmt]) -> FxHashMap<Local, Vec<(Buffer, Expr)>> {
    let mut found = FxHashMap::default();
    visit(kernel, entry, lanes, body, &mut found);
    found
}

fn visit(kernel: &Kernel, entry: &Entry, lanes: &Lanes, block: &[Stmt], found: &mut FxHashMap<Local, Vec<(Buffer, Expr)>>) {
    for s in block {
        if let Stmt::Loop(l) = s {
            let rows = rows(kernel, entry, lanes, l);
            if !rows.is_empty() {
                found.insert(l.index, rows);
                continue;
            }
        }
        s.blocks().into_iter().for_each(|b| visit(kernel, entry, lanes, b, found));
    }
}

fn rows(kernel: &Kernel, entry: &Entry, lanes: &Lanes, l: &Loop) -> Vec<(Buffer, Expr)> {
    let (Some(trip), false) = (entry.trip(l), lanes.varies(&l.lo) || lanes.varies(&l.hi)) else { return vec![] };
    let inside = allocated(&l.body);
    let only = Lanes { varying: [l.index].into_iter().collect(), own: FxHashSet::default(), ..lanes.clone() };
    let (mut found, mut all): (Vec<(Buffer, Expr)>, i128) = (vec![], 0);
    let mut meet = |b: Buffer, offset: &Expr| {
        if inside.contains(&b) || lanes.varies(offset) {
            return;
        }
        let Some(mut elements) = only.stride(offset, l.index) else { return };
        if lanes.own.contains(&b) {
            elements = elements.times(Expr::int(lanes.width() as i64));
        }
        let bytes = entry.evaluate(&elements).unwrap_or(0).saturating_mul(kernel.buffer(b).scalar.bytes() as i128);
        if (LEAST_ROW..=MOST_ROW).contains(&bytes) && !found.contains(&(b, elements.clone())) {
            all = all.saturating_add(bytes.saturating_mul(trip as i128));
            found.push((b, elements));
        }
    };
    places(&l.body, &mut meet);
    if all > NEAR_CACHES { found } else { vec![] }
}

/// Calls `f` on every place that is read or written.
fn places(block: &[Stmt], f: &mut impl FnMut(Buffer, &Expr)) {
    for s in block {
        if let Stmt::Set(Target::Place(b, offset), _) | Stmt::Add(Target::Place(b, offset), _) = s {
            f(*b, offset);
        }
        s.for_each_expr(&mut |e| {
            e.any(&mut |e| {
                if let Expr::Load(b, offset) = e {
                    f(*b, offset);
                }
                false
            });
        });
        s.blocks().into_iter().for_each(|b| places(b, f));
    }
}
