//! Answers as they come: a head, then a body whose length the head gives.
//!
//! Source: RFC 9112 §6.3 (how long a body is), §7.1 (chunks).

use thiserror::Error;

/// Longest head that is taken.
const HEAD_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// Why an answer makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum BadResponse {
    #[error("the answer's head makes no sense")]
    Head,
    #[error("the answer is TLS: try https://")]
    Tls,
    #[error("the answer's head is longer than 16 KiB")]
    LongHead,
    #[error("a chunk's length makes no sense")]
    Chunk,
    #[error("the answer ended before its body did")]
    Cut,
}

/// What an answer's head told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Where it is instead.
    pub(crate) location: Option<String>,
    /// The connection ends with the body.
    pub(crate) closes: bool,
    /// Length of the body, where it is told.
    pub(crate) length: Option<u64>,
}

#[derive(Debug, PartialEq, Eq)]
enum Body {
    Head,
    Length(u64),
    /// Within a chunk's length line; what came of it.
    ChunkLine(Vec<u8>),
    Chunk(u64),
    /// The line's end after a chunk.
    ChunkEnd(u8),
    /// Lines after the last chunk; whether the current one has anything in it.
    Trailer(bool),
    UntilClose,
    Over,
}

/// An answer being read.
#[derive(Debug)]
pub(crate) struct Response {
    head: Vec<u8>,
    body: Body,
    found: Option<Head>,
}

impl Response {
    pub(crate) fn new() -> Self {
        Self { head: Vec::new(), body: Body::Head, found: None }
    }

    /// The head, once it is whole.
    pub(crate) fn head(&self) -> Option<&Head> {
        self.found.as_ref()
    }

    /// Nothing of it is missing.
    pub(crate) fn is_over(&self) -> bool {
        self.body == Body::Over
    }

    /// Nothing of it has come.
    pub(crate) fn is_unbegun(&self) -> bool {
        self.body == Body::Head && self.head.is_empty()
    }

    /// The connection ended; that may be the body's end.
    pub(crate) fn ended(&mut self) -> Result<(), BadResponse> {
        if self.body == Body::UntilClose {
            self.body = Body::Over;
        }
        if self.is_over() { Ok(()) } else { Err(BadResponse::Cut) }
    }

    /// Reads on in `input`, gives what of it is body to `each`, and how much of it was this answer's.
    pub(crate) fn read(&mut self, input: &[u8], mut each: impl FnMut(&[u8])) -> Result<usize, BadResponse> {
        let mut at = 0;
        while at < input.len() {
            let rest = &input[at..];
            match &mut self.body {
                Body::Over => break,
                Body::Head => at += self.read_head(rest)?,
                Body::UntilClose => {
                    each(rest);
                    at = input.len();
                }
                Body::Length(left) => {
                    let n = (*left).min(rest.len() as u64) as usize;
                    each(&rest[..n]);
                    at += n;
                    *left -= n as u64;
                    if *left == 0 {
                        self.body = Body::Over;
                    }
                }
                Body::Chunk(left) => {
                    let n = (*left).min(rest.len() as u64) as usize;
                    each(&rest[..n]);
                    at += n;
                    *left -= n as u64;
                    if *left == 0 {
                        self.body = Body::ChunkEnd(2);
                    }
                }
                Body::ChunkEnd(left) => {
                    if rest[0] != [b'\n', b'\r'][usize::from(*left - 1)] {
                        return Err(BadResponse::Chunk);
                    }
                    at += 1;
                    *left -= 1;
                    if *left == 0 {
                        self.body = Body::ChunkLine(Vec::new());
                    }
                }
                Body::ChunkLine(line) => {
                    at += 1;
                    if rest[0] != b'\n' {
                        line.push(rest[0]);
                        if line.len() > 256 {
                            return Err(BadResponse::Chunk);
                        }
                        continue;
                    }
                    let digits = line.split(|byte| matches!(byte, b';' | b'\r' | b' ')).next().unwrap_or_default();
                    let text = std::str::from_utf8(digits).map_err(|_| BadResponse::Chunk)?;
                    let length = u64::from_str_radix(text, 16).map_err(|_| BadResponse::Chunk)?;
                    self.body = if length == 0 { Body::Trailer(false) } else { Body::Chunk(length) };
                }
                Body::Trailer(filled) => {
                    at += 1;
                    match rest[0] {
                        b'\r' => {}
                        b'\n' if *filled => *filled = false,
                        b'\n' => self.body = Body::Over,
                        _ => *filled = true,
                    }
                }
            }
        }
        Ok(at)
    }

    fn read_head(&mut self, input: &[u8]) -> Result<usize, BadResponse> {
        let before = self.head.len();
        self.head.extend_from_slice(&input[..input.len().min(HEAD_MAX + 1 - before.min(HEAD_MAX))]);
        // An alert, with which servers of TLS answer what is none. Source: RFC 8446 §5.1, §6.
        if self.head.starts_with(&[21, 3]) {
            return Err(BadResponse::Tls);
        }
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Response::new(&mut headers);
        match parsed.parse(&self.head).map_err(|_| BadResponse::Head)? {
            httparse::Status::Partial if self.head.len() > HEAD_MAX => Err(BadResponse::LongHead),
            httparse::Status::Partial => Ok(self.head.len() - before),
            httparse::Status::Complete(length) => {
                let (head, body) = told(&parsed)?;
                self.found = Some(head);
                self.body = body;
                self.head = Vec::new();
                // What an interim answer says is of no interest here; the answer follows it (RFC 9110 §15.2).
                if self.found.as_ref().is_some_and(|head| head.status / 100 == 1) {
                    (self.found, self.body) = (None, Body::Head);
                }
                Ok(length - before)
            }
        }
    }
}

fn told(parsed: &httparse::Response<'_, '_>) -> Result<(Head, Body), BadResponse> {
    let mut head = Head {
        status: parsed.code.unwrap_or(0),
        // HTTP/1.0 closes unless the head says otherwise.
        closes: parsed.version == Some(0),
        ..Head::default()
    };
    let mut chunked = false;
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            head.length = Some(value.parse().map_err(|_| BadResponse::Head)?);
        } else if is("transfer-encoding") {
            chunked = value.to_ascii_lowercase().ends_with("chunked");
        } else if is("location") {
            head.location = Some(value.to_owned());
        } else if is("connection") {
            head.closes =
                value.eq_ignore_ascii_case("close") || head.closes && !value.eq_ignore_ascii_case("keep-alive");
        }
    }
    let body = match head.length {
        _ if matches!(head.status, 204 | 304) => Body::Over,
        _ if head.status / 100 == 1 => Body::Over,
        _ if chunked => Body::ChunkLine(Vec::new()),
        Some(0) => Body::Over,
        Some(length) => Body::Length(length),
        None => {
            head.closes = true;
            Body::UntilClose
        }
    };
    Ok((head, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads an answer in pieces of `piece` bytes; gives the head, the body, and how much was the answer's.
    fn read(bytes: &[u8], piece: usize) -> Result<(Head, Vec<u8>, usize, bool), BadResponse> {
        let (mut response, mut body, mut at) = (Response::new(), Vec::new(), 0);
        for piece in bytes.chunks(piece) {
            let n = response.read(piece, |bytes| body.extend_from_slice(bytes))?;
            at += n;
            if n < piece.len() {
                break;
            }
        }
        let over = response.is_over();
        Ok((response.head().cloned().unwrap_or_default(), body, at, over))
    }

    #[test]
    fn bodies_end_where_they_are_told_to_whatever_the_pieces() {
        for piece in [1, 2, 3, 7, 1000] {
            let (head, body, at, over) =
                read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1", piece).expect("read");
            assert_eq!((head.status, &body[..], at, over), (200, &b"hello"[..], 43, true));
            let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\n3\r\n...\r\n0\r\na: b\r\n\r\nHTTP";
            let (_, body, at, over) = read(chunked, piece).expect("read");
            assert_eq!((&body[..], at, over), (&b"hello..."[..], chunked.len() - 4, true));
            let (head, body, _, over) = read(b"HTTP/1.0 200 OK\r\n\r\nabc", piece).expect("read");
            assert_eq!((head.closes, &body[..], over), (true, &b"abc"[..], false));
            let (head, ..) = read(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 302 Found\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n",
                piece,
            )
            .expect("read");
            assert_eq!((head.status, head.location.as_deref()), (302, Some("/a")));
        }
    }

    #[test]
    fn what_is_cut_or_senseless_is_told() {
        let mut response = Response::new();
        response.read(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", |_| {}).expect("read");
        assert_eq!(response.ended(), Err(BadResponse::Cut));
        assert_eq!(read(b"RTSP/1.0 200 OK\r\n\r\n", 100), Err(BadResponse::Head));
        assert_eq!(read(b"\x15\x03\x03\0\x02\x02\x16", 100), Err(BadResponse::Tls));
        let endless = [&b"HTTP/1.1 200 OK\r\nA: "[..], &[b'a'; 20_000]].concat();
        assert_eq!(read(&endless, 1000), Err(BadResponse::LongHead));
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1usize..50, head: bool) {
            let bytes = if head { [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat() } else { bytes };
            let _ = read(&bytes, piece);
        }
    }
}
