//! Any bytes as requests: each is read or refused, nothing is read twice, and no name in a path is a way out.
#![no_main]

use edge::http::{Limits, Range, Target, forwarded, matches_any, parse, proxy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(proxied)) = proxy::parse(bytes) {
        assert!(proxied.used <= bytes.len());
    }
    let mut rest = bytes;
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
    }
});
