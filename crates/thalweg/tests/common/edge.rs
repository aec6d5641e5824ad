//! `thalweg serve` as a process of its own, and who publishes to it.

use super::thalweg;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server, gone with the test.
pub struct Edge {
    child: Child,
    /// What it printed at its start: a line for each URL.
    lines: Vec<String>,
    /// Where its standard error goes.
    log: PathBuf,
}

/// Free ports of this host, for every listener but HTTPS.
pub const LOCAL: &str =
    "[rtmp]\nlisten = [\"127.0.0.1:0\"]\n[api]\nlisten = [\"127.0.0.1:0\"]\n[http]\nlisten = [\"127.0.0.1:0\"]\n";

impl Edge {
    /// Starts one with this configuration.
    pub fn start(folder: &Path, config: &str, args: &[&str]) -> Self {
        fs::write(folder.join("edge.toml"), config).expect("written");
        Self::spawn(thalweg(folder, &[&["serve", "edge.toml"], args].concat()), folder)
    }

    /// Starts one by a command; its standard error goes to `log` in `folder`.
    pub fn spawn(mut command: Command, folder: &Path) -> Self {
        let log = folder.join("log");
        command.stdout(Stdio::piped()).stderr(fs::File::create(&log).expect("a file"));
        let mut child = command.spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut lines = Vec::new();
        for line in stdout.lines().map_while(Result::ok) {
            lines.push(line);
            if lines.last().is_some_and(|line| line.starts_with("api ")) {
                break;
            }
        }
        let edge = Self { child, lines, log };
        assert!(edge.lines.last().is_some_and(|line| line.starts_with("api ")), "{}", edge.said());
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

    /// Where it listens for HTTP: address and port.
    pub fn http(&self) -> String {
        address(&self.url("play", "http")).to_owned()
    }

    /// Its answer to a request over a connection of its own: status, and all of it as text.
    pub fn get(&self, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.http()).expect("connected");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("received");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.get(9..12).and_then(|digits| digits.parse().ok());
        (status.unwrap_or_else(|| panic!("no status: {text}")), text)
    }

    /// What it said on standard error so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).expect("read")
    }

    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("sent");
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("ended")
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

/// The address and port in a URL.
pub fn address(url: &str) -> &str {
    url.split('/').nth(2).expect("an address")
}

/// Looks until there is something, for a minute.
pub fn eventually<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(Duration::from_secs(60), what, look)
}

/// Looks until there is something, for so long.
pub fn within<T>(patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < patience, "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(50));
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
