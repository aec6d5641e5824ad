//! Loss episodes: when the path lost data, by what the captures at both ends say.
//!
//! A segment that left its sender and never came to its receiver was lost, and when it was sent is known. That needs no
//! guess from acknowledgements, as a capture at one end would.

use crate::quantiles::nearest_rank;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use thalweg_model::{Metric, Metrics};
use thalweg_units::Span;
use thalweg_wire::{Capture, Decoded, Segment};

/// Losses with less than this between them are one episode: a tenth of what a topic of 10 Hz takes between two messages.
const APART: Span = Span::from_millis(10);

/// Between whom a segment goes, and which one it is: a retransmission has another identification.
type Key = (SocketAddr, SocketAddr, u32, Option<u16>);

/// Reads a capture of both ends; returns `loss_episodes`, `lost_segments`, of the episodes' lengths `loss_episode_ms`, and of each
/// direction the part of the segments that was lost, `loss_share`, and how long the others took from device to device, `transit_ms`.
///
/// `None` where the capture cannot be read; an end that was not captured has lost nothing.
pub(crate) fn of_capture(path: &Path) -> Option<Metrics> {
    let mut capture = Capture::new(BufReader::with_capacity(1 << 20, File::open(path).ok()?)).ok()?;
    let mut under_way: HashMap<Key, u64> = HashMap::new();
    // When the last segment was sent that arrived, each way: what was sent later may still be on its way.
    let mut last_arrived: HashMap<(SocketAddr, SocketAddr), u64> = HashMap::new();
    let mut home: HashMap<IpAddr, u32> = HashMap::new();
    let mut transit_ns: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let (mut end, mut last_interface) = (0, 0);
    while let Some(packet) = capture.next().ok()? {
        let at = packet.at.as_nanos();
        end = at;
        last_interface = last_interface.max(packet.interface);
        let Decoded::Tcp(segment) = thalweg_wire::decode(packet.link, packet.bytes, packet.original_len) else {
            continue;
        };
        if segment.payload_len == 0 {
            continue;
        }
        let key = key(&segment);
        // A host's packets are seen at its own end before any other.
        let own_end = *home.entry(segment.ip.source).or_insert(packet.interface);
        if packet.interface == own_end {
            under_way.insert(key, at);
        } else if let Some(sent) = under_way.remove(&key) {
            let last = last_arrived.entry((key.0, key.1)).or_default();
            *last = (*last).max(sent);
            transit_ns.entry(own_end).or_default().push(at.saturating_sub(sent));
        }
    }
    transit_ns.values_mut().for_each(|all| all.sort_unstable());
    let longest = transit_ns.values().filter_map(|all| all.last()).max().copied().unwrap_or(u64::MAX);
    // What is not older than the slowest segment may be on its way still, unless later ones have overtaken it.
    let is_lost =
        |key: &Key, at: u64| end - at > longest || last_arrived.get(&(key.0, key.1)).is_some_and(|last| at <= *last);
    let lost_of = |key: &Key, at: u64| is_lost(key, at).then(|| home.get(&key.0.ip()).copied().unwrap_or_default());
    let mut lost: Vec<(u64, u32)> = under_way.iter().filter_map(|(key, at)| Some((*at, lost_of(key, *at)?))).collect();
    lost.sort_unstable();
    let mut metrics = figures(&lost.iter().map(|(at, _)| *at).collect::<Vec<_>>());
    metrics.extend(each_way(&transit_ns, &lost, last_interface));
    Some(metrics)
}

/// How long segments took from device to device, and the part of them that was lost. The server's interface is the last of a capture.
fn each_way(transit_ns: &BTreeMap<u32, Vec<u64>>, lost: &[(u64, u32)], server: u32) -> Metrics {
    let (mut transit, mut share) = (BTreeMap::new(), BTreeMap::new());
    for (way, of) in [("down", server..=server), ("up", 0..=server.saturating_sub(1))] {
        let mut all: Vec<f64> =
            transit_ns.range(of.clone()).flat_map(|(_, all)| all.iter().map(|ns| *ns as f64 / 1e6)).collect();
        all.sort_by(f64::total_cmp);
        let gone = lost.iter().filter(|(_, end)| of.contains(end)).count();
        if all.is_empty() {
            continue;
        }
        let mean = all.iter().sum::<f64>() / all.len() as f64;
        let part = |part| Metric::One(nearest_rank(&all, part));
        let figures = [
            ("mean", Metric::One(mean)),
            ("p50", part(0.5)),
            ("p90", part(0.9)),
            ("p99", part(0.99)),
            ("max", part(1.0)),
        ];
        transit.insert(way.to_owned(), Metric::Group(figures.map(|(name, metric)| (name.to_owned(), metric)).into()));
        share.insert(way.to_owned(), Metric::One(gone as f64 / (all.len() + gone) as f64));
    }
    let groups = [("transit_ms", transit), ("loss_share", share)];
    groups
        .into_iter()
        .filter(|(_, group)| !group.is_empty())
        .map(|(name, group)| (name.to_owned(), Metric::Group(group)))
        .collect()
}

/// The figures of a run in which the path dropped nothing.
pub(crate) fn none() -> Metrics {
    figures(&[])
}

fn key(segment: &Segment) -> Key {
    let (ip, tcp) = (&segment.ip, &segment.tcp);
    let (from, to) =
        (SocketAddr::new(ip.source, tcp.source_port), SocketAddr::new(ip.destination, tcp.destination_port));
    (from, to, tcp.seq.get(), ip.id)
}

/// The figures of losses at these moments, in nanoseconds, ascending.
fn figures(lost: &[u64]) -> Metrics {
    let episodes = lost.chunk_by(|a, b| b - a < APART.as_nanos());
    let mut lengths_ms: Vec<f64> = episodes.map(|one| (one[one.len() - 1] - one[0]) as f64 / 1e6).collect();
    lengths_ms.sort_by(f64::total_cmp);
    let mut metrics = Metrics::from([
        ("lost_segments".to_owned(), Metric::Count(lost.len() as u64)),
        ("loss_episodes".to_owned(), Metric::Count(lengths_ms.len() as u64)),
    ]);
    if let Some(max) = lengths_ms.last() {
        let mut group = BTreeMap::from([("max".to_owned(), Metric::One(*max))]);
        for (name, part) in [("p50", 0.5), ("p80", 0.8), ("p90", 0.9), ("p99", 0.99)] {
            group.insert(name.to_owned(), Metric::One(nearest_rank(&lengths_ms, part)));
        }
        metrics.insert("loss_episode_ms".to_owned(), Metric::Group(group));
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_close_together_are_one_episode() {
        let ms = |at: u64| at * 1_000_000;
        let found = figures(&[ms(5), ms(8), ms(12), ms(100), ms(300), ms(309), ms(318)]);
        assert_eq!((&found["loss_episodes"], &found["lost_segments"]), (&Metric::Count(3), &Metric::Count(7)));
        let Metric::Group(lengths) = &found["loss_episode_ms"] else { panic!("a group") };
        assert_eq!((&lengths["p50"], &lengths["max"]), (&Metric::One(7.0), &Metric::One(18.0)));
        assert_eq!(figures(&[])["loss_episodes"], Metric::Count(0));
    }
}
