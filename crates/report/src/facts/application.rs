//! The TLS handshake and the requests of a connection, in words.

use crate::figures::{count, counted, data, milliseconds};
use thalweg_model::{Flow, RequestTiming};

/// Requests shown of a connection: those that took longest.
pub(crate) const SHOWN: usize = 5;

/// Turns are listed if the longest wait is this many times the median, or if they are few: rows that are alike add nothing to the summary.
const OUTLIER: f64 = 2.0;

/// Headings of the cells that [`cells`] gives.
pub(crate) const HEADINGS: [&str; 7] = ["#", "request", "status", "wait", "transfer", "up", "down"];

/// The name lookup before the connection.
pub(crate) fn lookup(flow: &Flow) -> Option<String> {
    let lookup = flow.application.as_ref()?.lookup.as_ref()?;
    let mut text = format!("{} · {}", lookup.name, milliseconds(lookup.took_ms));
    if lookup.again > 0 {
        text.push_str(&format!(" · queries sent again {}", count(lookup.again.into())));
    }
    Some(text)
}

/// The TLS handshake.
pub(crate) fn tls(flow: &Flow) -> Option<String> {
    let tls = flow.application.as_ref()?.tls.as_ref()?;
    let mut parts = Vec::new();
    parts.extend(tls.server_name.clone());
    parts.extend(tls.version.as_ref().map(|version| format!("TLS {version}")));
    parts.push(match tls.handshake_ms {
        Some(took) => format!("handshake {}", milliseconds(took)),
        None => "its handshake does not end in the capture".to_owned(),
    });
    match &tls.chosen {
        Some(chosen) => parts.push(format!("speaks {chosen}")),
        None if !tls.offered.is_empty() => parts.push(format!("offers {}", tls.offered.join(", "))),
        None => {}
    }
    Some(parts.join(" · "))
}

/// How many requests there were, and how long they waited. A turn alone is no news: the phases of the connection have it.
pub(crate) fn waits(flow: &Flow) -> Option<String> {
    let application = flow.application.as_ref()?;
    let waits = application.waits?;
    let is_known = application.tls.is_some() || application.requests.iter().any(|one| one.method.is_some());
    if waits.count < 2 && !is_known {
        return None;
    }
    let mut text = count(waits.count as f64);
    if let (Some(p50), Some(p90), Some(max)) = (waits.p50_ms, waits.p90_ms, waits.max_ms) {
        let [p50, p90, max] = [p50, p90, max].map(milliseconds);
        text.push_str(&format!(" · first byte after {p50} (median), {p90} (90 %), {max} (longest)"));
    }
    if waits.unanswered > 0 {
        text.push_str(&format!(" · {} without a response", counted(waits.unanswered, "request")));
    }
    Some(text)
}

/// The requests that took longest, in their order; none where [`waits`] has nothing, or rows would be alike.
pub(crate) fn slowest(flow: &Flow) -> Vec<&RequestTiming> {
    let Some(application) = flow.application.as_ref().filter(|_| waits(flow).is_some()) else { return Vec::new() };
    let mut all: Vec<_> = application.requests.iter().collect();
    let is_known = all.iter().any(|one| one.method.is_some());
    let times = application.waits.and_then(|waits| waits.max_ms.zip(waits.p50_ms));
    let varies = times.is_some_and(|(max, median)| max >= OUTLIER * median);
    if !is_known && !varies && all.len() > SHOWN {
        return Vec::new();
    }
    let time = |one: &RequestTiming| if one.wait_ms.is_some() { one.total_ms() } else { f64::INFINITY };
    all.sort_by(|a, b| time(b).total_cmp(&time(a)));
    all.truncate(SHOWN);
    all.sort_by_key(|one| one.number);
    all
}

/// All of it for a page: the handshake, the waits, and a line for each of the slowest requests.
pub(crate) fn lines(flow: &Flow) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    lines.extend(lookup(flow).map(|text| ("name", text)));
    lines.extend(tls(flow).map(|text| ("TLS", text)));
    lines.extend(waits(flow).map(|text| ("requests", text)));
    lines.extend(slowest(flow).into_iter().map(|one| {
        let [number, name, status, wait, transfer, up, down] = cells(one);
        let status = if status.is_empty() { status } else { format!(" · status {status}") };
        let text = format!("{number}: {name}{status} · wait {wait} · transfer {transfer} · {up} up, {down} down");
        ("request", text)
    }));
    lines
}

/// A request, cell by cell.
pub(crate) fn cells(one: &RequestTiming) -> [String; 7] {
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), milliseconds);
    [
        count(one.number as f64),
        one.name(),
        one.status.map(|status| status.to_string()).unwrap_or_default(),
        time(one.wait_ms),
        time(one.transfer_ms),
        data(one.bytes_up as f64),
        data(one.bytes_down as f64),
    ]
}
