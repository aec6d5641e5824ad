//! The connection of a capture that is to be fixed.

use crate::failure::Failure;
use std::path::Path;
use thalweg_infer::{Options, PlotSelection, Retain};
use thalweg_model::{Flow, Series};
use thalweg_units::Timestamp;

/// Reads the connection number `id`, or the costliest.
///
/// # Errors
/// A file that is no capture, a capture without a TCP connection, or no connection of that number.
pub(crate) fn read(path: &Path, id: Option<u64>) -> Result<Flow, Failure> {
    let wanted = if id.is_some() { Retain::All } else { Retain::Costliest(1) };
    let options = Options { drawn: PlotSelection::None, filter: None, wanted };
    let found = thalweg_infer::diagnose_file_with(path, options).map_err(|error| {
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
    Ok((**chosen).clone())
}

/// Reads one connection again, with its plots, from all of its packets or those of its first `seconds`.
pub(crate) fn alone(path: &Path, flow: &Flow, seconds: Option<f64>) -> Result<(Flow, Series), Failure> {
    let filter = between(&flow.client, &flow.server).and_then(|text| text.parse().ok());
    let options = Options { drawn: PlotSelection::Of(vec![flow.first_packet]), filter, wanted: Retain::All };
    let until = seconds.map(|seconds| Timestamp::from_nanos(((flow.start + seconds) * 1e9) as u64));
    let found = match until {
        Some(until) => thalweg_infer::diagnose_file_until(path, options, until),
        None => thalweg_infer::diagnose_file_with(path, options),
    };
    let found = found.map_err(|error| Failure::host(error.to_string()))?;
    let again = found.into_flows().find(|(other, _)| other.first_packet == flow.first_packet);
    let gone = || Failure::host(format!("{}: the connection is not there when it is read again", path.display()));
    let (mut again, series) = again.ok_or_else(gone)?;
    again.id = flow.id;
    Ok((again, series))
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
