//! Reads a request's head, strictly: what two servers could read in two ways is refused.
//!
//! Source: RFC 9112 (messages), RFC 9110 (fields).

use super::Status;
use super::target::Query;
use thiserror::Error;

/// What a request's head may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole head.
    pub head_bytes: usize,
    /// Fields in it.
    pub fields: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes: 8_192, fields: 64 }
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

/// Why a request is not served. The connection ends after it, since what follows may not be a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// It is not HTTP.
    #[error("this is not a request of HTTP/1")]
    Malformed,
    /// The path is none of ours.
    #[error("the path holds what no name here does")]
    BadTarget,
    /// The request line alone is past the limit.
    #[error("the request line is too long")]
    TargetTooLong,
    /// The head is past the limits.
    #[error("the head is too long, or has too many fields")]
    HeadTooLarge,
    /// It announces a body, and nothing here takes one.
    #[error("a request here has no body")]
    Body,
    /// A transfer coding.
    #[error("transfer codings of requests are not served")]
    TransferCoding,
    /// Another major version.
    #[error("this is another version of HTTP")]
    Version,
}

impl Refusal {
    /// What the response says.
    pub const fn status(self) -> Status {
        match self {
            Self::Malformed | Self::BadTarget => Status::BadRequest,
            Self::TargetTooLong => Status::UriTooLong,
            Self::HeadTooLarge => Status::HeaderFieldsTooLarge,
            Self::Body => Status::ContentTooLarge,
            Self::TransferCoding => Status::NotImplemented,
            Self::Version => Status::VersionNotSupported,
        }
    }
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
/// Why it is not served; this is told as soon as it is sure.
pub fn parse<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<(Request<'a>, usize)>, Refusal> {
    // A client may send an empty line after a request that had a body. Source: RFC 9112 §2.2.
    let skipped = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
    let head = &bytes[skipped..];
    let Some((line, mut at)) = next_line(head, 0, limits.head_bytes, Refusal::TargetTooLong)? else {
        return Ok(None);
    };
    let mut request = request_line(line)?;
    let mut fields = Fields::default();
    let mut count = 0;
    loop {
        let Some((line, after)) = next_line(head, at, limits.head_bytes, Refusal::HeadTooLarge)? else {
            return Ok(None);
        };
        at = after;
        if line.is_empty() {
            break;
        }
        count += 1;
        if count > limits.fields {
            return Err(Refusal::HeadTooLarge);
        }
        field(line, &mut request, &mut fields)?;
    }
    fields.judge(&mut request)?;
    Ok(Some((request, skipped + at)))
}

/// The line that begins at `at`, without its end, and where the next one begins.
fn next_line(head: &[u8], at: usize, most: usize, past: Refusal) -> Result<Option<(&str, usize)>, Refusal> {
    let window = &head[at..head.len().min(most)];
    // Only what a line may hold is looked at, so that an end that never comes is not waited for.
    let stop = window.iter().position(|&byte| (byte < b' ' && byte != b'\t') || byte == 0x7f);
    match stop {
        Some(end) if window[end] == b'\r' && window.get(end + 1) == Some(&b'\n') => {
            let line = std::str::from_utf8(&window[..end]).map_err(|_| Refusal::Malformed)?;
            Ok(Some((line, at + end + 2)))
        }
        Some(end) if window[end] == b'\r' && end + 1 == window.len() && head.len() < most => Ok(None),
        None if head.len() < most => Ok(None),
        Some(end) if window[end] == b'\r' && end + 1 == window.len() => Err(past),
        Some(_) => Err(Refusal::Malformed),
        None => Err(past),
    }
}

fn request_line(line: &str) -> Result<Request<'_>, Refusal> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) = (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    if method.is_empty() || method.len() > 32 || !method.bytes().all(is_token) {
        return Err(Refusal::Malformed);
    }
    let keep_alive = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        // A later 1.x is served as 1.1. Source: RFC 9110 §2.5.
        _ if is_version(version, b'1') => true,
        _ if version.len() == 8 && version.starts_with("HTTP/") => return Err(Refusal::Version),
        _ => return Err(Refusal::Malformed),
    };
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "OPTIONS" => Method::Options,
        "POST" => Method::Post,
        "DELETE" => Method::Delete,
        _ => Method::Other,
    };
    if !target.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'#') {
        return Err(Refusal::Malformed);
    }
    let local = origin_form(target, method)?;
    let (path, query) = local.split_once('?').unwrap_or((local, ""));
    Ok(Request {
        method,
        path,
        query: Query(query),
        is_http_1_1: keep_alive,
        keep_alive,
        range: None,
        if_range: None,
        if_none_match: None,
        user_agent: None,
        forwarded_for: None,
        authorization: None,
    })
}

fn is_version(text: &str, major: u8) -> bool {
    let [b'H', b'T', b'T', b'P', b'/', found, b'.', minor] = text.as_bytes() else { return false };
    *found == major && minor.is_ascii_digit()
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
        let is_1_1 = request.keep_alive;
        // Source: RFC 9112 §3.2: a server must refuse a 1.1 request with no Host or several.
        if self.hosts > 1 || (is_1_1 && self.hosts == 0) {
            return Err(Refusal::Malformed);
        }
        if self.transfer_coding {
            return Err(if self.content_length.is_some() { Refusal::Malformed } else { Refusal::TransferCoding });
        }
        if self.content_length.is_some_and(|bytes| bytes > 0) {
            return Err(Refusal::Body);
        }
        request.keep_alive = !self.close && (is_1_1 || self.keep);
        Ok(())
    }
}

fn field<'a>(line: &'a str, request: &mut Request<'a>, fields: &mut Fields) -> Result<(), Refusal> {
    let (name, value) = line.split_once(':').ok_or(Refusal::Malformed)?;
    // A space before the colon, and the old folding of lines, are ways to smuggle. Source: RFC 9112 §5.1, §5.2.
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(Refusal::Malformed);
    }
    let value = value.trim_matches([' ', '\t']);
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    // The length first: it is cheaper than any comparison, and most fields are none of ours.
    match name.len() {
        4 if is("host") => {
            fields.hosts += 1;
            if value.contains([' ', '\t', ',', '/', '@']) {
                return Err(Refusal::Malformed);
            }
        }
        5 if is("range") => request.range = Some(value),
        8 if is("if-range") => request.if_range = Some(value),
        10 if is("user-agent") => request.user_agent = Some(value),
        10 if is("connection") => {
            for option in value.split(',').map(str::trim) {
                fields.close |= option.eq_ignore_ascii_case("close");
                fields.keep |= option.eq_ignore_ascii_case("keep-alive");
            }
        }
        13 if is("if-none-match") => request.if_none_match = Some(value),
        13 if is("authorization") => request.authorization = Some(value),
        14 if is("content-length") => {
            let digits = !value.is_empty() && value.len() <= 18 && value.bytes().all(|byte| byte.is_ascii_digit());
            let bytes = value.parse().ok().filter(|_| digits).ok_or(Refusal::Malformed)?;
            if fields.content_length.replace(bytes).is_some_and(|before| before != bytes) {
                return Err(Refusal::Malformed);
            }
        }
        15 if is("x-forwarded-for") => request.forwarded_for = Some(value),
        17 if is("transfer-encoding") => fields.transfer_coding = true,
        _ => {}
    }
    Ok(())
}

/// Source: RFC 9110 §5.6.2, `tchar`.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
