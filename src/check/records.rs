//! Records: values, fields, and arithmetic on their parts.
//!
//! A record is a tuple whose parts have names. While a definition is walked its types have the names; `erase` takes
//! them away in the end. A variable that is a record is taken apart where it is bound, `let (w, b) = p;`, so that `p.w`
//! is the variable `w`; bindings of which nothing is used are dropped by `erase`.
//! A record that is written takes the order of its fields from the type that is wanted.

use super::messages::{brief, closest};
use super::{Checker, Typed};
use crate::diagnostic::{Diagnostic, Span};
use crate::ir::build::{index, let_, lets};
use crate::ir::{Exp, Type, Var};
use crate::syntax::ast::{self, Name};
use crate::types::Parts;

impl<'a> Checker<'a> {
    /// `{ a: e, b: e }`
    pub fn record(&mut self, fields: &[(Name, ast::Exp)], span: Span, hint: Option<&Type>) -> Typed {
        let wanted = match hint {
            Some(Type::Tuple(parts)) => parts.fields().map(|names| (names, parts)),
            _ => None,
        };
        let mut poisoned = !self.distinct_fields(fields.iter().map(|(name, _)| name));
        let mut names: Vec<String> = vec![];
        let mut exps = vec![];
        let mut types = vec![];
        for (name, exp) in fields {
            let place = wanted.and_then(|(names, _)| names.iter().position(|n| *n == name.text));
            let found = self.infer(exp, place.zip(wanted).map(|(k, (_, parts))| &parts[k]));
            poisoned |= found.ty.is_none();
            names.push(name.text.clone());
            exps.push(found.exp);
            types.push(found.ty.unwrap_or(Type::I64));
        }
        if poisoned {
            return Typed::poison();
        }
        let Some((order, parts)) = wanted else { return Typed::new(Exp::Tuple(exps), Type::Tuple(Parts::record(names, types))) };
        if !self.has_fields(fields, order, parts, span) {
            return Typed::poison();
        }
        let place = |name: &String| names.iter().position(|n| n == name).unwrap_or(0);
        let exps = order.iter().map(|n| exps[place(n)].clone()).collect();
        let found = Parts::record(order.to_vec(), order.iter().map(|n| types[place(n)].clone()).collect());
        let found = match parts.name() {
            Some(name) => found.with_name(name),
            None => found,
        };
        Typed::new(Exp::Tuple(exps), Type::Tuple(found))
    }

    /// Whether no name stands twice; reports those that do.
    pub fn distinct_fields<'n>(&mut self, names: impl Iterator<Item = &'n Name>) -> bool {
        let mut seen: Vec<&Name> = vec![];
        let mut distinct = true;
        for name in names {
            if let Some(first) = seen.iter().find(|n| n.text == name.text) {
                let text = format!("the field `{}` stands twice in this record", name.text);
                self.report(Diagnostic::error(name.span, text).here("the second").label(first.span, "the first"));
                distinct = false;
            }
            seen.push(name);
        }
        distinct
    }

    /// Whether a record has the fields that are wanted; reports what it lacks and what is too much.
    fn has_fields(&mut self, fields: &[(Name, ast::Exp)], wanted: &[String], parts: &Parts, span: Span) -> bool {
        let whole = match parts.name() {
            Some(name) => format!("`{name}`"),
            None => "the record that is wanted".to_string(),
        };
        let missing: Vec<&String> = wanted.iter().filter(|w| !fields.iter().any(|(f, _)| f.text == **w)).collect();
        let extra: Vec<&Name> = fields.iter().map(|(f, _)| f).filter(|f| !wanted.contains(&f.text)).collect();
        for name in &extra {
            let diagnostic = Diagnostic::error(name.span, format!("{whole} has no field `{}`", name.text));
            self.report(match closest(&name.text, missing.iter().map(|m| m.as_str())) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None => diagnostic.note(format!("its fields are {}", quoted(wanted))),
            });
        }
        if extra.is_empty() && !missing.is_empty() {
            let noun = if missing.len() == 1 { "field" } else { "fields" };
            let text = format!("this record lacks the {noun} {}", quoted(&missing));
            self.report(Diagnostic::error(span, text).note(format!("the fields of {whole} are {}", quoted(wanted))));
        }
        extra.is_empty() && missing.is_empty()
    }

    /// `e.a`
    pub fn field(&mut self, of: &ast::Exp, name: &Name) -> Typed {
        let found = self.infer(of, None);
        let Some(ty) = found.ty else { return Typed::poison() };
        let record = match &ty {
            Type::Tuple(parts) => parts.fields().map(|fields| (parts, fields)),
            Type::Scalar(_) | Type::Array(..) => None,
        };
        let Some((parts, fields)) = record else {
            let text = format!("`{}` is no record, so it has no field `{}`", brief(of), name.text);
            let diagnostic = Diagnostic::error(name.span, text).label(of.span, format!("this has type `{}`", self.describe(&ty)));
            self.report(match &ty {
                Type::Tuple(_) => diagnostic.note("the parts of a tuple have no names; take it apart: `let (a, b) = e;`"),
                Type::Scalar(_) | Type::Array(..) => diagnostic,
            });
            return Typed::poison();
        };
        let Some(place) = fields.iter().position(|f| *f == name.text) else {
            let text = format!("`{}` has no field `{}`", brief(of), name.text);
            let diagnostic = Diagnostic::error(name.span, text).label(of.span, format!("this has type `{}`", self.describe(&ty)));
            self.report(match closest(&name.text, fields.iter().map(String::as_str)) {
                Some(near) => diagnostic.note(format!("did you mean `{near}`?")),
                None => diagnostic.note(format!("its fields are {}", quoted(fields))),
            });
            return Typed::poison();
        };
        let part = parts[place].clone();
        Typed::new(self.project(found.exp, &ty, place), part)
    }

    /// One part of a tuple or record. Of an element only the part is read: `ps[i].x` is `ps.x[i]`.
    fn project(&mut self, exp: Exp, ty: &Type, place: usize) -> Exp {
        let Type::Tuple(parts) = ty else { return exp };
        match exp {
            Exp::Var(v) if self.parts.contains_key(&v) => Exp::Var(self.parts[&v][place]),
            Exp::Index(array, keys, site) => {
                let axes = crate::ir::build::type_of(&self.program, &array);
                let array = self.project(*array, &axes, place);
                index(array, keys, site)
            }
            exp => {
                let vars = self.part_variables(parts);
                let part = vars[place];
                let_(vars, exp, part)
            }
        }
    }

    fn part_variables(&mut self, parts: &Parts) -> Vec<Var> {
        let fields = parts.fields().map(<[String]>::to_vec).unwrap_or_else(|| vec!["t".to_string(); parts.len()]);
        fields.into_iter().zip(parts).map(|(name, ty)| self.program.vars.fresh(name, ty.clone())).collect()
    }

    /// Takes a variable apart whose type is a record: `let (w, b) = p;`, and the records in it.
    pub fn take_apart(&mut self, var: Var, ty: &Type, bindings: &mut Vec<(Vec<Var>, Exp)>) {
        let Type::Tuple(parts) = ty else { return };
        if parts.fields().is_none() {
            return;
        }
        let vars = self.part_variables(parts);
        bindings.push((vars.clone(), Exp::Var(var)));
        for (part, ty) in vars.iter().zip(parts) {
            self.take_apart(*part, ty, bindings);
        }
        self.parts.insert(var, vars);
    }

    /// An operation on the parts of tuples of one type, and on scalars beside them: `leaf` makes it for one part.
    pub fn partwise(
        &mut self,
        operands: Vec<(Exp, Type)>,
        ty: &Type,
        leaf: &mut dyn FnMut(&mut Self, Vec<(Exp, Type)>, &Type) -> Exp,
    ) -> Exp {
        let Type::Tuple(parts) = ty else { return leaf(self, operands, ty) };
        let mut bindings = vec![];
        let mut columns: Vec<Vec<(Exp, Type)>> = parts.iter().map(|_| vec![]).collect();
        for (exp, ty) in operands {
            match (&ty, exp) {
                (Type::Tuple(types), Exp::Tuple(exps)) => {
                    columns.iter_mut().zip(exps.into_iter().zip(types)).for_each(|(column, (e, t))| column.push((e, t.clone())))
                }
                (Type::Tuple(types), exp) => {
                    let vars = match &exp {
                        Exp::Var(v) if self.parts.contains_key(v) => self.parts[v].clone(),
                        _ => {
                            let vars = self.part_variables(types);
                            bindings.push((vars.clone(), exp));
                            vars
                        }
                    };
                    columns.iter_mut().zip(vars.iter().zip(types)).for_each(|(column, (v, t))| column.push((Exp::Var(*v), t.clone())))
                }
                (Type::Scalar(_) | Type::Array(..), exp) => {
                    let shared = match exp {
                        Exp::Var(_) | Exp::Lit(_) => exp,
                        exp => {
                            let var = self.program.vars.fresh("t", ty.clone());
                            bindings.push((vec![var], exp));
                            Exp::Var(var)
                        }
                    };
                    columns.iter_mut().for_each(|column| column.push((shared.clone(), ty.clone())))
                }
            }
        }
        let parts = columns.into_iter().zip(parts).map(|(column, ty)| self.partwise(column, ty, leaf)).collect();
        lets(bindings, Exp::Tuple(parts))
    }
}

fn quoted(names: &[impl AsRef<str>]) -> String {
    names.iter().map(|n| format!("`{}`", n.as_ref())).collect::<Vec<_>>().join(", ")
}
