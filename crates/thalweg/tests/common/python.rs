//! Python with packages from PyPI, as analysts have it.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Reads queries and prints each one's rows as JSON.
const ASK: &str = "import sys, json, duckdb\nfor query in json.load(sys.stdin):\n    print(json.dumps(duckdb.sql(query).fetchall()))\n";

/// Python with `packages`, in a venv that is made once; `None`, said aloud, where they cannot be had outside CI.
pub fn python(packages: &[&str]) -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("venv-{}", packages.join("-")));
    let python = venv.join("bin/python");
    let import = format!("import {}", packages.join(", "));
    let succeeds = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let works = || succeeds(Command::new(&python).args(["-c", &import]));
    if works() {
        return Some(python);
    }
    let made = succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    if made && succeeds(Command::new(&python).args(pip).args(packages)) && works() {
        return Some(python);
    }
    let names = packages.join(", ");
    assert!(std::env::var("CI").is_err(), "{names} cannot be installed, and in CI nothing is skipped");
    eprintln!("SKIPPED: {names} cannot be installed (python3 -m venv, pip install): nothing was read by them");
    None
}

/// What DuckDB answers in `folder`: for each query its rows.
pub fn ask(python: &Path, folder: &Path, queries: &[String]) -> Vec<Vec<Vec<Value>>> {
    let input = folder.join("queries.json");
    fs::write(&input, serde_json::to_string(queries).expect("JSON")).expect("written");
    let output = Command::new(python)
        .args(["-c", ASK])
        .current_dir(folder)
        .stdin(fs::File::open(&input).expect("open"))
        .output()
        .expect("python starts");
    let (out, err) = super::texts(&output);
    assert!(output.status.success(), "{err}");
    out.lines().map(|line| serde_json::from_str(line).expect("rows")).collect()
}

/// A number of an answer.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}
