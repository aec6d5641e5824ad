//! What of a scenario decides which settings can matter: its directions, its connections, its path, what its hosts are set to.

use crate::bench::ArmFindings;
use thalweg_model::{
    ArmReport, Between, Experiment, Loss, Measured, PathDirection, Remedy, Setting, Side, SocketSettings, TokenBucket,
    Topics, Way, Workload,
};
use thalweg_tune::Facts;
use thalweg_tune::options::{Connections, Family, Work, families as options};
use thalweg_units::{Bytes, Rate, Span};

/// Payload of a full frame's bytes: 1448 of 1514.
const PAYLOAD_PART: f64 = 1448.0 / 1514.0;
/// A request from this many bytes on is data of its own.
const LARGE_REQUEST: Bytes = Bytes::new(14_480);

/// Every family of settings that can matter to the experiment, those of the direction with most data first.
pub(super) fn families(
    kernel: &str,
    experiment: &Experiment,
    arm: &ArmReport,
    found: Option<&ArmFindings>,
) -> Vec<Family> {
    let Some(found) = found else { return Vec::new() };
    let release = thalweg_model::since::release(kernel);
    let seen = Facts::of_flow(&found.flow, release, &arm.settings);
    let mut given: Vec<(Side, Setting, String)> = Vec::new();
    let mut fixed_buffers = Vec::new();
    for (side, host) in [(Side::Client, &experiment.client), (Side::Server, &experiment.server)] {
        given.extend(host.given().into_iter().map(|(setting, value)| (side, setting, value)));
        let SocketSettings { rcvbuf, sndbuf, .. } = &host.socket;
        fixed_buffers.extend(rcvbuf.map(|_| (side, "rcvbuf")));
        fixed_buffers.extend(sndbuf.map(|_| (side, "sndbuf")));
    }
    let mut ways = directions(&experiment.workload);
    ways.sort_by_key(|way| *way != found.flow.direction);
    let mut all: Vec<Family> = Vec::new();
    for way in &ways {
        let path = experiment.path.direction(*way);
        let own = *way == found.flow.direction;
        let policer = path.policer.map(|policer| TokenBucket {
            rate_bps: policer.rate.bits_per_second() as f64,
            burst_bytes: policer.burst.get() as f64,
        });
        let facts = Facts {
            direction: *way,
            fixed_buffers: fixed_buffers.clone(),
            rtt: round_trip(experiment, found),
            path_rate: rate(experiment, path).or(seen.path_rate.filter(|_| own)),
            policer: policer.or(seen.policer.filter(|_| own)),
            measured: if own { seen.measured } else { Measured::default() },
            ..seen.clone()
        };
        let planned: Vec<Remedy> = if own {
            found.lines.iter().flat_map(|line| thalweg_tune::plan(line.code, &facts)).collect()
        } else {
            Vec::new()
        };
        let work = Work {
            both_ways: ways.len() > 1,
            connections: connections(&experiment.workload),
            losses: loses(experiment, arm),
            marks: experiment.path.down.ecn || experiment.path.up.ecn,
            object: object(&experiment.workload, *way),
            policed: facts.policer.map(|bucket| Rate::from_bits_per_second((bucket.rate_bps * PAYLOAD_PART) as u64)),
        };
        for family in options(&facts, &work, &given, &planned) {
            let known =
                |one: &Remedy| all.iter().flat_map(|other| &other.options).any(|other| other.changes == one.changes);
            let options: Vec<Remedy> = family.options.into_iter().filter(|one| !known(one)).collect();
            if !options.is_empty() {
                all.push(Family { options });
            }
        }
    }
    all
}

fn round_trip(experiment: &Experiment, found: &ArmFindings) -> Span {
    found.flow.rtt_min_ms.map_or(experiment.path.rtt(), |ms| Span::from_secs_f64(ms / 1e3))
}

/// The least of the rates on the way.
fn rate(experiment: &Experiment, path: &PathDirection) -> Option<Rate> {
    let switch = match &experiment.topology.between {
        Between::Switch(switch) => Some(switch.rate),
        Between::Shared | Between::Own => None,
    };
    let policer = path.policer.map(|policer| policer.rate);
    let card = experiment.topology.nic.map(|nic| nic.rate);
    [path.rate, switch, policer, card].into_iter().flatten().min()
}

fn directions(workload: &Workload) -> Vec<Way> {
    let mut ways = match workload {
        Workload::Stream(stream) => vec![stream.direction],
        Workload::Rr(exchange) | Workload::Crr(exchange) if exchange.request >= LARGE_REQUEST => {
            vec![Way::Down, Way::Up]
        }
        Workload::Rr(_) | Workload::Crr(_) | Workload::Burst(_) => vec![Way::Down],
        Workload::UdpTrain(_) => Vec::new(),
        Workload::Topics(Topics { topics, .. }) => topics
            .iter()
            .map(|topic| if topic.publisher == thalweg_model::HostName::Server { Way::Down } else { Way::Up })
            .collect(),
        Workload::Mixed { parts } => parts.iter().flat_map(|part| directions(&part.workload)).collect(),
        Workload::Command(_) => vec![Way::Down, Way::Up],
    };
    ways.sort_by_key(|way| *way == Way::Up);
    ways.dedup();
    ways
}

fn connections(workload: &Workload) -> Connections {
    match workload {
        Workload::Crr(_) => Connections::PerExchange,
        Workload::Rr(_) | Workload::Topics(_) | Workload::Command(_) => Connections::Kept,
        Workload::Stream(stream) if stream.pace.is_some() => Connections::Kept,
        Workload::Stream(_) | Workload::Burst(_) | Workload::UdpTrain(_) => Connections::Once,
        Workload::Mixed { parts } => {
            let all: Vec<Connections> = parts.iter().map(|part| connections(&part.workload)).collect();
            [Connections::PerExchange, Connections::Kept].into_iter().find(|one| all.contains(one)).unwrap_or_default()
        }
    }
}

/// The largest payload that is sent at once.
fn object(workload: &Workload, way: Way) -> Option<Bytes> {
    match workload {
        Workload::Rr(exchange) | Workload::Crr(exchange) => {
            Some(if way == Way::Down { exchange.response } else { exchange.request })
        }
        Workload::Burst(burst) => Some(burst.buffered.max(burst.keyframe)),
        Workload::Mixed { parts } => parts.iter().filter_map(|part| object(&part.workload, way)).max(),
        Workload::Stream(_) | Workload::UdpTrain(_) | Workload::Topics(_) | Workload::Command(_) => None,
    }
}

/// Whether packets are lost or overtake each other, by the path or by what was measured.
fn loses(experiment: &Experiment, arm: &ArmReport) -> bool {
    let unsteady = |path: &PathDirection| {
        path.loss != Loss::None
            || path.reorder.is_some()
            || path.jitter.is_some()
            || path.policer.is_some()
            || path.corrupt.is_some()
    };
    let resent = arm.metrics.get("retransmits").and_then(thalweg_model::Metric::value).unwrap_or_default();
    unsteady(&experiment.path.down) || unsteady(&experiment.path.up) || resent > 0.0
}
