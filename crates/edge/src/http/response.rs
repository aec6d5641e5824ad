//! The head of a response, written into a buffer that the caller keeps.

/// What a response says happened. Source: RFC 9110 §15, RFC 6585.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    Ok,
    NoContent,
    PartialContent,
    NotModified,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    ContentTooLarge,
    UriTooLong,
    RangeNotSatisfiable,
    TooManyRequests,
    HeaderFieldsTooLarge,
    NotImplemented,
    ServiceUnavailable,
    VersionNotSupported,
}

impl Status {
    /// Number and phrase.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Ok => "200 OK",
            Self::NoContent => "204 No Content",
            Self::PartialContent => "206 Partial Content",
            Self::NotModified => "304 Not Modified",
            Self::BadRequest => "400 Bad Request",
            Self::Unauthorized => "401 Unauthorized",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::RequestTimeout => "408 Request Timeout",
            Self::ContentTooLarge => "413 Content Too Large",
            Self::UriTooLong => "414 URI Too Long",
            Self::RangeNotSatisfiable => "416 Range Not Satisfiable",
            Self::TooManyRequests => "429 Too Many Requests",
            Self::HeaderFieldsTooLarge => "431 Request Header Fields Too Large",
            Self::NotImplemented => "501 Not Implemented",
            Self::ServiceUnavailable => "503 Service Unavailable",
            Self::VersionNotSupported => "505 HTTP Version Not Supported",
        }
    }
}

/// A head being written. A line break in a value is written as a space, so that no value can begin another field.
#[derive(Debug)]
pub struct Head<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Head<'a> {
    /// Begins with the status line and the date.
    pub fn begin(out: &'a mut Vec<u8>, status: Status, date: &[u8; 29]) -> Self {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.line().as_bytes());
        out.extend_from_slice(b"\r\nDate: ");
        out.extend_from_slice(date);
        out.extend_from_slice(b"\r\n");
        Self { out }
    }

    /// Goes on in a buffer without a status line: fields that several responses share.
    pub fn fields(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Adds a field.
    pub fn field(self, name: &str, value: &str) -> Self {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        self.out.extend(value.bytes().map(|byte| if byte < b' ' || byte == 0x7f { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Adds fields that were written before, each with its line's end.
    pub fn raw(self, fields: &[u8]) -> Self {
        self.out.extend_from_slice(fields);
        self
    }

    /// Adds the body's length.
    pub fn length(self, bytes: u64) -> Self {
        use std::io::Write;
        let _ = write!(self.out, "Content-Length: {bytes}\r\n");
        self
    }

    /// Adds which part of how long a body this is.
    pub fn content_range(self, part: Option<(u64, u64)>, of: u64) -> Self {
        use std::io::Write;
        let _ = match part {
            Some((from, to)) => write!(self.out, "Content-Range: bytes {from}-{}/{of}\r\n", to.saturating_sub(1)),
            None => write!(self.out, "Content-Range: bytes */{of}\r\n"),
        };
        self
    }

    /// Ends the head.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_as_the_rfc_writes_it() {
        let mut out = Vec::new();
        let date = super::super::imf_fixdate(0);
        Head::begin(&mut out, Status::PartialContent, &date)
            .field("Content-Type", "text/plain")
            .content_range(Some((2, 5)), 10)
            .length(3)
            .raw(b"A: b\r\n")
            .end();
        let expected = "HTTP/1.1 206 Partial Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Type: text/plain\r\n\
                        Content-Range: bytes 2-4/10\r\nContent-Length: 3\r\nA: b\r\n\r\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }

    #[test]
    fn no_value_begins_another_field() {
        let mut out = Vec::new();
        Head::fields(&mut out).field("Location", "/x\r\nSet-Cookie: a\u{7f}").content_range(None, 7);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "Location: /x  Set-Cookie: a \r\nContent-Range: bytes */7\r\n");
    }
}
