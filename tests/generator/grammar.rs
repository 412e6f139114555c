//! The grammar: which constructs make values of a class, and of what classes their parts are.

use super::{Dim, Ty};

/// Classes of types: what the grammar distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Float,
    Int,
    Place,
    Bool,
    Vector,
    Matrix,
    Tuple,
}

impl Class {
    pub const ALL: [Class; 7] = [Class::Float, Class::Int, Class::Place, Class::Bool, Class::Vector, Class::Matrix, Class::Tuple];

    pub fn of(ty: &Ty) -> Class {
        match ty {
            Ty::F64 => Class::Float,
            Ty::I64 => Class::Int,
            Ty::Place(_) => Class::Place,
            Ty::Bool => Class::Bool,
            Ty::Floats(dims) if dims.len() == 1 => Class::Vector,
            Ty::Floats(_) => Class::Matrix,
            Ty::Places(..) => Class::Vector,
            Ty::Tuple(_) => Class::Tuple,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[rustfmt::skip]
pub enum Kind {
    Var, Lit, Add, Sub, Mul, Div, Neg, Pow, Function, Function2, Index, Row, Slice, Kept, Gather, Singleton, For, Sum, Prod,
    Max, Min, ArgMax, ArgMin, Any, All, Guard, If, IfZero, Let, LetTuple, Tuple, Array, Call, Compare, Logic, Convert, DivMod,
    Scale, History, Derivative, Loop, With, Map, Reduce, Scan, Bins, Scatter, Apply, LambdaDerivative,
    Record, Summed, Filter, HigherOrder, Generic, Given, Stopped,
}

impl Kind {
    #[rustfmt::skip]
    pub const ALL: [Kind; 56] = {
        use Kind::*;
        [Var, Lit, Add, Sub, Mul, Div, Neg, Pow, Function, Function2, Index, Row, Slice, Kept, Gather, Singleton, For, Sum, Prod,
         Max, Min, ArgMax, ArgMin, Any, All, Guard, If, IfZero, Let, LetTuple, Tuple, Array, Call, Compare, Logic, Convert, DivMod,
         Scale, History, Derivative, Loop, With, Map, Reduce, Scan, Bins, Scatter, Apply, LambdaDerivative,
         Record, Summed, Filter, HigherOrder, Generic, Given, Stopped]
    };
}

/// The constructs that make a value of the class.
#[rustfmt::skip]
pub fn producers(class: Class) -> &'static [Kind] {
    use Kind::*;
    match class {
        Class::Float => &[Var, Lit, Add, Sub, Mul, Div, Neg, Pow, Function, Function2, Index, Gather, Sum, Prod, Max, Min, Guard, If, IfZero,
            Let, LetTuple, Call, Convert, Derivative, Loop, Reduce, Apply, LambdaDerivative, Record, Summed, Filter, HigherOrder, Generic, Given, Stopped],
        Class::Int => &[Var, Lit, Add, Sub, Mul, Neg, Pow, Function, Function2, Sum, Prod, Max, Min, ArgMax, ArgMin, Guard, If, Let, Convert, DivMod, Reduce, Apply, Record, Generic],
        Class::Place => &[Var, Lit, Sub, Function2, ArgMax, ArgMin, Gather, If, Let, DivMod],
        Class::Bool => &[Var, Lit, Compare, Logic, Any, All, If, Let, Reduce, Apply, Record, Generic],
        Class::Vector => &[Var, For, Sum, Add, Sub, Neg, Scale, Guard, If, IfZero, Let, LetTuple, Row, Slice, Kept, Singleton, Array,
            Call, History, Derivative, Loop, With, Map, Reduce, Scan, Bins, Scatter, Apply, LambdaDerivative, Record, Summed, HigherOrder, Generic,
            Given, Stopped],
        Class::Matrix => &[Var, For, Sum, Add, Sub, Neg, Scale, Guard, If, IfZero, Let, LetTuple, Singleton, Array, With, Map, Scan, Bins,
            Scatter, Record, Summed],
        Class::Tuple => &[Var, Tuple, If, Let, LetTuple, For, Index, Sum, Add, Guard, Call, Derivative, Loop, Map, Reduce, Scan, Apply, Record],
    }
}

/// The classes that the parts of a construct may have where it makes a value of `class`.
pub fn slots(kind: Kind, class: Class) -> Vec<Class> {
    use Class::*;
    let own = class;
    match kind {
        Kind::Var | Kind::Lit => vec![],
        Kind::Add | Kind::Neg | Kind::Mul | Kind::Div => vec![own],
        Kind::Sub => vec![own],
        Kind::Pow | Kind::Function => vec![own],
        Kind::Function2 => vec![own],
        Kind::Index if class == Class::Tuple => vec![Tuple, Place],
        Kind::Index => vec![Vector, Matrix, Place],
        Kind::Gather if class == Class::Float => vec![Place],
        Kind::Gather => vec![Place],
        Kind::Row => vec![Matrix, Place],
        Kind::Slice => vec![Vector],
        Kind::Kept => vec![Matrix, Place],
        Kind::Singleton if class == Class::Matrix => vec![Place, Vector, Float],
        Kind::Singleton => vec![Place, Float],
        Kind::For if class == Class::Tuple => vec![Tuple],
        Kind::For if class == Class::Matrix => vec![Vector],
        Kind::For => vec![Float],
        Kind::Sum | Kind::Prod | Kind::Max | Kind::Min => vec![own],
        Kind::ArgMax | Kind::ArgMin => vec![Float],
        Kind::Any | Kind::All => vec![Bool],
        Kind::Guard | Kind::If | Kind::IfZero => vec![Bool, own],
        Kind::Let => vec![Float, Int, Bool, Vector, Tuple, own],
        Kind::LetTuple => vec![Tuple, own],
        Kind::Tuple => vec![Float, Vector],
        Kind::Array if class == Class::Matrix => vec![Vector],
        Kind::Array => vec![Float],
        Kind::Call | Kind::Derivative => vec![Vector, Float],
        Kind::Compare => vec![Float, Int],
        Kind::Logic => vec![Bool],
        Kind::Convert if class == Class::Int => vec![Float],
        Kind::Convert => vec![Int],
        Kind::DivMod => vec![Int],
        Kind::Scale => vec![Float, own],
        Kind::History => vec![Float],
        Kind::Loop if class == Class::Vector => vec![Vector, Place, Float],
        Kind::Loop => vec![own, Float],
        Kind::With if class == Class::Matrix => vec![Matrix, Place, Vector, Float],
        Kind::With => vec![Vector, Place, Float],
        // What a function gives comes first, then what it is applied to.
        Kind::Map if class == Class::Matrix => vec![Vector, Matrix],
        Kind::Map if class == Class::Tuple => vec![Tuple, Vector],
        Kind::Map => vec![Float, Vector],
        Kind::Reduce if class == Class::Vector => vec![Vector, Matrix],
        Kind::Reduce if class == Class::Tuple => vec![Float, Tuple],
        Kind::Reduce => vec![own, Vector],
        Kind::Scan if class == Class::Matrix => vec![Vector, Matrix],
        Kind::Scan if class == Class::Tuple => vec![Float, Tuple],
        Kind::Scan => vec![Float, Vector],
        Kind::Bins if class == Class::Matrix => vec![Vector, Int, Matrix],
        Kind::Bins => vec![Float, Int, Vector],
        Kind::Scatter if class == Class::Matrix => vec![Int, Matrix],
        Kind::Scatter => vec![Int, Vector],
        Kind::Apply => vec![own, Float, Vector],
        Kind::LambdaDerivative if class == Class::Vector => vec![Float, Vector],
        Kind::LambdaDerivative => vec![Float],
        Kind::Record => vec![own, Float, Vector],
        Kind::Summed => vec![Float, own],
        Kind::Filter => vec![Vector, Float],
        Kind::HigherOrder if class == Class::Vector => vec![Float, Vector],
        Kind::HigherOrder => vec![Float],
        Kind::Generic => vec![own],
        Kind::Given if class == Class::Vector => vec![Vector, Float],
        Kind::Given => vec![Float],
        Kind::Stopped => vec![own],
    }
}

/// Whether `child` can stand directly in `parent`.
pub fn allowed(parent: Kind, child: Kind) -> bool {
    // Tuples hold vectors at most, so that an element of one is no tuple of arrays.
    if (parent, child) == (Kind::Index, Kind::Index) {
        return false;
    }
    Class::ALL
        .iter()
        .any(|class| producers(*class).contains(&parent) && slots(parent, *class).iter().any(|slot| producers(*slot).contains(&child)))
}

/// Sizes that a function over the named sizes uses.
pub fn dims(names: &[&'static str]) -> Vec<Dim> {
    let mut dims: Vec<Dim> = names.iter().map(|n| Dim::Named(n)).collect();
    dims.push(Dim::Const(2));
    dims.push(Dim::Const(3));
    dims
}
