//! What the fuzz target of a download's parsers does with an input, and the corpus test, too.

use hyper::header::{CONTENT_DISPOSITION, HeaderMap, HeaderName, HeaderValue};
use std::time::SystemTime;
use thalweg_get::answer::{First, Part, first, part};
use thalweg_get::fields::{ContentRange, Validator, digests, retry_after};
use thalweg_get::file_name;
use thalweg_get::journal::Journal;

/// Any bytes as a journal, or as a status and header fields. Returns how much of it made sense.
///
/// Whatever they are: a journal that is taken claims no bytes past its end, an answer that is taken names the bytes that were asked for,
/// and a name leads out of no folder.
pub(crate) fn get(bytes: &[u8]) -> usize {
    if let Some(journal) = Journal::parse(bytes) {
        assert!(journal.done.is_valid() && journal.done.end() <= journal.total);
        assert_eq!(Journal::parse(journal.text().as_bytes()), Some(journal));
        return 1;
    }
    let (status, headers) = response(bytes);
    let mut sense = usize::from(retry_after(&headers, SystemTime::UNIX_EPOCH).is_some());
    for ranged in [true, false] {
        sense += match first(status, &headers, ranged) {
            First::Ranges { total, validator } => {
                assert!(ranged && total > 0 && validator.agrees(&headers));
                let asked = (0, total);
                assert_eq!(part(status, &headers, asked, total, &validator), Part::Range(total));
                1
            }
            First::Redirect(to) => to.len().min(1),
            _ => 0,
        };
    }
    let validator = Validator::of(&headers).unwrap_or(Validator::ETag("\"1\"".to_owned()));
    if let Part::Range(until) = part(status, &headers, (500, 1_000), 2_000, &validator) {
        assert!((501..=1_000).contains(&until));
        sense += 1;
    }
    let text = String::from_utf8_lossy(bytes);
    if let Some(ContentRange { range: Some((start, end)), total }) = ContentRange::parse(&text) {
        assert!(start < end && total.is_none_or(|total| end <= total));
        sense += 1;
    }
    let disposition =
        headers.get(CONTENT_DISPOSITION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let mut url: url::Url = "http://h/".parse().expect("a URL");
    url.set_path(&text);
    for field in [None, disposition.as_deref(), Some(&text)] {
        let name = file_name::choose(field, &url);
        assert!(!name.is_empty() && name != ".." && !name.starts_with(['.', '-']));
        assert!(!name.contains(['/', '\0']) && name.len() <= 255);
    }
    sense + digests(&headers, true).len().min(1)
}

/// The first line as a status, the others as header fields; what is none is left out.
fn response(bytes: &[u8]) -> (hyper::StatusCode, HeaderMap) {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let status = lines.next().and_then(|line| hyper::StatusCode::from_bytes(line.trim_ascii()).ok());
    let fields = lines.filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok()?;
        Some((name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?))
    });
    let mut headers = HeaderMap::new();
    for (name, value) in fields.take(100) {
        headers.append(name, value);
    }
    (status.unwrap_or(hyper::StatusCode::PARTIAL_CONTENT), headers)
}
