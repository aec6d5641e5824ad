//! `thalweg diagnose --live` without packets: this host's connections, asked of the kernel ten times a second.

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_host::sockets::connections;
use thalweg_infer::CaptureDiagnosis;
use thalweg_infer::socket::{Sample, Sampled, diagnose};
use thalweg_model::CaptureReport;
use thalweg_wire::filter::Filter;

/// The name of a live capture in reports.
pub(crate) const NAME: &str = "live";
/// A prime: what programs do every ten or fifty milliseconds is not always met at the same moment.
const EVERY: Duration = Duration::from_millis(97);
/// Samples kept of a connection: past it every other one is forgotten, and from then on half as many are taken.
const MOST_SAMPLES: usize = 1_024;
/// Connections that are followed.
const MOST_CONNECTIONS: usize = 4_096;

struct Followed {
    one: Sampled,
    /// Rounds from one that is kept to the next.
    stride: u64,
}

/// Asks until the time is over or Ctrl-C, and judges each connection that the filter wants and that moved data.
pub(crate) fn watch(
    args: &DiagnoseArgs,
    filter: &Filter,
    stop: &AtomicBool,
    why: &str,
) -> Result<CaptureDiagnosis, Failure> {
    let until = args.duration.map(|span| Instant::now() + span.to_duration());
    let mut followed: HashMap<u64, Followed> = HashMap::new();
    let mut left_out = 0u64;
    let mut round = 0u64;
    loop {
        let at_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        for connection in connections().map_err(Failure::host)? {
            if !filter.matches_connection(connection.local, connection.remote) {
                continue;
            }
            let order = followed.len() as u64;
            if order as usize >= MOST_CONNECTIONS && !followed.contains_key(&connection.cookie) {
                left_out += 1;
                continue;
            }
            let entry = followed.entry(connection.cookie).or_insert_with(|| Followed {
                one: Sampled {
                    id: order,
                    local: SocketAddr::from(connection.local),
                    remote: SocketAddr::from(connection.remote),
                    samples: Vec::new(),
                },
                stride: 1,
            });
            if round.is_multiple_of(entry.stride) {
                let field = |name: &str| connection.info.get(name) + connection.memory.get(name);
                entry.one.samples.push(Sample::of(at_s, field, u64::from(connection.unread)));
            }
            if entry.one.samples.len() >= MOST_SAMPLES {
                let mut keep = false;
                entry.one.samples.retain(|_| {
                    keep = !keep;
                    keep
                });
                entry.stride *= 2;
            }
        }
        if until.is_some_and(|until| Instant::now() >= until) || stop.load(Ordering::Relaxed) {
            break;
        }
        round += 1;
        std::thread::sleep(EVERY);
    }
    let mut all: Vec<Sampled> = followed.into_values().map(|followed| followed.one).collect();
    all.sort_by_key(|one| one.id);
    let flows = diagnose(&all);
    let mut notes = vec![why.to_owned()];
    let quiet = all.len() - flows.len();
    if quiet > 0 {
        notes.push(format!("{quiet} connections moved no data while they were watched"));
    }
    if left_out > 0 {
        notes.push(format!("more than {MOST_CONNECTIONS} connections matched; the others were left out"));
    }
    let packets = flows.iter().map(|flow| flow.packets_up + flow.packets_down).sum();
    let bytes = flows.iter().map(|flow| flow.bytes_up + flow.bytes_down).sum();
    let report = CaptureReport { file: NAME.to_owned(), packets, bytes, truncated: false, notes, flows };
    let slowed = report.flows.iter().any(|flow| thalweg_infer::is_slowed(flow));
    Ok(CaptureDiagnosis {
        connections: report.flows.len() as u64,
        report,
        series: Vec::new(),
        failed: Vec::new(),
        slowed,
    })
}
