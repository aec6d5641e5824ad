//! A whole capture: read, followed, judged.

use crate::Error;
use crate::connection::{Connection, Endpoint};
use crate::facts::Facts;
use crate::rules;
use crate::sender::Sender;
use crate::table::Table;
use model::{CaptureReport, Flow, Retransmits, Series, TokenBucket, Vantage, Way};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wire::filter::Filter;
use wire::{Capture, Decoded, Decoder, Other};

/// What is wanted of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Record the series that plots draw; without them a diagnosis is a little faster and takes less memory.
    pub series: bool,
    /// Which packets are looked at; `None` for all.
    pub filter: Option<Filter>,
}

impl Default for Options {
    fn default() -> Self {
        Self { series: true, filter: None }
    }
}

/// A capture's connections, judged; those where most time could be saved come first.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureDiagnosis {
    /// What is reported; [`Flow::id`] numbers flows in order of their first packets.
    pub report: CaptureReport,
    /// What is drawn, by the index of the flow in the report; empty for flows past the 256th and where not asked for. Each series
    /// has at most 4,000 points.
    pub series: Vec<Series>,
}

/// Diagnoses a capture file.
///
/// # Errors
/// [`Error`] when the file cannot be opened or read, or is no capture. A file that is cut or damaged is no error: the report's
/// notes say what is missing.
pub fn diagnose_file(path: &Path) -> Result<CaptureDiagnosis, Error> {
    diagnose_file_with(path, Options::default())
}

/// Diagnoses a capture file, as `options` say.
///
/// # Errors
/// As [`diagnose_file`].
pub fn diagnose_file_with(path: &Path, options: Options) -> Result<CaptureDiagnosis, Error> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|cause| Error::Open { path: name.clone(), cause })?;
    diagnose_reader_with(file, &name, options)
}

/// Diagnoses the capture that `from` gives; `name` is what the report and errors call it.
///
/// # Errors
/// [`Error`] when it cannot be read, or is no capture.
pub fn diagnose_reader(from: impl Read, name: &str) -> Result<CaptureDiagnosis, Error> {
    diagnose_reader_with(from, name, Options::default())
}

/// Diagnoses the capture that `from` gives, as `options` say.
///
/// # Errors
/// As [`diagnose_reader`].
pub fn diagnose_reader_with(from: impl Read, name: &str, options: Options) -> Result<CaptureDiagnosis, Error> {
    let mut capture = Capture::new(from).map_err(|error| Error::from_wire(error, name))?;
    let mut decoder = Decoder::with_filter(options.filter);
    let mut table = Table::new(options.series);
    let mut others: BTreeMap<Other, u64> = BTreeMap::new();
    let (mut packets, mut bytes, mut cut) = (0u64, 0u64, 0u64);
    while let Some(packet) = capture.next().map_err(|error| Error::from_wire(error, name))? {
        packets += 1;
        bytes += u64::from(packet.original_len);
        cut += u64::from((packet.bytes.len() as u64) < u64::from(packet.original_len));
        decoder.decode(&packet, |decoded| match decoded {
            Decoded::Tcp(segment) => table.packet(packet.interface, packet.at, packet.number, &segment),
            Decoded::Other(other) => *others.entry(other).or_default() += 1,
        });
    }
    let mut notes = capture.damage().notes();
    notes.extend(others.iter().map(|(other, count)| note_of(*other, *count)));
    if cut > 0 {
        notes.push(format!("{cut} packets are cut by the snapshot length; their headers are what is analysed"));
    }
    let duplicates: u64 = table.connections.iter().map(|c| c.tap_duplicates).sum();
    if duplicates > 0 {
        notes.push(format!("the tap delivered {duplicates} packets twice; the second copies were dropped"));
    }
    let several = capture.interfaces().len() > 1;
    let mut found = Vec::with_capacity(table.connections.len());
    for (id, mut connection) in table.connections.into_iter().enumerate() {
        connection.finish();
        let interface = capture.interfaces().get(connection.interface as usize).filter(|_| several);
        let interface = interface.map(|i| i.name.clone().unwrap_or_else(|| connection.interface.to_string()));
        found.push(flow(id as u64, &connection, interface));
    }
    // Costliest first: by the time that could be saved. The sort is stable, so equals stay in order of first packets.
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (flows, series) = found.into_iter().map(|(_, flow, series)| (flow, series)).unzip();
    let truncated = capture.damage().truncated;
    Ok(CaptureDiagnosis {
        report: CaptureReport { file: name.to_owned(), packets, bytes, truncated, notes, flows },
        series,
    })
}

fn note_of(other: Other, count: u64) -> String {
    let s = if count == 1 { " is" } else { "s are" };
    match other {
        Other::UnknownLink => format!("{count} packet{s} of a link type that is not known here"),
        Other::NotIp => format!("{count} packet{s} not IP"),
        Other::NotTcp => format!("{count} packet{s} IP but not TCP"),
        Other::Encrypted => {
            format!("{count} frame{s} of 802.11 and encrypted: capture behind the decryption to see what is in them")
        }
        Other::Fragment => format!("{count} packet{s} later fragments whose first is not before them in the capture"),
        Other::Unwanted => format!("{count} packet{s} TCP that the filter leaves out"),
        Other::Malformed => format!("{count} packet{s} cut within the headers, or contradicting themselves there"),
    }
}

fn flow(id: u64, connection: &Connection, interface: Option<String>) -> (f64, Flow, Series) {
    let [client, server] = &connection.sides;
    let (direction, main) = if client.sender.bytes > server.sender.bytes { (Way::Up, 0) } else { (Way::Down, 1) };
    let sender = &connection.sides[main].sender;
    let vantage = vantage(connection, main);
    let handshake = connection.opening.report();
    let [syn_client, syn_server] = connection.opening.syn;
    let scaling_missing =
        syn_client.seen && syn_server.seen && (syn_client.wscale.is_none() || syn_server.wscale.is_none());
    let held =
        if client.sender.held.time > server.sender.held.time { &client.sender.held } else { &server.sender.held };
    let facts = Facts::new(sender, vantage, scaling_missing, held);
    let (verdict, findings) = rules::judge(&facts);
    let cost_s = facts.phase_s * (1.0 - 1.0 / verdict.gain.unwrap_or(1.0).max(1.0));
    let losses = &sender.losses;
    let flow = Flow {
        id,
        client: text(client.at),
        server: text(server.at),
        interface,
        vantage,
        start: connection.started.as_nanos() as f64 / 1e9,
        duration_s: connection.ended.seconds_since(connection.started),
        bytes_up: client.sender.bytes,
        bytes_down: server.sender.bytes,
        packets_up: client.packets,
        packets_down: server.packets,
        handshake,
        direction,
        retransmits: Retransmits {
            total: losses.total,
            fast: losses.fast,
            rto: losses.timer,
            tlp: losses.probe,
            spurious: losses.spurious,
            spurious_dsack: losses.proofs.dsack,
            spurious_eifel: losses.proofs.eifel,
            spurious_timing: losses.proofs.timing,
            dsacks: losses.dsacks,
        },
        out_of_order: sender.out_of_order,
        dup_acks: sender.dup_acks,
        zero_windows: sender.zero_windows,
        window_full: sender.window_full,
        rtt_min_ms: sender.rtt.min.map(|min| min as f64 / 1e6),
        goodput_bps: facts.rate() * 8.0,
        policer: facts.bucket.map(|bucket| TokenBucket { rate_bps: bucket.rate * 8.0, burst_bytes: bucket.burst }),
        limits: facts.limits(),
        verdict,
        findings,
        remedies: Vec::new(),
    };
    (cost_s, flow, series(sender))
}

/// An end, as people write it.
fn text((address, port): Endpoint) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}

/// Where the tap is, seen from side `main`, by the two halves of the handshake or, without one, by timestamp echoes.
fn vantage(connection: &Connection, main: usize) -> Vantage {
    /// One half of the round trip this many times the other puts the tap at an end.
    const FAR: u64 = 4;
    /// Below it both halves are a host's own answering time, and say nothing.
    const FLOOR_NS: u64 = 100_000;
    let opening = &connection.opening;
    let halves = [opening.to_client, opening.to_server];
    if let (Some(near), Some(far)) = (halves[main], halves[1 - main]) {
        return match (near.max(far) > FLOOR_NS, near.saturating_mul(FAR) < far, far.saturating_mul(FAR) < near) {
            (true, true, _) => Vantage::Sender,
            (true, _, true) => Vantage::Receiver,
            (true, ..) => Vantage::Middle,
            (false, ..) => Vantage::Unknown,
        };
    }
    let side = &connection.sides[main];
    if !side.sender.times_acks {
        return Vantage::Receiver;
    }
    // Acknowledgements that take longer than any echo: the sender is near.
    match (side.echo.min, side.sender.rtt.min) {
        (Some(echo), Some(acked)) if acked > FLOOR_NS && echo.saturating_mul(FAR) < acked => Vantage::Sender,
        _ => Vantage::Unknown,
    }
}

fn series(sender: &Sender) -> Series {
    let Some(drawn) = &sender.drawn else { return Series::default() };
    let start = sender.timeline.start.unwrap_or(0) as f64 / 1e9;
    let width = sender.timeline.width as f64 / 1e9;
    // A rate over bins shorter than a round trip shows bursts, not throughput.
    let mut throughput = Vec::new();
    let (mut from, mut sum) = (0u64, 0u64);
    let span = sender.rtt.smoothed / 1e9;
    let per = if width > 0.0 { (span / width).ceil().max(1.0) as u64 } else { 1 };
    for slice in &sender.timeline.slices {
        if slice.index >= from + per {
            throughput.push(model::Point {
                t: start + (from + per) as f64 * width,
                v: sum as f64 * 8.0 / (per as f64 * width),
            });
            let next = slice.index / per * per;
            if next > from + per {
                // Silence between: down to zero and up again.
                throughput.push(model::Point { t: start + (from + 2 * per) as f64 * width, v: 0.0 });
                throughput.push(model::Point { t: start + next as f64 * width, v: 0.0 });
            }
            (from, sum) = (next, 0);
        }
        sum += slice.delivered;
    }
    if sum > 0 && width > 0.0 {
        throughput
            .push(model::Point { t: start + (from + per) as f64 * width, v: sum as f64 * 8.0 / (per as f64 * width) });
    }
    throughput.truncate(4_000);
    Series {
        flight_bytes: drawn.flight.points(),
        receive_window_bytes: drawn.window.points(),
        cwnd_bytes: Vec::new(),
        sent_bytes: drawn.sent.points(),
        acked_bytes: drawn.acked.points(),
        throughput_bps: throughput,
        rtt_ms: drawn.rtt.points(),
        marks: drawn.marks.clone(),
    }
}
