//! Modules use each other in one direction.
//!
//! A path from one file to another counts between the two modules beside each other that hold them: a module and its
//! children may use each other. A name that a module passes on belongs to the module that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::budget::{root, sources};

/// The most modules of a circle.
const OF_A_CIRCLE: usize = 2;

/// The names of a module from the root of its crate.
type Module = Vec<String>;

/// The words and signs of a source before its tests, without comments and text.
fn words(source: &str) -> Vec<String> {
    let tests = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    let mut rest = source[..tests].chars().peekable();
    let mut words: Vec<String> = Vec::new();
    let mut within = false;
    while let Some(at) = rest.next() {
        let before = std::mem::take(&mut within);
        match at {
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|&at| at != '\n').is_some() {},
            '\'' if rest.peek() == Some(&'"') => _ = (rest.next(), rest.next()),
            '"' => {
                let raw = words.last().is_some_and(|word| word == "#");
                while let Some(at) = rest.next() {
                    match at {
                        '\\' if !raw => _ = rest.next(),
                        '"' if !raw || rest.next_if_eq(&'#').is_some() => break,
                        _ => {}
                    }
                }
            }
            at if at.is_alphanumeric() || at == '_' => {
                within = true;
                match words.last_mut() {
                    Some(word) if before => word.push(at),
                    _ => words.push(at.to_string()),
                }
            }
            ':' if rest.next_if_eq(&':').is_some() => words.push("::".to_owned()),
            at if at.is_whitespace() => {}
            at => words.push(at.to_string()),
        }
    }
    words
}

/// The paths of a tree of `use`, and where it ends.
fn tree(words: &[String], mut at: usize, path: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = path.to_vec();
    loop {
        match words[at].as_str() {
            "{" => {
                at += 1;
                while words[at] != "}" {
                    at = tree(words, at, &path, found);
                    at += usize::from(words[at] == ",");
                }
                return at + 1;
            }
            "as" => at += 2,
            "::" => at += 1,
            ";" | "," | "}" => {
                found.push(path);
                return at;
            }
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
}

/// A crate: by module, the paths that it uses, and those that it passes on.
#[derive(Default)]
struct Crate {
    paths: BTreeMap<Module, Vec<Vec<String>>>,
    passed_on: BTreeMap<Module, Vec<Vec<String>>>,
}

impl Crate {
    fn add(&mut self, module: Module, source: &str) {
        let words = words(source);
        let (mut paths, mut passed_on, mut at) = (Vec::new(), Vec::new(), 0);
        while at < words.len() {
            let first = ["crate", "super", "self"].contains(&words[at].as_str());
            if words[at] == "use" && words[at + 1] != "<" {
                let public = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
                let to = if public { &mut passed_on } else { &mut paths };
                at = tree(&words, at + 1, &[], to);
            } else if first && words.get(at + 1).is_some_and(|next| next == "::") {
                let mut path = vec![words[at].clone()];
                while words.get(at + 1).is_some_and(|next| next == "::") && words[at + 2] != "<" {
                    path.push(words[at + 2].clone());
                    at += 2;
                }
                paths.push(path);
            }
            at += 1;
        }
        self.paths.insert(module.clone(), paths);
        self.passed_on.insert(module, passed_on);
    }

    /// The module that defines what a path names; `None` of another crate.
    fn defining(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut at = from.clone();
        for (i, name) in path.iter().enumerate() {
            let below: Module = at.iter().chain([name]).cloned().collect();
            match name.as_str() {
                "crate" => at.clear(),
                "super" => _ = at.pop(),
                "self" => {}
                _ if self.paths.contains_key(&below) => at = below,
                _ => {
                    // A macro passes its own name on.
                    let named = |path: &&Vec<String>| path.len() > 1 && path.last() == Some(name);
                    let passed_on = self.passed_on[&at].iter().find(named);
                    return match passed_on {
                        Some(path) => Some(self.defining(&at, path).unwrap_or(at)),
                        None if i == 0 => None,
                        None => Some(at),
                    };
                }
            }
        }
        Some(at)
    }

    /// The modules beside each other that use each other.
    fn uses(&self) -> BTreeSet<(Module, Module)> {
        let mut uses = BTreeSet::new();
        for (from, paths) in &self.paths {
            for to in paths.iter().filter_map(|path| self.defining(from, path)) {
                let above = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if above < from.len() && above < to.len() {
                    uses.insert((from[..=above].to_vec(), to[..=above].to_vec()));
                }
            }
        }
        uses
    }
}

/// The groups of modules each of which uses all others of the group, over others if need be.
fn circles(uses: &BTreeSet<(Module, Module)>) -> BTreeSet<BTreeSet<&Module>> {
    let reached = |first: &Module| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![first.clone()]);
        while let Some(at) = next.pop() {
            for (_, to) in uses.iter().filter(|(from, _)| *from == at) {
                if reached.insert(to) {
                    next.push(to.clone());
                }
            }
        }
        reached
    };
    let by_module: BTreeMap<&Module, _> =
        uses.iter().map(|(from, _)| (from, reached(from))).collect();
    let circle = |(from, reached): (&&Module, &BTreeSet<_>)| -> BTreeSet<&Module> {
        let back = |to: &&&Module| by_module.get(**to).is_some_and(|back| back.contains(*from));
        reached.iter().filter(back).copied().collect()
    };
    by_module.iter().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The modules of a crate of these sources.
fn modules(folder: &Path) -> Crate {
    let (mut files, mut of_crate) = (BTreeMap::new(), Crate::default());
    sources(folder, &mut files);
    for file in files.keys().filter_map(|file| file.strip_suffix(".rs")) {
        let names = file.split('/').skip_while(|name| *name != "src").skip(1);
        let mut module: Module = names.map(str::to_owned).collect();
        match module.last().unwrap().as_str() {
            "lib" | "main" if module.len() == 1 => module.clear(),
            "mod" => _ = module.pop(),
            _ if module.iter().any(|name| name == "tests") => continue,
            _ => {}
        }
        of_crate.add(module, &fs::read_to_string(root().join(format!("{file}.rs"))).unwrap());
    }
    of_crate
}

#[test]
fn modules_use_each_other_in_one_direction() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let uses = modules(&folder.join("src")).uses();
        let circles = circles(&uses);
        for circle in circles.iter().filter(|circle| circle.len() > OF_A_CIRCLE) {
            let inside =
                |(from, to): &&(Module, Module)| circle.contains(from) && circle.contains(to);
            let uses = uses.iter().filter(inside);
            let uses = uses.map(|(from, to)| format!("{} -> {}", from.join("::"), to.join("::")));
            wrong.push(format!("{name}:\n  {}", uses.collect::<Vec<_>>().join("\n  ")));
        }
    }
    assert!(wrong.is_empty(), "modules in circles:\n{}", wrong.join("\n"));
}

#[test]
fn circles_of_modules_are_found() {
    let mut of_crate = Crate::default();
    for (module, source) in [
        ("", "mod a; mod b; mod c; pub use c::{d::Deep, Shown};"),
        ("a", "use crate::b::{self, Other}; // use crate::c::Text;\n"),
        ("b", "fn f() { crate::Shown::new(\"crate::a::f()\"); }"),
        ("c", "mod d; pub use d::Deep; pub struct Shown;"),
        ("c::d", "use super::Shown; use super::super::a::{Some as Thing}; struct Deep;"),
    ] {
        of_crate.add(
            module.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            source,
        );
    }
    let uses = of_crate.uses();
    let named: Vec<_> = uses.iter().map(|(from, to)| (from.join("::"), to.join("::"))).collect();
    let arrows = [("a", "b"), ("b", "c"), ("c", "a")].map(|(from, to)| (from.into(), to.into()));
    assert_eq!(named, arrows);
    assert_eq!(circles(&uses).into_iter().map(|circle| circle.len()).collect::<Vec<_>>(), [3]);
}
