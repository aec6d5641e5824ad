//! Reads a request's head, strictly: what two servers could read in two ways is refused.
//!
//! Source: RFC 9112 (messages), RFC 9110 (fields).

use super::refusal::Refusal;
use super::target::Query;
use memchr::memchr_iter;
use std::mem::MaybeUninit;

/// Most fields of a head, whatever the limits are.
const FIELDS_MAX: usize = 64;
/// Bytes of a method.
const METHOD_BYTES_MAX: usize = 32;

/// What a request's head may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole head.
    pub head_bytes: usize,
    /// Fields in it, 64 at most.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes: 8_192, fields: FIELDS_MAX }
    }
}

/// What is asked to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Method {
    Get,
    Head,
    Options,
    Post,
    Delete,
    /// Any other one.
    Other,
}

/// A request's head. It borrows from the bytes it was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// What is asked to be done.
    pub method: Method,
    /// The path, not decoded.
    pub path: &'a str,
    /// What follows its question mark.
    pub query: Query<'a>,
    /// Whether the client speaks HTTP/1.1, and so reads chunked bodies.
    pub is_http_1_1: bool,
    /// Whether the connection may serve another request after this one.
    pub keep_alive: bool,
    /// `Range`.
    pub range: Option<&'a str>,
    /// `If-Range`.
    pub if_range: Option<&'a str>,
    /// `If-None-Match`.
    pub if_none_match: Option<&'a str>,
    /// `User-Agent`.
    pub user_agent: Option<&'a str>,
    /// `X-Forwarded-For`, the last one.
    pub forwarded_for: Option<&'a str>,
    /// `Authorization`.
    pub authorization: Option<&'a str>,
}

/// Reads the first request of `bytes`; returns it and how many bytes it takes, `None` while its end has not come.
///
/// # Errors
/// Why it is not served, as soon as that is certain.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<(Request<'a>, usize)>, Refusal> {
    // A client may send an empty line after a request that had a body. Source: RFC 9112 §2.2.
    let skipped = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
    let head = &bytes[skipped..bytes.len().min(skipped + limits.head_bytes)];
    if head.starts_with(b"\n") || (skipped > 0 && head.starts_with(b"\r")) {
        return Err(Refusal::Malformed);
    }
    let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut []);
    match parsed.parse_with_uninit_headers(head, &mut headers[..limits.fields.min(FIELDS_MAX)]) {
        Ok(httparse::Status::Complete(len)) => {
            let head = &head[..len];
            // What ends a line in another way, or is no text, may be read in another way by another server.
            if memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r') {
                return Err(Refusal::LineEnd);
            }
            if std::str::from_utf8(head).is_err() {
                return Err(Refusal::Malformed);
            }
            Ok(Some((request(&parsed)?, skipped + len)))
        }
        Ok(httparse::Status::Partial) if head.len() < limits.head_bytes => Ok(None),
        Ok(httparse::Status::Partial) if head.contains(&b'\n') => Err(Refusal::HeadTooLarge),
        Ok(httparse::Status::Partial) => Err(Refusal::TargetTooLong),
        Err(httparse::Error::TooManyHeaders) => Err(Refusal::HeadTooLarge),
        Err(httparse::Error::Version) if is_other_version(head) => Err(Refusal::Version),
        Err(_) => Err(Refusal::Malformed),
    }
}

/// Whether the version in a request line is one of HTTP. Source: RFC 9112 §2.3.
fn is_other_version(head: &[u8]) -> bool {
    let version = head.splitn(3, |&byte| byte == b' ').nth(2).and_then(|rest| rest.first_chunk::<8>());
    matches!(version, Some([b'H', b'T', b'T', b'P', b'/', major, b'.', minor]) if major.is_ascii_digit() && minor.is_ascii_digit())
}

fn request<'a>(parsed: &httparse::Request<'_, 'a>) -> Result<Request<'a>, Refusal> {
    let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    if method.len() > METHOD_BYTES_MAX || !target.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'#') {
        return Err(Refusal::Malformed);
    }
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "POST" => Method::Post,
        "DELETE" => Method::Delete,
        _ => Method::Other,
    };
    let local = origin_form(target, method)?;
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    let mut request = Request {
        method,
        path,
        query: Query(query),
        is_http_1_1: parsed.version == Some(1),
        keep_alive: false,
        range: None,
        if_range: None,
        if_none_match: None,
        user_agent: None,
        forwarded_for: None,
        authorization: None,
    };
    let mut fields = Fields::default();
    for header in parsed.headers.iter() {
        field(header, &mut request, &mut fields)?;
    }
    fields.judge(&mut request)?;
    Ok(request)
}

/// The path and query of a target: `/path`, `http://host/path`, or `*` for OPTIONS. Source: RFC 9112 §3.2.
fn origin_form(target: &str, method: Method) -> Result<&str, Refusal> {
    if target.starts_with('/') {
        return Ok(target);
    }
    if target == "*" && method == Method::Options {
        return Ok("/");
    }
    let schemes = ["http://", "https://"];
    let rest = schemes.iter().find_map(|scheme| {
        let (head, rest) = target.split_at_checked(scheme.len())?;
        head.eq_ignore_ascii_case(scheme).then_some(rest)
    });
    match rest.map(|rest| (rest, rest.find(['/', '?']))) {
        Some((rest, Some(at))) if at > 0 && rest[at..].starts_with('/') => Ok(&rest[at..]),
        Some((rest, None)) if !rest.is_empty() => Ok("/"),
        _ => Err(Refusal::Malformed),
    }
}

/// What several fields say together.
#[derive(Debug, Default)]
struct Fields {
    hosts: usize,
    content_length: Option<u64>,
    transfer_coding: bool,
    close: bool,
    keep: bool,
}

impl Fields {
    fn judge(&self, request: &mut Request<'_>) -> Result<(), Refusal> {
        let is_1_1 = request.is_http_1_1;
        // Source: RFC 9112 §3.2: a server must refuse a 1.1 request with no Host or several.
        if self.hosts > 1 || (is_1_1 && self.hosts == 0) {
            return Err(Refusal::Host);
        }
        let takes_body = matches!(request.method, Method::Post | Method::Other);
        if self.transfer_coding {
            return Err(match self.content_length {
                Some(_) => Refusal::Malformed,
                None if takes_body => Refusal::Method,
                None => Refusal::TransferCoding,
            });
        }
        if self.content_length.is_some_and(|bytes| bytes > 0) {
            return Err(if takes_body { Refusal::Method } else { Refusal::Body });
        }
        request.keep_alive = !self.close && (is_1_1 || self.keep);
        Ok(())
    }
}

fn field<'a>(header: &httparse::Header<'a>, request: &mut Request<'a>, fields: &mut Fields) -> Result<(), Refusal> {
    let is = |known: &str| header.name.eq_ignore_ascii_case(known);
    let value = || std::str::from_utf8(header.value).map_err(|_| Refusal::Malformed);
    // The length first: it is cheaper than any comparison, and most fields are none of ours.
    match header.name.len() {
        4 if is("host") => {
            fields.hosts += 1;
            if value()?.contains([' ', '\t', ',', '/', '@']) {
                return Err(Refusal::Malformed);
            }
        }
        5 if is("range") => request.range = Some(value()?),
        8 if is("if-range") => request.if_range = Some(value()?),
        10 if is("user-agent") => request.user_agent = Some(value()?),
        10 if is("connection") => {
            for option in value()?.split(',').map(str::trim) {
                fields.close |= option.eq_ignore_ascii_case("close");
                fields.keep |= option.eq_ignore_ascii_case("keep-alive");
            }
        }
        13 if is("if-none-match") => request.if_none_match = Some(value()?),
        13 if is("authorization") => request.authorization = Some(value()?),
        14 if is("content-length") => {
            let value = value()?;
            let digits = !value.is_empty() && value.len() <= 18 && value.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = value.parse().ok().filter(|_| digits).ok_or(Refusal::Malformed)?;
            if fields.content_length.replace(bytes).is_some_and(|before| before != bytes) {
                return Err(Refusal::Malformed);
            }
        }
        15 if is("x-forwarded-for") => request.forwarded_for = Some(value()?),
        17 if is("transfer-encoding") => fields.transfer_coding = true,
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests;
