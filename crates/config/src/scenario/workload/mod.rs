//! The `[workload]` of a scenario.

mod command;
mod topics;

use super::cross::way;
use super::unknown;
use crate::node::{ConfigError, Node, NodeValue};
use crate::section::Section;
use thalweg_model::Topology;
use thalweg_model::{Amount, Burst, Exchange, Part, Stream, Transactions, UdpTrain, Workload};
use thalweg_units::{Bytes, Rate, Span};

const KINDS: [&str; 8] = ["stream", "rr", "crr", "burst", "udp-train", "topics", "mixed", "command"];
/// Most connections of one client at a time.
const PARALLEL_MAX: u32 = 1000;
/// Most workloads at once; each has ports of its own.
const PARTS_MAX: usize = 100;
/// Most packets of a train, which are all remembered.
const TRAIN_PACKETS_MAX: u32 = 1_000_000;
/// What IPv4 leaves a UDP packet. Source: RFC 768, RFC 791.
const UDP_PAYLOAD_MAX: u64 = 65_507;

pub(super) fn read(section: &Section<'_>, topology: &Topology) -> Result<Workload, ConfigError> {
    let workload = match section.require("kind", section.text("kind")?)? {
        "mixed" => Workload::Mixed { parts: parts(section, topology)? },
        kind => single(section, kind, topology)?,
    };
    section.finish()?;
    Ok(workload)
}

fn single(section: &Section<'_>, kind: &str, topology: &Topology) -> Result<Workload, ConfigError> {
    Ok(match kind {
        "stream" => Workload::Stream(stream(section)?),
        "rr" => Workload::Rr(exchange(section, "rr")?),
        "crr" => Workload::Crr(exchange(section, "crr")?),
        "burst" => Workload::Burst(burst(section)?),
        "udp-train" => Workload::UdpTrain(udp_train(section)?),
        "topics" => Workload::Topics(topics::read(section, topology)?),
        "command" => Workload::Command(command::read(section)?),
        other => return Err(unknown(section, "kind", other, &KINDS)),
    })
}

/// A size that is more than nothing.
fn size(section: &Section<'_>, key: &str) -> Result<Option<Bytes>, ConfigError> {
    let size = section.quantity::<Bytes>(key)?;
    if size == Some(Bytes::new(0)) {
        return Err(section.error_at(key, format!("'workload.{key}' must be more than nothing")));
    }
    Ok(size)
}

/// A time that is more than nothing.
fn time(section: &Section<'_>, key: &str) -> Result<Option<Span>, ConfigError> {
    let time = section.quantity::<Span>(key)?;
    if time == Some(Span::ZERO) {
        return Err(section.error_at(key, format!("'workload.{key}' must be more than nothing")));
    }
    Ok(time)
}

fn stream(section: &Section<'_>) -> Result<Stream, ConfigError> {
    let amount = match (size(section, "bytes")?, time(section, "seconds")?) {
        (Some(bytes), None) => Amount::Bytes(bytes),
        (None, Some(span)) => Amount::Seconds(span),
        (None, None) => {
            let error = section.error_at("kind", "a stream needs 'bytes' or 'seconds' (\"10s\")");
            return Err(section.missing(&["bytes", "seconds"], error));
        }
        (Some(_), Some(_)) => {
            return Err(section.error_at("seconds", "a stream ends by 'bytes' or by 'seconds' (\"10s\"): give one"));
        }
    };
    let parallel = section.read::<u32>("parallel")?.unwrap_or(1);
    if !(1..=PARALLEL_MAX).contains(&parallel) {
        return Err(section.error_at("parallel", format!("'workload.parallel' must be 1 to {PARALLEL_MAX}")));
    }
    let pace = section.quantity::<Rate>("pace")?;
    if pace.is_some_and(|pace| pace.bytes_per_second() == 0) {
        return Err(section.error_at("pace", "'workload.pace' must be more than nothing"));
    }
    let backlog = size(section, "backlog")?;
    if backlog.is_some() && pace.is_none() {
        return Err(section.error_at("backlog", "a backlog is of a program that has data at a 'pace'"));
    }
    let file = section.text("file")?.map(str::to_owned);
    if file.is_some() && pace.is_some() {
        return Err(section.error_at("file", "a paced stream is sent from memory: give 'file' or 'pace'"));
    }
    if let Some(file) = &file {
        check_file(file).map_err(|why| section.error_at("file", format!("'workload.file' is '{file}', {why}")))?;
    }
    Ok(Stream { direction: way(section)?, amount, parallel, pace, backlog, file })
}

/// Refuses a file that the lab's hosts cannot see. Source: docs/lab.md, "Your own programs".
fn check_file(file: &str) -> Result<(), &'static str> {
    if !file.starts_with('/') {
        return Err("which is no absolute path");
    }
    if ["/tmp/", "/run/", "/dev/shm/"].iter().any(|folder| file.starts_with(folder)) {
        return Err("and the lab's hosts have a /tmp, /run and /dev/shm of their own, which are empty");
    }
    Ok(())
}

fn exchange(section: &Section<'_>, kind: &str) -> Result<Exchange, ConfigError> {
    let count = section.read::<u32>("transactions")?;
    if count == Some(0) {
        return Err(section.error_at("transactions", "'workload.transactions' must be 1 at least"));
    }
    let amount = match (count, time(section, "seconds")?) {
        (Some(count), None) => Transactions::Count(count),
        (None, Some(span)) => Transactions::Seconds(span),
        (None, None) => {
            let error = section.error_at("kind", format!("{kind} needs 'transactions' or 'seconds' (\"60s\")"));
            return Err(section.missing(&["transactions", "seconds"], error));
        }
        (Some(_), Some(_)) => {
            let reason = format!("{kind} ends by 'transactions' or by 'seconds': give one");
            return Err(section.error_at("transactions", reason));
        }
    };
    Ok(Exchange {
        request: section.require("request", size(section, "request")?)?,
        response: section.require("response", size(section, "response")?)?,
        amount,
    })
}

fn burst(section: &Section<'_>) -> Result<Burst, ConfigError> {
    let total = section.require("total", size(section, "total")?)?;
    let keyframe = size(section, "keyframe")?.unwrap_or(total.min(Bytes::new(117_118)));
    let marks = match section.node("marks").map(|node| (&node.value, node)) {
        None => Vec::new(),
        Some((NodeValue::List(nodes), _)) => nodes
            .iter()
            .map(|node| match &node.value {
                NodeValue::Text(text) | NodeValue::Number(text) => {
                    text.parse().map_err(|error: thalweg_units::ParseError| node.error(error.to_string(), None))
                }
                _ => Err(node.error("'workload.marks' is a list of sizes", None)),
            })
            .collect::<Result<_, _>>()?,
        Some((_, node)) => return Err(node.error("'workload.marks' must be a list of sizes", None)),
    };
    if let Some(late) = marks.iter().chain([&keyframe]).find(|mark| **mark > total) {
        return Err(section.error_at("total", format!("the client leaves after {total}, before it has {late}")));
    }
    Ok(Burst {
        buffered: section.require("buffered", size(section, "buffered")?)?,
        rate: section.require("rate", section.quantity("rate")?)?,
        total,
        keyframe,
        marks,
    })
}

fn udp_train(section: &Section<'_>) -> Result<UdpTrain, ConfigError> {
    let size = section.require("size", size(section, "size")?)?;
    if !(16..=UDP_PAYLOAD_MAX).contains(&size.get()) {
        return Err(section.error_at("size", format!("'workload.size' must be 16 to {UDP_PAYLOAD_MAX} bytes")));
    }
    let packets = section.require("packets", section.read::<u32>("packets")?)?;
    if !(1..=TRAIN_PACKETS_MAX).contains(&packets) {
        return Err(section.error_at("packets", format!("'workload.packets' must be 1 to {TRAIN_PACKETS_MAX}")));
    }
    let interval = section.quantity("interval")?.unwrap_or(Span::ZERO);
    Ok(UdpTrain { direction: way(section)?, size, interval, packets })
}

fn parts(section: &Section<'_>, topology: &Topology) -> Result<Vec<Part>, ConfigError> {
    let node = section.require("part", section.node("part"))?;
    let NodeValue::List(nodes) = &node.value else {
        return Err(node.error("the parts of a mixed workload are written as [[workload.part]]", None));
    };
    if !(1..=PARTS_MAX).contains(&nodes.len()) {
        return Err(node.error(format!("a mixed workload has 1 to {PARTS_MAX} parts"), None));
    }
    let mut parts: Vec<Part> = Vec::new();
    for node in nodes {
        let section = Section::new(node, "workload.part")?;
        let name = section.require("name", section.text("name")?)?.to_owned();
        if name.is_empty() || name.contains(['/', '.']) || parts.iter().any(|part| part.name == name) {
            let rule = "a part's name must not be empty, hold '/' or '.', or be another part's";
            return Err(section.error_at("name", rule));
        }
        let kind = section.require("kind", section.text("kind")?)?;
        if matches!(kind, "mixed" | "command") {
            return Err(section.error_at("kind", format!("'{kind}' cannot be a part of a mixed workload")));
        }
        let workload = single(&section, kind, topology)?;
        let clients = clients(&section, topology)?;
        let start = section.quantity("start")?.unwrap_or(Span::ZERO);
        section.finish()?;
        parts.push(Part { name, start, clients, workload });
    }
    Ok(parts)
}

fn clients(section: &Section<'_>, topology: &Topology) -> Result<Vec<u32>, ConfigError> {
    let Some(node) = section.node("clients") else { return Ok(Vec::new()) };
    let wrong = |node: &Node| {
        node.error(
            format!("'clients' is a list of numbers from 1 to {}, the clients there are", topology.clients),
            None,
        )
    };
    let NodeValue::List(nodes) = &node.value else { return Err(wrong(node)) };
    let numbers: Vec<u32> = nodes
        .iter()
        .map(|node| match &node.value {
            NodeValue::Number(text) => {
                text.parse().ok().filter(|n| (1..=topology.clients).contains(n)).ok_or_else(|| wrong(node))
            }
            _ => Err(wrong(node)),
        })
        .collect::<Result<_, _>>()?;
    if numbers.is_empty() { Err(wrong(node)) } else { Ok(numbers) }
}
