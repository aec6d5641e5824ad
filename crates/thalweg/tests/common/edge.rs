//! `thalweg serve` as a process of its own, and who publishes to it.

use super::thalweg;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server, gone with the test.
pub struct Edge {
    child: Child,
    /// What it printed at its start: a line for each URL.
    lines: Vec<String>,
}

/// Free ports of this host, for every listener but HTTPS.
pub const LOCAL: &str =
    "[rtmp]\nlisten = [\"127.0.0.1:0\"]\n[api]\nlisten = [\"127.0.0.1:0\"]\n[http]\nlisten = [\"127.0.0.1:0\"]\n";

impl Edge {
    /// Starts one with this configuration.
    pub fn start(folder: &Path, config: &str, args: &[&str]) -> Self {
        std::fs::write(folder.join("edge.toml"), config).expect("written");
        let args = [&["serve", "edge.toml"], args].concat();
        let mut child = thalweg(folder, &args).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = Vec::new();
        for line in stdout.lines().map_while(Result::ok) {
            lines.push(line);
            if lines.last().is_some_and(|line| line.starts_with("api ")) {
                break;
            }
        }
        let edge = Self { child, lines };
        assert!(!edge.url("api", "http").is_empty());
        edge
    }

    /// Where to `publish`, or its `api`.
    pub fn url(&self, what: &str, scheme: &str) -> String {
        self.url_of(what, scheme, "")
    }

    /// A URL by what it is for, its scheme, and how it ends.
    pub fn url_of(&self, what: &str, scheme: &str, end: &str) -> String {
        let begin = format!("{scheme}://");
        let urls = self.lines.iter().filter_map(|line| line.strip_prefix(what)).map(str::trim);
        let found = urls.into_iter().find(|url| url.starts_with(&begin) && url.ends_with(end));
        found.unwrap_or_else(|| panic!("no {what} {scheme} {end} in {:?}", self.lines)).to_owned()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as kill -9 does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A child that ends with the test.
pub struct Tied(pub Child);

impl Drop for Tied {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// FFmpeg with these words.
pub fn ffmpeg(words: &str) -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error"]).args(words.split_whitespace()).stdin(Stdio::null());
    command
}

/// Whether a program can be started; where it cannot, that is said, or is a failure in CI.
pub fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var("CI").is_err(), "{program} is not installed, and in CI nothing is skipped");
    if !found {
        eprintln!("SKIPPED: {program} is not installed");
    }
    found
}
