//! Observations of sockets, and the rows and sums that they become.

use super::*;
use std::cell::Cell;
use std::collections::HashMap;
use thalweg_model::LimitName;

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

fn refresh(tracker: &mut Tracker, at_s: f64, sockets: &[(u64, &Kernel)]) {
    tracker.begin(1e9 + at_s);
    for (cookie, kernel) in sockets {
        let observed = Observed {
            cookie: *cookie,
            inode: *cookie as u32 + 100,
            uid: 33,
            state: 1,
            local: "192.0.2.1:443".parse().expect("an end"),
            peer: "10.1.2.3:40001".parse().expect("an end"),
            unread: kernel.unread,
            unacknowledged: kernel.queued,
            packets: (kernel.packets, 0),
            congestion_control: "cubic",
        };
        tracker.observe(&observed, |name| kernel.fields.get(name).copied().unwrap_or(0));
    }
    tracker.end(None);
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
    assert!((now.share - 0.9).abs() < 1e-9 && (now.limits.total() - 1.0).abs() < 1e-9, "{now:?}");
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
