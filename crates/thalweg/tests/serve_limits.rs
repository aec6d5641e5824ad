//! `thalweg serve` with fewer descriptors than viewers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Ends the server also where something panics.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status(to: SocketAddr) -> Option<(String, TcpStream)> {
    let mut stream = TcpStream::connect(to).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /live/demo.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
    let mut line = [0; 15];
    stream.read_exact(&mut line).ok()?;
    Some((String::from_utf8_lossy(&line).into_owned(), stream))
}

/// A worker's descriptors are its own: three hundred are enough for four hundred viewers of two workers, and the descriptors of
/// viewers who left are free for others.
#[test]
fn the_limit_of_descriptors_counts_for_each_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("edge.toml");
    let text = "workers = 2\nrtmp.listen = ['127.0.0.1:0']\nhttp.listen = ['127.0.0.1:0']\napi.listen = ['127.0.0.1:0']\n[hls]\ntarget = '1s'\n";
    std::fs::write(&config, text).expect("written");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 300; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_thalweg"), "serve", "--demo"]);
    let child = command.arg(&config).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started");
    let mut server = Server(child);
    let mut lines = BufReader::new(server.0.stdout.take().expect("a pipe")).lines();
    let to: SocketAddr = loop {
        let line = lines.next().expect("a line").expect("read");
        if let Some((_, url)) = line.split_once("http://").filter(|_| line.starts_with("play")) {
            break url.split('/').next().expect("a host").parse().expect("an address");
        }
    };
    let begun = Instant::now();
    while status(to).is_none_or(|(line, _)| line != "HTTP/1.1 200 OK") {
        assert!(begun.elapsed() < Duration::from_secs(20), "there is no stream");
        sleep(Duration::from_millis(50));
    }
    for _ in 0..2 {
        let viewers: Vec<_> = (0..400).filter_map(|_| status(to)).collect();
        assert!(viewers.len() == 400 && viewers.iter().all(|(line, _)| line == "HTTP/1.1 200 OK"), "{}", viewers.len());
    }
    drop(lines);
    server.0.kill().expect("ended");
    let mut notes = String::new();
    server.0.stderr.take().expect("a pipe").read_to_string(&mut notes).expect("read");
    assert!(notes.contains("leaves room for 344"), "{notes}");
}
