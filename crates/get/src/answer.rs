//! What a response means for a download: pure.

use crate::fields::{ContentRange, Validator, content_coding, content_length, retry_after};
use hyper::header::{CONTENT_RANGE, LOCATION};
use hyper::{HeaderMap, StatusCode};
use std::time::{Duration, SystemTime};

/// The answer to the first request, which asks for all bytes as a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum First {
    /// The server sends ranges of a version that can be identified: the body is all of it.
    Ranges {
        /// Bytes of the object.
        total: u64,
        /// Its version.
        validator: Validator,
    },
    /// The body is all of the object, and there is no other way to have it.
    Whole {
        /// Its length, if the server says it.
        total: Option<u64>,
        /// Why there are no ranges.
        why: &'static str,
    },
    /// The object is empty.
    Empty,
    /// It is elsewhere.
    Redirect(String),
    /// Try again without asking for a range: the server mishandles that.
    WithoutRange,
    /// Try again later.
    Later {
        /// The status.
        status: u16,
        /// As the server asks.
        after: Option<Duration>,
    },
    /// The server says no.
    Refused(u16),
}

/// Statuses that ask to come again. Source: RFC 9110 §15.5.9, §15.6; RFC 6585 §4.
const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

/// Judges the answer to the first request; `ranged` says whether it asked for a range.
pub fn first(status: StatusCode, headers: &HeaderMap, ranged: bool) -> First {
    let range = headers.get(CONTENT_RANGE).and_then(|value| ContentRange::parse(value.to_str().ok()?));
    match status.as_u16() {
        206 if ranged => match range {
            Some(ContentRange { range: Some((0, end)), total: Some(total) }) if end == total => {
                let agrees = content_length(headers).is_none_or(|length| length == total);
                match (Validator::of(headers), content_coding(headers)) {
                    _ if !agrees => First::WithoutRange,
                    (Some(validator), None) => First::Ranges { total, validator },
                    (None, None) => First::Whole { total: Some(total), why: "nothing identifies the object's version" },
                    (_, Some(_)) => First::Whole { total: Some(total), why: "the server sends it packed" },
                }
            }
            _ => First::WithoutRange,
        },
        // Wrong, as no range was asked for; what there is can only be all.
        206 if range.is_none() => {
            First::Whole { total: content_length(headers), why: "the server does not say which range it sends" }
        }
        200 => First::Whole { total: content_length(headers), why: "the server does not send ranges" },
        416 if ranged => match range {
            Some(ContentRange { range: None, total: Some(0) }) => First::Empty,
            _ => First::WithoutRange,
        },
        204 => First::Empty,
        301 | 302 | 303 | 307 | 308 => {
            let location = headers.get(LOCATION).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
            location.map_or(First::Refused(status.as_u16()), |to| First::Redirect(to.to_owned()))
        }
        code if is_temporary(code) => First::Later { status: code, after: retry_after(headers, SystemTime::now()) },
        code => First::Refused(code),
    }
}

/// The answer to the request for one range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The body is the range, or its beginning: up to this byte.
    Range(u64),
    /// The object changed.
    Changed,
    /// The server does not keep to ranges after all.
    NoRange,
    /// Try again later.
    Later {
        /// The status.
        status: u16,
        /// As the server asks.
        after: Option<Duration>,
    },
}

/// Judges the answer to a request for `[start, end)` of a version.
pub fn part(
    status: StatusCode,
    headers: &HeaderMap,
    (start, end): (u64, u64),
    total: u64,
    validator: &Validator,
) -> Part {
    match status.as_u16() {
        206 => {
            let range = headers.get(CONTENT_RANGE).and_then(|value| ContentRange::parse(value.to_str().ok()?));
            if !validator.agrees(headers) {
                return Part::Changed;
            }
            match range {
                _ if content_coding(headers).is_some() => Part::NoRange,
                Some(ContentRange { total: Some(other), .. }) if other != total => Part::Changed,
                Some(ContentRange { range: Some((from, to)), .. }) if from == start && to <= end => {
                    let agrees = content_length(headers).is_none_or(|length| length == to - from);
                    if agrees { Part::Range(to) } else { Part::NoRange }
                }
                _ => Part::NoRange,
            }
        }
        // If-Range did not hold, or ranges are ignored.
        200 if validator.agrees(headers) && content_length(headers).is_none_or(|length| length == total) => {
            Part::NoRange
        }
        200 | 404 | 410 | 412 | 416 => Part::Changed,
        code => Part::Later { status: code, after: retry_after(headers, SystemTime::now()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| ((*name).parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn the_first_answer_decides_about_ranges() {
        fn judge(status: u16, fields: &[(&'static str, &'static str)]) -> First {
            first(StatusCode::from_u16(status).expect("a status"), &headers(fields), true)
        }
        let tag = ("etag", "\"1\"");
        let all = ("content-range", "bytes 0-9/10");
        assert!(matches!(judge(206, &[tag, all]), First::Ranges { total: 10, .. }));
        assert!(matches!(judge(206, &[all]), First::Whole { total: Some(10), .. }));
        assert!(matches!(judge(206, &[tag, all, ("content-encoding", "gzip")]), First::Whole { .. }));
        for lie in ["bytes 1-9/10", "bytes 0-8/10", "bytes 0-9/*", "nonsense"] {
            assert_eq!(judge(206, &[tag, ("content-range", lie)]), First::WithoutRange, "{lie}");
        }
        assert_eq!(judge(206, &[tag, all, ("content-length", "9")]), First::WithoutRange);
        assert_eq!(judge(416, &[("content-range", "bytes */0")]), First::Empty);
        assert_eq!(judge(416, &[]), First::WithoutRange);
        assert_eq!(judge(206, &[]), First::WithoutRange);
        let plain = |fields| first(StatusCode::PARTIAL_CONTENT, &headers(fields), false);
        assert!(matches!(plain(&[("content-length", "9")]), First::Whole { total: Some(9), .. }));
        assert_eq!(plain(&[("content-range", "bytes 0-4/10")]), First::Refused(206));
        assert!(matches!(judge(200, &[]), First::Whole { total: None, .. }));
        assert_eq!(judge(302, &[("location", "/x")]), First::Redirect("/x".to_owned()));
        assert_eq!(judge(302, &[]), First::Refused(302));
        assert!(
            matches!(judge(503, &[("retry-after", "7")]), First::Later { after: Some(after), .. } if after.as_secs() == 7)
        );
    }

    #[test]
    fn a_part_of_another_version_is_never_taken() {
        let tag = Validator::ETag("\"1\"".to_owned());
        let judge =
            |status, fields| part(StatusCode::from_u16(status).expect("a status"), &headers(fields), (5, 10), 10, &tag);
        assert_eq!(judge(206, &[("etag", "\"1\""), ("content-range", "bytes 5-9/10")]), Part::Range(10));
        assert_eq!(judge(206, &[("content-range", "bytes 5-7/10")]), Part::Range(8));
        assert_eq!(judge(206, &[("etag", "\"2\""), ("content-range", "bytes 5-9/10")]), Part::Changed);
        assert_eq!(judge(206, &[("content-range", "bytes 5-9/11")]), Part::Changed);
        assert_eq!(judge(206, &[("content-range", "bytes 4-9/10")]), Part::NoRange);
        assert_eq!(judge(206, &[]), Part::NoRange);
        assert_eq!(judge(200, &[("etag", "\"2\"")]), Part::Changed);
        assert_eq!(judge(200, &[("etag", "\"1\"")]), Part::NoRange);
        assert!(matches!(judge(429, &[]), Part::Later { .. }));
    }
}
