//! Heads of HTTP/1 messages: what was asked for, of whom, and the status of the answer.
//!
//! Source: RFC 9112 §2 to §6; RFC 9110 §7.1 and §9.1.

use super::text;

/// Characters kept of a target and of a method; the longest registered method has 17.
const TARGET_MAX: usize = 100;
const METHOD_MAX: usize = 20;
/// A domain name has at most 253 (RFC 1035 §2.3.4), a port adds six.
const HOST_MAX: usize = 260;
/// Heads read in one segment.
const HEADS_MAX: usize = 16;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// What it asks for, at most 100 characters: the path, or host and port for CONNECT. Never a query, path parameters, a fragment or user
    /// information: these may hold secrets.
    pub target: String,
    /// The Host field, or the host of an absolute target.
    pub host: Option<String>,
}

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Its status code.
    pub status: u16,
}

impl Response {
    /// The status of a server that goes on in another protocol. Source: RFC 9110 §15.2.2.
    pub const SWITCHING_PROTOCOLS: u16 = 101;

    /// Whether it answers its request; an interim response comes before (RFC 9110 §15.2), except one that switches protocols.
    pub const fn is_final(&self) -> bool {
        self.status >= 200 || self.status == Self::SWITCHING_PROTOCOLS
    }
}

/// What a head says of the body that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Length(usize),
    /// It is chunked, or ends with the connection, or the head is cut.
    Unknown,
}

/// Whether the first word may be a method or the version of a response; a word that the capture cut may be.
pub(super) fn may_begin(bytes: &[u8]) -> bool {
    let end = bytes.iter().take(METHOD_MAX + 1).position(|byte| !byte.is_ascii_uppercase());
    match end {
        Some(end) => bytes[end] == b' ' || bytes.starts_with(b"HTTP/1."),
        None => bytes.len() <= METHOD_MAX,
    }
}

/// The requests that `bytes` begin with.
pub(super) fn requests(bytes: &[u8]) -> Vec<Request> {
    // Without a length a request has no body (RFC 9112 §6.3).
    each(bytes, request, |_, head| body(head).unwrap_or(Body::Length(0)))
}

/// The responses that `bytes` begin with.
pub(super) fn responses(bytes: &[u8]) -> Vec<Response> {
    let length = |response: &Response, head: &[u8]| {
        let is_empty = response.status < 200 || matches!(response.status, 204 | 304);
        if is_empty { Body::Length(0) } else { body(head).unwrap_or(Body::Unknown) }
    };
    each(bytes, |head| status(head).map(|status| Response { status }), length)
}

/// Reads head after head, as long as each one's end and that of its body are in `bytes`.
fn each<T>(mut bytes: &[u8], read: impl Fn(&[u8]) -> Option<T>, body_of: impl Fn(&T, &[u8]) -> Body) -> Vec<T> {
    let mut found = Vec::new();
    while found.len() < HEADS_MAX {
        let end = head_end(bytes);
        let head = &bytes[..end.unwrap_or(bytes.len())];
        let Some(message) = read(head) else { break };
        let next = end.filter(|&end| end < bytes.len()).and_then(|end| match body_of(&message, head) {
            Body::Length(length) => end.checked_add(length),
            Body::Unknown => None,
        });
        found.push(message);
        match next.and_then(|next| bytes.get(next..)) {
            Some(rest) if !rest.is_empty() => bytes = rest,
            _ => break,
        }
    }
    found
}

/// Where the empty line behind a head ends.
fn head_end(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(line) = bytes.get(from..)?.iter().position(|&byte| byte == b'\n') {
        if matches!(&bytes[from..from + line], b"" | b"\r") {
            return Some(from + line + 1);
        }
        from += line + 1;
    }
    None
}

/// The request in a head, of which the end may not be captured.
fn request(head: &[u8]) -> Option<Request> {
    let line_end = head.iter().position(|&byte| byte == b'\n');
    let line = head[..line_end.unwrap_or(head.len())].trim_ascii_end();
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let is_token = !method.is_empty() && method.len() <= METHOD_MAX && method.iter().all(u8::is_ascii_uppercase);
    let is_whole = words.next().is_some_and(|version| version.starts_with(b"HTTP/1."));
    // A line that the capture cut is known by its beginning only.
    let is_cut = line_end.is_none() && is_common(method) && target.first() == Some(&b'/');
    if !is_token || !(is_whole || is_cut) {
        return None;
    }
    let (of_target, target) = parts(method, target);
    let host = field(head, "host").map(<[u8]>::to_vec).or(of_target).filter(|host| !host.is_empty());
    Some(Request {
        method: text(method, METHOD_MAX),
        target: text(target, TARGET_MAX),
        host: host.map(|host| text(&host, HOST_MAX)),
    })
}

fn is_common(method: &[u8]) -> bool {
    matches!(method, b"GET" | b"HEAD" | b"POST" | b"PUT" | b"DELETE" | b"OPTIONS" | b"PATCH")
}

/// The host of a target, where it has one, and its path without what may hold secrets.
fn parts<'a>(method: &[u8], target: &'a [u8]) -> (Option<Vec<u8>>, &'a [u8]) {
    let until = |bytes: &'a [u8], ends: &[u8]| {
        let end = bytes.iter().position(|byte| ends.contains(byte)).unwrap_or(bytes.len());
        bytes.split_at(end)
    };
    let without_user = |authority: &'a [u8]| authority.rsplit(|&byte| byte == b'@').next().unwrap_or(authority);
    if method == b"CONNECT" {
        return (None, without_user(until(target, b"/?#;").0));
    }
    let scheme = target.windows(3).position(|three| three == b"://");
    let Some(scheme) = scheme.filter(|&end| target[..end].iter().all(u8::is_ascii_alphabetic)) else {
        let path = until(target, b"?#;").0;
        return (None, if path.starts_with(b"/") { path } else { without_user(path) });
    };
    let (authority, path) = until(&target[scheme + 3..], b"/?#;");
    let path = until(path, b"?#;").0;
    (Some(without_user(authority).to_vec()), if path.is_empty() { b"/" } else { path })
}

/// The value of a header field.
fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        // The last line of a head that is cut may be cut itself.
        let is_whole = line.ends_with(b"\r") || head.ends_with(b"\n");
        (is_whole && line[..colon].eq_ignore_ascii_case(name.as_bytes())).then(|| line[colon + 1..].trim_ascii())
    })
}

/// What a head says of its body; `None` if it says nothing.
fn body(head: &[u8]) -> Option<Body> {
    if field(head, "transfer-encoding").is_some() {
        return Some(Body::Unknown);
    }
    let length = field(head, "content-length")?;
    Some(str::from_utf8(length).ok().and_then(|text| text.parse().ok()).map_or(Body::Unknown, Body::Length))
}

fn status(head: &[u8]) -> Option<u16> {
    let rest = head.strip_prefix(b"HTTP/1.")?;
    let [version, b' ', digits @ ..] = rest else { return None };
    let digits: &[u8; 3] = digits.first_chunk()?;
    let is_status = version.is_ascii_digit() && digits.iter().all(u8::is_ascii_digit) && digits[0] != b'0';
    is_status.then(|| digits.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::{Message, Payload};
    use proptest::prelude::*;

    fn heads(bytes: &[u8]) -> Vec<String> {
        let host = |request: &Request| request.host.clone().unwrap_or_default();
        requests(bytes).iter().map(|one| format!("{} {} {}", one.method, one.target, host(one))).collect()
    }

    #[test]
    fn a_request_is_told_without_what_may_be_secret() {
        let cases: [(&str, &[&str]); 10] = [
            ("GET /a/b?token=1 HTTP/1.1\r\nHost: example.org\r\n\r\n", &["GET /a/b example.org"]),
            ("GET /a;session=1/b HTTP/1.1\r\nhost:example.org:8080\r\n\r\n", &["GET /a example.org:8080"]),
            ("GET http://u:p@example.org/a?b HTTP/1.1\r\n\r\n", &["GET /a example.org"]),
            ("GET http://u:p@example.org?b HTTP/1.0\n\n", &["GET / example.org"]),
            ("CONNECT u:p@example.org:443 HTTP/1.1\r\n\r\n", &["CONNECT example.org:443 "]),
            ("GET u:p@example.org?a=http://b/c HTTP/1.1\r\n\r\n", &["GET example.org "]),
            ("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", &["OPTIONS * a"]),
            ("PROPFIND /x HTTP/1.1\r\nHost: a\r\n", &["PROPFIND /x a"]),
            // The capture holds no more.
            ("GET /downloads/lar", &["GET /downloads/lar "]),
            ("GET /a HTTP/1.1\r\nHost: exam", &["GET /a "]),
        ];
        for (bytes, expected) in cases {
            assert_eq!(heads(bytes.as_bytes()), expected, "{bytes}");
        }
        for other in
            ["PRI * HTTP/2.0\r\n\r\n", "OPTIONS rtsp://a/b RTSP/1.0\r\n", "GET a", "HELO example.org\r\n", "GET"]
        {
            assert!(heads(other.as_bytes()).is_empty(), "{other}");
        }
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(500));
        assert_eq!(requests(long.as_bytes())[0].target.len(), TARGET_MAX);
    }

    #[test]
    fn several_in_one_segment_are_found_behind_bodies_of_known_length() {
        let post = "POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n";
        assert_eq!(heads(post.as_bytes()), ["POST /a ", "GET /b ", "GET /c "]);
        let chunked = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
        assert_eq!(heads(chunked.as_bytes()).len(), 1);
        let answers =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nxHTTP/1.0 200\r\n";
        let statuses: Vec<u16> = responses(answers.as_bytes()).iter().map(|one| one.status).collect();
        assert_eq!(statuses, [100, 404, 200]);
        let huge = "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n";
        assert_eq!(responses(huge.as_bytes()).len(), 1);
    }

    proptest! {
        #[test]
        fn never_panics(start in 0usize..4, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let start = ["", "GET ", "HTTP/1.1 200 ", "POST /a HTTP/1.1\r\nContent-Length: "][start];
            let _ = Payload::read(&[start.as_bytes(), &bytes].concat());
        }

        #[test]
        fn what_is_written_is_read(method in "[A-Z]{3,20}", path in "/[a-z0-9/._-]{0,90}", host in "[a-z0-9.-]{1,40}") {
            let bytes = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let request = Request { method, target: path, host: Some(host) };
            prop_assert_eq!(Payload::read(bytes.as_bytes()).message, Some(Message::Requests(vec![request])));
        }
    }

    #[test]
    fn capitals_begin_a_head_only_where_a_word_ends() {
        for yes in ["GET / HTTP/1.1", "HTTP/1.1 200 OK", "GET", "PROPFIND /"] {
            assert!(may_begin(yes.as_bytes()), "{yes}");
        }
        let filler = "G".repeat(1_448);
        for no in [filler.as_str(), "HTTP/2 200", "HELO\r\n", "GGGgg"] {
            assert!(!may_begin(no.as_bytes()), "{no}");
        }
    }
}
