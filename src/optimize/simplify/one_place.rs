//! An axis that is read at one place only.
//!
//! `let a = for i, j. e(i, j); … a[k, 0] … a[l, 0] …`   is   `let a = for i. e(i, 0); … a[k] … a[l] …`
//!
//! Derivatives save whole arrays, of which their way back may want one column.

use super::super::Context;
use super::arrays::put_in;
use crate::ir::build::*;
use crate::ir::*;

/// The axes of a variable that are looked at.
const AXES: usize = 4;

/// The literal keys of a variable's reads, by axis.
#[derive(Clone, Copy, Debug, Default)]
pub struct Keys([Key; AXES]);

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Key {
    #[default]
    Unread,
    Always(i64),
    Other,
}

impl Keys {
    pub fn note(&mut self, keys: &[Exp]) {
        for (axis, seen) in self.0.iter_mut().enumerate() {
            let key = match keys.get(axis) {
                Some(Exp::Lit(lit)) => lit.as_integer().map_or(Key::Other, Key::Always),
                _ => Key::Other,
            };
            *seen = if *seen == Key::Unread || *seen == key { key } else { Key::Other };
        }
    }
}

/// The `let` with one axis less, of one of its arrays that is used in no way but by such reads.
pub fn narrow(cx: &mut Context, vars: &[Var], value: &Exp, body: &Exp, keys: &dyn Fn(Var) -> Option<Keys>) -> Option<Exp> {
    for (part, v) in vars.iter().enumerate() {
        let Type::Array(shape, scalar) = cx.vars.ty(*v).clone() else { continue };
        let Some(keys) = keys(*v) else { continue };
        for axis in 0..shape.len().min(AXES) {
            let Key::Always(at) = keys.0[axis] else { continue };
            if !cx.facts.in_range(&i64(at), &shape[axis]) {
                continue;
            }
            let part = (vars.len() > 1).then_some(part);
            let Some(value) = at_place(cx, value.clone(), part, axis, at, &mut vec![]) else { continue };
            let mut shape = shape;
            shape.remove(axis);
            let ty = if shape.is_empty() { Type::Scalar(scalar) } else { Type::Array(shape, scalar) };
            let narrow = cx.vars.fresh_like(*v, ty);
            let vars = vars.iter().map(|w| if w == v { narrow } else { *w }).collect();
            return Some(let_(vars, value, read_narrow(body.clone(), *v, axis, narrow)));
        }
    }
    None
}

/// An array, or a part of a tuple with others, without an axis; `inside` are the arrays that its own `let`s bind.
fn at_place(cx: &mut Context, exp: Exp, part: Option<usize>, axis: usize, at: i64, inside: &mut Vec<Var>) -> Option<Exp> {
    match (exp, part) {
        (Exp::Let(vars, value, body), _) => {
            inside.extend(&vars);
            Some(let_(vars, *value, at_place(cx, *body, part, axis, at, inside)?))
        }
        (Exp::For(i, size, body), _) if axis > 0 => Some(for_(i, size, at_place(cx, *body, part, axis - 1, at, inside)?)),
        (Exp::For(i, _, body), None) => Some(put_in(cx, i, i64(at), *body)),
        (Exp::Tuple(mut parts), Some(part)) => {
            let whole = std::mem::replace(&mut parts[part], Exp::Tuple(vec![]));
            parts[part] = at_place(cx, whole, None, axis, at, inside)?;
            Some(Exp::Tuple(parts))
        }
        (Exp::Var(v), None) if inside.contains(&v) => {
            let shape = cx.vars.ty(v).shape().to_vec();
            let before: Vec<(Var, Size)> = shape[..axis].iter().map(|size| (cx.vars.fresh("i", Type::I64), size.clone())).collect();
            let keys = before.iter().map(|(i, _)| Exp::Var(*i)).chain([i64(at)]).collect();
            let read = index(v, keys, Site::default());
            Some(before.into_iter().rev().fold(read, |e, (i, size)| for_(i, size, e)))
        }
        (Exp::Guard(p, e), None) => Some(guard(*p, at_place(cx, *e, None, axis, at, inside)?)),
        (Exp::If(p, a, b), None) => Some(if_(*p, at_place(cx, *a, None, axis, at, inside)?, at_place(cx, *b, None, axis, at, inside)?)),
        _ => None,
    }
}

fn read_narrow(exp: Exp, v: Var, axis: usize, narrow: Var) -> Exp {
    match exp {
        Exp::Index(array, mut keys, site) if *array == Exp::Var(v) => {
            keys.remove(axis);
            let keys: Vec<Exp> = keys.into_iter().map(|k| read_narrow(k, v, axis, narrow)).collect();
            if keys.is_empty() { Exp::Var(narrow) } else { index(narrow, keys, site) }
        }
        exp => exp.map_children(&mut |e| read_narrow(e, v, axis, narrow)),
    }
}
