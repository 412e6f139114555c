//! Records are taken apart once, before all else.
//!
//! ```text
//! def f(cams: (a: [n]f64, b: [m]f64)) = … let (a, b) = cams; … let (a', b') = cams; …
//!   =  let (a, b) = cams; … a … b …
//! ```
//! The parts are then names as any other: the same in all branches and loops.

use crate::ir::traverse::{Substitution, substitute};
use crate::ir::*;

pub fn open_records(program: &mut Program, id: FunctionId) {
    let params = program.function(id).params.clone();
    for param in params.into_iter().rev() {
        let Body::Exp(body) = &program.function(id).body else { return };
        if opens(body, param) || !body.mentions(param) {
            continue;
        }
        let body = body.clone();
        let body = opened(&mut program.vars, param, body);
        program.functions[id.0 as usize].body = Body::Exp(body);
    }
}

fn opened(vars: &mut Vars, record: Var, body: Exp) -> Exp {
    let Type::Tuple(types) = vars.ty(record).clone() else { return body };
    let name = vars.name(record).to_string();
    let parts: Vec<Var> = types.into_iter().map(|ty| vars.fresh(name.clone(), ty)).collect();
    let whole = Exp::Tuple(parts.iter().map(|part| Exp::Var(*part)).collect());
    let body = substitute(vars, body, &Substitution::from_iter([(record, whole)]));
    let body = parts.iter().fold(body, |body, part| opened(vars, *part, body));
    Exp::Let(parts, Box::new(Exp::Var(record)), Box::new(body))
}

/// Whether a body begins with taking the record apart, and does not mention it again.
fn opens(body: &Exp, record: Var) -> bool {
    match body {
        Exp::Let(_, value, rest) if **value == Exp::Var(record) => !rest.mentions(record),
        Exp::Let(_, value, rest) => !value.mentions(record) && opens(rest, record),
        _ => false,
    }
}
