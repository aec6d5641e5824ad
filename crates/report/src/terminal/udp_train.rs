//! Trains of UDP packets between two hosts, for a terminal: a row for each length, the bottleneck, and what it means.

use super::page::{Entry, Page, Style};
use crate::figures;
use thalweg_model::{LossRuns, TrainFinding, TrainRow, UdpTrainReport, Way};

/// Prints trains.
pub fn udp_train(report: &UdpTrainReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let way = if report.way == Way::Up { "to" } else { "from" };
    let (payload, frame) = (report.payload_bytes, report.frame_bytes);
    let head = format!("UDP trains {way} {}: {payload} bytes a packet, {frame} as a frame", report.peer);
    let head = page.paint(&head, Style::Strong);
    page.line(&head);
    let heading = ["packets", "sent at", "arrived at", "lost", "first lost", "longest wait", "held at losses"];
    let rows: Vec<_> = report.growing.iter().chain(&report.measured).map(row).collect();
    page.table(&heading.map(str::to_owned), &rows, 0);
    page.gap();
    if let Some(rate) = report.rate {
        let range = format!("{} to {}", figures::rate(rate.low_bps), figures::rate(rate.high_bps));
        let trains = figures::counted(rate.trains, "train");
        page.line(&format!("rate       {} ({range} in {trains})", figures::rate(rate.bps)));
    }
    if let Some(buffer) = report.buffer {
        let [bytes, low, high] = [buffer.bytes, buffer.low_bytes, buffer.high_bytes].map(|it| figures::data(it as f64));
        let packets = figures::counted(buffer.packets, "packet");
        let losses = figures::counted(buffer.losses, "loss").replace("losss", "losses");
        page.line(&format!("buffer     {bytes} ({low} to {high} at {losses}): {packets} of this size"));
    }
    if !report.queue_course_ms.is_empty() {
        let course: Vec<String> = report.queue_course_ms.iter().map(|ms| format!("{ms:.2}")).collect();
        page.sentence(
            "waiting    ",
            &format!("{} ms, from the first packet to the last", course.join(" ")),
            Style::Plain,
        );
    }
    if report.losses.lost > 0 {
        page.line(&format!("losses     {}", losses(&report.losses)));
    }
    page.gap();
    let (sentence, hint) = meaning(report);
    page.sentence("", &sentence, Style::Plain);
    for note in notes(report) {
        page.sentence("note       ", &note, Style::Plain);
    }
    page.gap();
    page.sentence("hint: ", &hint, Style::Plain);
    page.finish()
}

fn row(train: &TrainRow) -> Vec<Entry> {
    let none = || "–".to_owned();
    let cells = [
        train.packets.to_string(),
        train.offered_bps.map_or_else(none, figures::rate),
        train.drain_bps.map_or_else(none, figures::rate),
        train.lost.to_string(),
        train.first_lost.map_or_else(none, |place| (place + 1).to_string()),
        train.queue_max_ms.map_or_else(none, figures::milliseconds),
        train.buffer_bytes.map_or_else(none, |bytes| figures::data(bytes as f64)),
    ];
    cells.into_iter().map(|cell| Entry::new(cell, Style::Plain)).collect()
}

fn losses(of: &LossRuns) -> String {
    let part = figures::percent(of.lost as f64 / of.packets.max(1) as f64);
    let runs = figures::counted(of.runs, "run");
    format!("{} of {} packets ({part}), in {runs} of up to {}", of.lost, of.packets, of.longest)
}

/// What the trains show, and what to do.
fn meaning(report: &UdpTrainReport) -> (String, String) {
    let rate = report.rate.map(|rate| figures::rate(rate.bps)).unwrap_or_default();
    match (report.finding, report.buffer) {
        (TrainFinding::FullBuffer, Some(buffer)) => {
            let (bytes, packets) = (figures::data(buffer.bytes as f64), figures::counted(buffer.packets, "packet"));
            let wait = figures::milliseconds(report.queue_max_ms);
            (
                format!("The bottleneck sends {rate} and drops packets once {bytes} wait, which is {wait}."),
                format!(
                    "a burst that comes faster than {rate} loses packets beyond {packets}: bound the congestion window (thalweg tune), pace the \
                     sender, or send the burst's parts at different times"
                ),
            )
        }
        (TrainFinding::ScatteredLosses, _) => (
            format!("The bottleneck sends {rate}. Packets are lost at any length of its queue, so a full buffer is not why."),
            "losses on a link come at random; RED and CoDel drop before the buffer is full; cross traffic fills it at times".to_owned(),
        ),
        (TrainFinding::NoQueue, _) => (
            "Packets came as fast as they were sent: nothing on the path is slower than this sender.".to_owned(),
            "a faster host, or several senders at once, can fill the queue; a receiving host may join interrupts and so hide it".to_owned(),
        ),
        _ => {
            let held = report.queue_max_bytes.map(|bytes| figures::data(bytes as f64)).unwrap_or_default();
            (
                format!("The bottleneck sends {rate}. Its buffer holds at least {held}: no train filled it."),
                "longer trains (--packets) may fill it".to_owned(),
            )
        }
    }
}

/// What the figures are to be taken with.
fn notes(report: &UdpTrainReport) -> Vec<String> {
    let mut notes = Vec::new();
    let dropped: u64 = report.measured.iter().map(|train| train.receiver_dropped).sum();
    if dropped > 0 {
        let trains = report.measured.iter().filter(|train| train.receiver_dropped > 0).count();
        notes.push(format!(
            "the receiving host's socket dropped {dropped} packets of {}, which does not count (net.core.rmem_max bounds its buffer)",
            figures::counted(trains as u64, "train")
        ));
    }
    let blocked = report.measured.iter().filter(|train| train.sender_blocked > train.packets / 10).count();
    if blocked > 0 {
        notes.push(
            "the sending host's own card was slower than its program, so some packets waited there: --rate below the card's rate avoids it".to_owned(),
        );
    }
    notes
}
