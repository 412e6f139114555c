//! Iverson: a differentiable array language and its optimising compiler.
//!
//! The modules stand in the order of the data flow, and each may name only those above it
//! (`tests/layers.rs` checks this).

pub mod unfinished;
pub mod memory;
pub mod diagnostic;
pub mod layout;
pub mod types;
pub mod fault;
pub mod scalar;
pub mod value;
pub mod ir;
pub mod bind;
pub mod syntax;
pub mod library;
pub mod check;
pub mod load;
pub mod interpret;
pub mod cost;
pub mod differentiate;
pub mod optimize;
pub mod sparse;
pub mod loops;
pub mod lower;
pub mod emit;
pub mod runtime;
pub mod pipeline;
