//! What of a scenario decides which settings can matter: its directions, its connections, its path, what its hosts are set to.

use crate::arm_findings::ArmFindings;
use thalweg_model::{
    Amount, ArmReport, Between, Code, Experiment, Loss, Measured, Metric, PathDirection, Queue, Remedy, Setting, Side,
    Size, SocketSettings, TokenBucket, Topics, Way, Workload,
};
use thalweg_tune::Facts;
use thalweg_tune::options::{Acknowledgements, Connections, Family, FullQueue, Work, families as options};
use thalweg_units::{Bytes, Rate, Span};

/// Payload of a full frame's bytes: 1448 of 1514.
const PAYLOAD_PART: f64 = 1448.0 / 1514.0;
/// Bytes of full frames that one acknowledgement answers, over its own: two of 1,514 by 66.
const DATA_BYTES_PER_ACK_BYTE: f64 = 2.0 * 1514.0 / 66.0;
/// A queue in which half of the packets wait for this part of a round trip or longer stands. Source: RFC 8289 §4.2, whose target is 5 to 10 %
/// of the interval; twice that tells it from bursts.
const STANDS: f64 = 0.2;
/// A transfer of more than this many bandwidth-delay products takes most of its time after slow start, which is 10 round trips at most up to 10 MB.
const SHORT_TRANSFER_BDPS: u64 = 10;
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
        let facts = facts(experiment, *way, found, &seen, &fixed_buffers);
        let planned = planned(experiment, *way, found, &facts);
        let work = work(experiment, *way, ways.len() > 1, &facts, arm);
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

/// What the run and the scenario together say of one direction. Where the scenario has no policer there is none, whatever its capture looks like.
fn facts<'a>(
    experiment: &Experiment,
    way: Way,
    found: &ArmFindings,
    seen: &Facts<'a>,
    fixed_buffers: &[(Side, &'static str)],
) -> Facts<'a> {
    let path = experiment.path.direction(way);
    let own = way == found.flow.direction;
    let policer = path.policer.map(|policer| TokenBucket {
        rate_bps: policer.rate.bits_per_second() as f64,
        burst_bytes: policer.burst.get() as f64,
    });
    Facts {
        direction: way,
        fixed_buffers: fixed_buffers.to_vec(),
        rtt: round_trip(experiment, found),
        path_rate: rate(experiment, path).or(seen.path_rate.filter(|_| own)),
        policer,
        measured: if own { seen.measured } else { Measured::default() },
        ..seen.clone()
    }
}

/// The remedies of what the capture shows, and of what the path is known to do.
fn planned(experiment: &Experiment, way: Way, found: &ArmFindings, facts: &Facts<'_>) -> Vec<Remedy> {
    let own = way == found.flow.direction;
    let path = experiment.path.direction(way);
    let overtakes = path.reorder.is_some() || path.jitter.as_ref().is_some_and(|jitter| jitter.reorder);
    let mut codes: Vec<Code> = found.lines.iter().filter(|_| own).map(|line| line.code).collect();
    if overtakes && !codes.contains(&Code::Reordering) {
        codes.push(Code::Reordering);
    }
    codes.into_iter().flat_map(|code| thalweg_tune::plan(code, facts)).collect()
}

fn work(experiment: &Experiment, way: Way, both_ways: bool, facts: &Facts<'_>, arm: &ArmReport) -> Work {
    let path = experiment.path.direction(way);
    let payload = |rate: Rate| Rate::from_bits_per_second((rate.bits_per_second() as f64 * PAYLOAD_PART) as u64);
    let back = experiment.path.direction(if way == Way::Down { Way::Up } else { Way::Down }).rate;
    let is_crowded = path.rate.zip(back).is_some_and(|(there, back)| {
        there.bits_per_second() as f64 > back.bits_per_second() as f64 * DATA_BYTES_PER_ACK_BYTE
    });
    Work {
        both_ways,
        connections: connections(&experiment.workload),
        losses: loses(experiment, arm),
        marks: experiment.path.down.ecn || experiment.path.up.ecn,
        object: object(&experiment.workload, way, facts.bdp()),
        policed: facts.policer.map(|bucket| payload(Rate::from_bits_per_second(bucket.rate_bps as u64))),
        full_queue: full_queue(experiment, way, arm)
            .and_then(|cause| Some(FullQueue { rate: payload(rate(experiment, path)?), cause })),
        queue: queue(path),
        senders: senders(&experiment.workload, way, experiment.topology.clients),
        acknowledgements: if is_crowded { Acknowledgements::Crowded } else { Acknowledgements::Free },
    }
}

/// What the direction's queue holds; `None` without a rate.
fn queue(path: &PathDirection) -> Option<Bytes> {
    path.rate.map(|rate| match path.queue {
        Queue::Bytes(bytes) => bytes,
        Queue::Packets(packets) => Bytes::new(u64::from(packets) * 1514),
        Queue::Time(span) => rate.bdp(span),
    })
}

/// What it costs that the program fills the direction's queue, by what the run's queue did; `None` where it neither dropped packets nor stood for
/// [`STANDS`] of the round trip.
fn full_queue(experiment: &Experiment, way: Way, arm: &ArmReport) -> Option<Code> {
    let of = |path: &[&str]| Metric::find(&arm.metrics, path).and_then(Metric::value);
    let dropped = dropped(way, arm);
    let rtt_ms = experiment.path.rtt().as_millis_f64();
    let delay_ms = experiment.path.direction(way).delay.as_millis_f64();
    let transit_ms = of(&["transit_ms", way.as_str(), "p50"]).map_or(0.0, |transit| transit - delay_ms);
    let waits_ms = transit_ms.max(bulk_rtt_ms(&experiment.workload, way, arm) - rtt_ms);
    let stands = waits_ms > (rtt_ms * STANDS).max(1.0);
    if stands {
        Some(Code::Bufferbloat)
    } else {
        (dropped > 0.0).then_some(if experiment.path.direction(way).loss == Loss::None {
            Code::CongestionLoss
        } else {
            Code::RandomLoss
        })
    }
}

/// The longest round trip at the end of a transfer in this direction that others go beside; 0 without one.
fn bulk_rtt_ms(workload: &Workload, way: Way, arm: &ArmReport) -> f64 {
    let Workload::Mixed { parts } = workload else { return 0.0 };
    let is_bulk = |workload: &Workload| matches!(workload, Workload::Stream(stream) if stream.direction == way);
    let bulk = parts.iter().filter(|part| is_bulk(&part.workload));
    bulk.filter_map(|part| Metric::find(&arm.metrics, &[&part.name, "rtt_ms"])?.value()).fold(0.0, f64::max)
}

/// Packets that the direction's queue dropped, at the bottleneck or at a switch's port.
pub(super) fn dropped(way: Way, arm: &ArmReport) -> f64 {
    let of = |at: &str| Metric::find(&arm.metrics, &["dropped_packets", &format!("{}_{at}", way.as_str())]);
    ["bottleneck", "port"].into_iter().filter_map(|at| of(at)?.value()).sum()
}

/// Connections that send in this direction at the same time.
fn senders(workload: &Workload, way: Way, clients: u32) -> u64 {
    let clients = u64::from(clients.max(1));
    match workload {
        Workload::Stream(stream) if stream.direction == way => u64::from(stream.parallel.max(1)) * clients,
        Workload::Topics(Topics { topics, .. }) => topics
            .iter()
            .filter(|topic| way_of(topic.publisher) == way && largest(&topic.size) >= LARGE_REQUEST)
            .count() as u64,
        // What answers requests pauses between them; the transfers fill the path.
        Workload::Mixed { parts } => {
            let is_bulk = |workload: &Workload| matches!(workload, Workload::Stream(_) | Workload::Topics(_));
            let bulk = parts.iter().filter(|part| is_bulk(&part.workload));
            bulk.map(|part| senders(&part.workload, way, 1)).sum::<u64>() * clients
        }
        Workload::Rr(_) | Workload::Crr(_) | Workload::Burst(_) | Workload::Command(_) => clients,
        Workload::Stream(_) | Workload::UdpTrain(_) => 0,
    }
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

pub(super) fn directions(workload: &Workload) -> Vec<Way> {
    let mut ways = match workload {
        Workload::Stream(stream) => vec![stream.direction],
        Workload::Rr(exchange) | Workload::Crr(exchange) if exchange.request >= LARGE_REQUEST => {
            vec![Way::Down, Way::Up]
        }
        Workload::Rr(_) | Workload::Crr(_) | Workload::Burst(_) => vec![Way::Down],
        Workload::UdpTrain(_) => Vec::new(),
        Workload::Topics(Topics { topics, .. }) => topics.iter().map(|topic| way_of(topic.publisher)).collect(),
        Workload::Mixed { parts } => parts.iter().flat_map(|part| directions(&part.workload)).collect(),
        Workload::Command(_) => vec![Way::Down, Way::Up],
    };
    ways.sort_by_key(|way| *way == Way::Up);
    ways.dedup();
    ways
}

fn largest(size: &Size) -> Bytes {
    match *size {
        Size::Fixed { bytes } => bytes,
        Size::Uniform { max, .. } => max,
        Size::Mixture { usual, rare, .. } => usual.max(rare),
    }
}

fn way_of(publisher: thalweg_model::HostName) -> Way {
    if publisher == thalweg_model::HostName::Server { Way::Down } else { Way::Up }
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

/// The largest payload that is sent at once; a stream's only where it is short on a path that holds `bdp`.
fn object(workload: &Workload, way: Way, bdp: Option<Bytes>) -> Option<Bytes> {
    match workload {
        Workload::Rr(exchange) | Workload::Crr(exchange) => {
            Some(if way == Way::Down { exchange.response } else { exchange.request })
        }
        Workload::Burst(burst) => Some(burst.buffered.max(burst.keyframe)),
        Workload::Mixed { parts } => parts.iter().filter_map(|part| object(&part.workload, way, bdp)).max(),
        Workload::Stream(stream) if stream.direction == way && stream.pace.is_none() => match stream.amount {
            Amount::Bytes(bytes) => {
                let each = bytes.get() / u64::from(stream.parallel.max(1));
                bdp.filter(|bdp| each <= bdp.get() * SHORT_TRANSFER_BDPS).map(|_| Bytes::new(each))
            }
            Amount::Seconds(_) => None,
        },
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
