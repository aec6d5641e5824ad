//! The reports of UDP trains and of topics between hosts, as JSON and in the terminal.

#[path = "common/schema_check.rs"]
mod schema_check;

use schema_check::{holds, validator};
use thalweg_model::{
    BufferEstimate, LossRuns, Percentiles, RateEstimate, TopicConnection, TopicReport, TopicsClock, TopicsReport,
    TrainFinding, TrainRow, UdpTrainReport, Way,
};
use thalweg_report::terminal;
use thalweg_units::Span;

const TRAIN: &str = include_str!("../../../docs/schema/thalweg.load-udp-train-1.json");
const TOPICS: &str = include_str!("../../../docs/schema/thalweg.load-topics-1.json");

fn row(packets: u64, lost: u64) -> TrainRow {
    let is_full = lost > 0;
    TrainRow {
        packets,
        lost,
        first_lost: is_full.then_some(178),
        offered_bps: Some(1.969e9),
        drain_bps: (packets > 16).then_some(984.2e6),
        queue_max_ms: Some(1.0225),
        buffer_bytes: is_full.then_some(126_896),
        duplicates: 0,
        receiver_dropped: 0,
        sender_blocked: 0,
    }
}

fn train() -> UdpTrainReport {
    UdpTrainReport {
        schema: "thalweg.load-udp-train/1",
        peer: "192.0.2.1:5201".to_owned(),
        way: Way::Up,
        payload_bytes: 1_400,
        frame_bytes: 1_442,
        overhead_bytes: 24,
        finding: TrainFinding::FullBuffer,
        rate: Some(RateEstimate { bps: 1e9, low_bps: 998.5e6, high_bps: 1.002e9, trains: 2 }),
        buffer: Some(BufferEstimate {
            bytes: 126_896,
            low_bytes: 125_454,
            high_bytes: 128_338,
            packets: 88,
            losses: 1_203,
        }),
        queue_max_bytes: Some(126_896),
        queue_max_ms: 1.0225,
        queue_course_ms: vec![0.0, 0.25, 0.5, 0.75, 1.0, 1.02, 1.01, 1.02, 1.02, 1.01, 1.02],
        losses: LossRuns { packets: 3_400, lost: 1_203, runs: 1_180, longest: 3 },
        growing: vec![row(16, 0), row(128, 38)],
        measured: vec![row(1_700, 601), row(1_700, 602)],
    }
}

#[test]
fn trains_are_shown_and_are_as_their_schema_says() {
    let document = serde_json::to_value(train()).expect("JSON");
    holds(&validator(TRAIN), &document, &["", "/rate", "/buffer", "/losses", "/growing/0", "/measured/1"]);
    insta::assert_snapshot!("train_full", terminal::udp_train(&train(), 100, false));

    let open = UdpTrainReport { buffer: None, finding: TrainFinding::NoLoss, losses: LossRuns::default(), ..train() };
    let scattered = UdpTrainReport { buffer: None, finding: TrainFinding::ScatteredLosses, ..train() };
    let mut fast = UdpTrainReport { rate: None, queue_max_bytes: None, finding: TrainFinding::NoQueue, ..open.clone() };
    fast.measured[0].receiver_dropped = 7;
    fast.measured[1].sender_blocked = 900;
    for (name, report) in [("train_open", open), ("train_scattered", scattered), ("train_fast", fast)] {
        holds(&validator(TRAIN), &serde_json::to_value(&report).expect("JSON"), &[]);
        let text = terminal::udp_train(&report, 100, false);
        // What the table says is in the first snapshot.
        insta::assert_snapshot!(name, text.lines().skip(6).collect::<Vec<_>>().join("\n"));
    }
}

fn topic(name: &str, way: Way) -> TopicReport {
    TopicReport {
        name: name.to_owned(),
        way,
        period: Span::from_millis(100),
        deadline: Span::from_millis(100),
        messages: 100,
        lost: 0,
        late: 0,
        latency_ms: Some(Percentiles { count: 100, p50: 3.91, p90: 4.25, p99: 16.4, p999: 16.4, max: 16.4 }),
        connection: TopicConnection {
            congestion: "cubic".to_owned(),
            retransmits: 0,
            timeouts: Some(0),
            rto_ms: 204.0,
            rtt_ms: 0.45,
            min_rtt_ms: 0.25,
            cwnd_packets: 40,
            backlog_max_bytes: 0,
        },
    }
}

fn topics(topics: Vec<TopicReport>) -> TopicsReport {
    TopicsReport {
        schema: "thalweg.load-topics/1",
        peer: "192.0.2.1:5201".to_owned(),
        duration_s: 10.0,
        clock: TopicsClock { rtt_ms: 0.25, uncertainty_ms: 0.125, drift_ppm: -3.25 },
        topics,
        notes: vec!["2 topics of the scenario are between other hosts and were left out".to_owned()],
    }
}

#[test]
fn topics_are_shown_and_are_as_their_schema_says() {
    let calm = topics(vec![topic("map", Way::Up), topic("planning", Way::Down)]);
    holds(
        &validator(TOPICS),
        &serde_json::to_value(&calm).expect("JSON"),
        &["", "/clock", "/topics/0", "/topics/0/latency_ms", "/topics/1/connection"],
    );
    insta::assert_snapshot!("topics", terminal::topics_load(&calm, 120, false));
    let hint = |late: u64, retransmits: u64, timeouts: Option<u64>, backlog_max_bytes: u64| {
        let mut one = topic("map", Way::Up);
        one.late = late;
        one.connection = TopicConnection { retransmits, timeouts, backlog_max_bytes, ..one.connection };
        terminal::topics_load(&topics(vec![one]), 100, false).split("hint: ").nth(1).unwrap_or_default().to_owned()
    };
    let hints =
        [hint(0, 3, Some(0), 0), hint(2, 3, Some(1), 0), hint(2, 3, None, 0), hint(2, 0, None, 9), hint(2, 0, None, 0)];
    insta::assert_snapshot!("topics_hints", hints.join("\n"));
    let mut none = topic("map", Way::Up);
    (none.latency_ms, none.lost) = (None, 100);
    holds(&validator(TOPICS), &serde_json::to_value(topics(vec![none])).expect("JSON"), &[]);
}
