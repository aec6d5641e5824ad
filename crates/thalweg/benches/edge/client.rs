//! A client that waits: as little as it takes to ask a server for something again and again.

use rustix::net::sockopt;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection.
pub(crate) struct Link {
    pub(crate) stream: Stream,
    /// What was read past an answer's end.
    ahead: Vec<u8>,
}

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

/// An answer; the body is empty where only its length was wanted.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) len: u64,
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Stream {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Without TLS, whatever comes.
    pub(crate) fn raw(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

impl Link {
    /// Connects; with a small receive buffer what is not read stays with the server.
    pub(crate) fn open(url: &Url, has_small_buffer: bool) -> io::Result<Self> {
        let port = url.port_or_known_default().unwrap_or(80);
        let to: SocketAddr =
            format!("{}:{port}", url.host_str().unwrap_or_default()).parse().map_err(io::Error::other)?;
        let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None)?;
        if has_small_buffer {
            sockopt::set_socket_recv_buffer_size(&socket, 4_096)?;
        }
        rustix::net::connect(&socket, &to)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let stream = if url.scheme() == "https" {
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            let tls = ClientConnection::new(config(), name).map_err(io::Error::other)?;
            Stream::Tls(Box::new(StreamOwned::new(tls, stream)))
        } else {
            Stream::Plain(stream)
        };
        Ok(Self { stream, ahead: Vec::new() })
    }

    pub(crate) fn ask(&mut self, url: &Url) -> io::Result<()> {
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let path = url.path();
        self.stream
            .send(format!("GET {path}{query} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench\r\n\r\n").as_bytes())
    }

    /// Reads what came into the buffer until `enough` says so.
    fn fill(&mut self, enough: impl Fn(&[u8]) -> Option<usize>) -> io::Result<usize> {
        let mut piece = [0; 16 << 10];
        loop {
            if let Some(end) = enough(&self.ahead) {
                return Ok(end);
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => self.ahead.extend_from_slice(&piece[..got]),
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let end = self.fill(|bytes| bytes.windows(2).position(|two| two == b"\r\n"))?;
        let line = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
        self.ahead.drain(..end + 2);
        Ok(line)
    }

    /// Reads a head.
    pub(crate) fn head(&mut self) -> io::Result<(u16, String)> {
        let end = self.fill(|bytes| bytes.windows(4).position(|four| four == b"\r\n\r\n"))?;
        let head = String::from_utf8_lossy(&self.ahead[..end]).into_owned();
        self.ahead.drain(..end + 4);
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok((status.ok_or_else(|| io::Error::other(format!("no answer: {head}")))?, head))
    }

    /// Asks, and reads the answer; its body is kept where it is wanted.
    pub(crate) fn get(&mut self, url: &Url, wanted: bool, scratch: &mut [u8]) -> io::Result<Answer> {
        self.ask(url)?;
        let (status, head) = self.head()?;
        let mut answer = Answer { status, body: Vec::new(), len: 0, head };
        if answer.field("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = u64::from_str_radix(self.line()?.trim(), 16).map_err(io::Error::other)?;
                self.body(size, wanted, &mut answer, scratch)?;
                self.line()?;
                if size == 0 {
                    return Ok(answer);
                }
            }
        }
        let len = answer.field("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
        self.body(len, wanted, &mut answer, scratch)?;
        Ok(answer)
    }

    fn body(&mut self, len: u64, wanted: bool, answer: &mut Answer, scratch: &mut [u8]) -> io::Result<()> {
        let here = self.ahead.len().min(len as usize);
        let first: Vec<u8> = self.ahead.drain(..here).collect();
        let mut left = len - here as u64;
        if wanted {
            answer.body.extend(first);
        }
        while left > 0 {
            let most = scratch.len().min(left as usize);
            let got = self.stream.read(&mut scratch[..most])?;
            if got == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if wanted {
                answer.body.extend_from_slice(&scratch[..got]);
            }
            left -= got as u64;
        }
        answer.len += len;
        Ok(())
    }

    /// Takes what was read ahead.
    pub(crate) fn take_ahead(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.ahead)
    }
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// One for all, without sessions to resume: each handshake is a whole one.
fn config() -> Arc<ClientConfig> {
    static CONFIG: std::sync::OnceLock<Arc<ClientConfig>> = std::sync::OnceLock::new();
    let make = || {
        let mut config = ClientConfig::clone(&thalweg_load::tls::config(true));
        config.resumption = rustls::client::Resumption::disabled();
        Arc::new(config)
    };
    Arc::clone(CONFIG.get_or_init(make))
}
