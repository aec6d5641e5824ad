//! The rules of the house that the compiler does not check. Each failure says which rule, where, and why it is one.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may import whom, besides `units`, which everyone may: ARCHITECTURE.md, "Rooms".
const MAY_IMPORT: [(&str, &[&str]); 24] = [
    ("units", &[]),
    ("model", &[]),
    ("config", &["model"]),
    ("wire", &[]),
    ("infer", &["model", "wire"]),
    ("tune", &["model"]),
    ("host", &["model"]),
    ("apply", &["model", "host"]),
    ("path", &["model"]),
    ("live", &["model", "wire", "host", "path"]),
    ("lab", &["model", "config", "wire", "host", "path", "live"]),
    ("report", &["model"]),
    ("pipeline", &["model", "config", "wire", "infer", "tune", "lab"]),
    ("media", &[]),
    ("edge", &["media", "model", "config", "host"]),
    ("get", &["model", "host"]),
    ("load", &["media", "model", "host"]),
    ("agent", &["model", "host"]),
    ("iperf", &["model", "infer", "host", "agent"]),
    ("watch", &["model", "infer"]),
    (
        "cli",
        &[
            "model", "config", "wire", "infer", "tune", "host", "apply", "path", "live", "lab", "report", "pipeline",
            "media", "edge", "get", "load", "agent", "iperf", "watch",
        ],
    ),
    ("thalweg", &["cli", "infer", "load", "model", "wire"]),
    ("tidy", &[]),
    ("fuzz", &["wire", "infer", "config", "model", "media", "edge", "get", "agent", "iperf", "watch"]),
];

/// Lines past which a file is no longer one idea.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root")
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join("crates"), root().join("fuzz")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 50, "the sources were not found");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn room(package: &str) -> &str {
    package.strip_prefix("thalweg-").unwrap_or(package)
}

#[test]
fn arrows_point_one_way() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let rooms: Vec<&str> = packages.iter().map(|p| room(p["name"].as_str().expect("a name"))).collect();
    for package in packages {
        let name = room(package["name"].as_str().expect("a name"));
        let (_, allowed) = MAY_IMPORT.iter().find(|(known, _)| *known == name).unwrap_or_else(|| {
            panic!("the room '{name}' is not in the table of who may import whom: add it there and to ARCHITECTURE.md")
        });
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = room(dependency["name"].as_str().expect("a name"));
            let ours = dependency["path"].is_string() && rooms.contains(&to);
            assert!(
                !ours || to == "units" || allowed.contains(&to),
                "{name} must not import {to}: arrows point one way, so that {to} can be read, tested and used without {name}"
            );
        }
    }
}

#[test]
fn every_file_says_what_is_in_it() {
    for path in sources() {
        let text = fs::read_to_string(&path).expect("text");
        let first = text.lines().find(|line| !line.starts_with("#!["));
        assert!(
            first.is_some_and(|line| line.starts_with("//!")),
            "{} does not begin with //! and what is in this room",
            relative(&path)
        );
    }
}

#[test]
fn a_module_with_children_is_a_folder_with_mod_rs() {
    for path in sources().iter().filter(|path| path.components().any(|part| part.as_os_str() == "src")) {
        let folder = path.with_extension("");
        assert!(
            !folder.is_dir(),
            "{} has a folder of children: move it to {}/mod.rs, so that one module is in one place",
            relative(path),
            relative(&folder)
        );
    }
}

#[test]
fn a_file_is_one_idea() {
    for path in sources() {
        let lines = fs::read_to_string(&path).expect("text").lines().count();
        let tests = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        assert!(tests || lines <= LINES_MAX, "{} has {lines} lines: split it by idea", relative(&path));
    }
}

#[test]
fn unsafe_is_in_host_alone() {
    // Spelled so that this file does not contain what it looks for.
    let word = concat!("unsafe", " ");
    for path in sources() {
        let text = fs::read_to_string(&path).expect("text");
        let inside = relative(&path).starts_with("crates/host/");
        let found = text
            .lines()
            .any(|line| line.trim_start().split("//").next().is_some_and(|code| code.contains(&format!("{word}{{"))));
        assert!(
            inside || !found,
            "{} holds an unsafe block: only the room 'host' may, see ARCHITECTURE.md",
            relative(&path)
        );
    }
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let begin = concat!("unsafe", " {");
    for path in sources().iter().filter(|path| relative(path).starts_with("crates/host/")) {
        let text = fs::read_to_string(path).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains(begin)) {
            let near = &lines[at.saturating_sub(4)..=at];
            assert!(
                near.iter().any(|line| line.contains("// SAFETY:")),
                "{}:{} has no SAFETY comment: {}",
                relative(path),
                at + 1,
                line.trim()
            );
        }
    }
}

#[test]
fn every_room_keeps_the_lints() {
    for entry in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} does not take the workspace's lints",
            relative(&entry.path())
        );
    }
}

#[test]
fn the_licences_are_there() {
    for name in [
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "kernel/LICENSE",
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "deny.toml",
    ] {
        assert!(root().join(name).exists(), "{name} is missing");
    }
}
