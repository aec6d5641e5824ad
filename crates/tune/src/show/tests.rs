//! Findings, each from a text that has it.

use super::*;
use crate::state::parse;
use std::collections::BTreeSet;

/// A list that was published as tuned for live streaming, with its doubled and its mistyped lines.
const PUBLISHED: &str = include_str!("../../tests/published_list.txt");

fn codes(text: &str) -> Vec<(Weight, &'static str, String)> {
    let found = show(&parse(text), "a text".to_owned(), None);
    found.findings.into_iter().map(|finding| (finding.weight, finding.code, finding.setting)).collect()
}

fn found(text: &str) -> Vec<&'static str> {
    codes(text).into_iter().map(|(_, code, _)| code).collect()
}

#[test]
fn a_published_list_is_answered_finding_by_finding() {
    let short = |name: &str| name.replace("net.ipv4.", "").replace("net.core.", "core.");
    let mut lines: Vec<String> = codes(PUBLISHED)
        .into_iter()
        .map(|(weight, code, name)| format!("{weight:?} {code} {}", short(&name)))
        .collect();
    lines.sort();
    let wanted = "\
Note bbr-unpaced tcp_congestion_control
Note buffer-memory tcp_rmem
Note buffer-memory tcp_wmem
Note core-max-binds core.rmem_max
Note core-max-binds core.wmem_max
Note fastopen-client-only tcp_fastopen
Note kernel-mixture tcp_tw_recycle
Note not-for-tcp core.rmem_default
Note not-for-tcp core.wmem_default
Note syn-backlog-unused tcp_max_syn_backlog
Note time-wait-not-shorter tcp_fin_timeout
Note unsent-data tcp_notsent_lowat
Note without-effect tcp_adv_win_scale
Trap buffer-floor tcp_rmem
Trap buffer-floor tcp_wmem
Trap buffer-start tcp_rmem
Trap buffer-start tcp_wmem
Trap few-retries tcp_syn_retries
Trap few-retries tcp_synack_retries
Trap mistyped-setting kcp_autocorking
Trap removed-setting tcp_rx_skb_cache
Trap removed-setting tcp_tw_recycle
Trap removed-setting tcp_tx_skb_cache
Trap set-twice tcp_rmem
Trap set-twice tcp_wmem
Trap time-wait-cut tcp_max_tw_buckets
Trap vendor-name tcp_inherit_buffsize
Trap vendor-name tcp_init_cwnd
Trap vendor-name tcp_init_rto
Trap vendor-name tcp_loss_init_cwnd
Trap vendor-name tcp_proc_sched
Trap vendor-name tcp_rto_max
Trap vendor-name tcp_rto_min
Trap vendor-name tcp_synack_rto_interval
Trap vendor-name tcp_tw_ignore_syn_tsval_zero
Trap vendor-name tcp_tw_timeout
Trap vendor-name tcp_wan_timestamps";
    assert_eq!(lines.join("\n"), wanted);
    let report = show(&parse(PUBLISHED), "a text".to_owned(), None);
    let of = |code: &str, name: &str| {
        report
            .findings
            .iter()
            .find(|finding| finding.code == code && finding.setting.ends_with(name))
            .expect("there")
            .clone()
    };
    // 5,242,880 pages are 20 GiB, and 4,096,000 bytes go into them 5,242 times.
    assert!(of("buffer-floor", "tcp_wmem").why.contains("5,242 sockets"), "{}", of("buffer-floor", "tcp_wmem").why);
    assert!(of("buffer-memory", "tcp_wmem").why.ends_with("= 491."), "{}", of("buffer-memory", "tcp_wmem").why);
    assert!(of("set-twice", "tcp_rmem").says.contains("131072 1048576 49152000; the last one holds"));
    assert_eq!(of("mistyped-setting", "kcp_autocorking").set.as_deref(), Some("net.ipv4.tcp_autocorking = 1"));
    assert!(of("without-effect", "").says.contains("tcp_adv_win_scale, net.ipv4.tcp_fack, net.ipv4.tcp_low_latency"));
    assert!(of("time-wait-cut", "").says.contains("100 connections"));
    let differs: Vec<String> = report.differences.iter().map(|one| short(&one.setting)).collect();
    for name in [
        "core.netdev_max_backlog",
        "core.somaxconn",
        "tcp_no_metrics_save",
        "tcp_reordering",
        "tcp_retries1",
        "tcp_slow_start_after_idle",
        "tcp_tw_reuse",
    ] {
        assert!(differs.iter().any(|other| other == name), "{name}: {differs:?}");
    }
    for name in ["tcp_sack", "tcp_limit_output_bytes", "tcp_challenge_ack_limit", "tcp_retries2"] {
        assert!(!differs.iter().any(|other| other == name), "{name}: {differs:?}");
    }
}

#[test]
fn a_host_at_its_defaults_has_no_trap() {
    for kernel in [(4, 19), (6, 1), (6, 12), (6, 18)] {
        let mut text = format!("kernel.osrelease = {}.{}.0\n", kernel.0, kernel.1);
        for entry in &crate::catalogue::catalogue().entries {
            if let Some(default) =
                entry.default_on(Some(kernel)).filter(|_| entry.kind == crate::catalogue::Kind::Sysctl)
            {
                text += &format!("{} = {default}\n", entry.name);
            }
        }
        text +=
            "net.ipv4.tcp_congestion_control = cubic\nnet.ipv4.tcp_mem = 190000 253333 380000\nMemTotal: 16777216 kB\n";
        let report = show(&parse(&text), String::new(), None);
        let traps: Vec<_> = report.findings.iter().filter(|finding| finding.weight == Weight::Trap).collect();
        assert!(traps.is_empty() && report.differences.is_empty(), "{kernel:?}: {traps:?} {:?}", report.differences);
        let codes: Vec<&str> = report.findings.iter().map(|finding| finding.code).collect();
        assert!(
            codes.iter().all(|code| ["fastopen-client-only", "without-effect", "bbr-unpaced"].contains(code)),
            "{codes:?}"
        );
    }
}

#[test]
fn each_trap_is_found() {
    let kernel = "kernel.osrelease = 6.12.1\n";
    let mut seen: BTreeSet<&str> = found(PUBLISHED).into_iter().collect();
    for (text, code) in [
        ("net.ipv4.tcp_moderate_rcvbuf = 0", "auto-tuning-off"),
        ("net.ipv4.tcp_window_scaling = 0", "window-scaling-off"),
        ("net.ipv4.tcp_sack = 0", "loss-recovery-off"),
        ("net.ipv4.tcp_early_retrans = 0", "loss-recovery-off"),
        ("net.ipv4.tcp_timestamps = 0", "timestamps-off"),
        ("net.ipv4.tcp_tw_reuse = 1\nnet.ipv4.tcp_timestamps = 0", "time-wait-not-reused"),
        ("net.ipv4.tcp_abort_on_overflow = 1", "accept-overflow-reset"),
        ("net.ipv4.tcp_wmem = 4096 65536 16384", "falling-numbers"),
        ("net.ipv4.tcp_wmem = 87380 65536 4194304", "falling-numbers"),
        ("net.ipv4.ip_local_port_range = 60000 32768", "falling-numbers"),
        ("net.ipv4.ip_local_port_range = 60000 61000", "client-ports"),
        ("net.ipv4.tcp_retries2 = 5", "few-retries"),
        ("net.ipv4.tcp_rto_min_us = 5000", "rto-below-delayed-ack"),
        ("net.ipv4.tcp_pacing_ca_ratio = 80", "pacing-below-window"),
        ("net.ipv4.tcp_ecn = 77", "out-of-range"),
        ("net.ipv4.tcp_rmem = lots", "out-of-range"),
        ("net.ipv4.tcp_rto_max_ms = 5000", "not-in-this-kernel"),
        ("net.ipv4.tcp_hyperspeed = 1", "unknown-setting"),
        ("net.ipv4.tcp_collapse_max_bytes = 6291456", "vendor-name"),
        ("net.ipv4.tcp_adv_win_scale = -2", "without-effect"),
        ("MemTotal: 1048576 kB\nnet.ipv4.tcp_mem = 262144 262144 262144", "tcp-memory-beyond-host"),
        (
            "net.ipv4.tcp_congestion_control = bbr\nnet.ipv4.tcp_available_congestion_control = reno cubic",
            "congestion-unavailable",
        ),
        ("kernel.osrelease = 4.9.0\nnet.ipv4.tcp_congestion_control = bbr", "bbr-unpaced"),
        ("default via 10.0.0.1 dev a metric 50\ndefault via 10.0.0.2 dev b metric 100 initcwnd 40", "route-shadowed"),
        ("default via 10.0.0.1 dev a linkdown initcwnd 40", "route-shadowed"),
        ("default via 10.0.0.1 dev a initcwnd 40\n10.0.0.0/24 dev a scope link", "initial-window-bypassed"),
        ("default via 10.0.0.1 dev a cwnd 40", "attribute-not-locked"),
        ("default via 10.0.0.1 dev a cwnd lock 2", "window-below-initial"),
        ("default via 10.0.0.1 dev a window 1000", "window-below-initial"),
        ("default via 10.0.0.1 dev a initcwnd 5000", "initial-window-burst"),
        ("default via 10.0.0.1 dev a rto_min lock 5ms", "rto-below-delayed-ack"),
        ("net.ipv4.tcp_rmem = 4096 4096 4096", "buffer-cannot-grow"),
        ("net.ipv4.tcp_wmem = 4096 16384 16384", "buffer-cannot-grow"),
        ("net.ipv4.tcp_mem = 1 2 3\nnet.ipv4.tcp_rmem = 4096 131072 6291456", "buffer-cannot-grow"),
        ("cubic wscale:7,7 rto:204 mss:1448 cwnd:10 rwnd_limited:900ms(90.0%)", "receive-window-limits"),
        ("cubic wscale:7,7 rto:204 mss:1448 cwnd:10 sndbuf_limited:900ms(90.0%)", "send-buffer-limits"),
        ("cubic rto:204 mss:1448 cwnd:10", "window-scaling-off"),
        ("bbr wscale:7,7 rto:204 mss:1448 cwnd:10", "bbr-unpaced"),
    ] {
        let codes = found(&format!("{kernel}{text}"));
        assert!(codes.contains(&code), "{text}: {codes:?}");
        seen.insert(code);
    }
    let all: BTreeSet<&str> = CODES.iter().map(|(code, _)| *code).collect();
    assert_eq!(seen, all, "every code is found somewhere, and no other");
}

#[test]
fn it_says_what_the_kernel_answers() {
    let why = |text: &str| {
        let report = show(&parse(&format!("kernel.osrelease = 6.18.1\n{text}")), String::new(), None);
        report
            .findings
            .into_iter()
            .find(|one| ["out-of-range", "falling-numbers"].contains(&one.code))
            .map(|one| one.why)
    };
    for refused in ["tcp_sack = -1", "tcp_sack = 300", "tcp_reordering = 0", "tcp_reordering = 900", "tcp_rmem = lots"]
    {
        assert!(why(&format!("net.ipv4.{refused}")).expect(refused).contains("Invalid argument"), "{refused}");
    }
    assert!(why("net.ipv4.ip_local_port_range = 60000 1024").expect("falls").contains("Invalid argument"));
    for taken in ["tcp_rmem = 4096 131072", "tcp_fastopen = 9"] {
        assert!(why(&format!("net.ipv4.{taken}")).expect(taken).contains("The kernel takes it"), "{taken}");
    }
    for fine in ["tcp_timestamps = 5", "tcp_abort_on_overflow = 2", "tcp_mtu_probing = 3", "ip_no_pmtu_disc = 5"] {
        assert_eq!(why(&format!("net.ipv4.{fine}")), None, "{fine}");
    }
    assert!(found("net.ipv4.tcp_retries2 = 0x7").contains(&"few-retries"));
    assert_eq!(found("net.ipv4.tcp_syn_retries = 0"), ["out-of-range"], "refused, so not in force");
}

/// A host with many devices has a hundred thousand sysctls; each line takes the same time.
#[test]
fn long_lists_are_read_in_a_moment() {
    let mut text = String::new();
    for device in 0..1000 {
        for key in ["accept_local", "rp_filter", "promote_secondaries", "shared_media", "send_redirects"] {
            text += &format!("net.ipv4.conf.veth{device}.{key} = 1\nnet.ipv6.neigh.veth{device}.{key} = 1\n");
            text += &format!("kernel.sched_domain.cpu{device}.{key} = 1\n");
        }
    }
    let began = std::time::Instant::now();
    assert!(show(&parse(&text), String::new(), None).findings.is_empty());
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

fn sets(text: &str) -> Vec<String> {
    show(&parse(text), String::new(), None).findings.into_iter().filter_map(|finding| finding.set).collect()
}

#[test]
fn one_line_mends_the_numbers_of_a_buffer() {
    let found = sets("kernel.osrelease = 6.12.1\nnet.ipv4.tcp_wmem = 8388608 1048576 16777216");
    assert_eq!(found, ["net.ipv4.tcp_wmem = 4096 16384 16777216"; 3], "floor, beginning, and numbers that fall");
    assert_eq!(sets("net.ipv4.tcp_mem = 3 2 1"), ["leave it out"]);
}

#[test]
fn a_command_for_a_route_keeps_what_the_route_has() {
    let taken = "default via 10.9.0.1 dev d0 proto static src 10.9.0.2";
    let shadowed = |taken: &str, other: &str| sets(&format!("{taken}\ndefault via 10.9.0.5 dev d0 metric 200 {other}"));
    assert_eq!(
        shadowed(&format!("{taken} mtu lock 1400"), "initcwnd 40"),
        [format!("ip route change {taken} initcwnd 40 mtu lock 1400")]
    );
    // What the better route has stays, whether it is more or less.
    assert_eq!(
        shadowed(&format!("{taken} initcwnd 40"), "initcwnd 10 quickack 1"),
        [format!("ip route change {taken} initcwnd 40 quickack 1")]
    );
    assert_eq!(shadowed(&format!("{taken} initcwnd 40"), "initcwnd 10"), Vec::<String>::new());
    assert_eq!(
        sets("default via fe80::1 dev d0 proto ra metric 1024 expires 600sec pref high cwnd 40"),
        Vec::<String>::new(),
        "a command would make it permanent"
    );
    assert_eq!(
        sets(&format!("{taken} rto_min 50ms")),
        [format!("ip route change {taken} rto_min lock 50ms")],
        "the kernel ignores it unlocked"
    );
}

#[test]
fn what_is_right_is_not_found() {
    for (text, code) in [
        ("kernel.osrelease = 6.12.1\nnet.ipv4.tcp_congestion_control = bbr", "bbr-unpaced"),
        ("kernel.osrelease = 4.9.1\nnet.ipv4.tcp_congestion_control = bbr\nnet.core.default_qdisc = fq", "bbr-unpaced"),
        ("default via 10.0.0.1 dev a metric 50 initcwnd 40\ndefault via 10.0.0.2 dev b metric 100", "route-shadowed"),
        ("default via 10.0.0.1 dev a cwnd lock 40", "attribute-not-locked"),
        ("default via 10.0.0.1 dev a cwnd lock 10 window 14600", "window-below-initial"),
        ("default via 10.0.0.1 dev a initcwnd 40", "initial-window-burst"),
        ("default via 10.0.0.1 dev a rto_min lock 40ms", "rto-below-delayed-ack"),
        ("net.ipv4.tcp_wmem = 4096 16384 65536", "buffer-cannot-grow"),
        ("net.ipv4.tcp_fastopen = 3", "fastopen-client-only"),
        ("kernel.osrelease = 4.4.0\nnet.ipv4.tcp_adv_win_scale = -2", "without-effect"),
        ("net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_rmem = 4096 131072 6291456", "set-twice"),
    ] {
        assert!(!found(text).contains(&code), "{text}");
    }
    // An old kernel still has what newer ones removed.
    assert_eq!(codes("kernel.osrelease = 4.4.0\nnet.ipv4.tcp_tw_recycle = 0")[0].0, Weight::Note);
    // For a host with few connections the finding needs their number.
    let text = "net.ipv4.tcp_mem = 10000 20000 30000\nnet.ipv4.tcp_wmem = 4096 16384 16777216\n";
    let with =
        |connections| show(&parse(text), String::new(), connections).findings.first().map(|finding| finding.weight);
    assert_eq!((with(Some(4)), with(Some(5)), with(None)), (None, Some(Weight::Trap), Some(Weight::Note)));
}
