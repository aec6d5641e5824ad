//! What the shards found, merged into one report.
//!
//! Connections are divided by [`TcpPacket::shard_hash`], and each is followed by one shard that sees its packets in their order. What a
//! shard does depends on these alone, so however many there are, [`merge`] gives the same report to the byte.

use super::decode::CaptureDecoder;
use super::notes::{cut_note, failed_note, notes_of, order_note, repeated_note, set_back_note};
use super::shard::ShardResult;
use crate::flow::failed_flow::FailedFlow;
use crate::flow::ranking::is_slowed;
use crate::flow::record::FlowRecord;
use crate::flow::retained::{Retain, RetainedFlows};
use crate::shared_path;
use std::io::Read;
use thalweg_model::{CaptureReport, Flow, Series};
use thalweg_units::figures::{counted, data};
use thalweg_wire::Capture;

/// A capture's connections, judged; those where most time could be saved come first.
#[derive(Debug, Clone, PartialEq)]
pub struct CaptureDiagnosis {
    /// What is reported; [`thalweg_model::Flow::id`] numbers flows in order of their first packets.
    pub report: CaptureReport,
    /// What is drawn, with the index of its flow in the report, in the report's order. Each series has at most 4,000 points.
    pub series: Vec<(usize, Series)>,
    /// How many connections the capture has, reported or not.
    pub connections: u64,
    /// Connections whose analysis panicked, in order of their first packets; they are not in the report.
    pub failed: Vec<FailedFlow>,
    /// Whether something other than its program makes one of them slower than it could be on its path.
    pub slowed: bool,
}

impl CaptureDiagnosis {
    /// What is drawn of the flow at `index` in the report.
    pub fn series_of(&self, index: usize) -> Option<&Series> {
        let place = self.series.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(&self.series[place].1)
    }

    /// The flows in the report's order, each with what is drawn of it: nothing, where it is not drawn.
    pub fn into_flows(self) -> impl Iterator<Item = (Flow, Series)> {
        let mut series = self.series.into_iter().peekable();
        self.report.flows.into_iter().enumerate().map(move |(index, flow)| {
            let drawn = series.next_if(|(at, _)| *at == index).map(|(_, drawn)| drawn);
            (*flow, drawn.unwrap_or_default())
        })
    }
}

/// Joins what the shards found in a capture that was read to its end.
pub fn merge<R: Read>(
    name: &str,
    capture: &Capture<R>,
    mut intake: CaptureDecoder,
    parts: Vec<ShardResult>,
) -> CaptureDiagnosis {
    let mut parts = parts.into_iter().map(|part| part.kept);
    let mut kept = parts.next().unwrap_or_else(|| RetainedFlows::new(Retain::All));
    for part in parts {
        kept.records.extend(part.records);
        kept.firsts.extend(part.firsts);
        kept.tap_duplicates += part.tap_duplicates;
        kept.missed = (kept.missed.0 + part.missed.0, kept.missed.1 + part.missed.1);
        kept.joined += part.joined;
        kept.failed.extend(part.failed);
        kept.slowed |= part.slowed;
    }
    let most = kept.most();
    let RetainedFlows {
        records: mut found, mut firsts, tap_duplicates: duplicates, joined, missed, mut failed, ..
    } = kept;
    let slowed = kept.slowed;
    failed.sort_unstable_by_key(|flow| flow.first_packet);
    let mut notes = capture.damage().notes();
    notes.extend(notes_of(&intake.others));
    notes.extend(intake.notes());
    notes.extend(cut_note(intake.cut, intake.options_cut));
    notes.extend(order_note(intake.order.behind, intake.order.too_late));
    notes.extend(set_back_note(intake.order.set_back, intake.order.furthest));
    notes.extend(repeated_note(intake.repeated.known));
    if duplicates > 0 {
        notes.push(format!("the tap delivered {duplicates} packets twice; the second copies were dropped"));
    }
    if joined > 0 {
        notes.push(format!(
            "the two directions of {} came under different tags or from different interfaces; they were joined",
            counted(joined, "connection")
        ));
    }
    if missed.0 > 0 {
        notes.push(format!(
            "the capture lacks {} that were acknowledged ({}): it lost packets, and what is told rests on the others",
            data(missed.1 as f64),
            counted(missed.0, "connection"),
        ));
    }
    notes.extend(failed_note(&failed));
    shared_path::judge(&mut found.iter_mut().map(FlowRecord::sharer).collect::<Vec<_>>());
    // Flows are numbered in order of their first packets, and listed costliest first.
    firsts.sort_unstable();
    let slowed = slowed || found.iter().any(|one| is_slowed(&one.flow));
    found.sort_by_cached_key(FlowRecord::cost);
    found.truncate(most);
    let mut series = Vec::new();
    let interfaces = capture.interfaces();
    for (index, one) in found.iter_mut().enumerate() {
        one.flow.id = firsts.partition_point(|&first| first < one.flow.first_packet) as u64;
        one.flow.interface = interfaces
            .get(one.interface as usize)
            .filter(|_| interfaces.len() > 1)
            .map(|interface| interface.name.clone().unwrap_or_else(|| one.interface.to_string()));
        series.extend(one.series.take().map(|drawn| (index, *drawn)));
    }
    let flows = found.into_iter().map(|one| one.flow).collect();
    let truncated = capture.damage().truncated;
    let (packets, bytes) = (intake.packets, intake.bytes);
    CaptureDiagnosis {
        report: CaptureReport { file: name.to_owned(), packets, bytes, truncated, notes, flows },
        series,
        connections: firsts.len() as u64,
        failed,
        slowed,
    }
}
