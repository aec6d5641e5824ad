//! The connection of a capture that is to be fixed.

use crate::failure::Failure;
use infer::{CaptureDecoder, CaptureDiagnosis, Options, PlotSelection, Retain, Shard};
use model::{Flow, Series};
use std::fs::File;
use std::path::Path;
use units::Timestamp;
use wire::Capture;

/// A connection, and what its plots draw.
#[derive(Debug)]
pub(crate) struct CapturedFlow {
    pub(crate) flow: Flow,
    pub(crate) series: Series,
}

/// Reads the connection number `id`, or the costliest.
///
/// # Errors
/// A file that is no capture, a capture without a TCP connection, or no connection of that number.
pub(crate) fn read(path: &Path, id: Option<u64>) -> Result<CapturedFlow, Failure> {
    let wanted = if id.is_some() { Retain::All } else { Retain::Costliest(1) };
    let options = Options { drawn: PlotSelection::None, filter: None, wanted };
    let found = infer::diagnose_file_with(path, options).map_err(|error| {
        Failure::user(error.to_string()).hint(
            "fix takes a capture (pcap or pcapng), a scenario file, or the name of a built-in scenario; thalweg lab list shows these",
        )
    })?;
    let flows = &found.report.flows;
    let chosen = match id {
        Some(id) => flows.iter().find(|flow| flow.id == id).ok_or_else(|| {
            Failure::user(format!("{} has no connection number {id}", path.display()))
                .hint("thalweg diagnose lists them with their numbers")
        })?,
        None => flows.first().ok_or_else(|| {
            Failure::user(format!("{} has no TCP connection", path.display()))
                .hint("capture the port of the slow service: tcpdump -s 128 -w slow.pcap port 443")
        })?,
    };
    // Alone it is drawn; what it shares with others is known from all of them.
    let series = whole(path, chosen, None)?.series;
    Ok(CapturedFlow { flow: (**chosen).clone(), series })
}

/// The same connection, judged from its first `seconds` alone.
pub(crate) fn first(path: &Path, flow: &Flow, seconds: f64) -> Result<CapturedFlow, Failure> {
    whole(path, flow, Some(Timestamp::from_nanos(((flow.start + seconds) * 1e9) as u64)))
}

/// Reads one connection again, with its plots, up to `until`.
fn whole(path: &Path, flow: &Flow, until: Option<Timestamp>) -> Result<CapturedFlow, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::host(format!("cannot read {}: {error}", path.display()));
    let filter = between(&flow.client, &flow.server).and_then(|text| text.parse().ok());
    let drawn = PlotSelection::Of(vec![flow.first_packet]);
    let options = Options { drawn, filter, wanted: Retain::All };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let mut capture = Capture::new(file).map_err(|error| failed(&error))?;
    let mut decoder = CaptureDecoder::new(options.filter.clone());
    let mut shard = Shard::new(options);
    while let Some(packet) = capture.next().map_err(|error| failed(&error))? {
        if until.is_some_and(|until| packet.at.as_nanos() > until.as_nanos()) {
            break;
        }
        decoder.packet(&packet, |seen| shard.packet(&seen));
    }
    decoder.finish(|seen| shard.packet(&seen));
    let found: CaptureDiagnosis = infer::merge(&path.display().to_string(), &capture, decoder, vec![shard.finish()]);
    let at = found.report.flows.iter().position(|other| other.first_packet == flow.first_packet);
    let at = at.ok_or_else(|| failed(&"the connection is not there when it is read again"))?;
    let series = found.series_of(at).cloned().unwrap_or_default();
    let mut again = (*found.report.flows[at]).clone();
    again.id = flow.id;
    Ok(CapturedFlow { flow: again, series })
}

/// The filter that keeps packets between two ends, each `ip:port`.
fn between(client: &str, server: &str) -> Option<String> {
    let split = |end: &str| {
        let (address, port) = end.rsplit_once(':')?;
        Some((address.trim_matches(['[', ']']).to_owned(), port.to_owned()))
    };
    let ((client, client_port), (server, server_port)) = (split(client)?, split(server)?);
    Some(format!("host {client} and host {server} and port {client_port} and port {server_port}"))
}
