//! Elements of small arrays outside a loop that are literals, so that the loop need not compute with them.

use super::evaluate::{Evaluation, Value};
use super::nodes::{Kind, Node};
use crate::ir::*;
use rustc_hash::FxHashMap;

/// Elements of arrays outside that are literals, by their keys.
pub type Known = FxHashMap<Var, Elements>;
type Elements = FxHashMap<Vec<i64>, Element>;

#[derive(Clone, Copy)]
pub enum Element {
    Lit(Lit),
    /// As `Kind::Zero`.
    Zero(Scalar),
}

impl Evaluation<'_> {
    pub fn known_element(&self, v: Var, keys: &[Node]) -> Option<Element> {
        let elements = self.known.get(&v)?;
        let keys: Option<Vec<i64>> = keys.iter().map(|k| self.graph.literal(*k).and_then(Lit::as_integer)).collect();
        elements.get(&keys?).copied()
    }

    /// The elements of these variables that are literals.
    pub fn literals(&self, vars: &[Var], value: &Value) -> Known {
        let mut found = Known::default();
        let parts = match (vars, value) {
            ([_], value) => std::slice::from_ref(value),
            (_, Value::Tuple(parts)) => parts.as_slice(),
            _ => &[],
        };
        for (v, part) in vars.iter().zip(parts) {
            let mut elements = Elements::default();
            self.literal_elements(part, &mut vec![], &mut elements);
            if !elements.is_empty() {
                found.insert(*v, elements);
            }
        }
        found
    }
    fn literal_elements(&self, value: &Value, keys: &mut Vec<i64>, found: &mut Elements) {
        match value {
            Value::Array(items) => {
                for (k, item) in items.iter().enumerate() {
                    keys.push(k as i64);
                    self.literal_elements(item, keys, found);
                    keys.pop();
                }
            }
            Value::Scalar(n) if !keys.is_empty() => {
                let element = match self.graph.kind(*n) {
                    Kind::Zero(scalar) => Some(Element::Zero(*scalar)),
                    _ => self.graph.literal(*n).map(Element::Lit),
                };
                found.extend(element.map(|element| (keys.clone(), element)));
            }
            Value::Scalar(_) | Value::Tuple(_) | Value::View(..) | Value::Singleton(..) | Value::Sum(_) => {}
        }
    }
}
