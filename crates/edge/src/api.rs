//! What operators ask: streams, viewers, threads, figures for Prometheus, and whether the server is well.

use crate::hooks::{Event, Outcome};
use crate::http::{Head, Method, Request, Status, Target, imf_fixdate};
use crate::shared::{Load, Shared};
use crate::token::is_same;
use crate::viewer::{Left, Protocol};
use serde_json::{Value, json};
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What answers operators.
#[derive(Debug, Default)]
pub struct Api {}

/// Most viewers in a page, 400 KB with agents of 100 bytes; as many without `limit`.
const PAGE_MAX: usize = 1_000;

/// An answer's kind and text.
type Found = Result<(&'static str, String), Problem>;

/// Why there is none.
struct Problem {
    status: Status,
    why: String,
    /// The methods that there are instead, after [`Status::MethodNotAllowed`]. Source: RFC 9110 §15.5.6.
    allow: &'static str,
}

impl Problem {
    fn new(status: Status, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), allow: "" }
    }

    fn method(allow: &'static str) -> Self {
        Self { status: Status::MethodNotAllowed, why: format!("here is {allow}"), allow }
    }
}

impl Api {
    /// Answers: the head goes into `head`, the body is returned.
    pub fn respond(&mut self, request: &Request<'_>, shared: &Shared, head: &mut Vec<u8>) -> Arc<[u8]> {
        let (status, allow, kind, text) = match self.find(request, shared) {
            Ok((kind, text)) => (Status::Ok, "", kind, text),
            Err(Problem { status, why, allow }) => {
                (status, allow, "application/json", format!("{}\n", json!({ "error": why })))
            }
        };
        let mut fields = Head::begin(head, status, &imf_fixdate(shared.hub.now_ms() / 1_000))
            .field("Content-Type", kind)
            .field("Cache-Control", "no-store")
            .length(text.len() as u64);
        if status == Status::Unauthorized {
            fields = fields.field("WWW-Authenticate", "Bearer");
        }
        if !allow.is_empty() {
            fields = fields.field("Allow", allow);
        }
        if !request.keep_alive {
            fields = fields.field("Connection", "close");
        }
        fields.end();
        if request.method == Method::Head { Arc::from([]) } else { text.into_bytes().into() }
    }

    fn find(&self, request: &Request<'_>, shared: &Shared) -> Found {
        let target = Target::parse(request.path).map_err(|refusal| Problem::new(refusal.status(), refusal.text()))?;
        let names: Vec<&str> = target.names().iter().map(AsRef::as_ref).collect();
        let is_read = matches!(request.method, Method::Get | Method::Head);
        match (names.as_slice(), is_read) {
            (["health"], true) => return json_text(&json!({ "status": "ok" })),
            (["ready"], true) if shared.is_draining.load(Ordering::Acquire) => {
                return Err(Problem::new(Status::ServiceUnavailable, "the server ends"));
            }
            (["ready"], true) => return json_text(&json!({ "status": "ready" })),
            _ => {}
        }
        let (_, config) = shared.hub.config.get();
        if let Some(token) = &config.api.token
            && !is_same(request.authorization.and_then(bearer).unwrap_or_default(), token)
        {
            return Err(Problem::new(Status::Unauthorized, "Authorization: Bearer TOKEN is needed, with api.token"));
        }
        // A scraper may send parameters of its own with /metrics.
        if let ["api", what] = names.as_slice()
            && is_read
        {
            known_parameters(request, if *what == "viewers" { &["stream", "limit", "after"] } else { &[] })?;
        }
        match (names.as_slice(), request.method) {
            (["metrics"], _) if is_read => Ok(("text/plain; version=0.0.4", metrics(shared))),
            (["api", "streams"], _) if is_read => json_text(&streams(shared)),
            (["api", "viewers"], _) if is_read => viewers(request, shared),
            (["api", "threads"], _) if is_read => json_text(&threads(shared)),
            (["api", "statistics"], _) if is_read => json_text(&statistics(shared)),
            (["api", "viewers", id], Method::Delete) if shared.viewers.kick(id) => {
                shared.hub.signals.iter().for_each(|signal| signal.raise());
                json_text(&json!({ "kicked": id }))
            }
            (["api", "streams", _, .., _], Method::Delete) => {
                let key = names[2..].join("/");
                match shared.hub.kick_publisher(&key) {
                    true => json_text(&json!({ "closed": key })),
                    false => Err(Problem::new(Status::NotFound, "nobody publishes this stream")),
                }
            }
            (["metrics"] | ["api", "streams" | "viewers" | "threads" | "statistics"], _) => {
                Err(Problem::method("GET, HEAD"))
            }
            (["api", "viewers", _], Method::Delete) => {
                Err(Problem::new(Status::NotFound, "there is no viewer with this id"))
            }
            (["api", "viewers", _] | ["api", "streams", _, .., _], _) => Err(Problem::method("DELETE")),
            _ => Err(Problem::new(Status::NotFound, "there is nothing at this path")),
        }
    }
}

/// The token of `Authorization: Bearer TOKEN`. The scheme is case-insensitive. Source: RFC 9110 §11.1, §11.4.
fn bearer(field: &str) -> Option<&str> {
    let (scheme, token) = field.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim_start_matches(' '))
}

fn json_text(value: &Value) -> Found {
    Ok(("application/json", format!("{value}\n")))
}

/// Refuses parameters of other names than these, and one given twice: a filter that is misspelt would select everything.
fn known_parameters(request: &Request<'_>, known: &[&str]) -> Result<(), Problem> {
    let count = |known: &str| request.query.pairs().filter(|(name, _)| *name == known).count();
    if let Some(twice) = known.iter().find(|known| count(known) > 1) {
        return Err(Problem::new(Status::BadRequest, format!("the parameter '{twice}' is given more than once")));
    }
    let odd = request.query.pairs().map(|(name, _)| name).find(|name| !name.is_empty() && !known.contains(name));
    let Some(odd) = odd else { return Ok(()) };
    let there_are = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Problem::new(Status::BadRequest, format!("unknown parameter '{odd}': known here: {there_are}")))
}

/// A page of viewers: `limit` of those after the number `after`, of `stream` or of all.
fn viewers(request: &Request<'_>, shared: &Shared) -> Found {
    let query = request.query;
    let bad = |why: String| Problem::new(Status::BadRequest, why);
    let limit: NonZeroUsize = match query.get("limit") {
        Some(limit) => limit
            .parse()
            .map_err(|_| bad(format!("limit is a number, at least 1; a page has {PAGE_MAX} viewers at most")))?,
        None => NonZeroUsize::MAX,
    };
    let after = query.get("after").map(|id| u64::from_str_radix(&id, 16)).transpose();
    let after = after.map_err(|_| bad("after is the 'next' of the page before, a hexadecimal number".to_owned()))?;
    let page = shared.viewers.page(query.get("stream").as_deref(), after, limit.get().min(PAGE_MAX));
    json_text(&json!({
        "viewers": page.viewers,
        "total": page.total,
        "next": page.next.map(|number| format!("{number:x}")),
    }))
}

fn streams(shared: &Shared) -> Value {
    let counts = shared.viewers.counts();
    let count = |key: &str, protocol| counts.get(&(key.into(), protocol)).copied().unwrap_or(0);
    let (_, streams) = shared.hub.streams.get();
    let list = streams.values().map(|stream| {
        let (_, hls) = stream.hls.get();
        json!({
            "stream": stream.key,
            "live": stream.is_live.load(Ordering::Relaxed),
            "began_ms": stream.began_ms,
            "received_bytes": stream.received_bytes.load(Ordering::Relaxed),
            "hls_viewers": count(&stream.key, Protocol::Hls),
            "flv_viewers": count(&stream.key, Protocol::Flv),
            "segments": hls.pieces.len(),
            "segment_bytes": hls.pieces.iter().map(|piece| piece.segment.len()).sum::<usize>(),
            "flv_bytes": stream.flv.bytes(),
            "publisher": *stream.publication.get().1,
        })
    });
    json!({ "streams": list.collect::<Vec<_>>() })
}

fn threads(shared: &Shared) -> Value {
    let get = |value: &AtomicU64| value.load(Ordering::Relaxed);
    let list = shared.loads.iter().enumerate().map(|(number, load)| {
        json!({
            "thread": number,
            "connections": get(&load.connections),
            "viewers": get(&load.viewers),
            "accepted": get(&load.accepted),
            "refused": get(&load.refused),
            "requests": get(&load.requests),
            "bytes": get(&load.bytes),
            "timeouts": get(&load.timeouts),
            "busy_us": get(&load.busy_us),
        })
    });
    json!({ "threads": list.collect::<Vec<_>>() })
}

fn statistics(shared: &Shared) -> Value {
    let (_, streams) = shared.hub.streams.get();
    let pieces = streams.values().flat_map(|stream| stream.hls.get().1.pieces.iter().cloned().collect::<Vec<_>>());
    let (segments, segment_bytes) =
        pieces.fold((0, 0), |(count, bytes), piece| (count + 1, bytes + piece.segment.len()));
    json!({
        "streams": streams.len(),
        "connections": shared.connections.count(),
        "viewers": shared.viewers.count(),
        "segments": segments,
        "segment_bytes": segment_bytes,
        "flv_bytes": streams.values().map(|stream| stream.flv.bytes()).sum::<u64>(),
        "journal_lost": shared.viewers.journal_lost(),
        "log_lost": shared.log.lost(),
        "resident_bytes": resident_bytes(),
    })
}

/// What the process has in memory. Source: proc_pid_statm(5).
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// In base units: seconds and bytes. Source: Prometheus text exposition format 0.0.4.
fn metrics(shared: &Shared) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: &[(String, f64)]| {
        let _ = writeln!(text, "# HELP thalweg_{name} {help}\n# TYPE thalweg_{name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(text, "thalweg_{name}{labels} {value}");
        }
    };
    let (_, streams) = shared.hub.streams.get();
    let own = |value: u64| vec![(String::new(), value as f64)];
    family("streams", "gauge", "Streams there are.", &own(streams.len() as u64));
    family("connections", "gauge", "Viewers' connections.", &own(u64::from(shared.connections.count())));
    family(
        "viewers_seen_total",
        "counter",
        "Viewers that have come.",
        &own(shared.viewers.seen.load(Ordering::Relaxed)),
    );
    family(
        "stalls_total",
        "counter",
        "Times players stood still.",
        &own(shared.viewers.stalls.load(Ordering::Relaxed)),
    );
    let left = Left::ALL.iter().zip(&shared.viewers.left);
    let left =
        left.map(|(left, count)| (format!("{{reason=\"{}\"}}", left.name()), count.load(Ordering::Relaxed) as f64));
    family("viewers_left_total", "counter", "Viewers that have gone.", &left.collect::<Vec<_>>());
    let stalled_s = shared.viewers.stalled_ms.load(Ordering::Relaxed) as f64 / 1e3;
    family("stalled_seconds_total", "counter", "For how long players stood still.", &[(String::new(), stalled_s)]);
    family("journal_lost_total", "counter", "Journal lines lost.", &own(shared.viewers.journal_lost()));
    family("log_lost_total", "counter", "Log lines lost.", &own(shared.log.lost()));
    family("resident_bytes", "gauge", "Memory of the process.", &own(resident_bytes().unwrap_or(0)));
    let label = |key: &str| key.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let mut viewers: Vec<_> = shared.viewers.counts().into_iter().collect();
    viewers.sort_by(|one, other| one.0.0.cmp(&other.0.0));
    let viewers: Vec<_> = viewers
        .iter()
        .map(|((key, kind), count)| {
            (format!("{{stream=\"{}\",protocol=\"{}\"}}", label(key), kind.name()), *count as f64)
        })
        .collect();
    family("viewers", "gauge", "Viewers at present.", &viewers);
    let received = streams.values().map(|stream| {
        (format!("{{stream=\"{}\"}}", label(&stream.key)), stream.received_bytes.load(Ordering::Relaxed) as f64)
    });
    family("received_bytes_total", "counter", "Bytes of publishers.", &received.collect::<Vec<_>>());
    let outcomes = Event::ALL.iter().flat_map(|&event| Outcome::ALL.map(|outcome| (event, outcome)));
    let outcomes = outcomes.map(|(event, outcome)| {
        let labels = format!("{{event=\"{}\",outcome=\"{}\"}}", event.name(), outcome.name());
        (labels, shared.hooks.counted(event, outcome) as f64)
    });
    family("webhooks_total", "counter", "What became of webhooks' events.", &outcomes.collect::<Vec<_>>());
    let mut threads = |name: &str, help: &str, parts: f64, of: &dyn Fn(&Load) -> &AtomicU64| {
        let lines = shared.loads.iter().enumerate();
        let lines =
            lines.map(|(at, load)| (format!("{{thread=\"{at}\"}}"), of(load).load(Ordering::Relaxed) as f64 / parts));
        family(name, "counter", help, &lines.collect::<Vec<_>>());
    };
    threads("accepted_total", "Connections taken.", 1.0, &|load| &load.accepted);
    threads("refused_total", "Connections that found no room.", 1.0, &|load| &load.refused);
    threads("requests_total", "Requests.", 1.0, &|load| &load.requests);
    threads("sent_bytes_total", "Bytes of bodies.", 1.0, &|load| &load.bytes);
    threads("timeouts_total", "Connections cut off.", 1.0, &|load| &load.timeouts);
    threads("busy_seconds_total", "Time not spent waiting.", 1e6, &|load| &load.busy_us);
    text
}

#[cfg(test)]
mod tests {
    use super::bearer;

    #[test]
    fn the_scheme_is_read_in_any_case() {
        for field in ["Bearer a b", "bearer a b", "BEARER   a b"] {
            assert_eq!(bearer(field), Some("a b"), "{field}");
        }
        for field in ["Basic a b", "Bearer", "Bearera b", ""] {
            assert_eq!(bearer(field), None, "{field}");
        }
    }
}
