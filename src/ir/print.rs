//! Printing: IR -> Iverson text that parses and elaborates to the same IR up to renaming.
//!
//! * Parentheses only where precedence needs them. Bodies of binders, `let`, `if` and `history` reach as far right as they
//!   can, so these stand in parentheses where something follows.
//! * Nested binders of one kind are one: `for i, j. e`. A range is left out where a reader infers it (`ranges.rs`).
//! * `{k -> v}` has its sizes from the type that the context wants. Where none reaches it, the type is written: on the
//!   `let` that names it, else as `(e : T)`.
//! * A bracket guards the whole chain of `*` and `/` it stands in, so `Guard(p, a * b)` is `[p] * a * b`, and a guard
//!   that is a mere factor is set apart: `a * ([p] * b)`, `([p] * a : f64) * b`.
//! * Literals that are no `f64` or `i64` have their type from the context, from an operand beside them, or ascribed
//!   (`literals.rs`).
//! * Derived functions have no text of their own; a call of one is `vjp(f, (x, y), seed, wrt = x)`, or for the entries
//!   of a Jacobian `jacobian(f, wrt = x, format = entries)(x, y, count)`.

mod literals;
mod names;
mod ranges;
mod spelling;

use super::build::{exp_size, size_exp, type_of};
use super::*;
use crate::layout::*;
use literals::{is_negative, is_one, literal, unsaid};
use names::Names;
use spelling::{infix, level};

/// The definitions of the program, in order, derived functions left out.
pub fn print_program(program: &Program) -> String {
    let ids = (0..program.functions.len() as u32).map(FunctionId);
    let texts: Vec<String> =
        ids.filter(|id| matches!(program.function(*id).body, Body::Exp(_))).map(|id| print_function(program, id)).collect();
    texts.join("\n")
}

/// One definition, with its line end. Of a derived function what it is derived from.
pub fn print_function(program: &Program, id: FunctionId) -> String {
    let mut text = render(&Printer::new(program).function(id));
    text.push('\n');
    text
}

/// An expression; its free variables have their own names.
pub fn print_exp(program: &Program, exp: &Exp) -> String {
    let want = type_of(program, exp);
    render(&Printer::new(program).exp(exp, level::ANY, Place::Last, Some(&want)))
}

/// An expression of which nothing is known, for messages about broken programs: it has no type annotations.
pub fn print_exp_untyped(program: &Program, exp: &Exp) -> String {
    render(&Printer { annotate: false, ..Printer::new(program) }.exp(exp, level::ANY, Place::Last, None))
}

pub fn print_type(program: &Program, ty: &Type) -> String {
    render(&Printer::new(program).ty(ty))
}

pub fn print_size(program: &Program, size: &Size) -> String {
    render(&Printer::new(program).size(size, level::ANY))
}

/// Whether something follows an expression before the bracket, comma or keyword that ends it.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Last,
    Followed,
}

struct Printer<'a> {
    program: &'a Program,
    names: Names,
    /// Whether types and ranges may be asked for, which only a well-typed program has.
    annotate: bool,
    /// Whether bindings may stand on one line: in parentheses they may.
    inline: bool,
}

impl<'a> Printer<'a> {
    fn new(program: &'a Program) -> Printer<'a> {
        Printer { program, names: Names::new(program), annotate: true, inline: false }
    }

    fn bind(&mut self, var: Var) -> Doc {
        text(self.names.bind(self.program, var))
    }
    fn unbind(&mut self, vars: &[Var]) {
        vars.iter().for_each(|v| self.names.unbind(*v));
    }
    fn var(&mut self, var: Var) -> Doc {
        text(self.names.name(self.program, var))
    }

    fn function(&mut self, id: FunctionId) -> Doc {
        let f = self.program.function(id);
        f.sizes.iter().chain(&f.params).for_each(|v| {
            self.bind(*v);
        });
        let word = |k: usize| text(if f.statics.contains(&k) { "static " } else { "" });
        let param = |(k, v): (usize, &Var)| concat([word(k), self.var(*v), text(": "), self.ty(self.program.vars.ty(*v))]);
        let params = f.params.iter().enumerate().map(param).collect();
        let head = concat([text(format!("def {}", f.name)), list("(", params, ")"), text(" -> "), self.ty(&f.result), text(" =")]);
        let body = match &f.body {
            Body::Exp(e) => self.exp(e, level::ANY, Place::Last, Some(&f.result)),
            Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. } => self.derived_name(id),
        };
        self.unbind(&f.sizes);
        self.unbind(&f.params);
        concat([head, group(nest(concat([Doc::Line, body])))])
    }

    fn ty(&mut self, ty: &Type) -> Doc {
        match ty {
            Type::Scalar(s) => text(s.name()),
            Type::Array(shape, s) => {
                let axes = shape.iter().map(|size| self.size(size, level::ANY)).collect();
                concat([list("[", axes, "]"), text(s.name())])
            }
            Type::Tuple(parts) => list("(", parts.iter().map(|t| self.ty(t)).collect(), ")"),
        }
    }

    fn size(&mut self, size: &Size, min: u8) -> Doc {
        self.exp(&size_exp(size), min, Place::Followed, None)
    }

    /// An expression where what stands must bind at least as tightly as `min`, and `want` is the type that the
    /// context gives to a reader.
    fn exp(&mut self, exp: &Exp, min: u8, place: Place, want: Option<&Type>) -> Doc {
        if want.is_none() && self.annotate && needs_type(exp) {
            return self.ascribed(exp);
        }
        if let Exp::Guard(p, e) = exp {
            // A bracket alone is 1 of the type wanted, but a factor where it stands in a product.
            let one = matches!(**e, Exp::Lit(lit) if is_one(lit) && want == Some(&Type::Scalar(lit.scalar())));
            if one && min <= level::MUL {
                return list("[", vec![self.any(p)], "]");
            }
        }
        let (own, open) = strength(exp);
        let bare = own >= min && !(open && place == Place::Followed);
        if bare {
            return self.bare(exp, place, want);
        }
        let outside = std::mem::replace(&mut self.inline, true);
        let inner = self.bare(exp, Place::Last, want);
        self.inline = outside;
        parenthesised(inner)
    }

    /// `(e : T)`
    fn ascribed(&mut self, exp: &Exp) -> Doc {
        let ty = type_of(self.program, exp);
        let inner = self.exp(exp, level::ANY, Place::Last, Some(&ty));
        parenthesised(concat([inner, text(" : "), self.ty(&ty)]))
    }

    fn any(&mut self, exp: &Exp) -> Doc {
        self.exp(exp, level::ANY, Place::Last, None)
    }
    fn all(&mut self, exps: &[Exp]) -> Vec<Doc> {
        exps.iter().map(|e| self.any(e)).collect()
    }

    fn bare(&mut self, exp: &Exp, place: Place, want: Option<&Type>) -> Doc {
        match exp {
            Exp::Var(v) => self.var(*v),
            Exp::Lit(lit) => text(literal(*lit)),
            Exp::Op(op, args, _) => self.operation(*op, args, place, want),
            Exp::Partial(op, k, operands) => list(&format!("{}(", op.partial_name(*k)), self.all(operands), ")"),
            Exp::Index(array, keys, _) => {
                let array = self.exp(array, level::POSTFIX, Place::Followed, None);
                concat([array, list("[", self.all(keys), "]")])
            }
            Exp::Singleton(keys, value, _) => {
                let inner = want.and_then(|t| t.without_axes(keys.len()));
                let key = match keys.as_slice() {
                    [(key, _)] => self.any(key),
                    _ => list("(", keys.iter().map(|(key, _)| self.any(key)).collect(), ")"),
                };
                let value = self.exp(value, level::ANY, Place::Last, inner.as_ref());
                group(concat([text("{"), key, text(" ->"), nest(concat([Doc::Line, value])), text("}")]))
            }
            Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) => self.binder(exp, place, want),
            Exp::History(h) => self.history(h, place),
            Exp::Loop(l) => self.iteration(l, place),
            Exp::Update(array, keys, value, _) => {
                let array = self.exp(array, level::POSTFIX, Place::Followed, None);
                let keys = list("[", self.all(keys), "]");
                let want = self.said(value);
                let value = self.exp(value, level::ADD, place, want.as_ref());
                group(concat([array, text(" with "), keys, text(" ="), nest(concat([Doc::Line, value]))]))
            }
            Exp::Guard(p, e) => {
                let bracket = list("[", vec![self.any(p)], "]");
                let mut factors = vec![];
                self.factors(e, level::UNARY, place, want, &mut factors);
                let mut parts = vec![bracket];
                for (k, (symbol, factor)) in factors.into_iter().enumerate() {
                    let symbol = if k == 0 { "* " } else { symbol };
                    parts.push(nest(concat([Doc::Line, text(symbol), factor])));
                }
                group(Doc::Concat(parts))
            }
            Exp::If(p, a, b) => {
                let p = self.any(p);
                let beside = if want.is_none() { self.beside([&**a, &**b]) } else { None };
                let want = want.or(beside.as_ref());
                let a = self.exp(a, level::ANY, Place::Last, want);
                let b = self.exp(b, level::ANY, place, want);
                let then = concat([text("if "), p, text(" then"), nest(concat([Doc::Line, a]))]);
                group(concat([then, Doc::Line, text("else"), nest(concat([Doc::Line, b]))]))
            }
            Exp::Let(vars, value, body) => {
                let ty = (self.annotate && needs_type(value)).then(|| type_of(self.program, value));
                let shown = self.exp(value, level::ANY, Place::Last, ty.as_ref());
                let annotation = ty.map(|t| concat([text(": "), self.ty(&t)]));
                let pattern = self.pattern(vars);
                let mut parts = vec![text("let "), pattern];
                parts.extend(annotation);
                parts.push(text(" ="));
                let end = |inline: bool| if inline { Doc::Line } else { Doc::Hard };
                parts.push(match **value {
                    Exp::Let(..) => nest(concat([end(self.inline), shown])),
                    _ => concat([text(" "), shown]),
                });
                parts.extend([text(";"), end(self.inline), self.exp(body, level::ANY, place, want)]);
                self.unbind(vars);
                Doc::Concat(parts)
            }
            Exp::Tuple(parts) => {
                let wants: Vec<Option<&Type>> = match want {
                    Some(Type::Tuple(ts)) if ts.len() == parts.len() => ts.iter().map(Some).collect(),
                    _ => vec![None; parts.len()],
                };
                let parts = parts.iter().zip(wants).map(|(e, t)| self.exp(e, level::ANY, Place::Last, t)).collect();
                list("(", parts, ")")
            }
            Exp::Array(items) => {
                let known = want.is_some() || items.iter().any(|e| unsaid(e).is_none());
                let item = |me: &mut Self, e: &Exp| {
                    let want = if known { me.said(e) } else { None };
                    me.exp(e, level::ANY, Place::Last, want.as_ref())
                };
                let items_shown = items.iter().map(|e| item(self, e)).collect();
                let array = list("[", items_shown, "]");
                // `[p]` alone would be an Iverson bracket.
                match items.as_slice() {
                    [one] if self.annotate && type_of(self.program, one) == Type::BOOL => {
                        parenthesised(concat([array, text(" : [1]bool")]))
                    }
                    _ => array,
                }
            }
            Exp::Call(id, args, _) => self.call(*id, args),
        }
    }

    fn pattern(&mut self, vars: &[Var]) -> Doc {
        let names: Vec<Doc> = vars.iter().map(|v| self.bind(*v)).collect();
        match vars.len() {
            1 => Doc::Concat(names),
            _ => list("(", names, ")"),
        }
    }

    /// The type of an expression that is made of literals, where the context says it to a reader.
    fn said(&self, exp: &Exp) -> Option<Type> {
        (self.annotate && unsaid(exp).is_some()).then(|| type_of(self.program, exp))
    }

    /// The type that one of several scalars of one type gives to those of them that are made of literals.
    fn beside<'e>(&self, exps: impl IntoIterator<Item = &'e Exp> + Clone) -> Option<Type> {
        let scalar = exps.clone().into_iter().find_map(unsaid).filter(|_| self.annotate)?;
        let ty = Type::Scalar(scalar);
        exps.into_iter().any(|e| unsaid(e).is_none() && type_of(self.program, e) == ty).then_some(ty)
    }

    /// What a reader wants of the operands that are made of literals: the type of another operand, or of the result.
    fn operand_type(&self, op: Op, args: &[Exp], want: Option<&Type>) -> Option<Type> {
        if op.is_conversion() || !self.annotate {
            return None;
        }
        let scalar = args.iter().find_map(unsaid)?;
        // An exponent that is an integer says nothing of its base, nor is it said by it.
        if op == Op::Pow && scalar.is_integer() && unsaid(&args[0]).is_none() {
            return None;
        }
        match want {
            Some(ty) if *ty == Type::Scalar(scalar) => Some(ty.clone()),
            _ => self.beside(args),
        }
    }

    fn operation(&mut self, op: Op, args: &[Exp], place: Place, want: Option<&Type>) -> Doc {
        let operand = self.operand_type(op, args, want);
        let operand = operand.as_ref();
        match (op, args) {
            (Op::Add | Op::Sub, [_, _]) => {
                let mut terms = vec![];
                self.terms(op, args, place, want.or(operand), &mut terms);
                chain(terms)
            }
            (Op::Mul | Op::Div, [_, _]) => {
                let mut factors = vec![];
                self.product(op, args, level::MUL, place, operand, &mut factors);
                chain(factors)
            }
            (Op::Neg, [Exp::Lit(lit)]) if !is_negative(*lit) => {
                // `-2.0` is a literal.
                text(format!("-({} : {})", literal(*lit), lit.scalar().name()))
            }
            (Op::Neg, [a]) => concat([text("-"), self.exp(a, level::POW, place, operand)]),
            (Op::Not, [a]) => concat([text("not "), self.exp(a, level::NOT, place, None)]),
            (_, args) => match (infix(op), args) {
                (Some(infix), [a, b]) => {
                    let right = if op == Op::Pow { self.operand_type(op, args, None).filter(Type::has_float) } else { operand.cloned() };
                    let a = self.exp(a, infix.left, Place::Followed, operand);
                    let b = self.exp(b, infix.right, place, right.as_ref());
                    group(concat([a, nest(concat([Doc::Line, text(format!("{} ", infix.symbol)), b]))]))
                }
                _ => {
                    let args = args.iter().map(|e| self.exp(e, level::ANY, Place::Last, operand)).collect();
                    list(&format!("{}(", op.name()), args, ")")
                }
            },
        }
    }

    /// The terms of a chain of `+` and `-`, each with what stands before it.
    fn terms(&mut self, op: Op, args: &[Exp], place: Place, want: Option<&Type>, out: &mut Vec<(&'static str, Doc)>) {
        let operand = if want.is_none() { self.operand_type(op, args, None) } else { None };
        let want = want.or(operand.as_ref());
        match &args[0] {
            Exp::Op(inner @ (Op::Add | Op::Sub), more, _) if more.len() == 2 => self.terms(*inner, more, Place::Followed, want, out),
            first => out.push(("", self.exp(first, level::ADD, Place::Followed, want))),
        }
        let symbol = if op == Op::Add { "+ " } else { "- " };
        out.push((symbol, self.exp(&args[1], level::MUL, place, want)));
    }

    /// The factors of a chain of `*` and `/`; the first binds at least as tightly as `first`.
    fn factors(&mut self, exp: &Exp, first: u8, place: Place, want: Option<&Type>, out: &mut Vec<(&'static str, Doc)>) {
        match exp {
            Exp::Op(op @ (Op::Mul | Op::Div), args, _) if args.len() == 2 => self.product(*op, args, first, place, want, out),
            other => out.push(("", self.exp(other, first, place, want))),
        }
    }
    fn product(&mut self, op: Op, args: &[Exp], first: u8, place: Place, want: Option<&Type>, out: &mut Vec<(&'static str, Doc)>) {
        let operand = self.operand_type(op, args, want);
        let (want, second) = (want.or(operand.as_ref()), operand.as_ref().or(want.filter(|_| unsaid(&args[1]).is_some())));
        match &args[0] {
            guard @ Exp::Guard(..) if self.annotate => out.push(("", self.ascribed(guard))),
            other => self.factors(other, first, Place::Followed, want, out),
        }
        let symbol = if op == Op::Mul { "* " } else { "/ " };
        out.push((symbol, self.exp(&args[1], level::UNARY, place, second)));
    }

    /// Nested binders of one kind under one word.
    fn binder(&mut self, exp: &Exp, place: Place, want: Option<&Type>) -> Doc {
        let word = binder_word(exp);
        let mut bound = vec![];
        let mut indices = vec![];
        let mut body = exp;
        let mut want = want.cloned();
        loop {
            let (index, range, inner) = match body {
                Exp::For(index, size, inner) => {
                    want = want.and_then(|t| t.without_axes(1));
                    let inferred = self.inferred(*index, inner).is_some_and(|s| s == size.axis());
                    let range = (!inferred).then(|| concat([text("0.."), self.size(size, level::ADD)]));
                    (*index, range, inner)
                }
                Exp::Sum(range, inner) | Exp::Reduce(_, range, inner, _) => {
                    let inferred = range.lo == build::i64(0)
                        && self.inferred(range.index, inner).is_some_and(|s| exp_size(&range.hi).is_some_and(|hi| hi.axis() == s));
                    let shown = (!inferred).then(|| {
                        let lo = self.exp(&range.lo, level::ADD, Place::Followed, None);
                        let hi = self.exp(&range.hi, level::ADD, Place::Followed, None);
                        concat([lo, text(".."), hi])
                    });
                    (range.index, shown, inner)
                }
                _ => unreachable!("only binders are walked"),
            };
            let name = self.bind(index);
            bound.push(index);
            indices.push(match range {
                Some(range) => concat([name, text(" in "), range]),
                None => name,
            });
            body = inner;
            let merges = !matches!(exp, Exp::Reduce(Reduction::ArgMax | Reduction::ArgMin, ..));
            if !(merges && binder_word(body) == word) {
                break;
            }
        }
        let mut head = vec![text(format!("{} ", word.expect("a binder has a word")))];
        for (k, index) in indices.into_iter().enumerate() {
            if k > 0 {
                head.push(text(", "));
            }
            head.push(index);
        }
        head.push(text("."));
        let body = self.exp(body, level::ANY, place, want.as_ref());
        self.unbind(&bound);
        concat([Doc::Concat(head), group(nest(concat([Doc::Line, body])))])
    }

    /// The range that a reader infers for an index.
    fn inferred(&self, index: Var, body: &Exp) -> Option<Size> {
        self.annotate.then(|| ranges::inferred(self.program, index, body)).flatten()
    }

    fn history(&mut self, h: &History, place: Place) -> Doc {
        let init = self.exp(&h.init, level::ADD, Place::Followed, None);
        let size = self.size(&h.size, level::ADD);
        let state = self.pattern(&h.state);
        let index = self.bind(h.index);
        let body = self.exp(&h.body, level::ANY, place, None);
        self.unbind(&h.state);
        self.unbind(&[h.index]);
        let head = concat([text("history "), state, text(" = "), init, text(" for "), index, text(" in 0.."), size, text(" do")]);
        concat([head, group(nest(concat([Doc::Line, body])))])
    }

    fn iteration(&mut self, l: &Iteration, place: Place) -> Doc {
        let mut annotations = vec![];
        for (annotation, size) in &l.annotations {
            let argument = annotation.argument().map_or(String::new(), |name| format!("{name} = "));
            let size = self.size(size, level::ANY);
            annotations.extend([text(format!("#[{}({argument}", annotation.name())), size, text(")] ")]);
        }
        let init = self.exp(&l.init, level::ADD, Place::Followed, None);
        let (head, mut bound) = match &l.trip {
            Trip::For(range) => {
                let lo = self.exp(&range.lo, level::ADD, Place::Followed, None);
                let hi = self.exp(&range.hi, level::ADD, Place::Followed, None);
                let state = self.pattern(&l.state);
                let index = self.bind(range.index);
                (concat([state, text(" = "), init, text(" for "), index, text(" in "), lo, text(".."), hi]), vec![range.index])
            }
            Trip::While(condition) => {
                let state = self.pattern(&l.state);
                let condition = self.exp(condition, level::ANY, Place::Followed, None);
                (concat([state, text(" = "), init, text(" while "), condition]), vec![])
            }
        };
        let body = self.exp(&l.body, level::ANY, place, None);
        bound.extend(l.state.iter().copied());
        self.unbind(&bound);
        let mut parts = annotations;
        parts.extend([text("loop "), head, text(" do"), group(nest(concat([Doc::Line, body])))]);
        Doc::Concat(parts)
    }

    fn call(&mut self, id: FunctionId, args: &[Exp]) -> Doc {
        let f = self.program.function(id);
        if let Body::Entries(_) | Body::Jacobian { .. } = &f.body {
            return concat([self.derived_name(id), list("(", self.arguments(args), ")")]);
        }
        let Body::Derived { mode, of, wrt } = &f.body else {
            return list(&format!("{}(", f.name), self.arguments(args), ")");
        };
        let count = self.program.function(*of).params.len().min(args.len());
        let (params, extra) = args.split_at(count);
        let mut parts = vec![self.function_name(*of), self.packed(params), self.packed(extra)];
        parts.extend(self.wrt(*of, wrt));
        list(&format!("{}(", mode_word(*mode)), parts, ")")
    }

    /// One argument bare, several as a tuple.
    fn packed(&mut self, args: &[Exp]) -> Doc {
        let mut shown = self.arguments(args);
        if shown.len() == 1 { shown.remove(0) } else { list("(", shown, ")") }
    }

    /// The parameters say the types of literals.
    fn arguments(&mut self, args: &[Exp]) -> Vec<Doc> {
        let shown = args.iter().map(|e| {
            let want = self.said(e);
            self.exp(e, level::ANY, Place::Last, want.as_ref())
        });
        shown.collect()
    }

    fn function_name(&mut self, id: FunctionId) -> Doc {
        match &self.program.function(id).body {
            Body::Exp(_) => text(self.program.function(id).name.clone()),
            Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. } => self.derived_name(id),
        }
    }

    /// A derived function as a function: `vjp(f, wrt = x)`, `jacobian(f, format = entries)`.
    fn derived_name(&mut self, id: FunctionId) -> Doc {
        if let Body::Entries(entries) = &self.program.function(id).body {
            let word = match (entries.forward, entries.reverse) {
                (Some(_), None) => "jacfwd",
                (None, Some(_)) => "jacrev",
                _ => "jacobian",
            };
            let mut parts = vec![self.function_name(entries.of)];
            parts.extend(self.wrt(entries.of, &entries.wrt));
            parts.push(text(match entries.part {
                EntriesPart::Count => "format = count",
                EntriesPart::Entries => "format = entries",
                EntriesPart::Stored => "format = stored",
                EntriesPart::Rows => "format = rows",
            }));
            if entries.stack {
                parts.push(text("stack = true"));
            }
            parts.extend(entries.triangle.map(|t| text(format!("triangle = {}", t.name()))));
            if entries.index != Scalar::I64 {
                parts.push(text(format!("index = {}", entries.index.name())));
            }
            return list(&format!("{word}("), parts, ")");
        }
        let (word, of, wrt) = match &self.program.function(id).body {
            Body::Derived { mode, of, wrt } => (mode_word(*mode), of, wrt),
            Body::Jacobian { of, wrt } => ("jacobian", of, wrt),
            Body::Entries(_) | Body::Exp(_) => return text(self.program.function(id).name.clone()),
        };
        let mut parts = vec![self.function_name(*of)];
        parts.extend(self.wrt(*of, wrt));
        list(&format!("{word}("), parts, ")")
    }

    /// `wrt = (x, y)`, left out where it is all parameters with floats.
    fn wrt(&mut self, of: FunctionId, wrt: &[usize]) -> Option<Doc> {
        let f = self.program.function(of);
        let floats: Vec<usize> = (0..f.params.len()).filter(|k| self.program.vars.ty(f.params[*k]).has_float()).collect();
        if floats == wrt {
            return None;
        }
        // The names that the definition's own print has.
        let mut printer = Printer::new(self.program);
        let names: Vec<String> = f.sizes.iter().chain(&f.params).map(|v| printer.names.bind(self.program, *v)).collect();
        let mut names: Vec<Doc> = wrt.iter().filter_map(|k| names.get(f.sizes.len() + k)).map(text).collect();
        let names = if names.len() == 1 { names.remove(0) } else { list("(", names, ")") };
        Some(concat([text("wrt = "), names]))
    }
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Jvp => "jvp",
        Mode::Vjp => "vjp",
    }
}

fn binder_word(exp: &Exp) -> Option<&'static str> {
    Some(match exp {
        Exp::For(..) => "for",
        Exp::Sum(..) => "sum",
        Exp::Reduce(kind, ..) => match kind {
            Reduction::Prod => "prod",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::ArgMax => "argmax",
            Reduction::ArgMin => "argmin",
            Reduction::Any => "any",
            Reduction::All => "all",
        },
        _ => return None,
    })
}

/// How tightly an expression's print binds, and whether it reaches as far right as it can.
fn strength(exp: &Exp) -> (u8, bool) {
    match exp {
        Exp::Lit(lit) if is_negative(*lit) => (level::UNARY, false),
        Exp::Var(_) | Exp::Lit(_) | Exp::Partial(..) | Exp::Index(..) | Exp::Singleton(..) => (level::POSTFIX, false),
        Exp::Tuple(_) | Exp::Array(_) | Exp::Call(..) => (level::POSTFIX, false),
        Exp::Op(op, _, _) => (spelling::strength(*op), false),
        Exp::Guard(..) => (level::MUL, false),
        Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) => (level::UNARY, true),
        Exp::History(_) | Exp::Loop(_) | Exp::Update(..) | Exp::If(..) | Exp::Let(..) => (level::ANY, true),
    }
}

/// Whether a reader needs the expression's type from the context.
fn needs_type(exp: &Exp) -> bool {
    let parts = if let Exp::Tuple(parts) = exp { parts.as_slice() } else { &[] };
    needs_shape(exp) || unsaid(exp).is_some() || parts.iter().any(needs_type)
}

/// Whether there is a singleton whose sizes nothing else says.
fn needs_shape(exp: &Exp) -> bool {
    match exp {
        Exp::Singleton(..) => true,
        Exp::Var(_) | Exp::Lit(_) | Exp::Partial(..) | Exp::Index(..) | Exp::Reduce(..) | Exp::Array(_) | Exp::Call(..) => false,
        // The state's type is written on the start and on the step themselves.
        Exp::History(_) | Exp::Loop(_) | Exp::Update(..) => false,
        Exp::Op(op, args, _) => *op == Op::Add && args.iter().any(needs_shape),
        Exp::For(_, _, body) | Exp::Sum(_, body) | Exp::Guard(_, body) | Exp::Let(_, _, body) => needs_shape(body),
        Exp::If(_, a, b) => needs_shape(a) || needs_shape(b),
        Exp::Tuple(parts) => parts.iter().any(needs_shape),
    }
}

fn parenthesised(inner: Doc) -> Doc {
    group(concat([text("("), nest(concat([Doc::Soft, inner])), Doc::Soft, text(")")]))
}

/// Operands of a chain of one level, broken before its operators.
fn chain(operands: Vec<(&'static str, Doc)>) -> Doc {
    let mut parts = vec![];
    for (symbol, operand) in operands {
        parts.push(match symbol {
            "" => operand,
            _ => nest(concat([Doc::Line, text(symbol), operand])),
        });
    }
    group(Doc::Concat(parts))
}

#[cfg(test)]
mod tests {
    use super::build::*;
    use super::verify::verify;
    use super::*;
    use crate::diagnostic::Span;

    /// A function `f(x: [n]f64, y: f64)` with this body.
    fn shown(result: impl Fn(Var) -> Type, body: impl Fn(&mut Vars, Var, Var, Var) -> Exp) -> String {
        let mut vars = Vars::default();
        let n = vars.fresh("n", Type::I64);
        let x = vars.fresh("x", Type::Array(vec![Size::var(n)], Scalar::F64));
        let y = vars.fresh("y", Type::F64);
        let body = body(&mut vars, n, x, y);
        let f = Function {
            name: "f".into(),
            sizes: vec![n],
            params: vec![x, y],
            result: result(n),
            body: Body::Exp(body),
            signature: None,
            hidden: None,
            statics: vec![],
            span: Span::default(),
        };
        let program = Program { vars, functions: vec![f] };
        verify(&program).unwrap();
        let text = print_function(&program, FunctionId(0));
        text.strip_prefix("def f(x: [n]f64, y: f64) -> ").unwrap().to_string()
    }
    fn read(x: Var, i: Var) -> Exp {
        index(x, vec![i.into()], Site::default())
    }

    #[test]
    fn ranges_are_left_out_where_inferred() {
        let sum_of = |lo: i64| {
            shown(
                |_| Type::F64,
                |vars, n, x, _| {
                    let i = vars.fresh("i", Type::I64);
                    sum(i, i64(lo), n.into(), read(x, i))
                },
            )
        };
        assert_eq!(sum_of(0), "f64 = sum i. x[i]\n");
        assert_eq!(sum_of(1), "f64 = sum i in 1..n. x[i]\n");
    }

    #[test]
    fn guards_take_their_whole_product() {
        let text = shown(
            |_| Type::F64,
            |_, _, _, y| {
                let p = || op2(Op::Lt, y, f64(0.0));
                let a = guard(p(), op2(Op::Div, mul(y, y), y));
                let b = mul(guard(p(), y), y);
                let c = mul(y, guard(p(), guard(p(), f64(-2.0))));
                add(add(a, b), c)
            },
        );
        assert_eq!(text, "f64 =\n  [y < 0.0] * y * y / y + ([y < 0.0] * y : f64) * y + y * ([y < 0.0] * ([y < 0.0] * -2.0))\n");
    }

    #[test]
    fn singletons_have_a_type_from_somewhere() {
        let array = |n| Type::Array(vec![Size::var(n)], Scalar::F64);
        let text = shown(array, |vars, n, x, y| {
            let z = vars.fresh("x", array(n));
            let i = vars.fresh("i", Type::I64);
            let one = |k: Exp, v: Exp| singleton(vec![(k, Size::var(n))], v, Site::default());
            let read = index(one(i64(0), y.into()), vec![i64(1)], Site::default());
            let_(vec![z], one(i64(2), y.into()), sum(i, i64(0), n.into(), one(i.into(), add(read, read2(x, z, i)))))
        });
        fn read2(x: Var, z: Var, i: Var) -> Exp {
            mul(read(x, i), read(z, i))
        }
        assert_eq!(text, "[n]f64 =\n  let x_2: [n]f64 = {2 -> y};\n  sum i. {i -> ({0 -> y} : [n]f64)[1] + x[i] * x_2[i]}\n");
    }

    #[test]
    fn open_bodies_stand_in_parentheses_where_something_follows() {
        let text = shown(
            |_| Type::F64,
            |vars, n, x, y| {
                let mut total = |body: Exp| {
                    let i = vars.fresh("i", Type::I64);
                    sum(i, i64(0), n.into(), mul(body, read(x, i)))
                };
                let a = sub(total(y.into()), total(op1(Op::Neg, op2(Op::Pow, y, i64(2)))));
                mul(a, op1(Op::Neg, op1(Op::Neg, op2(Op::Pow, op1(Op::Neg, y), i64(-1)))))
            },
        );
        assert_eq!(text, "f64 = ((sum i. y * x[i]) - sum i. -y ^ 2 * x[i]) * -(-(-y) ^ (-1))\n");
    }
}
