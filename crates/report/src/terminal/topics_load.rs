//! Messages between two hosts, for a terminal: a row for each topic, and how well the clocks are known.

use super::page::{Entry, Page, Style};
use crate::figures;
use thalweg_model::{TopicReport, TopicsReport, Way};

/// Late messages that one segment sent again may explain: those behind it wait, too, until it has arrived. A tenth of a message each is
/// generous to the network: a loss holds a message up for a round trip or a timeout.
const LATE_FOR_EACH: u64 = 10;

/// Prints a test of topics.
pub fn topics_load(report: &TopicsReport, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let topics = figures::counted(report.topics.len() as u64, "topic");
    let head = format!("Messages with {}: {topics}, {} s", report.peer, report.duration_s);
    let head = page.paint(&head, Style::Strong);
    page.line(&head);
    let heading =
        ["topic", "", "period", "messages", "p50", "p90", "p99", "p99.9", "max", "late", "lost", "retr", "RTO"];
    let rows: Vec<_> = report.topics.iter().map(row).collect();
    page.table(&heading.map(str::to_owned), &rows, 2);
    let mut names: Vec<_> = report.topics.iter().map(|topic| figures::clean(&topic.connection.congestion)).collect();
    names.sort();
    names.dedup();
    page.line(&format!("congestion {}", names.join(", ")));
    page.gap();
    let clock = &report.clock;
    let [uncertainty, rtt] = [clock.uncertainty_ms, clock.rtt_ms].map(figures::milliseconds);
    let sentence = format!(
        "Latency counts from when a message was due at its publisher until it was whole at its subscriber. The clocks of both hosts were compared within \
         a round trip of {rtt}, so all latencies of a direction may be wrong by up to {uncertainty}, if all of it is in one direction; they differ by \
         {:.1} ppm.",
        clock.drift_ppm
    );
    page.sentence("", &sentence, Style::Plain);
    for note in &report.notes {
        page.sentence("note       ", note, Style::Plain);
    }
    page.gap();
    page.sentence("hint: ", &hint(report), Style::Plain);
    page.finish()
}

fn row(topic: &TopicReport) -> Vec<Entry> {
    let times = topic.latency_ms.map(|times| [times.p50, times.p90, times.p99, times.p999, times.max]);
    let mut cells = vec![
        figures::clean(&topic.name),
        if topic.way == Way::Up { "out" } else { "in" }.to_owned(),
        topic.period.to_string(),
        topic.messages.to_string(),
    ];
    cells.extend((0..5).map(|place| times.map_or("–".to_owned(), |times| figures::milliseconds(times[place]))));
    cells.extend([
        topic.late.to_string(),
        topic.lost.to_string(),
        topic.connection.retransmits.to_string(),
        figures::milliseconds(topic.connection.rto_ms),
    ]);
    let is_bad = topic.late + topic.lost > 0;
    let style = |place: usize| if is_bad && (place == 9 || place == 10) { Style::Bad } else { Style::Plain };
    cells.into_iter().enumerate().map(|(place, cell)| Entry::new(cell, style(place))).collect()
}

fn hint(report: &TopicsReport) -> String {
    let of = |count: fn(&TopicReport) -> u64| report.topics.iter().map(count).sum::<u64>();
    let (late, timeouts) = (of(|topic| topic.late + topic.lost), of(|topic| topic.connection.timeouts.unwrap_or(0)));
    let (retransmits, backlog) =
        (of(|topic| topic.connection.retransmits), of(|topic| topic.connection.backlog_max_bytes));
    match (late, retransmits) {
        (0, 0) => "no message was late, and nothing was sent again".to_owned(),
        (0, _) => "segments were sent again, and no message was late for it; thalweg load udp-train finds the buffer that overflows".to_owned(),
        (late, 1..) if retransmits < late.div_ceil(LATE_FOR_EACH) => {
            "few segments were sent again for as many late messages: most of these waited on the path or in a host, whose programs may have had no \
             processor"
                .to_owned()
        }
        (_, 1..) if timeouts > 0 => {
            "late messages waited for retransmission timeouts: rto_min of the route shortens them, a smaller congestion window avoids the losses \
             (thalweg tune); thalweg load udp-train finds the buffer that overflows"
                .to_owned()
        }
        (_, 1..) => "late messages waited for segments that were sent again; thalweg load udp-train finds the buffer that overflows".to_owned(),
        _ if backlog > 0 => "nothing was lost: the messages waited in the publisher, whose socket took no more; thalweg watch says what limits it".to_owned(),
        _ => "nothing was lost: the messages waited on the path or in a host".to_owned(),
    }
}
