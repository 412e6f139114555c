//! The prelude: the definitions of `library/*.iv`, which every program may use without saying so.
//!
//! In: a module as it was parsed. Out: the same module, followed by the library's definitions that it uses, and those that they
//! use in turn. A program pays for nothing else: a file of the library is read when one of its names is needed.
//! A program's own definitions and variables hide the library's. The library itself always means its own: where it
//! uses a name that the program defines too, its definition comes under another name; and what is built in is built in
//! there whatever the program defines (`check` looks where a name is written).
//! Names that begin with `_` are known inside the library only.

use crate::diagnostic::{LIBRARY_FILES, Sources};
use crate::syntax::ast::{Definition, Module};
use crate::syntax::{names, parse};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;

/// A text of the library, under the name that messages show.
pub struct File {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => { &[$(File { name: $name, text: include_str!(concat!("../", $name)) }),*] };
}

/// In the order in which they are documented; `Span::source` numbers them from 1.
pub const FILES: &[File] = files![
    "library/vectors.iv",
    "library/matrices.iv",
    "library/statistics.iv",
    "library/learning.iv",
    "library/interpolation.iv",
    "library/calculus.iv",
    "library/signals.iv",
    "library/polynomials.iv",
    "library/sparse.iv"
];
const _: () = assert!(FILES.len() == LIBRARY_FILES as usize);

/// The names that programs may use, in the order of definition.
pub fn names<'a>() -> impl Iterator<Item = &'a str> {
    FILES.iter().flat_map(|file| defined(file.text)).filter(|name| is_public(name)).map(|name| name as &str)
}

/// The texts that the spans of a completed module point into: the program's own is 0.
pub fn sources(name: impl Into<String>, text: impl Into<String>) -> Sources {
    let mut sources = Sources::single(name, text);
    for file in FILES {
        sources.add(file.name, file.text);
    }
    sources
}

/// Appends what the module uses of the library, and the definitions `wanted` that it does not have itself.
pub fn complete(module: &mut Module, wanted: &[&str]) {
    let own: FxHashSet<String> = module.definitions.iter().map(|d| d.name.text.clone()).collect();
    let mut needed: Vec<&'static str> = vec![];
    let mut need = |name: &'static str| {
        if !needed.contains(&name) {
            needed.push(name);
        }
    };
    let offered = |name: &str| known(name).filter(|name| is_public(name) && !own.contains(*name));
    wanted.iter().filter_map(|name| offered(name)).for_each(&mut need);
    for definition in &mut module.definitions {
        names::for_each_free(definition, &mut |name, _| offered(name).into_iter().for_each(&mut need));
    }
    let mut done = 0;
    while let Some(name) = needed.get(done).copied() {
        let mut definition = definition(name).clone();
        definition.name.text = beside(name, &own);
        names::for_each_free(&mut definition, &mut |name, _| {
            if let Some(used) = known(name) {
                *name = beside(used, &own);
                if !needed.contains(&used) {
                    needed.push(used);
                }
            }
        });
        module.definitions.push(definition);
        done += 1;
    }
}

fn is_public(name: &str) -> bool {
    !name.starts_with('_')
}

/// What a definition of the library is called in a program that has definitions of its own.
fn beside(name: &str, own: &FxHashSet<String>) -> String {
    let mut text = name.to_string();
    while own.contains(&text) || (text != name && known(&text).is_some()) {
        text = format!("library_{text}");
    }
    text
}

/// The names that a text defines: a definition's `def` begins its line, and nothing else does so.
fn defined(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next()).map(str::trim)
}

/// The file that defines a name.
fn index() -> &'static FxHashMap<&'static str, usize> {
    static INDEX: OnceLock<FxHashMap<&'static str, usize>> = OnceLock::new();
    INDEX.get_or_init(|| FILES.iter().enumerate().flat_map(|(k, file)| defined(file.text).map(move |name| (name, k))).collect())
}

fn known(name: &str) -> Option<&'static str> {
    index().get_key_value(name).map(|(name, _)| *name)
}

fn definition(name: &str) -> &'static Definition {
    static MODULES: [OnceLock<Module>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
    let file = index()[name];
    let module = MODULES[file].get_or_init(|| {
        let (module, wrong) = parse(file as u32 + 1, FILES[file].text);
        assert!(wrong.is_empty(), "library: {} does not parse: {}", FILES[file].name, wrong[0].message);
        module
    });
    module.definitions.iter().find(|d| d.name.text == name).expect("the index has the names of definitions")
}

/// Definitions of the library by themselves, with what they use, its inner ones too.
pub fn part(wanted: &[&'static str]) -> Module {
    let mut needed = wanted.to_vec();
    let mut module = Module::default();
    let mut done = 0;
    while let Some(name) = needed.get(done).copied() {
        let mut definition = definition(name).clone();
        names::for_each_free(&mut definition, &mut |name, _| {
            if let Some(used) = known(name) {
                if !needed.contains(&used) {
                    needed.push(used);
                }
            }
        });
        module.definitions.push(definition);
        done += 1;
    }
    module
}
