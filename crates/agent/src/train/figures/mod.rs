//! What trains show of the path: the bottleneck's rate, its buffer, the queueing delay along a train, and which packets are lost.

use crate::message::TrainEnd;
use std::net::SocketAddr;
use std::time::Duration;
use thalweg_model::{
    BufferEstimate, LossRuns, RateEstimate, TrainArrival, TrainFinding, TrainQueue, TrainRow, UdpTrainReport, Way,
};
use thalweg_units::Span;

/// A packet has waited in a queue if it is later than the least late one by more than this part of the longest delay: what is less may be the
/// delay of an interrupt, or of a processor that slept.
const WAITED_PART: u64 = 10;
/// And by at least this, the resolution of what the estimate is made for.
const WAITED_MIN: Span = Span::from_micros(1);
/// Losses found a full buffer if the queue held much the same at most of them: the lower quartile is at least this part of the upper. Random losses come
/// at any length of the queue, where it is a third, and those of RED and CoDel over a wide range of it. Quartiles, as a thread or an interrupt that is
/// late for once shifts what a few losses seem to have found.
const SAME_BUFFER: f64 = 0.8;
/// Losses from which a buffer is estimated.
const LOSSES_MIN: usize = 10;
/// Places along a train at which the queueing delay is reported.
const PLACES: usize = 10;

/// How large the packets are on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) payload_bytes: u32,
    pub(super) is_v6: bool,
    pub(super) overhead_bytes: u32,
}

impl Frame {
    /// With UDP, IP and Ethernet headers: what a buffer holds.
    fn bytes(self) -> u64 {
        u64::from(self.payload_bytes) + 8 + if self.is_v6 { 40 } else { 20 } + 14
    }

    /// What the link's rate counts.
    fn wire_bytes(self) -> u64 {
        self.bytes() + u64::from(self.overhead_bytes)
    }
}

/// A train that was seen at both ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    /// When each packet was sent, since the first.
    sent: Vec<Span>,
    /// In the order in which they arrived, by the sender's clock but for a constant.
    arrivals: Vec<TrainArrival>,
    end: TrainEnd,
}

impl Observed {
    /// From both ends' times, which are by different clocks; `None` if the sender's are not in order.
    pub(super) fn new(sent: Vec<u64>, arrived: Vec<Option<u64>>, end: TrainEnd) -> Option<Self> {
        let first = *sent.first()?;
        if arrived.len() != sent.len() || !sent.is_sorted() {
            return None;
        }
        let sent: Vec<u64> = sent.into_iter().map(|ns| ns - first).collect();
        let delays =
            arrived.iter().zip(&sent).filter_map(|(arrived, sent)| Some(i128::from((*arrived)?) - i128::from(*sent)));
        // The least delay becomes a second, which is more than a packet's own time on the slowest link.
        let shift = delays.min().unwrap_or(0) - 1_000_000_000;
        let at = |ns: u64| u64::try_from(i128::from(ns) - shift).ok().map(Span::from_nanos);
        let arrivals = (0..).zip(arrived).filter_map(|(number, ns)| Some(TrainArrival { number, at: at(ns?)? }));
        let mut arrivals: Vec<TrainArrival> = arrivals.collect();
        arrivals.sort_by_key(|arrival| arrival.at);
        Some(Self { sent: sent.into_iter().map(Span::from_nanos).collect(), arrivals, end })
    }

    /// Packets that did not arrive.
    pub(super) fn lost(&self) -> usize {
        self.sent.len() - self.arrivals.len()
    }

    /// Packets that were sent.
    pub(super) fn packets(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX)
    }

    /// From one packet to the next at `times` the rate at which this train left the queue; `None` if there was no queue, or if it was sent no faster.
    pub(super) fn interval_ns(&self, frame: Frame, times: f64) -> Option<u64> {
        let wanted = frame.wire_bytes() as f64 * 8e9 / (self.queue(frame)?.drain_bps * times);
        let own = self.sent.last()?.as_nanos() as f64 / (self.sent.len().max(2) - 1) as f64;
        (wanted > own).then_some(wanted as u64)
    }

    /// From the first arrival to the last.
    pub(super) fn took(&self) -> Duration {
        let ends = self.arrivals.first().zip(self.arrivals.last());
        ends.map_or(Duration::ZERO, |(first, last)| last.at.saturating_sub(first.at).to_duration())
    }

    /// Each packet's queueing delay in the order of arrival.
    fn queueing(&self) -> Vec<Span> {
        let delays: Vec<Span> =
            self.arrivals.iter().map(|one| one.at.saturating_sub(self.sent[one.number as usize])).collect();
        let least = delays.iter().min().copied().unwrap_or_default();
        delays.into_iter().map(|delay| delay.saturating_sub(least)).collect()
    }

    fn queue(&self, frame: Frame) -> Option<TrainQueue> {
        let longest = self.queueing().into_iter().max().unwrap_or_default();
        let waited = Span::from_nanos(longest.as_nanos() / WAITED_PART).max(WAITED_MIN);
        let queue = TrainQueue::of(&self.sent, &self.arrivals, frame.wire_bytes(), waited)?;
        // A few packets that were late by chance are no queue.
        (2 * queue.packets >= self.arrivals.len() as u64).then_some(queue)
    }

    fn row(&self, frame: Frame, queue: Option<&TrainQueue>) -> TrainRow {
        let mut came = vec![false; self.sent.len()];
        self.arrivals.iter().for_each(|arrival| came[arrival.number as usize] = true);
        let sent_for_s = self.sent.last().map_or(0.0, |last| last.as_secs_f64());
        let offered = (self.sent.len() - 1) as f64 * frame.wire_bytes() as f64 * 8.0 / sent_for_s;
        let longest = self.queueing().into_iter().max();
        TrainRow {
            packets: self.sent.len() as u64,
            lost: self.lost() as u64,
            first_lost: came.iter().position(|came| !came).map(|place| place as u64),
            offered_bps: (sent_for_s > 0.0).then_some(offered),
            drain_bps: queue.map(|queue| queue.drain_bps),
            queue_max_ms: longest.map(|longest| longest.as_millis_f64()),
            buffer_bytes: queue
                .filter(|queue| !queue.held_packets.is_empty())
                .map(|queue| percentile(&sorted(&queue.held_packets), 0.5) * frame.bytes()),
            duplicates: self.end.duplicates,
            receiver_dropped: self.end.dropped,
            sender_blocked: self.end.blocked,
        }
    }

    /// The queueing delay along the train, in milliseconds.
    fn course(&self) -> Vec<f64> {
        let queueing = self.queueing();
        let Some(last) = queueing.len().checked_sub(1) else { return Vec::new() };
        (0..=PLACES).map(|place| queueing[last * place / PLACES].as_millis_f64()).collect()
    }
}

/// The report on trains that grew, and on those of the length they ended with.
pub(super) fn report(
    peer: SocketAddr,
    way: Way,
    frame: Frame,
    growing: &[Observed],
    measured: &[Observed],
) -> UdpTrainReport {
    // A train of which the receiving socket lost packets says nothing of the path's losses.
    let is_clean = |train: &&Observed| train.end.dropped == 0;
    let queues: Vec<Option<TrainQueue>> = measured.iter().map(|train| train.queue(frame)).collect();
    let clean: Vec<&TrainQueue> = measured
        .iter()
        .zip(&queues)
        .filter(|(train, _)| is_clean(train))
        .filter_map(|(_, queue)| queue.as_ref())
        .collect();
    let rate = rate(clean.iter().map(|queue| queue.drain_bps).collect());
    let mut held: Vec<u64> = clean.iter().flat_map(|queue| queue.held_packets.iter().copied()).collect();
    held.sort_unstable();
    let losses = loss_runs(measured);
    let is_full = held.len() >= LOSSES_MIN
        && percentile(&held, 0.25) as f64 >= SAME_BUFFER * percentile(&held, 0.75) as f64
        && rate.is_some();
    let buffer = is_full.then(|| BufferEstimate {
        bytes: percentile(&held, 0.5) * frame.bytes(),
        // The packet that is being sent may be out of the buffer already.
        low_bytes: percentile(&held, 0.05).saturating_sub(1) * frame.bytes(),
        // There was no room for one more.
        high_bytes: (percentile(&held, 0.95) + 1) * frame.bytes(),
        packets: percentile(&held, 0.5),
        losses: held.len() as u64,
    });
    let longest = measured.iter().filter_map(|train| train.queueing().into_iter().max()).max().unwrap_or_default();
    let queue_max_bytes = rate.map(|rate| (longest.as_secs_f64() * rate.bps / 8.0).round() as u64);
    let finding = match (&rate, &buffer) {
        (_, Some(_)) => TrainFinding::FullBuffer,
        (Some(_), None) if losses.lost > 0 => TrainFinding::ScatteredLosses,
        (Some(_), None) => TrainFinding::NoLoss,
        (None, None) => TrainFinding::NoQueue,
    };
    let rows = |trains: &[Observed]| trains.iter().map(|train| train.row(frame, train.queue(frame).as_ref())).collect();
    UdpTrainReport {
        schema: "thalweg.load-udp-train/1",
        peer: peer.to_string(),
        way,
        payload_bytes: frame.payload_bytes,
        frame_bytes: frame.bytes(),
        overhead_bytes: frame.overhead_bytes,
        finding,
        rate,
        buffer,
        queue_max_bytes,
        queue_max_ms: longest.as_millis_f64(),
        queue_course_ms: measured.last().map(Observed::course).unwrap_or_default(),
        losses,
        growing: rows(growing),
        measured: rows(measured),
    }
}

fn rate(mut rates: Vec<f64>) -> Option<RateEstimate> {
    rates.sort_by(f64::total_cmp);
    let (low_bps, high_bps) = (*rates.first()?, *rates.last()?);
    Some(RateEstimate { bps: rates[rates.len() / 2], low_bps, high_bps, trains: rates.len() as u64 })
}

fn loss_runs(trains: &[Observed]) -> LossRuns {
    let mut found = LossRuns::default();
    for train in trains {
        let mut came = vec![false; train.sent.len()];
        train.arrivals.iter().for_each(|arrival| came[arrival.number as usize] = true);
        let runs = came.split(|came| *came).filter(|run| !run.is_empty());
        for run in runs {
            found.runs += 1;
            found.longest = found.longest.max(run.len() as u64);
        }
        found.packets += train.sent.len() as u64;
        found.lost += train.lost() as u64;
    }
    found
}

fn sorted(values: &[u64]) -> Vec<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
}

/// By nearest rank; 0 where there is nothing.
fn percentile(sorted: &[u64], part: f64) -> u64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests;
