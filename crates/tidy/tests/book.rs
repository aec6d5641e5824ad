//! The documents: every page is in the book, every link resolves, and what the code names exists.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root")
}

/// Files below a folder whose names end with one of these, without what is built or fetched.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() {
            if !name.starts_with("target") && !["node_modules", "corpus", "artifacts", "thalweg-runs"].contains(&&*name)
            {
                files(&path, endings, found);
            }
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The pages of the book and the documents of the root.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root().join("docs"), &[".md"], &mut found);
    let documents = fs::read_dir(root()).expect("the root").flatten().map(|entry| entry.path());
    found.extend(documents.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    found.sort();
    assert!(found.len() > 20, "the documents were not found");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A document without its fenced and indented code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let kept = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// Targets of the inline links of a document.
fn links(text: &str) -> Vec<String> {
    let rest = prose(text);
    let targets = rest.split("](").skip(1).filter_map(|after| after.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// Anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> HashSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings
        .map(|heading| {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect()
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            other => found.push(other),
        }
    }
    found
}

#[test]
fn every_relative_link_resolves() {
    let mut broken = Vec::new();
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).expect("text");
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            count += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target =
                if path.is_empty() { document.clone() } else { document.parent().expect("a folder").join(path) };
            let resolves = target.exists()
                && (anchor.is_empty() || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor)));
            if !resolves {
                broken.push(format!("{}: {link}", relative(&document)));
            }
        }
    }
    assert!(count > 50, "{count} links: the links were not found");
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("docs/SUMMARY.md");
    let listed: HashSet<PathBuf> = links(&summary).iter().map(|link| normal(&docs.join(link))).collect();
    let mut pages = Vec::new();
    files(&docs, &[".md"], &mut pages);
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    let missing: Vec<String> = pages.iter().filter(|page| !listed.contains(*page)).map(|page| relative(page)).collect();
    assert!(missing.is_empty(), "pages that docs/SUMMARY.md does not list:\n{}", missing.join("\n"));
}

/// `docs/NAME` in sources, tests, benchmarks, scripts and scenarios.
#[test]
fn pages_that_the_code_names_exist() {
    let mut sources = Vec::new();
    for folder in ["crates", "fuzz", "scenarios", "web", "kernel"] {
        files(&root().join(folder), &[".rs", ".toml", ".js", ".snap", ".sh"], &mut sources);
    }
    sources.push(root().join("x"));
    let (mut count, mut missing) = (0, Vec::new());
    for source in sources {
        let text = fs::read_to_string(&source).expect("text");
        for (at, _) in text.match_indices("docs/") {
            let before = text[..at].chars().next_back();
            let name: String =
                text[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || "/._-".contains(*c)).collect();
            let name = name.trim_end_matches(['.', '/']);
            let part_of_a_word = before.is_some_and(|c| c.is_alphanumeric() || "._-".contains(c));
            if part_of_a_word || !name.contains('.') {
                continue;
            }
            count += 1;
            if !root().join(name).exists() {
                missing.push(format!("{}: {name}", relative(&source)));
            }
        }
    }
    assert!(count > 10, "{count} names of pages: they were not found");
    assert!(missing.is_empty(), "pages that are named and do not exist:\n{}", missing.join("\n"));
}

/// Sources that the documents name: steps that name a file which is gone mislead.
#[test]
fn sources_that_the_documents_name_exist() {
    let folders = ["crates/", "fuzz/", "kernel/", "packaging/", "scenarios/", "web/"];
    let (mut count, mut missing) = (0, Vec::new());
    for document in documents().iter().filter(|path| !path.ends_with("CHANGELOG.md")) {
        let text = fs::read_to_string(document).expect("text");
        for name in text.split('`').skip(1).step_by(2).filter(|name| folders.iter().any(|one| name.starts_with(one))) {
            // `NAME`, `CODE`: to be filled in. A pattern is no name.
            let filled_in =
                name.split(['/', '.']).any(|part| part.len() > 3 && part.chars().all(|c| c.is_ascii_uppercase()));
            if filled_in || name.contains(['*', ' ']) {
                continue;
            }
            count += 1;
            if !root().join(name).exists() {
                missing.push(format!("{}: {name}", relative(document)));
            }
        }
    }
    assert!(count > 30, "{count} names of sources: they were not found");
    assert!(missing.is_empty(), "sources that documents name and that do not exist:\n{}", missing.join("\n"));
}

/// A clone has everything that a comment, a document or a test refers to.
#[test]
fn nothing_refers_to_documents_outside_the_repository() {
    // Spelled so that this file does not contain what it looks for.
    let outside =
        [concat!("../", "shared/"), concat!("diagnosis", ".md"), concat!("design", ".md"), concat!("seed ", "00")];
    let mut texts = documents();
    for folder in ["crates", "fuzz", "scenarios", "web", "kernel", "docs"] {
        files(&root().join(folder), &[".rs", ".toml", ".js", ".snap", ".sh", ".json"], &mut texts);
    }
    for path in texts {
        let text = fs::read_to_string(&path).expect("text");
        for name in outside {
            assert!(!text.contains(name), "{} refers to '{name}', which is not in this repository", relative(&path));
        }
    }
}

#[test]
fn every_scenario_names_its_field_report_or_its_arithmetic() {
    let reports = fs::read_to_string(root().join("docs/field-reports.md")).expect("docs/field-reports.md");
    let mut scenarios = Vec::new();
    files(&root().join("scenarios"), &[".toml"], &mut scenarios);
    assert!(scenarios.len() >= 20, "the scenarios were not found");
    for path in scenarios {
        let text = fs::read_to_string(&path).expect("text");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let row = reports.lines().find(|line| line.contains(&format!("`{name}`")));
        let row = row.unwrap_or_else(|| panic!("docs/field-reports.md does not list the scenario {name}"));
        let header: String = text.lines().take_while(|line| line.starts_with('#')).collect();
        if row.contains("arithmetic") {
            assert!(header.contains("against arithmetic"), "{name} does not say what arithmetic it is held against");
            continue;
        }
        let title =
            text.strip_prefix("# Field report: \"").and_then(|rest| rest.split_once('"')).map(|(title, _)| title);
        assert!(
            title.is_some_and(|title| row.contains(title)),
            "{name} does not begin with '# Field report: \"TITLE\" (AUTHOR, DATE)', as docs/field-reports.md lists it"
        );
    }
}
