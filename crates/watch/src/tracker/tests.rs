//! Observations of sockets, and the rows and sums that they become.

use super::*;
use std::cell::Cell;
use std::collections::HashMap;
use thalweg_model::{ClosedSockets, LimitName};

/// What the kernel would say: the fields that are not given are zero.
#[derive(Debug, Clone, Default)]
struct Kernel {
    fields: HashMap<&'static str, u64>,
    packets: u32,
    queued: u32,
    unread: u32,
}

impl Kernel {
    /// A sender of 1,000-byte segments over 20 ms, `second` seconds old, that sends a megabyte a second.
    fn sender(second: u64) -> Self {
        let fields = [
            ("tcpi_busy_time", second * 1_000_000),
            ("tcpi_bytes_acked", second * 1_000_000),
            ("tcpi_data_segs_out", second * 1_000),
            ("tcpi_snd_cwnd", 100),
            ("tcpi_snd_ssthresh", 50),
            ("tcpi_unacked", 50),
            ("tcpi_snd_mss", 1_000),
            ("tcpi_notsent_bytes", 450_000),
            ("tcpi_snd_wnd", 50_000),
            ("tcpi_options", 4),
            ("tcpi_rtt", 20_000),
            ("tcpi_min_rtt", 19_000),
            ("sk_sndbuf", 2_000_000),
            ("sk_wmem_queued", 700_000),
        ];
        Self { fields: fields.into(), packets: second as u32 * 1_000, queued: 500_000, unread: 0 }
    }

    fn with(mut self, name: &'static str, value: u64) -> Self {
        self.fields.insert(name, value);
        self
    }
}

fn observed(cookie: u64, kernel: &Kernel) -> Observed<'static> {
    Observed {
        cookie,
        inode: cookie as u32 + 100,
        uid: 33,
        state: 1,
        local: "192.0.2.1:443".parse().expect("an end"),
        peer: "10.1.2.3:40001".parse().expect("an end"),
        unread: kernel.unread,
        unacknowledged: kernel.queued,
        packets: (kernel.packets, 0),
        congestion_control: "cubic",
    }
}

fn refresh(tracker: &mut Tracker, at_s: f64, sockets: &[(u64, &Kernel)]) {
    tracker.begin(1e9 + at_s);
    for (cookie, kernel) in sockets {
        tracker.observe(&observed(*cookie, kernel), |name| kernel.fields.get(name).copied().unwrap_or(0));
    }
    tracker.end(None);
}

fn close(tracker: &mut Tracker, at_s: f64, cookie: u64, kernel: &Kernel) {
    let field = |name: &str| kernel.fields.get(name).copied().unwrap_or(0);
    tracker.close(&Observed { uid: 0, inode: 0, ..observed(cookie, kernel) }, 1e9 + at_s, field);
}

fn metric(tracker: &Tracker, name: &str) -> String {
    let metrics = crate::exposition(tracker.totals());
    let line = metrics.lines().find(|line| line.starts_with(&format!("thalweg_tcp_{name}")));
    line.unwrap_or_else(|| panic!("no {name}: {metrics}")).rsplit(' ').next().expect("a value").to_owned()
}

#[test]
fn connections_that_end_are_rows_once_and_sums_for_good() {
    let mut tracker = Tracker::default();
    tracker.expect_closings();
    let (three, five) = (Kernel::sender(3), Kernel::sender(5).with("tcpi_rwnd_limited", 500_000));
    // It ended before the first refresh.
    close(&mut tracker, -0.1, 9, &Kernel::sender(9));
    refresh(&mut tracker, 0.0, &[(1, &three), (2, &three), (3, &three)]);
    assert_eq!(tracker.report().closed, Some(ClosedSockets::default()));
    // One that was observed and has a process, one that never was, and one that ended before the first refresh and was freed since.
    tracker
        .own(|inode| (inode == 101).then(|| SocketProcess { pid: 1, name: "web".to_owned(), cgroup: String::new() }));
    close(&mut tracker, 0.5, 1, &five);
    close(&mut tracker, 0.6, 4, &Kernel::sender(1));
    close(
        &mut tracker,
        0.7,
        5,
        &Kernel::sender(7)
            .with("tcpi_last_data_sent", 800)
            .with("tcpi_last_ack_recv", 750)
            .with("tcpi_last_data_recv", 900),
    );
    tracker.closings_missed(7);
    // The third is not listed any more, and its end is not reported yet.
    refresh(&mut tracker, 2.0, &[(2, &three)]);
    let report = tracker.report();
    let closed = report.closed.as_ref().expect("they are reported");
    assert_eq!((closed.total, closed.missed, report.sockets_total), (2, 7, 1));
    let rows: HashMap<u64, &SocketRow> = closed.sockets.iter().map(|row| (row.id, row)).collect();
    let (seen, unseen) = (rows[&1], rows[&4]);
    assert_eq!((seen.state, seen.uid, unseen.uid), (SocketState::Closed, 33, NO_USER));
    assert_eq!(seen.process.as_ref().map(|process| process.name.as_str()), Some("web"));
    // Two megabytes of its five, and one of one, in two seconds.
    assert_eq!((seen.send.bytes, seen.send.rate_bps, unseen.send.rate_bps), (5_000_000, 8e6, 4e6));
    assert_eq!((seen.send.queued_bytes, seen.send.queued_s, seen.limit.now), (0, Some(0.0), None));
    assert_eq!((seen.limit.life.cause, seen.limit.life.receive_window), (Some(LifeLimit::Network), 0.1));
    assert_eq!(metric(&tracker, "sent_bytes_total{process=\"web\"}"), "2000000");
    assert_eq!(metric(&tracker, "sent_bytes_total{process=\"unknown\"}"), "1000000");
    assert_eq!(metric(&tracker, "closed_connections_total{process=\"web\"}"), "1");
    assert_eq!(metric(&tracker, "limited_seconds_total{process=\"web\",cause=\"receive-window\"}"), "0.5");
    assert_eq!(metric(&tracker, "missed_connections_total"), "7");
    // Only what it did since it was observed counts, however late its end is reported.
    close(&mut tracker, 9.0, 3, &Kernel::sender(4));
    refresh(&mut tracker, 10.0, &[(2, &three)]);
    let closed = tracker.report().closed.as_ref().expect("they are reported");
    assert_eq!((closed.total, closed.missed, closed.sockets.len(), closed.sockets[0].id), (1, 0, 1, 3));
    assert_eq!(metric(&tracker, "sent_bytes_total{process=\"unknown\"}"), "2000000");
    assert_eq!(metric(&tracker, "missed_connections_total"), "7");
}

#[test]
fn one_that_ends_before_its_process_is_known_counts_once() {
    let mut tracker = Tracker::default();
    tracker.expect_closings();
    refresh(&mut tracker, 0.0, &[]);
    refresh(&mut tracker, 1.0, &[(1, &Kernel::sender(1))]);
    close(&mut tracker, 1.5, 1, &Kernel::sender(2));
    refresh(&mut tracker, 2.0, &[]);
    assert_eq!(metric(&tracker, "sent_bytes_total{process=\"unknown\"}"), "2000000");
    assert_eq!(metric(&tracker, "closed_connections_total{process=\"unknown\"}"), "1");
}

#[test]
fn counters_become_rates_and_clocks_limits() {
    let mut tracker = Tracker::default();
    refresh(&mut tracker, 0.0, &[(1, &Kernel::sender(10).with("tcpi_rwnd_limited", 5_000_000))]);
    let row = &tracker.report().sockets[0];
    assert_eq!((row.send.rate_bps, row.limit.now), (0.0, None), "one look has no rates");
    let later = Kernel::sender(12)
        .with("tcpi_rwnd_limited", 6_800_000)
        .with("tcpi_total_retrans", 120)
        .with("tcpi_dsack_dups", 3)
        .with("tcpi_rcv_ooopack", 7)
        .with("tcpi_rcv_wnd", 65_535)
        .with("sk_rmem_alloc", 4_096);
    refresh(&mut tracker, 2.0, &[(1, &later)]);
    let row = &tracker.report().sockets[0];
    assert_eq!((row.send.rate_bps, row.send.queued_s), (8e6, Some(0.5)));
    assert_eq!((row.send.in_flight_bytes, row.send.peer_window_bytes), (50_000, 50_000));
    let again = row.retransmissions;
    assert_eq!((again.segments, again.rate_per_s, again.share, again.spurious_segments), (120, 60.0, 0.01, 3));
    let receive = row.receive;
    assert_eq!((receive.window_bytes, receive.buffered_bytes, receive.out_of_order_segments), (65_535, 4_096, 7));
    let now = row.limit.now.expect("it sends");
    assert_eq!(now.cause, LimitName::ReceiveWindow);
    // The kernel counts nine tenths of it; in the rest the window is full all the same.
    assert!((now.share - 1.0).abs() < 1e-9 && (now.limits.total() - 1.0).abs() < 1e-9, "{now:?}");
    let life = row.limit.life;
    assert_eq!(life.cause, Some(LifeLimit::ReceiveWindow));
    assert!((life.receive_window - 6.8 / 12.0).abs() < 1e-9 && life.busy_s == 12.0, "{life:?}");
}

#[test]
fn a_closed_window_stands_still_and_is_the_readers() {
    let mut tracker = Tracker::default();
    refresh(&mut tracker, 0.0, &[(1, &Kernel::sender(10).with("tcpi_rwnd_limited", 0))]);
    let stuck = Kernel::sender(10)
        .with("tcpi_busy_time", 11_000_000)
        .with("tcpi_rwnd_limited", 1_000_000)
        .with("tcpi_unacked", 0)
        .with("tcpi_snd_wnd", 0);
    refresh(&mut tracker, 1.0, &[(1, &stuck)]);
    let row = &tracker.report().sockets[0];
    assert_eq!((row.send.queued_s, row.send.zero_window), (None, true));
    assert!(
        matches!(row.limit.now.map(|now| now.cause), Some(LimitName::Reader | LimitName::ReceiveWindow)),
        "{row:?}"
    );
    let metrics = crate::exposition(tracker.totals());
    assert!(metrics.contains("thalweg_tcp_zero_window_sockets{process=\"unknown\"} 1"), "{metrics}");
    assert!(metrics.contains("thalweg_tcp_zero_window_seconds_total{process=\"unknown\"} 1\n"), "{metrics}");
}

#[test]
fn a_receiver_whose_program_does_not_read_is_named() {
    let mut tracker = Tracker::default();
    let full = Kernel { packets: 9, unread: 100_000, ..Kernel::default().with("sk_rcvbuf", 131_072) };
    refresh(&mut tracker, 0.0, &[(1, &full)]);
    refresh(&mut tracker, 1.0, &[(1, &full)]);
    let row = &tracker.report().sockets[0];
    assert_eq!(row.limit.now.map(|now| (now.cause, now.share)), Some((LimitName::Reader, 1.0)), "{row:?}");
    // A few bytes that were not read yet say nothing.
    let some = Kernel { packets: 9, unread: 500, ..Kernel::default().with("sk_rcvbuf", 131_072) };
    refresh(&mut tracker, 2.0, &[(1, &some)]);
    refresh(&mut tracker, 3.0, &[(1, &some)]);
    assert_eq!(tracker.report().sockets[0].limit.now, None);
}

#[test]
fn fields_of_quiet_sockets_are_not_read() {
    let idle = Kernel { packets: 9, ..Kernel::default() };
    let reads = Cell::new(0);
    let mut tracker = Tracker::default();
    for second in 0..5 {
        tracker.begin(f64::from(second));
        let observed = Observed {
            cookie: 1,
            inode: 2,
            uid: 0,
            state: 1,
            local: "[::1]:1".parse().expect("an end"),
            peer: "[::1]:2".parse().expect("an end"),
            unread: idle.unread,
            unacknowledged: 0,
            packets: (idle.packets, 0),
            congestion_control: "",
        };
        tracker.observe(&observed, |_| {
            reads.set(reads.get() + 1);
            0
        });
        tracker.end(None);
        assert_eq!(tracker.report().sockets_total, 1);
    }
    let once = reads.get();
    assert!((1..80).contains(&once), "only when it was first seen: {once}");
}

#[test]
fn sockets_that_are_gone_are_forgotten_and_new_ones_count_from_zero() {
    let mut tracker = Tracker::default();
    let (a, b, c) = (Kernel::sender(5), Kernel::sender(6), Kernel::sender(1));
    refresh(&mut tracker, 0.0, &[(1, &a), (2, &b)]);
    refresh(&mut tracker, 1.0, &[(2, &b), (3, &c)]);
    assert_eq!(tracker.gone(), [101]);
    let rates: HashMap<u64, f64> = tracker.report().sockets.iter().map(|row| (row.id, row.send.rate_bps)).collect();
    assert_eq!(rates, HashMap::from([(2, 0.0), (3, 8e6)]), "a megabyte in its first second");
    let mut unowned = tracker.unowned(|_| true);
    unowned.sort_unstable();
    assert_eq!(unowned, [102, 103]);
    assert!(tracker.unowned(|_| false).is_empty());
    let process = |name: &str| SocketProcess { pid: 1, name: name.to_owned(), cgroup: String::new() };
    tracker.own(|inode| (inode == 103).then(|| process("sender")));
    // What the new one did in its first second is its program's, though that was found later.
    let metrics = crate::exposition(tracker.totals());
    assert!(metrics.contains("thalweg_tcp_sent_bytes_total{process=\"sender\"} 1000000\n"), "{metrics}");
    for _ in 0..10 {
        tracker.unowned(|_| true);
    }
    assert!(tracker.unowned(|_| true).is_empty(), "what is not found is not searched for ever");
}

#[test]
fn series_are_bounded() {
    let mut tracker = Tracker::default();
    let kernels: Vec<Kernel> = (0..2).map(|second| Kernel::sender(second * 3)).collect();
    for (second, kernel) in kernels.iter().enumerate() {
        let sockets: Vec<(u64, &Kernel)> = (0..500).map(|cookie| (cookie, kernel)).collect();
        refresh(&mut tracker, second as f64, &sockets);
        tracker.own(|inode| Some(SocketProcess { pid: inode, name: format!("a\"{inode}\\"), cgroup: String::new() }));
    }
    let metrics = crate::exposition(tracker.totals());
    assert!(metrics.lines().count() < 2_000, "{} lines", metrics.lines().count());
    assert!(metrics.contains("process=\"other\"") && metrics.contains("process=\"a\\\"100\\\\\""), "{metrics}");
    let sent: u64 = metrics
        .lines()
        .filter(|line| line.starts_with("thalweg_tcp_sent_bytes_total"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum();
    assert_eq!(sent, 500 * 3_000_000);
    // One observation of 20 ms for each: above 10 ms, not above 25 ms.
    let first = metrics.lines().find(|line| line.contains("le=\"0.01\"")).expect("a bucket");
    assert!(first.ends_with(" 0"), "{first}");
}

#[test]
fn one_that_is_followed_gets_the_doctors_verdict() {
    let mut tracker = Tracker::default();
    refresh(&mut tracker, 0.0, &[(1, &Kernel::sender(0))]);
    tracker.follow(Some(1));
    for second in 1..10u64 {
        let kernel = Kernel::sender(second).with("tcpi_rwnd_limited", second * 950_000);
        refresh(&mut tracker, second as f64, &[(1, &kernel)]);
    }
    let verdict = tracker.verdict().expect("a verdict");
    assert_eq!(verdict.code(), thalweg_model::Code::ReceiveWindow, "{verdict:?}");
    tracker.follow(None);
    assert!(tracker.verdict().is_none());
}
