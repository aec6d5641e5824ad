//! The report of a load of streams between hosts, as JSON and in the terminal.

#[path = "common/schema_check.rs"]
mod schema_check;

use schema_check::{holds, validator};
use thalweg_model::{
    Code, CpuShare, EndTotal, LimitNow, Limits, Percentiles, StreamCpu, StreamInterval, StreamLoadReport, StreamTest,
    StreamTotal, StreamVerdict, TcpInterval, TcpTotal, TransactionReport, UdpInterval, UdpTotal, Way,
};

const SCHEMA: &str = include_str!("../../../docs/schema/thalweg.load-stream-1.json");
const TRANSACTIONS: &str = include_str!("../../../docs/schema/thalweg.load-transactions-1.json");

fn interval(start_s: f64, way: Way, stream: Option<u32>) -> StreamInterval {
    StreamInterval {
        start_s,
        end_s: start_s + 1.0,
        omitted: start_s < 1.0,
        way,
        stream,
        sender: way == Way::Up,
        bytes: 117_625_000,
        rate_bps: 941e6,
        tcp: None,
        udp: None,
    }
}

fn end(bytes: u64) -> Option<EndTotal> {
    Some(EndTotal { bytes, duration_s: 10.0, rate_bps: bytes as f64 * 0.8 })
}

fn test(transport: &'static str, ways: &[Way]) -> StreamTest {
    StreamTest {
        transport,
        ways: ways.to_vec(),
        streams: 2,
        duration_s: Some(10),
        bytes: None,
        omit_s: 1,
        length_bytes: 131_072,
        rate_bps: None,
        window_bytes: Some(262_144),
        segment_bytes: None,
        congestion: None,
        peer_congestion: None,
    }
}

fn report(test: StreamTest, intervals: Vec<StreamInterval>, sums: Vec<StreamTotal>) -> StreamLoadReport {
    let cpu = |total_percent| CpuShare { total_percent, user_percent: 1.0, system_percent: total_percent - 1.0 };
    let stream = |sum: &StreamTotal, id| StreamTotal { stream: Some(id), ..sum.clone() };
    let streams = sums.iter().flat_map(|sum| [stream(sum, 1), stream(sum, 3)]).collect();
    StreamLoadReport {
        schema: "thalweg.load-stream/1",
        role: "client",
        peer: "192.0.2.1:5201".to_owned(),
        title: Some("a test".to_owned()),
        extra_data: None,
        test,
        intervals,
        sums,
        streams,
        cpu: StreamCpu { local: cpu(12.0), peer: Some(cpu(34.0)) },
        notes: vec!["the congestion control 'bbr2' is not available here".to_owned()],
        failure: Some("the server closed the control connection".to_owned()),
    }
}

fn tcp() -> StreamLoadReport {
    let limits = Limits { receive_window: 0.9, application: 0.1, ..Limits::default() };
    let row =
        TcpInterval { retransmits: 3, cwnd_bytes: 419_840, rtt_ms: Some(35.25), limit: LimitNow::largest_of(limits) };
    let whole = TcpTotal {
        cwnd_max_bytes: 419_840,
        rtt_ms: Some(Percentiles { count: 100, p50: 35.25, p90: 36.0, p99: 40.5, p999: 41.0, max: 41.0 }),
        limits,
        verdict: Some(StreamVerdict {
            stream: 1,
            code: Code::ReceiveWindow,
            share: 0.9,
            claim: "The receiver's window was full for 90 % of the time.".to_owned(),
        }),
    };
    let up = |start, stream| StreamInterval { tcp: Some(row.clone()), ..interval(start, Way::Up, stream) };
    let intervals = vec![up(0.0, None), up(0.0, Some(1)), up(1.0, None), interval(1.0, Way::Down, None)];
    let total = |way, tcp| StreamTotal {
        way,
        stream: None,
        sent: end(1_176_250_000),
        received: end(1_170_000_000),
        retransmits: Some(12),
        tcp,
        udp: None,
    };
    let mut test = test("tcp", &[Way::Up, Way::Down]);
    (test.congestion, test.peer_congestion) = (Some("cubic".to_owned()), Some("bbr".to_owned()));
    report(test, intervals, vec![total(Way::Up, Some(whole)), total(Way::Down, None)])
}

fn udp() -> StreamLoadReport {
    let row = UdpInterval { packets: 1_000, lost: Some(10), jitter_ms: Some(0.25) };
    let intervals = vec![StreamInterval { udp: Some(row), ..interval(1.0, Way::Down, None) }];
    let udp = UdpTotal { packets: 10_000, lost: 100, out_of_order: Some(3), jitter_ms: 0.25 };
    let total = StreamTotal {
        way: Way::Down,
        stream: None,
        sent: None,
        received: end(14_000_000),
        retransmits: None,
        tcp: None,
        udp: Some(udp),
    };
    report(test("udp", &[Way::Down]), intervals, vec![total])
}

#[test]
fn the_document_is_as_its_schema_says_and_nothing_else_is() {
    let tcp_places =
        ["/intervals/0/tcp", "/intervals/0/tcp/limit", "/sums/0/tcp", "/sums/0/tcp/verdict", "/sums/0/tcp/rtt_ms"];
    let places = ["", "/test", "/intervals/0", "/sums/0", "/sums/0/received", "/streams/0", "/cpu", "/cpu/local"];
    for (report, more) in [(tcp(), &tcp_places[..]), (udp(), &["/intervals/0/udp", "/sums/0/udp"])] {
        let places: Vec<&str> = places.iter().chain(more).copied().collect();
        holds(&validator(SCHEMA), &serde_json::to_value(report).expect("JSON"), &places);
    }
    let document = serde_json::to_value(transactions()).expect("JSON");
    holds(&validator(TRANSACTIONS), &document, &["", "/latency_ms", "/connect_ms", "/cpu"]);
}

fn transactions() -> TransactionReport {
    let times =
        |p50: f64| Percentiles { count: 79, p50, p90: p50 * 2.0, p99: p50 * 3.0, p999: p50 * 4.0, max: p50 * 5.0 };
    TransactionReport {
        schema: "thalweg.load-transactions/1",
        kind: "crr",
        peer: "192.0.2.1:5201".to_owned(),
        streams: 1,
        request_bytes: 1_000,
        response_bytes: 3_000_000,
        duration_s: 100.01,
        transactions: 79,
        transactions_per_s: 0.79,
        latency_ms: Some(times(1_234.5)),
        connect_ms: Some(times(102.25)),
        send_buffer_bytes: 16_384,
        receive_buffer_bytes: 131_072,
        failures: [("the server closed the control connection".to_owned(), 2)].into(),
        cpu: CpuShare { total_percent: 3.0, user_percent: 1.0, system_percent: 2.0 },
    }
}

#[test]
fn the_terminal_shows_rows_and_both_ends() {
    insta::assert_snapshot!("tcp", thalweg_report::terminal::stream_load(&tcp(), 100, false));
    insta::assert_snapshot!("udp", thalweg_report::terminal::stream_load(&udp(), 100, false));
    insta::assert_snapshot!("transactions", thalweg_report::terminal::transactions(&transactions(), 100, false));
}
