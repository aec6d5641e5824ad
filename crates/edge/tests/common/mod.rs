//! A server of its own for each test, a publisher, and a client that reads what HTTP says.
#![allow(dead_code, unreachable_pub)]

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thalweg_edge::log::Log;
use thalweg_edge::server::Server;
use thalweg_media::rtmp::{Publisher, PublisherEvent};
use thalweg_media::{AvcConfig, Tag, TagKind};
use thalweg_model::{FrontConfig, LogConfig, ServeConfig, TlsConfig};

/// Pictures a second, and a keyframe each second.
pub const FPS: u32 = 25;

/// A port that refuses connections, and the socket that keeps it: bound, it is nobody else's, and it never listens.
pub fn nobody_listens() -> (OwnedFd, SocketAddr) {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).expect("bound");
    let address = getsockname(&socket).expect("an address").try_into().expect("of IPv4");
    (socket, address)
}

/// A configuration with free ports of this host.
pub fn local(text: &str) -> ServeConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut config = thalweg_config::parse_serve("test", text).expect("a configuration");
    config.workers = config.workers.or(Some(2));
    config.rtmp = vec![any];
    config.api.listen = vec![any];
    config.http.listen = vec![any];
    config
}

/// Adds a listener with TLS, whose certificate is in `folder`, and returned as DER.
pub fn with_tls(config: &mut ServeConfig, folder: &Path) -> Vec<u8> {
    let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.join(name));
    let der = make_certificate(&certificate, &key);
    let front = FrontConfig { listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))], ..config.http.clone() };
    config.https = Some(TlsConfig { front, certificate, key });
    der
}

/// Writes another certificate for `edge.test` and its key; returns it as DER.
pub fn make_certificate(certificate: &Path, key: &Path) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(["edge.test".to_owned()]).expect("a certificate");
    std::fs::write(certificate, made.cert.pem()).expect("written");
    std::fs::write(key, made.signing_key.serialize_pem()).expect("written");
    made.cert.der().to_vec()
}

/// A server of that configuration.
pub fn start(config: ServeConfig, log: Arc<Log>) -> Server {
    let server = Server::start_logged(config, log).expect("started");
    assert!(server.refused.is_empty(), "{:?}", server.refused);
    server
}

/// A server on free ports of this host, set up like this besides.
pub fn serve(text: &str) -> Server {
    start(local(text), Arc::new(Log::silent()))
}

/// As [`serve`], and what it says.
pub fn serve_logged(text: &str, config: LogConfig) -> (Server, Seen) {
    let seen = Seen::default();
    let log = Log::new(config, Box::new(seen.clone())).expect("a thread");
    (start(local(text), Arc::new(log)), seen)
}

/// What was said.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<Vec<u8>>>);

impl Seen {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("whole").clone()).expect("text")
    }
}

impl Write for Seen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("whole").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Looks until there is something, for twenty seconds.
pub fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A publisher that has been let in.
pub struct Encoder {
    socket: TcpStream,
    session: Publisher,
}

impl Encoder {
    /// Publishes `name` in `live`; or why not.
    pub fn publish(to: SocketAddr, name: &str) -> Result<Self, String> {
        Self::publish_in(to, "live", name)
    }

    /// Publishes `name` in `app`; or why not.
    pub fn publish_in(to: SocketAddr, app: &str, name: &str) -> Result<Self, String> {
        let mut encoder = Self::publish_bare(to, app, name)?;
        encoder.configure();
        Ok(encoder)
    }

    /// As [`Encoder::publish_in`], and sends nothing of the stream yet.
    pub fn publish_bare(to: SocketAddr, app: &str, name: &str) -> Result<Self, String> {
        let (encoder, answer) = Self::ask(to, app, name);
        answer.map(|()| encoder)
    }

    /// Asks to publish `name` in `app`, and stays connected whatever the answer is.
    pub fn ask(to: SocketAddr, app: &str, name: &str) -> (Self, Result<(), String>) {
        let mut encoder =
            Self { socket: TcpStream::connect(to).expect("connected"), session: Publisher::new([7; 1536], app, name) };
        encoder.socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
        let mut buffer = [0; 4096];
        loop {
            encoder.flush();
            let got = match encoder.socket.read(&mut buffer) {
                Ok(0) => return (encoder, Err("closed".to_owned())),
                Ok(got) => got,
                Err(error) => return (encoder, Err(error.to_string())),
            };
            let mut input = &buffer[..got];
            while let Some(event) = encoder.session.handle(&mut input).expect("RTMP") {
                match event {
                    PublisherEvent::Published => return (encoder, Ok(())),
                    PublisherEvent::Refused { code, .. } => return (encoder, Err(code)),
                    _ => {}
                }
            }
        }
    }

    fn flush(&mut self) {
        self.socket.write_all(self.session.output()).expect("sent");
        self.session.sent(self.session.output().len());
    }

    fn configure(&mut self) {
        let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
        self.send(TagKind::Video, 0, &[b"\x17\0\0\0\0", &avc.record[..]].concat());
        self.send(TagKind::Audio, 0, b"\xaf\0\x12\x10");
    }

    /// Sends a tag.
    pub fn send(&mut self, kind: TagKind, timestamp_ms: u32, payload: &[u8]) {
        self.session.tag(&Tag { kind, timestamp_ms, payload: payload.to_vec() });
        self.flush();
    }

    /// Sends pictures `from` to before `to`, each with its number in it and `size` bytes long, and a frame of sound with each.
    pub fn pictures(&mut self, from: u32, to: u32, size: usize) {
        for number in from..to {
            let is_key = number % FPS == 0;
            let timestamp_ms = number * 1_000 / FPS;
            let mut payload = vec![if is_key { 0x17 } else { 0x27 }, 1, 0, 0, 0];
            payload.extend((size as u32).to_be_bytes());
            payload.push(if is_key { 0x65 } else { 0x41 });
            payload.extend(format!("#{number:08}#").bytes());
            payload.resize(9 + size, 0xab);
            self.send(TagKind::Video, timestamp_ms, &payload);
            let sound = [b"\xaf\x01", format!("s{number:08}s").as_bytes()].concat();
            self.send(TagKind::Audio, timestamp_ms, &sound);
        }
    }

    /// Waits for the server's reason to end the stream, and for the end of the connection.
    pub fn reason(mut self) -> String {
        let (mut buffer, mut reason) = ([0; 4096], String::new());
        loop {
            match self.socket.read(&mut buffer).expect("an answer") {
                0 => return reason,
                got => {
                    let mut input = &buffer[..got];
                    while let Some(event) = self.session.handle(&mut input).expect("RTMP") {
                        if let PublisherEvent::Refused { description, .. } = event {
                            reason = description;
                        }
                    }
                }
            }
        }
    }

    /// Ends the stream as an encoder does.
    pub fn end(mut self) {
        self.session.end();
        self.flush();
    }
}

/// A connection whose handshake is done.
pub fn shaken(to: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(to).expect("connected");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    socket.write_all(&[&[3][..], &[0; 1536]].concat()).expect("sent");
    let mut answer = [0; 1 + 2 * 1536];
    socket.read_exact(&mut answer).expect("an answer");
    socket.write_all(&answer[1..1537]).expect("sent");
    socket
}

/// A message of RTMP in a message stream, in chunks of 128 bytes (§5.3.1).
pub fn message(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![3, 0, 0, 0];
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend([kind, stream, 0, 0, 0]);
    for (at, chunk) in payload.chunks(128).enumerate() {
        if at > 0 {
            bytes.push(0xc3);
        }
        bytes.extend(chunk);
    }
    bytes
}

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

/// A connection that stays for several requests.
pub struct Client {
    pub socket: TcpStream,
    pub held: Vec<u8>,
    /// Of a chunked body: what was not decoded yet.
    chunks: Option<Vec<u8>>,
    /// The last chunk of a body has come.
    pub is_ended: bool,
}

impl Client {
    pub fn connect(to: SocketAddr) -> Self {
        let socket = TcpStream::connect(to).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        Self { socket, held: Vec::new(), chunks: None, is_ended: false }
    }

    pub fn write(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).expect("sent");
    }

    fn more(&mut self) -> bool {
        let mut buffer = [0; 65_536];
        let got = self.socket.read(&mut buffer).expect("received");
        match &mut self.chunks {
            Some(chunks) => {
                chunks.extend_from_slice(&buffer[..got]);
                self.decode();
            }
            None => self.held.extend_from_slice(&buffer[..got]),
        }
        got > 0
    }

    /// Takes the chunks that are whole.
    fn decode(&mut self) {
        let Some(chunks) = &mut self.chunks else { return };
        while let Some(line) = chunks.windows(2).position(|two| two == b"\r\n") {
            let digits = std::str::from_utf8(&chunks[..line]).expect("digits");
            let len = usize::from_str_radix(digits, 16).expect("a chunk's size");
            let end = line + 2 + len;
            if chunks.len() < end + 2 {
                return;
            }
            assert_eq!(&chunks[end..end + 2], b"\r\n", "a chunk's end");
            self.held.extend_from_slice(&chunks[line + 2..end]);
            chunks.drain(..end + 2);
            assert!(!self.is_ended, "a chunk after the last one");
            self.is_ended = len == 0;
        }
    }

    /// The head of the next response.
    pub fn head(&mut self) -> Response {
        let end = loop {
            if let Some(at) = self.held.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.more(), "the connection ended in {:?}", String::from_utf8_lossy(&self.held));
        };
        let head = String::from_utf8(self.held.drain(..end).collect()).expect("text");
        let status = head[9..12].parse().expect("a status");
        let response = Response { status, head, body: Vec::new() };
        if response.field("Transfer-Encoding") == Some("chunked") {
            self.chunks = Some(std::mem::take(&mut self.held));
            self.decode();
        }
        response
    }

    /// The next response whole; `bodyless` for one to HEAD.
    pub fn response(&mut self, bodyless: bool) -> Response {
        let mut response = self.head();
        let len = response.field("Content-Length").map_or(0, |len| len.parse().expect("a length"));
        let len = if bodyless || response.status == 304 { 0 } else { len };
        while self.held.len() < len {
            assert!(self.more(), "the body ended early");
        }
        response.body = self.held.drain(..len).collect();
        response
    }

    /// Whatever comes until the other end closes, or `enough` says so.
    pub fn until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        while !enough(&self.held) && self.more() {}
        std::mem::take(&mut self.held)
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.get_with(path, "")
    }

    pub fn get_with(&mut self, path: &str, lines: &str) -> Response {
        self.write(&format!("GET {path} HTTP/1.1\r\nHost: a\r\nUser-Agent: test\r\n{lines}\r\n"));
        self.response(false)
    }
}

/// The numbers of the pictures (`#`) or frames of sound (`s`) in some bytes, in order.
pub fn numbers(bytes: &[u8], mark: u8) -> Vec<u32> {
    let found =
        bytes.windows(10).filter(|ten| ten[0] == mark && ten[9] == mark && ten[1..9].iter().all(u8::is_ascii_digit));
    found.map(|ten| std::str::from_utf8(&ten[1..9]).expect("digits").parse().expect("a number")).collect()
}

/// A client of TLS.
pub struct TlsClient(StreamOwned<ClientConnection, TcpStream>);

impl TlsClient {
    /// Connects where one of these certificates (DER) is shown.
    pub fn connect(to: SocketAddr, trusted: &[Vec<u8>]) -> Self {
        Self::over(TcpStream::connect(to).expect("connected"), trusted)
    }

    /// Over a connection whose first bytes were sent.
    pub fn over(socket: TcpStream, trusted: &[Vec<u8>]) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        trusted.iter().for_each(|der| roots.add(der.clone().into()).expect("a certificate"));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = rustls::pki_types::ServerName::try_from("edge.test").expect("a name");
        let tls = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut stream = StreamOwned::new(tls, socket);
        stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        Self(stream)
    }

    /// The server's certificate, DER.
    pub fn certificate(&self) -> Vec<u8> {
        self.0.conn.peer_certificates().expect("certificates")[0].to_vec()
    }

    /// The head of the answer.
    pub fn get(&mut self, path: &str) -> String {
        write!(self.0, "GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
        let mut buffer = [0; 4096];
        let got = self.0.read(&mut buffer).expect("received");
        String::from_utf8_lossy(&buffer[..got]).into_owned()
    }
}
