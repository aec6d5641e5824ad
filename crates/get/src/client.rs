//! Connections: TCP, proxies, TLS, HTTP/1.1 and HTTP/2, and the requests on them.

use crate::error::GetError;
use crate::options::Options;
use crate::proxy::{Proxy, ProxySettings, basic};
use crate::trust::Trust;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::cell::OnceCell;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long an address has for the TCP handshake: SYNs go out after 0, 1, 3 and 7 s (`TCP_TIMEOUT_INIT`, doubled each time).
const CONNECT: Duration = Duration::from_secs(10);
/// When the next address is tried beside the first. Source: RFC 8305 §5, Connection Attempt Delay.
const NEXT_ADDRESS: Duration = Duration::from_millis(250);
/// The most that is read at once; under a rate limit at least this many reads a second, but no less than hyper's minimum.
const READ_BYTES: usize = 512 << 10;
const LIMITED_READS: u64 = 50;
const MIN_READ_BYTES: usize = 8 << 10;
/// The longest header of a proxy's answer.
const PROXY_HEADER: usize = 16 << 10;
/// Flow-control windows of HTTP/2 for a host whose limit is not known, and the least.
const HTTP2_WINDOW: u32 = 4 << 20;
/// The largest flow-control window: a bound for memory.
const HTTP2_WINDOW_MOST: u32 = 64 << 20;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server could not be reached.
    Unreachable(String),
    /// The connection ended; another one may do.
    Broken(String),
    /// No other try makes sense.
    Fatal(GetError),
}

/// What connections and requests are made with.
pub(crate) struct Client {
    tls: OnceCell<Arc<ClientConfig>>,
    ca: Option<PathBuf>,
    http1: bool,
    proxies: ProxySettings,
    headers: Vec<(HeaderName, HeaderValue)>,
    http2_window: u32,
    read_bytes: usize,
    /// How long a name's look-up, TLS, a proxy or a response's header may take.
    patience: Duration,
}

impl Client {
    /// A client that trusts this host's certificates and those of `options.ca`.
    ///
    /// # Errors
    /// When that file cannot be read or has none.
    pub(crate) fn new(options: &Options) -> Result<Self, GetError> {
        let limited = options.limit.map(|limit| limit.bytes_per_second() / LIMITED_READS);
        let client = Self {
            tls: OnceCell::new(),
            ca: options.ca.clone(),
            http1: options.http1,
            proxies: options.proxies.clone(),
            headers: options.headers.clone(),
            http2_window: http2_window(),
            patience: options.stall,
            read_bytes: limited.map_or(READ_BYTES, |bytes| (bytes as usize).clamp(MIN_READ_BYTES, READ_BYTES)),
        };
        if client.ca.is_some() {
            client.tls()?;
        }
        Ok(client)
    }

    /// What TLS connections begin with; reading the host's certificates takes time, so they are read when they are needed.
    fn tls(&self) -> Result<Arc<ClientConfig>, GetError> {
        if let Some(tls) = self.tls.get() {
            return Ok(Arc::clone(tls));
        }
        let mut roots = rustls::RootCertStore::empty();
        let mut pinned = Vec::new();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if let Some(path) = &self.ca {
            let unreadable = |why: String| GetError::Certificates { path: path.clone(), why };
            let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let found = found.map_err(|error| unreadable(error.to_string()))?;
            pinned.clone_from(&found);
            if roots.add_parsable_certificates(found).0 == 0 {
                return Err(unreadable("it has no certificate".to_owned()));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("invariant: the provider has what the default versions need");
        let mut tls = if pinned.is_empty() {
            builder.with_root_certificates(roots).with_no_client_auth()
        } else {
            let trust = Trust::new(roots, pinned, provider);
            let trust = trust.map_err(|error| GetError::Certificates {
                path: self.ca.clone().unwrap_or_default(),
                why: error.to_string(),
            })?;
            builder.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth()
        };
        let protocols: &[&[u8]] = if self.http1 { &[b"http/1.1"] } else { &[b"h2", b"http/1.1"] };
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(Arc::clone(self.tls.get_or_init(|| Arc::new(tls))))
    }

    /// Connects to a URL's host.
    pub(crate) async fn connect(&self, url: &Url) -> Result<Connection, RequestError> {
        let proxy = self.proxies.of(url).map_err(RequestError::Fatal)?;
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or(80);
        let mut stream = match &proxy {
            Some(proxy) => reach(&proxy.host, proxy.port, "the proxy ", self.patience).await?,
            None => reach(host, port, "", self.patience).await?,
        };
        let unusable = |error: io::Error| RequestError::Broken(error.to_string());
        stream.set_nodelay(true).map_err(unusable)?;
        let socket = Rc::new(stream.as_fd().try_clone_to_owned().map_err(unusable)?);
        let proxied = proxy.is_some();
        if url.scheme() != "https" {
            let sender = self.http1_over(stream).await?;
            return Ok(Connection {
                sender,
                socket,
                protocol: "HTTP/1.1",
                proxy,
                absolute: proxied,
                patience: self.patience,
            });
        }
        if let Some(proxy) = &proxy {
            let answered = timeout(self.patience, tunnel(&mut stream, proxy, host, port)).await;
            answered.unwrap_or_else(|_| Err(RequestError::Unreachable("the proxy does not answer".to_owned())))?;
        }
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| RequestError::Unreachable(error.to_string()))?;
        let connector = tokio_rustls::TlsConnector::from(self.tls().map_err(RequestError::Fatal)?);
        let stream = match timeout(self.patience, connector.connect(name, stream)).await {
            Err(_) => return Err(RequestError::Broken("the TLS handshake takes too long".to_owned())),
            // rustls found fault with what the peer said: another try gives the same.
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(RequestError::Fatal(GetError::tls(host, &error)));
            }
            Ok(Err(error)) => return Err(RequestError::Broken(format!("the TLS handshake failed: {error}"))),
            Ok(Ok(stream)) => stream,
        };
        let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let (sender, protocol) = if is_two {
            (self.http2_over(stream).await?, "HTTP/2")
        } else {
            (self.http1_over(stream).await?, "HTTP/1.1")
        };
        Ok(Connection { sender, socket, protocol, proxy, absolute: false, patience: self.patience })
    }

    async fn http1_over<S>(&self, stream: S) -> Result<Sender, RequestError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder = http1::Builder::new();
        let handshake = builder.max_buf_size(self.read_bytes).handshake(TokioIo::new(stream));
        let late = |_| RequestError::Broken("the connection does not begin".to_owned());
        let (sender, connection) = timeout(self.patience, handshake).await.map_err(late)?.map_err(broken)?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Sender::One(sender))
    }

    async fn http2_over<S>(&self, stream: S) -> Result<Sender, RequestError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(self.http2_window)
            .initial_connection_window_size(self.http2_window)
            .handshake(TokioIo::new(stream));
        let late = |_| RequestError::Broken("the HTTP/2 handshake takes too long".to_owned());
        let (sender, connection) = timeout(self.patience, handshake).await.map_err(late)?.map_err(broken)?;
        // Its end is seen by the requests on it.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Sender::Two(sender))
    }

    /// A request for `url`; `secret` says whether it may have the credentials of the URL and the user's own fields.
    pub(crate) fn request(
        &self,
        url: &Url,
        connection: &Connection,
        secret: Option<&Url>,
        fields: &[(HeaderName, String)],
    ) -> Result<Request<Empty<Bytes>>, GetError> {
        let mut bare = url.clone();
        // What the URL's scheme allows to be there can be taken away.
        let _ = (bare.set_username(""), bare.set_password(None));
        bare.set_fragment(None);
        let own = secret.filter(|from| from.origin() == url.origin());
        let has = |field: HeaderName| own.is_some() && self.headers.iter().any(|(name, _)| *name == field);
        let is_two = matches!(connection.sender, Sender::Two(_));
        let authority = &bare[url::Position::BeforeHost..url::Position::BeforePath];
        let wrong = |why: String| GetError::Url { url: shown(url), why };
        let target = match self.headers.iter().find(|(name, _)| is_two && own.is_some() && name == HOST) {
            // HTTP/2 has the host in its place (RFC 9113 section 8.3.1).
            Some((_, host)) => {
                let host = host.to_str().map_err(|_| wrong("the host of --header is no text".to_owned()))?;
                format!("{}://{host}{}", bare.scheme(), &bare[url::Position::BeforePath..])
            }
            None if is_two || connection.absolute => bare.to_string(),
            None => bare[url::Position::BeforePath..].to_owned(),
        };
        let mut request = Request::get(target);
        if !is_two && !has(HOST) {
            request = request.header(HOST, authority);
        }
        request = request
            .header(USER_AGENT, concat!("thalweg/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT, "*/*")
            .header(ACCEPT_ENCODING, "identity");
        for (name, value) in fields {
            request = request.header(name, value);
        }
        if let Some(credentials) = basic(url).or_else(|| own.and_then(basic))
            && !has(AUTHORIZATION)
        {
            request = request.header(AUTHORIZATION, credentials);
        }
        if own.is_some() {
            for (name, value) in self.headers.iter().filter(|(name, _)| !is_two || name != HOST) {
                request = request.header(name, value);
            }
        }
        if let Some(authorization) = connection.proxy.as_ref().and_then(|proxy| proxy.authorization.as_ref())
            && connection.absolute
        {
            request = request.header("proxy-authorization", authorization);
        }
        request.body(Empty::new()).map_err(|error| wrong(error.to_string()))
    }
}

/// A connection that can have requests.
pub(crate) struct Connection {
    sender: Sender,
    /// The socket, to ask the kernel about it.
    pub(crate) socket: Rc<OwnedFd>,
    /// `HTTP/1.1` or `HTTP/2`.
    pub(crate) protocol: &'static str,
    /// The proxy it is to.
    pub(crate) proxy: Option<Proxy>,
    /// Requests name the whole URL, as proxies want it.
    absolute: bool,
    /// How long a response's header may take.
    patience: Duration,
}

enum Sender {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    /// Sends a request and waits for the header of its response.
    pub(crate) async fn send(&mut self, request: Request<Empty<Bytes>>) -> Result<Response<Incoming>, RequestError> {
        let answer = async {
            match &mut self.sender {
                Sender::One(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
                Sender::Two(sender) => {
                    sender.ready().await?;
                    sender.send_request(request).await
                }
            }
        };
        match timeout(self.patience, answer).await {
            Ok(answer) => answer.map_err(broken),
            Err(_) => {
                Err(RequestError::Broken(format!("the server did not answer for {:.1} s", self.patience.as_secs_f64())))
            }
        }
    }

    /// Whether a request whose body is not read to its end leaves it usable.
    pub(crate) const fn has_streams(&self) -> bool {
        matches!(self.sender, Sender::Two(_))
    }

    /// Whether the other end has closed it.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::One(sender) => sender.is_closed(),
            Sender::Two(sender) => sender.is_closed(),
        }
    }
}

/// A header field of the user's own.
pub type Header = (HeaderName, HeaderValue);

/// Reads `NAME: VALUE`; `None` if it is no field, or one that the download itself sets.
pub fn header(text: &str) -> Result<Header, HeaderRefused> {
    let (name, value) = text.split_once(':').ok_or(HeaderRefused::Malformed)?;
    let name: HeaderName = name.trim().parse().map_err(|_| HeaderRefused::Malformed)?;
    let mut value: HeaderValue = value.trim().parse().map_err(|_| HeaderRefused::Malformed)?;
    // So that nothing that prints headers shows it.
    value.set_sensitive(true);
    let own = ["range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "connection"];
    match own.into_iter().find(|own| *own == name.as_str()) {
        Some(own) => Err(HeaderRefused::Own(own)),
        None => Ok((name, value)),
    }
}

/// Why a header field cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRefused {
    /// It is none.
    Malformed,
    /// The download sets it itself.
    Own(&'static str),
}

/// A URL as it may be shown: without credentials, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = (url.set_username(""), url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// hyper's error with its causes.
pub(crate) fn reason(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn broken(error: hyper::Error) -> RequestError {
    RequestError::Broken(reason(&error))
}

/// HTTP/2's own windows are what TCP's receive buffer may grow to, so that they never limit before it does.
fn http2_window() -> u32 {
    let limits = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap_or_default();
    let most = limits.split_whitespace().nth(2).and_then(|text| text.parse::<u32>().ok());
    most.unwrap_or(HTTP2_WINDOW).clamp(HTTP2_WINDOW, HTTP2_WINDOW_MOST)
}

/// A TCP connection to the first of a host's addresses that takes one. Source: RFC 8305 §5.
async fn reach(host: &str, port: u16, called: &str, patience: Duration) -> Result<TcpStream, RequestError> {
    let failed =
        |why: String| RequestError::Unreachable(format!("cannot connect to {called}{host} port {port}: {why}"));
    let found = timeout(patience, tokio::net::lookup_host((host, port))).await;
    let found = found.map_err(|_| failed("its name is not resolved".to_owned()))?;
    let found: Vec<SocketAddr> = found.map_err(|error| failed(error.to_string()))?.collect();
    // The resolver's order, with families taking turns.
    let is_first = |address: &&SocketAddr| address.is_ipv6() == found[0].is_ipv6();
    let (mut one, mut other) = (found.iter().filter(is_first), found.iter().filter(|address| !is_first(address)));
    let mut addresses = Vec::new();
    while addresses.len() < found.len() {
        addresses.extend(one.next());
        addresses.extend(other.next());
    }
    let mut tries = tokio::task::JoinSet::new();
    let mut addresses = addresses.into_iter().copied();
    let mut why = "it has no address".to_owned();
    loop {
        let next = addresses.next();
        let is_last = next.is_none();
        if let Some(address) = next {
            tries.spawn(async move { timeout(CONNECT, TcpStream::connect(address)).await });
        }
        let patience = if is_last { CONNECT * 2 } else { NEXT_ADDRESS };
        match timeout(patience, tries.join_next()).await {
            Ok(Some(Ok(Ok(Ok(stream))))) => return Ok(stream),
            Ok(Some(Ok(Ok(Err(error))))) => why = error.to_string(),
            Ok(Some(_)) => why = "it does not answer".to_owned(),
            Ok(None) if is_last => return Err(failed(why)),
            _ => {}
        }
    }
}

/// Asks a proxy for a connection to the host. Source: RFC 9110 §9.3.6.
async fn tunnel(stream: &mut TcpStream, proxy: &Proxy, host: &str, port: u16) -> Result<(), RequestError> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let authorization =
        proxy.authorization.as_ref().map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{authorization}\r\n");
    let failed = |why: String| RequestError::Unreachable(format!("the proxy gives no connection: {why}"));
    stream.write_all(request.as_bytes()).await.map_err(|error| failed(error.to_string()))?;
    // The other end says nothing until TLS begins, so nothing after the header can be read along.
    let mut header = Vec::new();
    while !header.ends_with(b"\r\n\r\n") {
        if header.len() >= PROXY_HEADER
            || stream.read_buf(&mut header).await.map_err(|error| failed(error.to_string()))? == 0
        {
            return Err(failed("it does not speak HTTP".to_owned()));
        }
    }
    let status = header.split(|byte| *byte == b' ').nth(1).and_then(|code| std::str::from_utf8(code).ok());
    match status.and_then(|code| code.parse::<u16>().ok()) {
        Some(200..=299) => Ok(()),
        Some(status @ (403 | 407)) => Err(RequestError::Fatal(GetError::Refused {
            url: format!("the proxy {}:{}", proxy.host, proxy.port),
            status,
        })),
        Some(status) => Err(failed(format!("status {status}"))),
        None => Err(failed("it does not speak HTTP".to_owned())),
    }
}
