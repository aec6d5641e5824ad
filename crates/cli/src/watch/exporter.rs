//! Metrics over HTTP: one path, one thread, one request a connection.

use crate::failure::Failure;
use anyhow::anyhow;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a request may take to come, and an answer to go.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest head of a request.
const HEAD_MAX: usize = 8_192;

/// The latest metrics, for whoever asks.
#[derive(Debug)]
pub(crate) struct Exporter {
    metrics: Arc<Mutex<String>>,
    address: SocketAddr,
}

impl Exporter {
    /// Listens, and answers from now on.
    pub(crate) fn start(address: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind(address)
            .map_err(|error| Failure::host(anyhow!("cannot serve metrics at {address}: {error}")))?;
        let address = listener.local_addr().map_err(Failure::host)?;
        let metrics = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&metrics);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                match stream {
                    // Whoever asks too slowly, or goes away, gets nothing.
                    Ok(stream) => drop(answer(stream, &shared)),
                    // No descriptor is free, for one: others may end.
                    Err(_) => std::thread::sleep(PATIENCE),
                }
            }
        });
        Ok(Self { metrics, address })
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gives these metrics from now on.
    pub(crate) fn publish(&self, text: String) {
        *self.metrics.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
}

fn answer(mut stream: TcpStream, metrics: &Mutex<String>) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() >= HEAD_MAX {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        let mut part = [0; 1_024];
        match stream.read(&mut part)? {
            0 => return Ok(()),
            read => head.extend_from_slice(&part[..read]),
        }
    }
    let mut words = head.split(|byte| byte.is_ascii_whitespace());
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path) {
        (b"GET", b"/metrics") => ("200 OK", metrics.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        (b"GET", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
