//! `thalweg serve` with fewer descriptors than viewers.

mod common;

use common::edge::{Edge, LOCAL, within};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// A viewer's connection, if it got a playlist.
fn viewer(to: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /live/demo.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
    let mut line = [0; 15];
    stream.read_exact(&mut line).ok()?;
    (line == *b"HTTP/1.1 200 OK").then_some(stream)
}

/// A worker's descriptors are its own: three hundred are enough for four hundred viewers of two workers, and the descriptors of
/// viewers who left are free for others.
#[test]
fn the_limit_of_descriptors_counts_for_each_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("workers = 2\n{LOCAL}[hls]\ntarget = '1s'\n");
    std::fs::write(folder.path().join("edge.toml"), text).expect("written");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -n 300; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_thalweg"),
        "serve",
        "edge.toml",
        "--demo",
    ]);
    command.current_dir(folder.path());
    let edge = Edge::spawn(command, folder.path());
    let to = edge.http();
    within(Duration::from_secs(20), "the stream", || viewer(&to));
    for _ in 0..2 {
        let viewers: Vec<_> = (0..400).filter_map(|_| viewer(&to)).collect();
        assert_eq!(viewers.len(), 400);
    }
    assert!(edge.said().contains(" possible=344 "), "{}", edge.said());
}
