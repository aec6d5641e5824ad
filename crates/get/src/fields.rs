//! Header fields of responses: parsers that take any bytes.

use crate::checksum::{Checksum, Kind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, DATE, ETAG, LAST_MODIFIED, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The longest wait that a server's Retry-After can ask for.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(3600);

/// `Content-Range` of a 206 or 416 response. Source: RFC 9110 §14.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// First byte and the one after the last; `None` in `*/N`.
    pub range: Option<(u64, u64)>,
    /// Bytes of the whole object, where the server says it.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Reads the field; `None` if it is none, or contradicts itself.
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let total = if total.trim() == "*" { None } else { Some(number(total)?) };
        if range.trim() == "*" {
            return total.map(|total| Self { range: None, total: Some(total) });
        }
        let (first, last) = range.split_once('-')?;
        let (first, end) = (number(first)?, number(last)?.checked_add(1)?);
        let fits = first < end && total.is_none_or(|total| end <= total);
        fits.then_some(Self { range: Some((first, end)), total })
    }
}

/// Digits and nothing else: `parse` would take a sign.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// What identifies a version of an object, byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Validator {
    /// A strong entity tag, with its quotes.
    #[serde(rename = "etag")]
    ETag(String),
    /// A modification date, as the server wrote it.
    #[serde(rename = "last_modified")]
    LastModified(String),
}

impl Validator {
    /// The strong validator of a response.
    ///
    /// A date is one only if the object has not been changed within the second of the response; a weak tag never is.
    /// Source: RFC 9110 §8.8.1, §8.8.2.2, §13.1.5.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        if let Some(tag) = text(ETAG).filter(|tag| tag.len() >= 2 && tag.starts_with('"') && tag.ends_with('"')) {
            return Some(Self::ETag(tag.to_owned()));
        }
        let modified = text(LAST_MODIFIED)?;
        let (changed, sent) = (date(modified)?, date(text(DATE)?)?);
        (sent.duration_since(changed).ok()? >= Duration::from_secs(1)).then(|| Self::LastModified(modified.to_owned()))
    }

    /// The value of `If-Range`.
    pub fn text(&self) -> &str {
        match self {
            Self::ETag(text) | Self::LastModified(text) => text,
        }
    }

    /// Whether a response is of the same version. One that says neither tag nor date passed `If-Range`, or contradicts nothing.
    pub fn agrees(&self, headers: &HeaderMap) -> bool {
        let (name, expected) = match self {
            Self::ETag(tag) => (ETAG, tag),
            Self::LastModified(date) => (LAST_MODIFIED, date),
        };
        headers.get(name).is_none_or(|value| value.to_str().is_ok_and(|text| text.trim() == expected))
    }
}

fn date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// How long the server asks to wait. Source: RFC 9110 §10.2.3.
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match number(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => date(text)?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(RETRY_AFTER_MOST))
}

/// The length of a body.
pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    number(headers.get(CONTENT_LENGTH)?.to_str().ok()?)
}

/// The coding of a body, if it has one.
pub fn content_coding(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim().to_ascii_lowercase();
    (!text.is_empty() && text != "identity").then_some(text)
}

/// Digests that a server gives of the whole object; the strongest first.
///
/// `Repr-Digest` (RFC 9530) and `Digest` (RFC 3230) are of the whole object in a partial response too. `Content-MD5`
/// (RFC 1864) and `Content-Digest` are of the response's own body, so they count only if that is `whole`.
pub fn digests(headers: &HeaderMap, whole: bool) -> Vec<Checksum> {
    let mut found = Vec::new();
    let mut add = |kind: Kind, base64: &str| {
        let digest = STANDARD.decode(base64.trim()).ok().and_then(|bytes| Checksum::new(kind, bytes));
        found.extend(digest);
    };
    let texts = |name: &'static str| headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    let structured = texts("repr-digest").chain(texts("content-digest").filter(|_| whole));
    for item in structured.flat_map(|text| text.split(',')) {
        if let Some((name, value)) = item.split_once('=')
            && let Some(kind) = Kind::named(name)
            && let Some(value) = value.trim().strip_prefix(':').and_then(|value| value.strip_suffix(':'))
        {
            add(kind, value);
        }
    }
    for item in texts("digest").flat_map(|text| text.split(',')) {
        if let Some((name, value)) = item.split_once('=')
            && let Some(kind) = Kind::named(name)
        {
            add(kind, value);
        }
    }
    if whole {
        texts("content-md5").for_each(|value| add(Kind::Md5, value));
    }
    found.sort_by_key(|digest| std::cmp::Reverse(digest.kind()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    #[test]
    fn content_range_is_taken_only_if_it_agrees_with_itself() {
        let read = |text| ContentRange::parse(text).map(|found| (found.range, found.total));
        assert_eq!(read("bytes 0-499/1234"), Some((Some((0, 500)), Some(1234))));
        assert_eq!(read("Bytes 5-5/*"), Some((Some((5, 6)), None)));
        assert_eq!(read("bytes */0"), Some((None, Some(0))));
        for wrong in [
            "bytes 5-4/10",
            "bytes 0-10/10",
            "bytes */*",
            "items 0-1/2",
            "bytes 0-1",
            "bytes +0-1/2",
            "",
            "bytes 0-18446744073709551615/*",
            "bytes 99999999999999999999-1/2",
            "bytes -5/10",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn weak_validators_are_none() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let etag = |text: &str| Validator::of(&headers(&[("etag", text)]));
        assert_eq!(etag("\"a\""), Some(Validator::ETag("\"a\"".to_owned())));
        assert_eq!(etag("W/\"a\""), None);
        assert_eq!(etag("a"), None);
        let modified = |text| Validator::of(&headers(&[("last-modified", text), date]));
        assert!(modified("Sun, 06 Nov 1994 08:49:36 GMT").is_some());
        assert!(modified("Sun, 06 Nov 1994 08:49:37 GMT").is_none(), "it may change again within the second");
        assert!(modified("yesterday").is_none());
    }

    #[test]
    fn waits_are_seconds_or_dates() {
        let now = date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let wait = |text| retry_after(&headers(&[("retry-after", text)]), now).map(|wait| wait.as_secs());
        assert_eq!(wait("120"), Some(120));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:47 GMT"), Some(10));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:27 GMT"), Some(0));
        assert_eq!(wait("99999999999"), Some(3600));
        assert_eq!(wait("-1"), None);
    }

    #[test]
    fn digests_of_parts_are_not_those_of_the_object() {
        let md5 = ("content-md5", "XrY7u+Ae7tCTyyK7j1rNww==");
        assert_eq!(digests(&headers(&[md5]), false), []);
        assert_eq!(digests(&headers(&[md5]), true).len(), 1);
        let sha = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=";
        let both = headers(&[("repr-digest", &format!("unixsum=:MQ==:, sha-256=:{sha}:")), ("digest", "md5=short")]);
        let found = digests(&both, false);
        assert_eq!(found.len(), 1, "what is unknown or has a wrong length is passed over");
        assert_eq!(found[0].kind(), Kind::Sha256);
    }
}
