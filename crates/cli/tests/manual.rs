//! The man pages and completions that packages hold: one for each verb, and as they were reviewed.

#[path = "../examples/manual/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::path::Path;

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Names of the pages of a command and of those below it; a hidden command has none.
fn expected(command: &clap::Command, name: &str, found: &mut BTreeSet<String>) {
    found.insert(format!("{name}.1"));
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        expected(sub, &format!("{name}-{}", sub.get_name()), found);
    }
}

#[test]
fn every_verb_has_a_page_and_every_shell_completions() {
    let folder = tempfile::tempdir().expect("a folder");
    pages::write(folder.path()).expect("the manual");

    let mut verbs = BTreeSet::new();
    expected(&thalweg_cli::command(), "thalweg", &mut verbs);
    let mut made = names(&folder.path().join("man1"));
    made.retain(|name| !name.contains("help"));
    assert!(verbs.len() > 10, "{verbs:?}");
    assert_eq!(made, verbs);

    let shells = names(&folder.path().join("completions"));
    assert_eq!(shells.into_iter().collect::<Vec<_>>(), ["_thalweg", "thalweg.bash", "thalweg.fish"]);
    let bash = std::fs::read_to_string(folder.path().join("completions/thalweg.bash")).expect("text");
    for option in ["--parquet", "--kernel", "--samples", "--players"] {
        assert!(bash.contains(option), "bash does not complete {option}");
    }
}

#[test]
fn the_page_of_explain() {
    let folder = tempfile::tempdir().expect("a folder");
    pages::write(folder.path()).expect("the manual");
    let page = std::fs::read_to_string(folder.path().join("man1/thalweg-explain.1")).expect("a page");
    insta::assert_snapshot!(page.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}
