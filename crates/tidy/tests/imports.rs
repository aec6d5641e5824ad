//! Which files of a crate import which: folders in one order, and no circles.
//!
//! Arrows are the paths that begin with `crate::`, `super::`, `self::` or a child module's name, in a file's code without its tests. A path
//! to a re-export leads to the file that has the item.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folders of `infer`, lowest first: each imports only those before it (ARCHITECTURE.md, "Inside `infer`").
const INFER: [&str; 13] = [
    "error",
    "event",
    "hash",
    "reset",
    "observe",
    "tcp",
    "estimate",
    "diagnosis",
    "shared_path",
    "flow",
    "socket",
    "flow_table",
    "capture",
];

/// Data types in `observe` that observers share; they observe nothing.
const SHARED: [&str; 3] = ["counted", "log_histogram", "ticks"];

/// A module's path within its crate; empty for the root.
type Module = Vec<String>;

/// One crate's files: the code of each, by module.
struct Crate {
    name: String,
    code: BTreeMap<Module, String>,
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        let src = folder.join("src");
        let mut code = BTreeMap::new();
        let mut open: Vec<PathBuf> = vec![src.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    open.push(path);
                    continue;
                }
                if path.extension().is_none_or(|extension| extension != "rs") || path.ends_with("tests.rs") {
                    continue;
                }
                let within = path.strip_prefix(&src).expect("a file of the crate").with_extension("");
                let mut module: Module = within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
                    module.pop();
                }
                let text = fs::read_to_string(&path).expect("text");
                let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
                code.entry(module).or_insert_with(String::new).push_str(&bare(text));
            }
        }
        Self { name, code }
    }

    fn child(&self, of: &Module, name: &str) -> Option<Module> {
        let mut child = of.clone();
        child.push(name.to_owned());
        self.code.contains_key(&child).then_some(child)
    }

    /// The module that a path of `from` leads to.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Module::new(),
            "self" => from.clone(),
            "super" => {
                let mut up = from.clone();
                up.pop()?;
                while let Some(("super", after)) = rest.split_first().map(|(next, after)| (next.as_str(), after)) {
                    up.pop()?;
                    rest = after;
                }
                up
            }
            name => self.child(from, name)?,
        };
        while let Some((next, after)) = rest.split_first() {
            let Some(child) = self.child(&at, next) else { break };
            (at, rest) = (child, after);
        }
        let reexported = rest.first().filter(|_| depth < 8).and_then(|item| {
            let uses = uses(self.code.get(&at)?);
            let found = uses.into_iter().find(|one| one.is_public && one.name == *item)?;
            self.resolve(&at, &found.path, depth + 1)
        });
        Some(reexported.unwrap_or(at))
    }

    /// The modules that each imports.
    fn arrows(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut arrows = BTreeMap::new();
        for (module, code) in &self.code {
            let found: BTreeSet<Module> =
                paths(code).iter().filter_map(|path| self.resolve(module, path, 0)).filter(|to| to != module).collect();
            arrows.insert(module.clone(), found);
        }
        arrows
    }
}

/// The text without comments and literals.
fn bare(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r#\"") || rest.starts_with("br#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter: char| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\\"'") {
            4
        } else {
            bare.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        bare.push(' ');
        rest = &rest[skipped..];
    }
    bare
}

/// All paths in code, groups taken apart.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = code;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        if (first.is_alphabetic() || first == '_') && !before.is_alphanumeric() && !matches!(before, '_' | ':' | '.') {
            let len = tree(rest, &[], &mut found);
            before = rest[..len].chars().next_back().unwrap_or(' ');
            rest = &rest[len..];
        } else {
            before = first;
            rest = &rest[first.len_utf8()..];
        }
    }
    found.retain(|path| path.len() > 1);
    found
}

/// Reads a path, or a tree of them, behind a prefix; gives the length read.
fn tree(text: &str, prefix: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = 0;
    loop {
        let word =
            text[at..].find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len() - at);
        if word == 0 {
            break;
        }
        path.push(text[at..at + word].to_owned());
        at += word;
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
        if text[at..].starts_with('{') {
            at += 1;
            loop {
                at += text[at..].find(|letter: char| !letter.is_whitespace() && letter != ',').unwrap_or(0);
                if text[at..].starts_with('}') || at >= text.len() {
                    return (at + 1).min(text.len());
                }
                let len = tree(&text[at..], &path, found);
                // An alias, or what is no path.
                at += len + text[at + len..].find([',', '}']).unwrap_or(0);
                if len == 0 && !text[at..].starts_with([',', '}']) {
                    return at;
                }
            }
        }
    }
    if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
        path.pop();
    }
    found.push(path);
    at
}

/// An item that a module uses.
struct Use {
    is_public: bool,
    name: String,
    path: Vec<String>,
}

fn uses(code: &str) -> Vec<Use> {
    let mut found = Vec::new();
    for (start, _) in code.match_indices("use ") {
        let line = code[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let before = code[line..start].trim();
        // Not the end of another word, as in `pub enum Cause {`.
        let is_word = !code[..start].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        if !is_word || !before.is_empty() && !before.starts_with("pub") {
            continue;
        }
        let statement = &code[start + 4..start + code[start..].find(';').unwrap_or(0)];
        for path in paths(statement) {
            if let Some(name) = path.last().cloned() {
                found.push(Use { is_public: before.starts_with("pub"), name, path });
            }
        }
    }
    found
}

fn crates() -> Vec<Crate> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .expect("crates")
        .flatten()
        .map(|entry| entry.path())
        .filter(|p| p.join("src").is_dir())
        .collect();
    folders.sort();
    assert!(folders.len() > 10, "the crates were not found");
    folders.iter().map(|folder| Crate::read(folder)).collect()
}

/// Groups of modules that import each other, apart from a parent and its own children.
fn circles(arrows: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<Module>> {
    let is_family = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let reach = |from: &Module| {
        let mut seen: BTreeSet<Module> = BTreeSet::new();
        let mut open = vec![from.clone()];
        while let Some(at) = open.pop() {
            for to in arrows.get(&at).into_iter().flatten().filter(|to| !is_family(&at, to)) {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = arrows.keys().map(|module| (module, reach(module))).collect();
    let mut groups: Vec<Vec<Module>> = Vec::new();
    for (module, to) in &reached {
        if !to.contains(*module) || groups.iter().any(|group| group.contains(module)) {
            continue;
        }
        groups.push(to.iter().filter(|other| reached[*other].contains(*module)).cloned().collect());
    }
    groups
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut faults = Vec::new();
    for one in crates() {
        let groups = circles(&one.arrows());
        if !groups.is_empty() {
            let names = |group: &Vec<Module>| group.iter().map(|one| one.join("::")).collect::<Vec<_>>().join(", ");
            let all: Vec<String> = groups.iter().map(names).collect();
            let all = all.join("; ");
            faults.push(format!("{}: these import each other: {all}. Move what they share below them", one.name));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn folders_of_infer_import_only_those_before_them() {
    let infer = crates().into_iter().find(|one| one.name == "infer").expect("infer");
    let place = |module: &Module| INFER.iter().position(|folder| module.first().is_some_and(|first| first == folder));
    let mut faults = Vec::new();
    let mut count = 0;
    for (from, to) in infer.arrows().into_iter().flat_map(|(from, to)| to.into_iter().map(move |to| (from.clone(), to)))
    {
        if from.is_empty() || from[0] == "testing" {
            continue;
        }
        count += 1;
        let (Some(above), Some(below)) = (place(&from), place(&to)) else {
            faults.push(format!(
                "{} imports {}: one of them is not in the list of folders",
                from.join("::"),
                to.join("::")
            ));
            continue;
        };
        if below > above {
            faults.push(format!("{} must not import {}: it comes after it", from.join("::"), to.join("::")));
        }
        let are_observers = from.len() > 1 && to.len() > 1 && from[0] == "observe" && to[0] == "observe";
        // What is in one folder is one observer.
        if are_observers && from[1] != to[1] && !SHARED.contains(&&*to[1]) {
            faults.push(format!("{} must not import {}: no observer knows another", from.join("::"), to.join("::")));
        }
        let is_observer = to.len() > 1 && to[0] == "observe" && !SHARED.contains(&&*to[1]);
        if from[0] == "tcp" && is_observer {
            let (from, to) = (from.join("::"), to.join("::"));
            faults.push(format!("{from} must not import {to}: events reach observers through `Observers` alone"));
        }
    }
    assert!(count > 100, "the imports were not found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// `tcp` tells observers of events, and asks them nothing.
#[test]
fn reconstruction_does_not_ask_observers() {
    const TOLD: [&str; 6] = ["event(", "record(", "packet(", "lone_ack(", "finish(", "reset("];
    let infer = crates().into_iter().find(|one| one.name == "infer").expect("infer");
    let mut count = 0;
    let mut faults = Vec::new();
    for (module, code) in infer.code.iter().filter(|(module, _)| module.first().is_some_and(|first| first == "tcp")) {
        for (at, accessed) in code.match_indices("observers.") {
            let asked = &code[at + accessed.len()..];
            count += 1;
            if !TOLD.iter().any(|told| asked.starts_with(told)) {
                let asked: String = asked.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                faults.push(format!("{} asks observers for {asked}", module.join("::")));
            }
        }
    }
    assert!(count > 10, "the events were not found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn paths_are_found_in_use_trees_and_in_code() {
    let code = "use crate::a::{self, b::{C, D}, e as f};\nfn x() { super::g::h(1); let y = 'a'; crate::i::J }";
    let found: Vec<String> = paths(code).iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::a", "crate::a::b::C", "crate::a::b::D", "crate::a::e", "super::g::h", "crate::i::J"]);
    assert_eq!(bare("a // b\n\"c\\\"d\" e"), "a  \n  e");
    let arrow = |from: &str, to: &str| (vec![from.to_owned()], BTreeSet::from([vec![to.to_owned()]]));
    let circle = BTreeMap::from([arrow("a", "b"), arrow("b", "c"), arrow("c", "a"), arrow("d", "a")]);
    assert_eq!(circles(&circle).concat(), [["a"], ["b"], ["c"]]);
}
