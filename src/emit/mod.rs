//! Loops -> text of a target. Nothing here decides anything: a schedule is spelled as it stands.

pub mod c;
pub mod c_family;
pub mod library;
