//! Programs built by hand.
#![allow(dead_code)]

use iverson::diagnostic::Span;
use iverson::interpret::{Counts, Failure, call};
use iverson::ir::build::*;
use iverson::ir::*;
use iverson::value::Value;

/// A function under construction, of sizes `n` and `m`.
pub struct Build {
    pub program: Program,
    pub n: Var,
    pub m: Var,
}

pub fn start() -> Build {
    let mut program = Program::default();
    let n = program.vars.fresh("n", Type::I64);
    let m = program.vars.fresh("m", Type::I64);
    Build { program, n, m }
}

impl Build {
    pub fn var(&mut self, name: &str, ty: Type) -> Var {
        self.program.vars.fresh(name, ty)
    }
    pub fn index(&mut self, name: &str) -> Var {
        self.var(name, Type::I64)
    }
    pub fn n(&self) -> Size {
        Size::var(self.n)
    }
    pub fn m(&self) -> Size {
        Size::var(self.m)
    }
    pub fn define(&mut self, name: &str, params: &[Var], result: Type, body: Exp) -> FunctionId {
        let mut used = vec![];
        for param in params {
            let mut note = |s: &Size| s.variables(&mut used);
            self.program.vars.ty(*param).map_sizes(&mut |s| {
                note(s);
                s.clone()
            });
        }
        let sizes = [self.n, self.m].into_iter().filter(|v| used.contains(v)).collect();
        let function = Function {
            name: name.into(),
            sizes,
            params: params.to_vec(),
            result,
            body: Body::Exp(body),
            signature: None,
            hidden: None,
            statics: vec![],
            span: Span::default(),
        };
        self.program.functions.push(function);
        FunctionId(self.program.functions.len() as u32 - 1)
    }
    pub fn run(&self, args: &[Value]) -> Result<(Value, Counts), Failure> {
        verify::verify(&self.program).unwrap();
        call(&self.program, FunctionId(self.program.functions.len() as u32 - 1), args)
    }
}

pub fn vector(n: Size) -> Type {
    Type::Array(vec![n], Scalar::F64)
}
pub fn at(array: Var, keys: &[Exp]) -> Exp {
    index(array, keys.to_vec(), Site::new(Span::new(0, 3, 7)))
}
pub fn floats(values: &[f64]) -> Value {
    Value::from(values.to_vec())
}
