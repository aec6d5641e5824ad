//! Captures of other projects, compared with tshark's counts and with exact ones.
//!
//! Their licences do not allow them in this repository, so these tests run by name:
//! `THALWEG_CAPTURES=FOLDER cargo test --release -p thalweg-infer --test captures -- --ignored`. `many.rs` and `corpus.rs` hold the
//! same properties on captures of the lab, and `crates/thalweg/tests/oracles.rs` compares those with tshark.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Files whose connections are not counted as tshark counts them, with what is right, and why.
const EXCEPTIONS: [(&str, usize, &str); 3] = [
    ("ndpi-6in4tunnel.pcap", 5, "tshark counts the header quoted within an ICMPv6 error as a connection"),
    (
        "ndpi-vnc.pcap",
        2,
        "tshark begins a second stream where its VNC dissector takes over; sequence numbers and handshake continue in it",
    ),
    (
        "ndpi-fuzz-2006-09-29-28586.pcap",
        36,
        "tshark counts segments whose TCP header, as their data offset has it, does not fit into the IP packet: frame 80 is a stream of \
         its own, and frame 27, whose fuzzed flags read as a SYN, makes it split one connection (ports 2601 and 80) in two",
    ),
];

/// The folder that `THALWEG_CAPTURES` names: `public/` with captures, `truth/NAME.json` with tshark's facts of each, `index.tsv`.
fn captures() -> PathBuf {
    PathBuf::from(std::env::var_os("THALWEG_CAPTURES").expect("THALWEG_CAPTURES names a folder of captures"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(folder.join("public")).expect("folder").map(|e| e.expect("entry").path()).collect();
    files.sort();
    files
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).expect("name")
}

/// What tshark says of a file.
fn truth(folder: &Path, path: &Path) -> serde_json::Value {
    let truth = std::fs::read(folder.join("truth").join(format!("{}.json", name(path)))).expect("truth");
    serde_json::from_slice(&truth).expect("json")
}

/// How many packets the index of the captures says a file has.
fn packets_of<'a>(index: &'a str, name: &str) -> Option<&'a str> {
    let row = |line: &'a str| line.split('\t').collect::<Vec<_>>();
    let column = row(index.lines().next()?).iter().position(|&title| title == "packets_total")?;
    index.lines().map(row).find(|fields| fields[0] == name)?.get(column).copied()
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn connections_are_counted_as_tshark_does_but_where_it_errs() {
    let folder = captures();
    let index = std::fs::read_to_string(folder.join("index.tsv")).expect("index");
    let mut wrong = Vec::new();
    for path in files(&folder) {
        let truth = truth(&folder, &path);
        let expected = truth["tcp_streams"].as_u64().expect("tcp_streams") as usize;
        let expected = EXCEPTIONS.iter().find(|e| e.0 == name(&path)).map_or(expected, |e| e.1);
        let found = thalweg_infer::diagnose_file(&path).expect("a capture").report;
        if Some(found.packets.to_string().as_str()) != packets_of(&index, name(&path)) || found.truncated {
            wrong.push(format!("{}: {} packets, {:?}", name(&path), found.packets, found.notes));
        }
        if found.flows.len() != expected {
            let mine: BTreeSet<String> =
                found.flows.iter().flat_map(|f| [f.client.clone(), f.server.clone()]).collect();
            let theirs: BTreeSet<String> = truth["streams"]
                .as_array()
                .expect("streams")
                .iter()
                .flat_map(|s| [s["a"].to_string(), s["b"].to_string()])
                .map(|s| s.trim_matches('"').to_owned())
                .collect();
            wrong.push(format!(
                "{}: {} not {expected}; {:?}",
                name(&path),
                found.flows.len(),
                mine.symmetric_difference(&theirs)
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn packets_sent_again_are_counted_exactly() {
    let folder = captures();
    let table = std::fs::read_to_string(folder.join("exact-resent.tsv")).expect("table");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let found = thalweg_infer::diagnose_file(&folder.join("public").join(fields[0])).expect("a capture").report;
        let flow = found.flows.iter().max_by_key(|f| f.bytes_down.max(f.bytes_up)).expect("a flow");
        // The client's request of usc-randloss1-10M, which the tap delivered twice (frames 8 and 10), is no retransmission.
        assert_eq!(flow.retransmits.total.to_string(), fields[2], "{}", fields[0]);
        let parts = flow.retransmits.fast + flow.retransmits.rto + flow.retransmits.tlp;
        assert_eq!(parts, flow.retransmits.total, "{}", fields[0]);
        assert_eq!(flow.vantage, thalweg_model::Vantage::Sender, "{}", fields[0]);
    }
}

/// A verdict and the shares beside it say the same.
fn agrees(flow: &thalweg_model::Flow) {
    use thalweg_model::Code::{Application, CongestionWindowClamp, NothingToGain, Reader, ReceiveWindow, SendBuffer};
    let (verdict, limits) = (&flow.verdict, flow.limits.named());
    // A sender that waits for its turn has nothing to send.
    let has_turns = matches!(verdict.cause, thalweg_model::Cause::NothingToGain(carried) if carried.turns_s.is_some());
    let slowed = limits
        .iter()
        .filter(|(name, _)| !(["path_rate", "slow_start"].contains(name) || has_turns && *name == "application"));
    let most = slowed.map(|(_, share)| *share).fold(0.0, f64::max);
    assert!(verdict.code() != NothingToGain || most < 0.3, "{verdict:?} {limits:?}");
    // No more is gained than the time it took.
    let alone = [Application, CongestionWindowClamp, Reader, ReceiveWindow, SendBuffer].contains(&verdict.code());
    let bound = 1.02 / (1.0 - verdict.share.min(0.999));
    assert!(!alone || verdict.gain.is_none_or(|gain| gain <= bound), "{verdict:?} {limits:?}");
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn shares_add_up_and_payload_is_counted_once() {
    let folder = captures();
    for path in files(&folder) {
        let found = thalweg_infer::diagnose_file(&path).expect("a capture");
        assert_eq!(found.report.flows.len().min(256), found.series.len());
        for flow in &found.report.flows {
            let total = flow.limits.total();
            assert!(total == 0.0 || (total - 1.0).abs() < 1e-9, "{}: {total}", path.display());
            assert!(flow.limits.named().iter().all(|(_, share)| (0.0..=1.0).contains(share)), "{flow:?}");
            assert!(flow.verdict.gain.is_none_or(|gain| gain.is_finite() && gain >= 1.0), "{flow:?}");
            assert!(!flow.verdict.claim().is_empty());
            agrees(flow);
        }
        for (_, series) in &found.series {
            for points in [
                &series.flight_bytes,
                &series.receive_window_bytes,
                &series.sent_bytes,
                &series.acked_bytes,
                &series.throughput_bps,
                &series.rtt_ms,
            ] {
                assert!(points.len() <= 4_000, "{}: {}", path.display(), points.len());
            }
        }
    }
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn a_taps_copies_are_no_losses() {
    let folder = captures();
    let found =
        thalweg_infer::diagnose_file(&folder.join("public/tcptrace-hardware_dups.pcap")).expect("a capture").report;
    assert_eq!(found.flows[0].retransmits.total, 0);
    assert!(found.notes.iter().any(|note| note.contains("twice")), "{:?}", found.notes);
}

/// Of a capture of which only the costliest are kept, these are as in the whole report, and what is said of the others is true of it.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn the_costliest_are_those_that_the_whole_report_begins_with() {
    let folder = captures();
    let mut left_out = 0;
    for path in files(&folder) {
        let bytes = std::fs::read(&path).expect("file");
        let of = |wanted| {
            let options = thalweg_infer::Options {
                drawn: thalweg_infer::PlotSelection::None,
                wanted,
                ..thalweg_infer::Options::default()
            };
            thalweg_infer::diagnose_reader_with(bytes.as_slice(), "capture", options).expect("a capture")
        };
        let mut all = of(thalweg_infer::Retain::All);
        for most in [1, 5] {
            let some = of(thalweg_infer::Retain::Costliest(most));
            let kept = all.report.flows.len().min(most);
            assert!(some.report.flows[..] == all.report.flows[..kept], "{}", path.display());
            assert_eq!((some.connections, some.slowed), (all.connections, all.slowed), "{}", path.display());
            left_out += all.report.flows.len() - kept;
        }
        assert_eq!(all.connections, all.report.flows.len() as u64);
        // What slows a connection has a gain, so it is among those listed first.
        all.report.flows.truncate(5);
        assert_eq!(
            all.slowed,
            all.report.flows.iter().any(|flow| thalweg_infer::is_slowed(flow)),
            "{}",
            path.display()
        );
    }
    assert!(left_out > 500, "{left_out}");
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn every_prefix_is_diagnosed_within_memory() {
    /// The engine's bound on one capture of these sizes, and what the files themselves take.
    const MOST_KIB: u64 = 512 << 10;
    let folder = captures();
    let without =
        thalweg_infer::Options { drawn: thalweg_infer::PlotSelection::None, ..thalweg_infer::Options::default() };
    for path in files(&folder) {
        let bytes = std::fs::read(&path).expect("file");
        let whole =
            thalweg_infer::diagnose_reader_with(bytes.as_slice(), "whole", without.clone()).expect("a capture").report;
        for cut in 1..100 {
            let prefix = &bytes[..bytes.len() * cut / 100];
            let Ok(found) = thalweg_infer::diagnose_reader_with(prefix, "prefix", without.clone()) else {
                assert!(prefix.len() < 200, "{} cut at {} is no capture", path.display(), prefix.len());
                continue;
            };
            assert!(found.report.packets <= whole.packets, "{} cut at {}", path.display(), prefix.len());
            assert!(found.report.flows.len() <= whole.flows.len(), "{} cut at {}", path.display(), prefix.len());
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").expect("proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    assert!(kib < MOST_KIB, "{kib} KiB");
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn damaged_copies_never_panic() {
    let folder = captures();
    for path in files(&folder) {
        let bytes = std::fs::read(&path).expect("file");
        if bytes.len() > 200_000 {
            continue;
        }
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..12 {
            let mut damaged = bytes.clone();
            for _ in 0..8 {
                let at = random() % damaged.len();
                damaged[at] = random() as u8;
            }
            let _ = thalweg_infer::diagnose_reader(damaged.as_slice(), "damaged");
        }
    }
}

/// A filter leaves what tcpdump's would: the counts are those of `tcpdump -r FILE 'tcp and (…)' | wc -l`.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn a_filter_leaves_what_it_names() {
    let folder = captures();
    for (file, filter, packets, flows) in FILTERED {
        let options = thalweg_infer::Options {
            drawn: thalweg_infer::PlotSelection::None,
            filter: Some(filter.parse().expect("a filter")),
            ..thalweg_infer::Options::default()
        };
        let path = folder.join("public").join(file);
        let report = thalweg_infer::diagnose_file_with(&path, options).expect("a capture").report;
        let kept: u64 = report.flows.iter().map(|flow| flow.packets_up + flow.packets_down).sum();
        assert_eq!((kept, report.flows.len()), (packets, flows), "{file} {filter}");
    }
}

/// Files without tunnels, filters, and what they leave.
const FILTERED: [(&str, &str, u64, usize); 4] = [
    ("zeek-kerberos_tso.pcapng", "not (host 10.0.0.1 or port 88)", 250, 4),
    ("ndpi-alexa-app.pcapng", "src host 172.16.42.216 and portrange 1-500", 1_621, 115),
    ("ndpi-alexa-app.pcapng", "not port 443 and (dst port 80 or src port 80)", 479, 20),
    ("suricata-tls-subjectaltname.pcap", "port 443 or 80 and not host 8.8.8.8", 2_982, 68),
];

/// Copies of packets without an IP identification: those of IPv6.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn a_taps_copies_without_identification_are_no_losses() {
    let folder = captures();
    let file = folder.join("public/gopacket-test_loopback.pcap");
    let mut writer = thalweg_wire::pcapng::Writer::new(Vec::new(), "test").expect("vec");
    let mut capture = thalweg_wire::Capture::new(std::fs::File::open(&file).expect("file")).expect("a capture");
    writer.add_interface("lo", capture.interfaces()[0].link, 0).expect("vec");
    let mut data = 0;
    while let Some(packet) = capture.next().expect("read") {
        for copy in 0..2 {
            let at = thalweg_units::Timestamp::from_nanos(packet.at.as_nanos() + copy * 2_000);
            writer.packet(0, at, packet.original_len, packet.bytes, None).expect("vec");
        }
        data += 1;
    }
    let once = thalweg_infer::diagnose_file(&file).expect("a capture").report;
    let twice =
        thalweg_infer::diagnose_reader(writer.finish().expect("vec").as_slice(), "twice").expect("a capture").report;
    assert!(twice.notes.iter().any(|note| note.contains("twice")), "{data} packets: {:?}", twice.notes);
    for (one, two) in once.flows.iter().zip(&twice.flows) {
        assert_eq!((one.bytes_up, one.bytes_down), (two.bytes_up, two.bytes_down));
        assert_eq!(one.retransmits.total, two.retransmits.total, "{two:?}");
    }
}

/// Files in which tshark calls something a keep-alive that is none, and why.
const TAKEN_OTHERWISE: [(&str, &str); 2] = [
    (
        "zeek-echo-connections.pcap",
        "an acknowledgement that the capture holds after the one byte sent later, twenty-three times",
    ),
    ("tcptrace-urgent.pcap", "one byte sent again that was not acknowledged (frame 5747)"),
];

/// What tshark says of handshakes and probes, stream by stream; where a closed window is probed with an old byte, tshark calls that a keep-alive.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn options_and_keep_alives_are_those_tshark_sees() {
    let folder = captures();
    let (mut compared, mut probes, mut wrong) = (0, 0, Vec::new());
    for path in files(&folder) {
        let truth = truth(&folder, &path);
        let report = thalweg_infer::diagnose_file(&path).expect("a capture").report;
        let streams = truth["streams"].as_array().expect("streams");
        for stream in streams {
            let (a, b) = (stream["a"].as_str().expect("an end"), stream["b"].as_str().expect("an end"));
            // Ports used anew, and a connection seen in several tunnels, are several streams with the same ends.
            let is_one = streams.iter().filter(|s| s["a"] == stream["a"] && s["b"] == stream["b"]).count() == 1;
            let mut flows = report.flows.iter().filter(|f| f.client == a && f.server == b);
            let (Some(flow), None, true) = (flows.next(), flows.next(), is_one) else { continue };
            let (handshake, alive) = (&flow.handshake, flow.facts.keep_alives.as_deref().copied().unwrap_or_default());
            let seen = [
                handshake.mss_client.map(u64::from),
                handshake.mss_server.map(u64::from),
                handshake.wscale_client.map(u64::from),
                handshake.wscale_server.map(u64::from),
                Some(alive.client + alive.server + alive.window_probes),
            ];
            let [mss, other_mss, scale, other_scale, alive_probes, window_probes] =
                ["a_mss", "b_mss", "a_wscale", "b_wscale", "keep_alives", "zero_window_probes"]
                    .map(|field| stream[field].as_u64());
            let all = alive_probes.zip(window_probes).map(|(alive, window)| alive + window);
            let theirs = [mss, other_mss, scale, other_scale, all];
            let sack =
                (stream["a_sack_perm"] == true && stream["b_sack_perm"] == true, handshake.sack.unwrap_or(false));
            let (options, theirs) = if TAKEN_OTHERWISE.iter().any(|one| one.0 == name(&path)) {
                (&seen[..4], &theirs[..4])
            } else {
                (&seen[..], &theirs[..])
            };
            if options != theirs || sack.0 != sack.1 {
                wrong.push(format!("{} {a} {b}: {seen:?} {theirs:?} {sack:?}", name(&path)));
            }
            compared += 1;
            probes += seen[4].unwrap_or(0);
        }
    }
    assert!(compared > 300 && probes > 50, "{compared} streams, {probes} probes");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Files in which more was sent again than anyone sees, and why that is believed.
const SENT_UNSEEN: [(&str, &str); 5] = [
    (
        "suricata-tls-subjectaltname.pcap",
        "Linux servers: what closes ten connections half a minute later comes after silences of doubling timeouts, and as many numbers",
    ),
    ("ndpi-fuzz-2006-09-29-28586.pcap", "fuzzed numbers"),
    ("ndpi-ocsp.pcapng", "one number missing before a second request"),
    ("tcptrace-urgent.pcap", "a host's numbers, before 2000; taken for the connection's while the window is closed"),
    ("tcptrace-zwnd.pcap", "the same"),
];

/// Most hosts but Linux number what they send on all connections alike: what is missing in one connection is not lost, then.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn nothing_is_sent_again_unseen_where_the_numbers_are_the_hosts() {
    let folder = captures();
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in files(&folder) {
        let truth = truth(&folder, &path);
        let streams = truth["streams"].as_array().expect("streams");
        for flow in thalweg_infer::diagnose_file(&path).expect("a capture").report.flows {
            let is_its = |stream: &&serde_json::Value| {
                let ends = [stream["a"].as_str(), stream["b"].as_str()];
                ends.contains(&Some(&flow.client)) && ends.contains(&Some(&flow.server))
            };
            let its: Vec<_> = streams.iter().filter(is_its).collect();
            let [stream] = its.as_slice() else { continue };
            compared += 1;
            let seen = ["retransmissions", "out_of_order"].map(|key| stream[key].as_u64().expect("a count"));
            if flow.retransmits.total > seen.iter().sum() && SENT_UNSEEN.iter().all(|file| file.0 != name(&path)) {
                wrong.push(format!("{} #{}: {:?}, seen {seen:?}", name(&path), flow.id, flow.retransmits));
            }
        }
    }
    assert!(compared > 500 && wrong.is_empty(), "{compared} compared, {wrong:#?}");
}

#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn what_went_nowhere_is_told_for_what_it_is() {
    let folder = captures();
    use thalweg_model::Code::{Connecting, Unknown};
    for (file, code, words) in [
        ("cs-tcp_retransmissions.pcapng", Unknown, "Nothing acknowledged the data, though it was sent again 5 times"),
        ("cs-tcp_refuseconnection.pcapng", Connecting, "The connection was refused"),
    ] {
        let flow = &thalweg_infer::diagnose_file(&folder.join("public").join(file)).expect("a capture").report.flows[0];
        assert!(flow.verdict.code() == code && flow.verdict.claim().starts_with(words), "{:?}", flow.verdict);
    }
    // Some senders' links are short, as their SYNs say, and some segments are lost more than once. No path here hides that it is.
    for path in files(&folder) {
        for flow in thalweg_infer::diagnose_file(&path).expect("a capture").report.flows {
            assert_ne!(flow.verdict.code(), thalweg_model::Code::PathMtuBlackHole, "{} #{}", name(&path), flow.id);
        }
    }
}

/// On loopback a segment is as long as the window; what is shorter than half of it does not wait for it.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn a_short_answer_does_not_fill_a_window_of_one_segment() {
    let folder = captures();
    let found = thalweg_infer::diagnose_file(&folder.join("public/pcpp-nanosecs_big_endian.pcap")).expect("a capture");
    let limits = &found.report.flows[0].limits;
    assert_eq!((limits.receive_window, limits.reader), (0.0, 0.0), "{limits:?}");
}

/// The answer's last packet came again because none of its acknowledgements was heard in 280 ms, as its timestamp tells.
#[test]
#[ignore = "needs THALWEG_CAPTURES, a folder of captures of other projects"]
fn a_probe_for_what_has_arrived_costs_nothing() {
    let folder = captures();
    let found = thalweg_infer::diagnose_file(&folder.join("public/ndpi-alexa-app.pcapng")).expect("a capture");
    let flow = found.report.flows.iter().find(|flow| flow.client.ends_with(":51985")).expect("the connection");
    // Its ACK had passed the tap and was lost behind it.
    assert_eq!((flow.retransmits.total, flow.retransmits.spurious), (1, 1), "{:?}", flow.retransmits);
    assert!(flow.limits.timeout < 0.01 && flow.goodput_bps > 1e6, "{:?} {}", flow.limits, flow.goodput_bps);
}
