//! What the fuzz target of the HTTP front does with an input, and the corpus test, too.

use thalweg_edge::http::{Limits, Range, Target, forwarded, matches_any, parse, proxy};

/// Any bytes as requests: each is read or refused, nothing is read twice, and no name in a path is a way out. Returns how many were read.
pub(crate) fn http(bytes: &[u8]) -> usize {
    let (mut rest, mut read) = (bytes, 0);
    if let Ok(Some(proxied)) = proxy::parse(bytes) {
        assert!(proxied.used <= bytes.len());
        read += 1;
    }
    while let Ok(Some((request, len))) = parse(rest, &Limits::default()) {
        assert!(len > 0 && len <= rest.len());
        if let Ok(target) = Target::parse(request.path) {
            assert!(target.names().iter().all(|name| !name.is_empty() && name != ".." && !name.contains('/')));
        }
        let _ = request.query.get("token");
        let _ = request.forwarded_for.and_then(|field| forwarded::client(field, &[]));
        let _ = request.range.and_then(Range::parse).map(|range| range.of(1_000));
        let _ = request.if_none_match.map(|field| matches_any(field, "\"1\""));
        rest = &rest[len..];
        read += 1;
    }
    read
}
