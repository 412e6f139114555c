//! The rules, one file per construct, both modes in each, with the mathematics on top.

pub mod array;
pub mod blocks;
pub mod branch;
pub mod call;
pub mod generate;
pub mod history;
pub mod in_place;
pub mod index;
pub mod iterate;
pub mod reduce;
pub mod scalar;
pub mod singleton;
pub mod sum;
pub mod summed;
pub mod update;
pub mod writes;
