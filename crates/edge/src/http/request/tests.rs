//! Requests as browsers, players, proxies and attackers write them.

use super::*;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits::default()
}

fn one(text: &str) -> Result<Request<'_>, Refusal> {
    parse(text.as_bytes(), &limits()).map(|found| {
        let (request, len) = found.expect("the whole head is there");
        assert_eq!(len, text.len(), "{text:?}");
        request
    })
}

fn target(target: &str) -> Result<(String, String), Refusal> {
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    one(&text).map(|request| (request.path.to_owned(), request.query.0.to_owned()))
}

/// With these lines after those that every request needs.
fn with(lines: &str) -> Result<Option<bool>, Refusal> {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    parse(text.as_bytes(), &limits()).map(|found| found.map(|(request, _)| request.keep_alive))
}

#[test]
fn what_a_browser_sends() {
    let text = "GET /live/cam.m3u8?token=1.2 HTTP/1.1\r\nHost: example.com:8080\r\nUser-Agent: Mozilla/5.0 (X11)\r\n\
                Accept: */*\r\nAccept-Encoding: gzip\r\nOrigin: https://player.example\r\nRange: bytes=0-\r\nif-none-match: \"1\"\r\n\
                X-Forwarded-For: 192.0.2.1\r\nConnection: keep-alive\r\n\r\n";
    let request = one(text).expect("read");
    assert_eq!((request.method, request.path, request.query), (Method::Get, "/live/cam.m3u8", Query("token=1.2")));
    assert_eq!((request.range, request.if_none_match), (Some("bytes=0-"), Some("\"1\"")));
    assert_eq!((request.user_agent, request.forwarded_for), (Some("Mozilla/5.0 (X11)"), Some("192.0.2.1")));
    assert!(request.keep_alive);
}

#[test]
fn methods() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("DELETE", Method::Delete),
        ("PUT", Method::Other),
        ("get", Method::Other),
        ("M-SEARCH", Method::Other),
    ] {
        assert_eq!(one(&format!("{name} / HTTP/1.1\r\nHost: a\r\n\r\n")).map(|request| request.method), Ok(method));
    }
    let long = "A".repeat(33);
    for name in ["", "G(T", "GE\tT", "G\"", long.as_str()] {
        assert_eq!(one(&format!("{name} / HTTP/1.1\r\nHost: a\r\n\r\n")), Err(Refusal::Malformed), "{name:?}");
    }
}

#[test]
fn targets() {
    for (text, path, query) in [
        ("/", "/", ""),
        ("/?", "/", ""),
        ("/a?b?c", "/a", "b?c"),
        ("/a//b", "/a//b", ""),
        ("http://h/a?b", "/a", "b"),
        ("HTTPS://h:1/a", "/a", ""),
        ("http://h", "/", ""),
        ("/http://h/", "/http://h/", ""),
        ("/%00", "/%00", ""),
    ] {
        assert_eq!(target(text), Ok((path.to_owned(), query.to_owned())), "{text}");
    }
    for text in
        ["", "a", "*", "h:80", "http://", "http:///a", "http://?a", "ftp://h/a", "/a#b", "/a\tb", "/\u{e9}", "\\a"]
    {
        assert_eq!(target(text), Err(Refusal::Malformed), "{text:?}");
    }
    assert_eq!(one("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").map(|request| request.path), Ok("/"));
}

#[test]
fn versions() {
    for (version, result) in [
        ("HTTP/1.1", Ok(true)),
        ("HTTP/1.2", Err(Refusal::Version)),
        ("HTTP/1.0", Ok(false)),
        ("HTTP/2.0", Err(Refusal::Version)),
        ("HTTP/0.9", Err(Refusal::Version)),
        ("HTTP/1.10", Err(Refusal::Malformed)),
        ("HTTP/1", Err(Refusal::Malformed)),
        ("http/1.1", Err(Refusal::Malformed)),
        ("RTSP/1.0", Err(Refusal::Malformed)),
        ("", Err(Refusal::Malformed)),
    ] {
        let text = format!("GET / {version}\r\nHost: a\r\n\r\n");
        assert_eq!(one(&text).map(|request| request.keep_alive), result, "{version}");
    }
    for text in ["GET /\r\n\r\n", "GET\r\n\r\n", "\r\nGET /  HTTP/1.1\r\n\r\n", "GET / HTTP/1.1 \r\n\r\n"] {
        assert_eq!(parse(text.as_bytes(), &limits()), Err(Refusal::Malformed), "{text:?}");
    }
}

#[test]
fn connections() {
    for (version, lines, keep) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "CONNECTION:  Close \r\n", false),
        ("1.1", "Connection: upgrade, close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: keep-alive\r\n", true),
        ("1.0", "Connection: Keep-Alive, x\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(one(&text).map(|request| request.keep_alive), Ok(keep), "{version} {lines:?}");
    }
}

#[test]
fn hosts() {
    assert_eq!(one("GET / HTTP/1.1\r\n\r\n"), Err(Refusal::Host));
    assert!(one("GET / HTTP/1.0\r\n\r\n").is_ok());
    assert!(one("GET / HTTP/1.1\r\nHost:\r\n\r\n").is_ok());
    assert!(one("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").is_ok());
    for lines in ["Host: b\r\n", "Host: a\r\n"] {
        assert_eq!(with(lines), Err(Refusal::Host), "two of them");
    }
    for host in ["a b", "a,b", "a/b", "u@a"] {
        assert_eq!(one(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), Err(Refusal::Malformed), "{host}");
    }
}

#[test]
fn bodies() {
    for (lines, result) in [
        ("Content-Length: 0\r\n", Ok(Some(true))),
        ("Content-Length: 0\r\nContent-Length: 0\r\n", Ok(Some(true))),
        ("Content-Length: 1\r\n", Err(Refusal::Body)),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", Err(Refusal::Body)),
        ("Content-Length: 0\r\nContent-Length: 1\r\n", Err(Refusal::Malformed)),
        ("Content-Length: 0, 0\r\n", Err(Refusal::Malformed)),
        ("Content-Length: +0\r\n", Err(Refusal::Malformed)),
        ("Content-Length: -1\r\n", Err(Refusal::Malformed)),
        ("Content-Length: 0x0\r\n", Err(Refusal::Malformed)),
        ("Content-Length:\r\n", Err(Refusal::Malformed)),
        ("Content-Length: 99999999999999999999\r\n", Err(Refusal::Malformed)),
        ("Transfer-Encoding: chunked\r\n", Err(Refusal::TransferCoding)),
        ("Transfer-Encoding:\r\n", Err(Refusal::TransferCoding)),
        ("transfer-encoding: identity\r\n", Err(Refusal::TransferCoding)),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", Err(Refusal::Malformed)),
        ("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", Err(Refusal::Malformed)),
    ] {
        assert_eq!(with(lines), result, "{lines:?}");
    }
}

#[test]
fn fields() {
    for (lines, good) in [
        ("A: b\r\n", true),
        ("A:b\r\n", true),
        ("A:\t b \t\r\n", true),
        ("A:\r\n", true),
        ("A: b: c\r\n", true),
        ("A: caf\u{e9}\r\n", true),
        ("!#$%&'*+-.^_`|~: x\r\n", true),
        ("A : b\r\n", false),
        (" A: b\r\n", false),
        ("A: b\r\n c\r\n", false),
        ("A: b\r\n\tc\r\n", false),
        ("A\r\n", false),
        (": b\r\n", false),
        ("A(: b\r\n", false),
        ("A: b\n", false),
        ("A: b\rc\r\n", false),
        ("A: b\0c\r\n", false),
        ("A: b\u{7f}c\r\n", false),
        ("\r\r\n", false),
    ] {
        assert_eq!(with(lines).is_ok(), good, "{lines:?}");
    }
    assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: a\r\nA: \xff\r\n\r\n", &limits()), Err(Refusal::Malformed));
    assert_eq!(parse(b"GET / HTTP/1.1\nHost: a\n\n", &limits()), Err(Refusal::LineEnd));
    assert_eq!(parse(b"\x16\x03\x01\x02\x00\x01\x00", &limits()), Err(Refusal::Malformed), "a TLS hello");
}

#[test]
fn what_repeats_the_last_counts() {
    let request = one("GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n").expect("read");
    assert_eq!(request.range, Some("bytes=2-3"));
}

#[test]
fn every_byte_may_come_alone() {
    let text = "\r\nHEAD /live/cam.m3u8?a=b HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\n\r\n";
    for len in 0..text.len() {
        assert_eq!(parse(&text.as_bytes()[..len], &limits()), Ok(None), "{len}");
    }
    assert_eq!(one(text).map(|request| (request.method, request.path)), Ok((Method::Head, "/live/cam.m3u8")));
}

#[test]
fn pipelined_requests_are_read_one_by_one() {
    let text = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\nGET /4";
    let mut rest = text.as_bytes();
    let mut paths = Vec::new();
    while let Some((request, len)) = parse(rest, &limits()).expect("read") {
        paths.push(request.path);
        rest = &rest[len..];
    }
    assert_eq!((paths, rest), (vec!["/1", "/2", "/3"], &b"GET /4"[..]));
}

#[test]
fn limits_hold_to_the_byte() {
    let head = "GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";
    let most = |head_bytes, fields| parse(head.as_bytes(), &Limits { head_bytes, fields }).map(|found| found.is_some());
    assert_eq!(most(head.len(), 2), Ok(true));
    assert_eq!(most(head.len() - 1, 2), Err(Refusal::HeadTooLarge));
    assert_eq!(most(head.len(), 1), Err(Refusal::HeadTooLarge));
    assert_eq!(most(15, 2), Err(Refusal::TargetTooLong));
    assert_eq!(most(16, 2), Err(Refusal::HeadTooLarge));
}

#[test]
fn endless_heads_are_cut_off() {
    let long = "a".repeat(9_000);
    assert_eq!(parse(format!("GET /{long}").as_bytes(), &limits()), Err(Refusal::TargetTooLong));
    let head = "GET / HTTP/1.1\r\nHost: a\r\n";
    assert_eq!(parse(format!("{head}A: {long}").as_bytes(), &limits()), Err(Refusal::HeadTooLarge));
    assert_eq!(parse(format!("{head}{}", "A: b\r\n".repeat(64)).as_bytes(), &limits()), Err(Refusal::HeadTooLarge));
    assert!(parse(format!("{head}{}\r\n", "A: b\r\n".repeat(63)).as_bytes(), &limits()).is_ok());
}

#[test]
fn what_follows_a_head_is_not_counted() {
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    let len = bytes.len();
    bytes.resize(100_000, b'x');
    assert_eq!(parse(&bytes, &limits()).map(|found| found.map(|(_, len)| len)), Ok(Some(len)));
}

#[test]
fn each_refusal_has_its_status() {
    for (refusal, line) in [
        (Refusal::Malformed, "400"),
        (Refusal::BadTarget, "400"),
        (Refusal::TargetTooLong, "414"),
        (Refusal::HeadTooLarge, "431"),
        (Refusal::Body, "413"),
        (Refusal::Method, "405"),
        (Refusal::TransferCoding, "501"),
        (Refusal::Version, "505"),
    ] {
        assert!(refusal.status().line().starts_with(line));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(Some((_, len))) = parse(&bytes, &limits()) {
            prop_assert!(len <= bytes.len());
        }
    }

    #[test]
    fn more_bytes_never_change_what_was_read(tail in "[ -~\r\n]{0,60}", cut in 0usize..60) {
        let text = format!("GET /a HTTP/1.1\r\nHost: a\r\n{tail}");
        let cut = text.len().min(cut);
        let early = parse(&text.as_bytes()[..cut], &limits());
        let whole = parse(text.as_bytes(), &limits());
        match early {
            Ok(None) => {}
            other => prop_assert_eq!(other, whole),
        }
    }
}
