//! Reports such as the lab and `infer` make them, small and exact: what the tests of this crate render.
#![allow(dead_code, unreachable_pub, reason = "each test uses the part it needs")]

pub mod causes;
pub mod watch;

use std::collections::BTreeMap;
use thalweg_model::*;

/// A name that is markup, a script's end and a terminal escape at once.
pub const HOSTILE: &str = "<img src=x onerror=alert(1)></script><!--\x1b[31m";

/// An arm of the slow download.
pub fn arm(name: &str, steady: f64, mean: f64, line: DiagnosisLine) -> ArmReport {
    let duration = 500e6 * 8.0 / mean;
    let sysctl = BTreeMap::from([("net.ipv4.tcp_rmem".to_owned(), "4096 131072 6291456".to_owned())]);
    ArmReport {
        name: name.to_owned(),
        kernel: "6.12.117".to_owned(),
        matrix: BTreeMap::new(),
        baseline: None,
        settings: SettingsReport {
            client: HostReport { sysctl, ..HostReport::default() },
            server: HostReport::default(),
            path: vec!["netem delay 17.85ms limit 100000".to_owned()],
        },
        metrics: Metrics::from([
            ("goodput_bps".to_owned(), Metric::One(mean)),
            ("goodput_steady_bps".to_owned(), Metric::One(steady)),
            ("retransmits".to_owned(), Metric::Count(0)),
            ("rtt_ms".to_owned(), Metric::One(35.7)),
            ("duration_s".to_owned(), Metric::One(duration)),
        ]),
        differences: BTreeMap::new(),
        outliers: vec![],
        intervals: vec![Interval {
            start_s: 0.0,
            end_s: 1.0,
            bytes: 56_000_000,
            goodput_bps: 448e6,
            retransmits: 0,
            cwnd_packets: 1740,
            rtt_ms: 35.9,
        }],
        diagnosis: vec![line],
        capture: Some("as-found.pcapng".to_owned()),
        samples: None,
        live: None,
    }
}

/// The cause of the slow download.
pub fn cause() -> DiagnosisLine {
    DiagnosisLine {
        code: Code::ReceiveWindow,
        share: 0.968,
        gain: Some(5.3),
        claim: "The client's receive window stays at 2.40 MiB; a 35.7 ms path at 3 Gb/s holds 12.8 MiB, so the window lets 563 Mb/s through.".to_owned(),
    }
}

/// The slow download, before and after.
pub fn lab() -> LabReport {
    let after = DiagnosisLine {
        code: Code::PathRate,
        share: 0.81,
        gain: None,
        claim: "The path delivers all it can: 2.87 Gb/s of a 3 Gb/s link.".to_owned(),
    };
    let mut report = LabReport {
        schema: "thalweg.lab/1".to_owned(),
        scenario: "slow-download".to_owned(),
        about: "A 35 ms, 3 Gb/s path stuck at 450 Mb/s".to_owned(),
        kernel: "6.12.117".to_owned(),
        engine: "virtual".to_owned(),
        seed: 1,
        repeats: 1,
        wall_s: 2.5,
        virtual_s: 10.2,
        arms: vec![arm("as found", 563e6, 541e6, cause()), arm("receive-window", 2.87e9, 2.31e9, after)],
        failed: Vec::new(),
        expect: vec![
            Outcome {
                metric: "as found/verdict".to_owned(),
                wanted: "receive-window".to_owned(),
                got: "receive-window".to_owned(),
                met: true,
            },
            Outcome {
                metric: "receive-window/goodput_steady_bps".to_owned(),
                wanted: ">= 6x as found".to_owned(),
                got: "5.098x".to_owned(),
                met: false,
            },
        ],
        shard: None,
    };
    compare(&mut report.arms);
    report
}

/// The slow download in real time: one arm was as asked for, the other not.
pub fn live() -> LabReport {
    let mut report = LabReport { engine: "live".to_owned(), kernel: "6.18.44".to_owned(), ..lab() };
    let faults = [
        "seed 1: down: the emulator lost 1197 frames that nobody asked it to lose: it was too slow to read them",
        "seed 1: the programs ran late: one tick in a hundred by more than 37224 µs; up to 1000 µs is as asked for",
    ];
    for (arm, faults) in report.arms.iter_mut().zip([&[][..], &faults]) {
        let faults: Vec<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
        let verdict = PathVerdict { faithful: faults.is_empty(), faults };
        let skipped = vec!["server: cannot set the sysctl 'net.core.rmem_max' to '1': no such file".to_owned()];
        arm.live = Some(LiveReport { verdict, skipped });
        let cpu = [("programs", 0.73), ("path", 3.2)].map(|(name, value)| (name.to_owned(), Metric::One(value)));
        arm.metrics.insert("cpu_s".to_owned(), Metric::Group(cpu.into_iter().collect()));
    }
    report
}

/// Compares every arm with the first, as the lab does it for one repeat.
fn compare(arms: &mut [ArmReport]) {
    let (base, rest) = arms.split_first_mut().expect("arms");
    for arm in rest {
        arm.baseline = Some(base.name.clone());
        for (name, metric) in Metric::flatten(&arm.metrics) {
            let of = |metric: &Metric| metric.value().expect("a figure");
            let Some(other) = Metric::named(&base.metrics, &name).map(of) else { continue };
            let ratio = Some(of(metric) / other).filter(|ratio| ratio.is_finite());
            let difference = Difference { difference: of(metric) - other, ratio, ci95: None, within_noise: None };
            arm.differences.insert(name, difference);
        }
    }
}

/// A part of a divided run, whose first repeats are in another.
pub fn part() -> LabReport {
    let mut report = lab();
    report.arms.remove(0);
    report.arms[0].differences.clear();
    report.expect.clear();
    let metrics = report.arms[0].metrics.clone();
    report.shard = Some(Shard {
        index: 2,
        of: 3,
        arms: vec!["as found".to_owned(), "receive-window".to_owned()],
        expect: vec![Expected { metric: "as found/goodput_bps".to_owned(), wanted: "> 1mbit".to_owned() }],
        runs: vec![RunFigures { arm: 1, repeat: 0, virtual_s: 3.5, metrics }],
    });
    report
}

/// Repeats of which one arm has an outlier, and differs from the other by no more than noise.
pub fn noisy() -> LabReport {
    let mut report = repeats();
    report.repeats = 8;
    let name = "time_to_bytes_ms.1000000";
    let arm = &mut report.arms[1];
    arm.matrix = BTreeMap::from([("initcwnd".to_owned(), "40".to_owned())]);
    arm.outliers = vec![Outlier { metric: name.to_owned(), seed: 4, value: 2214.0 }];
    arm.differences.insert(
        name.to_owned(),
        Difference { difference: -9.0, ratio: Some(0.989), ci95: Some([-21.0, 3.0]), within_noise: Some(true) },
    );
    report
}

/// A remedy for the slow download.
pub fn remedy() -> Remedy {
    Remedy {
        code: Code::ReceiveWindow,
        reason:
            "The receive buffer must hold twice the path's 12.8 MiB, as the kernel offers about half of it as window."
                .to_owned(),
        changes: vec![Change {
            side: Side::Client,
            setting: Setting::Sysctl("net.ipv4.tcp_rmem".to_owned()),
            from: Some("4096 131072 6291456".to_owned()),
            to: "4096 131072 33554432".to_owned(),
        }],
        commands: vec![],
        kernels: None,
        applicability: Applicability::NeedsThought,
        wont_help: "Connections that lose packets, or that end before the window has grown.".to_owned(),
        notes: vec!["Memory of the host: each connection may use that much.".to_owned()],
    }
}

/// The fix of the slow download.
pub fn fix() -> FixReport {
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause: cause(),
        also: Vec::new(),
        figures: Vec::new(),
        remedy: Some(remedy()),
        needs: Vec::new(),
        apply: vec!["sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\"   # on the client".to_owned()],
        undo: vec!["sysctl -w net.ipv4.tcp_rmem=\"4096 131072 6291456\"   # on the client".to_owned()],
        metric: "goodput_steady_bps".to_owned(),
        before: 563e6,
        after: Some(2.87e9),
        ratio: Some(5.098),
        capture: None,
        search: Vec::new(),
        rival: None,
        rejected: Vec::new(),
        other_fits: Vec::new(),
        notes: Vec::new(),
        proof: Some(lab()),
    }
}

/// The fix of a captured download, with a model that was refused, a search and a rival.
pub fn fixed_capture() -> FixReport {
    let check = |figure: &str, capture, inside| FitCheck {
        figure: figure.to_owned(),
        capture,
        median: 10e6,
        least: 8e6,
        most: 12e6,
        inside,
    };
    let model = |name: &str, accepted| FittedModel {
        name: name.to_owned(),
        parameters: vec![FittedParameter {
            key: "path.rtt".to_owned(),
            value: "60ms".to_owned(),
            origin: Origin::Measured,
        }],
        seeds: 16,
        same_verdict: 0.875,
        checks: vec![check("goodput_bps", 11e6, true), check("second_p50_bps", 7e6, accepted)],
        accepted,
    };
    let changes = remedy().changes;
    let set = Candidate {
        name: "bbr".to_owned(),
        codes: vec![Code::RandomLoss],
        changes: changes.clone(),
        ratios: vec![4.2, 5.1],
        corners: vec![Corner { parameter: "loss".to_owned(), factor: 0.7, ratio: 2.6 }],
    };
    let rival = Rival {
        alone_bps: 9e6,
        beside_cubic_bps: 7.6e6,
        beside_remedy_bps: 3.5e6,
        harm_of_cubic: 0.155,
        harm_of_remedy: 0.611,
        jain: 0.57,
        accepted: false,
    };
    FixReport {
        needs: changes,
        capture: Some(Box::new(CaptureFit {
            file: "slow.pcap".to_owned(),
            flow: 3,
            client: "192.0.2.1:4000".to_owned(),
            server: "192.0.2.2:443".to_owned(),
            vantage: Vantage::Sender,
            direction: Way::Down,
            first_s: Some(10.0),
            models: vec![model("random loss", true), model("drop-tail queue", false)],
            scenario: Some("name = \"fitted\"\n".to_owned()),
        })),
        search: vec![set.clone()],
        other_fits: vec![OtherFit {
            model: "policer".to_owned(),
            before: 8.1e6,
            set: Some(set.clone()),
            after: Some(9.3e6),
            apply: vec!["sysctl -w net.ipv4.tcp_congestion_control=\"bbr\"   # on the server".to_owned()],
            test: Some(DistinguishingTest { set: "bbr".to_owned(), in_use: 41e6, other: 9.3e6 }),
        }],
        rival: Some(rival),
        rejected: vec![Rejected {
            set,
            congestion: "bbr".to_owned(),
            rival,
            apply: vec!["sysctl -w net.ipv4.tcp_congestion_control=\"bbr\"   # on the server".to_owned()],
        }],
        notes: vec!["The path was run for 10 s.".to_owned()],
        ..fix()
    }
}

/// Two connections of a capture with a hostile name.
pub fn diagnose() -> DiagnoseReport {
    let limits =
        Limits { receive_window: 0.9, slow_start: 0.06, application: 0.035, loss_recovery: 0.005, ..Limits::default() };
    let verdict = Verdict { weight: Some(5.3), ..Verdict::new(causes::receive_window(), 0.9, Some(5.3)) };
    let finding = Finding {
        verdict: Verdict { weight: Some(1.3), ..Verdict::new(causes::timeouts(), 0.005, None) },
        depends_on: Some(Code::RandomLoss),
    };
    let flow = Flow {
        id: 3,
        first_packet: 17,
        client: "10.0.0.1:40000".to_owned(),
        server: "10.0.0.2:443".to_owned(),
        interface: Some("server".to_owned()),
        vantage: Vantage::Sender,
        start: 1_700_000_000.25,
        duration_s: 7.4,
        bytes_up: 120,
        bytes_down: 500_000_000,
        packets_up: 90_000,
        packets_down: 345_000,
        handshake: Handshake {
            rtt_ms: Some(35.7),
            mss_client: Some(1460),
            wscale_client: Some(7),
            sack: Some(true),
            ..Handshake::default()
        },
        direction: Way::Down,
        facts: facts(),
        measured: Measured {
            capacity_bps: Some(2.9e9),
            fastest_bps: None,
            first_bps: None,
            link_mtu_bytes: None,
            segment_bytes: 1448,
            delivered_segment_bytes: 1448,
            flight_max_bytes: 2_516_582,
            window_max_bytes: 2_516_582,
            send_buffer_bytes: None,
            bursts: 1,
            nagle_side: Some(Side::Client),
        },
        policer: Some(thalweg_model::TokenBucket { rate_bps: 9.4e6, burst_bytes: 30_000.0 }),
        retransmits: Retransmits { total: 3, fast: 2, rto: 1, tlp: 0, ..Retransmits::default() },
        out_of_order: 0,
        dup_acks: 12,
        zero_windows: 0,
        window_full: 4100,
        rtt_min_ms: Some(35.7),
        goodput_bps: 541e6,
        phase_s: 7.394,
        life: Some(life()),
        application: Some(Box::new(application())),
        limits,
        verdict,
        findings: vec![finding],
        other_direction: Some(Box::new(thalweg_model::OtherDirection {
            direction: Way::Up,
            vantage: Vantage::Receiver,
            goodput_bps: 2.5e6,
            retransmits: 0,
            limits: thalweg_model::Limits { receive_window: 1.0, ..thalweg_model::Limits::default() },
            verdict: Verdict { weight: Some(3.0), ..Verdict::new(causes::shared_path(), 1.0, Some(3.0)) },
        })),
        intervals: vec![],
        remedies: vec![
            Remedy {
                commands: vec!["sysctl -w net.ipv4.tcp_rmem=\"4096 131072 33554432\"   # on the client".to_owned()],
                kernels: Some(Kernels { from: Some("6.6".to_owned()), before: None }),
                applicability: Applicability::OtherSide,
                ..remedy()
            },
            Remedy {
                changes: vec![],
                reason: "Or several connections.".to_owned(),
                wont_help: String::new(),
                notes: vec![],
                ..remedy()
            },
        ],
    };
    let mut idle = flow.clone();
    idle.id = 0;
    idle.verdict = Verdict::new(causes::application(), 1.0, Some(1.0));
    idle.limits = Limits { application: 1.0, ..Limits::default() };
    (idle.findings, idle.remedies, idle.interface) = (vec![], vec![], None);
    DiagnoseReport {
        schema: "thalweg.diagnose/1".to_owned(),
        captures: vec![CaptureReport {
            file: HOSTILE.to_owned(),
            packets: 435_000,
            bytes: 541_000_000,
            truncated: true,
            notes: vec!["3 frames are not TCP".to_owned()],
            flows: vec![Box::new(flow), Box::new(idle)],
        }],
    }
}

/// Facts with every part that there can be.
fn facts() -> thalweg_model::Facts {
    thalweg_model::Facts {
        tap_duplicates: 2,
        missed_bytes: 5_000,
        ecn: Some(thalweg_model::Ecn {
            negotiated: Some(true),
            capable: 344_997,
            marked: 12,
            echoes: 40,
            reductions: 3,
        }),
        fast_open: Some(Box::new(thalweg_model::FastOpen {
            syn_bytes: 300,
            sent: true,
            accepted: Some(true),
            ..Default::default()
        })),
        multipath: Some(thalweg_model::Multipath { kind: thalweg_model::MultipathKind::Join, agreed: Some(true) }),
        keep_alives: Some(Box::new(thalweg_model::KeepAlives { client: 3, server: 0, window_probes: 1, answers: 4 })),
        reordering: Some(Box::new(thalweg_model::Reordering {
            packets: 4,
            bytes_max: 5_792,
            segments_max: 4,
            late_ms_max: Some(1.5),
        })),
        rtt: Some(Box::new(thalweg_model::RoundTrips {
            source: thalweg_model::RttSource::Acknowledgements,
            samples: 90_000,
            p50_ms: 36.1,
            p90_ms: 37.0,
            p99_ms: 40.2,
            max_ms: 61.0,
            loaded_ms: Some(36.4),
            timestamps_min_ms: Some(35.8),
            ack_wait_ms: Some(22.5),
        })),
        receive_window: Some(Box::new(thalweg_model::ReceiveWindow {
            first_bytes: 64_256,
            max_bytes: 2_500_000,
            state: Some(thalweg_model::BufferState::Capped),
            buffer_least_bytes: Some(4 << 20),
            buffer_below_bytes: Some(8 << 20),
        })),
        initial_window: Some(thalweg_model::InitialWindow { bytes: 14_480, segments: 10.0, exact: true }),
        slow_start: Some(thalweg_model::SlowStart {
            rounds: 8,
            exit: Some(thalweg_model::SlowStartExit::ReceiveWindow),
            exit_s: Some(0.32),
            crept: false,
        }),
        shared_path: Some(Box::new(thalweg_model::SharedPath {
            others: 3,
            together_bps: 540e6,
            path_rate_bps: 560e6,
            full_share: 0.92,
        })),
        delivery: Some(thalweg_model::Delivery {
            rate_bps: Some(560e6),
            capacity_bps: Some(2.9e9),
            bdp_bytes: Some(12.9e6),
        }),
        flight_max_bytes: 2_500_000,
        losses: Some(Box::new(thalweg_model::LossFacts {
            class: Some(thalweg_model::LossClass::Queue),
            episodes: 3,
            packets: 30,
            packets_max: 21,
            p50_ms: 0.5,
            p80_ms: 9.0,
            p90_ms: 9.0,
            p99_ms: 9.0,
            max_ms: 9.0,
            tails: 1,
        })),
        bursts: Some(Box::new(thalweg_model::Bursts {
            peak_1ms_bytes: 375_000,
            peak_100us_bytes: 65_000,
            peak_1ms_bps: 3e9,
            peak_100us_bps: 5.2e9,
            losses: Some(thalweg_model::BurstLosses {
                joined: 30,
                after_largest: 0.9,
                by_chance: 0.1,
                bytes_max: 370_000,
            }),
        })),
        idle_restarts: Some(Box::new(thalweg_model::IdleRestarts { pauses: 3, restarts: 2, restarted_ms: 140.0 })),
        delayed_acks: Some(thalweg_model::DelayedAcks { waits: 5, waited_ms: 200.0 }),
        path_mtu: Some(thalweg_model::PathMtu { passed_bytes: 1_300, vanished_bytes: 1_448 }),
        congestion_control: Some(thalweg_model::CongestionFamily {
            name: thalweg_model::FamilyName::Cubic,
            confidence: 0.75,
            episodes: 3,
            window_after: Some(0.7),
            probes: 0,
        }),
    }
}

/// Series of a transfer in which slow start ends at `ceiling` bytes of window, with losses where `lossy`.
pub fn series(ceiling: f64, rtt_s: f64, total: f64, lossy: bool) -> Series {
    let mut series = Series::default();
    let (mut t, mut cwnd, mut sent, mut n) = (rtt_s, 14_480.0f64, 0.0f64, 0u32);
    let window_end = if lossy { 6.2e6 } else { ceiling };
    let push = |list: &mut Vec<Point>, t: f64, v: f64| list.push(Point { t, v });
    while sent < total && n < 2500 {
        let window = (131_072.0 * 1.9f64.powi(n as i32)).min(window_end);
        let flight = if lossy { cwnd.min(window) } else { cwnd.min(window) * (0.985 + 0.015 * f64::from(n % 3)) };
        sent = (sent + flight).min(total);
        push(&mut series.receive_window_bytes, t, window);
        push(&mut series.cwnd_bytes, t, cwnd);
        push(&mut series.flight_bytes, t, flight * 0.9);
        push(&mut series.flight_bytes, t + rtt_s * 0.5, flight);
        push(&mut series.sent_bytes, t, sent);
        push(&mut series.acked_bytes, t, sent - flight);
        push(&mut series.throughput_bps, t, flight * 8.0 / rtt_s);
        push(&mut series.rtt_ms, t, rtt_s * 1e3 + f64::from(n * 7919 % 13) * 0.11);
        let grown =
            if cwnd < ceiling * 0.8 && !lossy { cwnd * 2.0 } else { cwnd + if lossy { 9000.0 } else { 1448.0 } };
        cwnd = if lossy && n < 5 { cwnd * 2.0 } else { grown };
        if lossy && n > 5 && n.is_multiple_of(17) {
            let kind = [MarkKind::Fast, MarkKind::Fast, MarkKind::Rto, MarkKind::Tlp, MarkKind::Spurious]
                [(n / 17 % 5) as usize];
            series.marks.push(LossMark { t: t + 0.01, packet: 1, byte: (sent - flight) as u64, kind });
            cwnd *= 0.7;
            t += if kind == MarkKind::Rto { 0.3 } else { 0.0 };
        }
        t += rtt_s;
        n += 1;
    }
    push(&mut series.acked_bytes, t, sent);
    push(&mut series.flight_bytes, t, 0.0);
    series
}

/// First frames over three repeats: more figures than a line holds, some of which differ between repeats.
pub fn repeats() -> LabReport {
    let arm = |name: &str, factor: f64, lost: u64| {
        let mut arm = arm(name, 0.0, 12.3e6 / factor, cause());
        let spread = |value: f64| Metric::Summary {
            median: value,
            min: value * 0.97,
            max: value * 1.04,
            ci95: [value * 0.98, value * 1.02],
            values: vec![value, value * 0.97, value * 1.04],
        };
        let even = |value: f64| Metric::Summary {
            median: value,
            min: value,
            max: value,
            ci95: [value, value],
            values: vec![value; 3],
        };
        let bytes = [("117118", 500.0), ("300000", 600.0), ("1000000", 800.0)];
        let times = bytes.map(|(bytes, ms)| (bytes.to_owned(), spread(ms * factor)));
        arm.metrics.remove("goodput_steady_bps");
        arm.metrics.insert("time_to_bytes_ms".to_owned(), Metric::Group(BTreeMap::from(times)));
        arm.metrics.insert("retransmits".to_owned(), spread(lost as f64));
        arm.metrics.insert("connect_ms".to_owned(), even(100.0));
        arm.diagnosis[0].code = Code::InitialWindow;
        arm
    };
    let mut lab = lab();
    (lab.scenario, lab.repeats, lab.expect) = ("first-frame".to_owned(), 3, vec![]);
    lab.about = "A 100 ms path, 1 MB of buffered video at once".to_owned();
    lab.arms = vec![
        arm("cubic 10", 1.0, 0),
        arm("cubic 40", 0.752, 4),
        arm("bbr 10, a name that is much longer than names are", 1.054, 0),
    ];
    compare(&mut lab.arms);
    lab
}

/// Two runs of an arm compared, of which one figure got worse and one differs by noise.
pub fn compared() -> CompareReport {
    let figure = |base: f64, value: f64, ci95: [f64; 2], noise: bool| FigureComparison {
        base,
        value,
        pairs: 8,
        difference: Difference {
            difference: value - base,
            ratio: Some(value / base),
            ci95: Some(ci95),
            within_noise: Some(noise),
        },
    };
    let file = |name: &str, kernel: &str| ComparedReport {
        file: name.to_owned(),
        scenario: "first-frame".to_owned(),
        kernel: kernel.to_owned(),
        seed: 1,
        repeats: 8,
    };
    CompareReport {
        schema: "thalweg.compare/1".to_owned(),
        reports: vec![file("before/report.json", "6.1.192"), file("after/report.json", "6.12.117")],
        notes: vec!["The kernel differs: 6.1.192 in before/report.json, 6.12.117 in after/report.json.".to_owned()],
        arms: vec![ArmComparison {
            name: "cubic 10".to_owned(),
            file: "after/report.json".to_owned(),
            leading: Some("time_to_bytes_ms.1000000".to_owned()),
            worse_percent: 25.0,
            failed: true,
            metrics: BTreeMap::from([
                ("time_to_bytes_ms.1000000".to_owned(), figure(800.0, 1000.0, [150.0, 230.0], false)),
                ("goodput_bps".to_owned(), figure(12.3e6, 12.1e6, [-4e5, 1e5], true)),
            ]),
        }],
    }
}

fn application() -> thalweg_model::Application {
    let request = thalweg_model::RequestTiming {
        number: 1,
        packet: 4,
        start_s: 0.09,
        method: Some("GET".to_owned()),
        target: Some("/video/segment-0001.ts".to_owned()),
        host: Some("example.org".to_owned()),
        status: Some(200),
        request_ms: 0.0,
        wait_ms: Some(61.5),
        transfer_ms: Some(810.0),
        bytes_up: 180,
        bytes_down: 64_000_000,
    };
    let unanswered = thalweg_model::RequestTiming {
        number: 3,
        packet: 380_000,
        start_s: 7.1,
        bytes_up: 200,
        ..thalweg_model::RequestTiming::default()
    };
    thalweg_model::Application {
        lookup: Some(thalweg_model::NameLookup {
            name: "example.org".to_owned(),
            start_s: -0.031,
            took_ms: 30.2,
            again: 1,
        }),
        tls: Some(thalweg_model::TlsHandshake {
            start_s: 0.036,
            handshake_ms: Some(52.0),
            version: Some("1.2".to_owned()),
            server_name: Some("example.org".to_owned()),
            offered: vec!["h2".to_owned(), "http/1.1".to_owned()],
            chosen: Some("http/1.1".to_owned()),
        }),
        waits: Some(thalweg_model::RequestWaits {
            count: 3,
            unanswered: 1,
            unlisted: 1,
            p50_ms: Some(36.0),
            p90_ms: Some(61.5),
            max_ms: Some(61.5),
        }),
        requests: vec![request, unanswered],
    }
}

fn life() -> thalweg_model::Life {
    let phases = thalweg_model::LifePhases {
        connecting_s: 0.036,
        waiting_client_s: 0.5,
        transfer_s: 6.829,
        close_s: 0.035,
        ..thalweg_model::LifePhases::default()
    };
    thalweg_model::Life {
        phases,
        shares: phases.shares(),
        verdict_share: 0.81,
        resent: thalweg_model::Resent { syn: 1, data_down: 3, ..thalweg_model::Resent::default() },
        reset: Some(thalweg_model::ConnectionReset {
            direction: Way::Down,
            packet: 390_000,
            at_s: 7.365,
            idle_s: 0.5,
            ttl: 64,
            usual_ttl: Some(57),
            ip_ids: Some((4_660, 52_579)),
            followed_by_data: false,
            too_soon: None,
        }),
        silence: Some(thalweg_model::Silence {
            side: thalweg_model::Side::Client,
            since_s: 5.2,
            asked_s: 5.3,
            unanswered: 4,
            packet: 389_000,
        }),
        failure: Some(thalweg_model::Failure::ForeignReset),
    }
}
