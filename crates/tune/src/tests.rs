//! The planner compared with the figures of the field reports that the scenarios repeat.

use super::*;
use crate::facts::socket;
use std::collections::BTreeMap;
use thalweg_model::{
    Change, FamilyName, Handshake, HostReport, Measured, ProgramWait, Setting, SettingsReport, TokenBucket, Way,
};
use thalweg_units::{Rate, Span};

fn settings(pairs: &[(&str, &str)]) -> SettingsReport {
    let sysctl: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let host = HostReport { sysctl, ..HostReport::default() };
    SettingsReport { client: host.clone(), server: host, path: Vec::new() }
}

/// The path of the report of a slow download, with all that a capture shows of it.
fn facts<'a>(kernel: &str, settings: &'a SettingsReport) -> Facts<'a> {
    Facts {
        direction: Way::Down,
        kernel: since::release(kernel),
        settings,
        fixed_buffers: Vec::new(),
        rtt: Span::from_micros(35_700),
        path_rate: Some(Rate::from_bits_per_second(3_000_000_000)),
        measured: Measured {
            capacity_bps: Some(3e9),
            fastest_bps: None,
            first_bps: None,
            link_mtu_bytes: None,
            segment_bytes: 1448,
            delivered_segment_bytes: 1320,
            flight_max_bytes: 2_000_000,
            window_max_bytes: 2_000_000,
            send_buffer_bytes: None,
            bursts: 1,
            nagle_side: Some(Side::Client),
        },
        handshake: Handshake { sack: Some(true), wscale_client: Some(7), ..Handshake::default() },
        first_flight: None,
        silence: Span::from_millis(204),
        acks_wait: false,
        family: None,
        crept: false,
        ack_timing: Default::default(),
        policer: Some(TokenBucket { rate_bps: 1e7, burst_bytes: 1e5 }),
        bytes: 1_000_000,
        ipv6: false,
    }
}

/// The first way that sets something.
fn first(code: Code, facts: &Facts<'_>) -> Option<Remedy> {
    plan(code, facts).into_iter().find(|remedy| !remedy.changes.is_empty())
}

#[test]
fn the_receive_buffer_follows_the_kernels_own_formula() {
    let quarter = settings(&[("net.ipv4.tcp_rmem", "8192 87380 4194304"), ("net.ipv4.tcp_adv_win_scale", "2")]);
    let remedy = first(Code::ReceiveWindow, &facts("6.1.192", &quarter)).expect("a remedy");
    // 1.25 × 13.4 MB of window at three quarters of the buffer: 22.3 MB.
    assert_eq!(remedy.changes[0].to, "8192 87380 23068672");
    assert_eq!(remedy.changes[0].side, Side::Client);
    assert_eq!(undo(&remedy.changes), ["sysctl -w net.ipv4.tcp_rmem=\"8192 87380 4194304\"   # on the client"]);

    // Since 6.6 the sysctl is ignored, whatever it says.
    let all = settings(&[("net.ipv4.tcp_rmem", "8192 87380 4194304"), ("net.ipv4.tcp_adv_win_scale", "-2")]);
    let old = first(Code::ReceiveWindow, &facts("6.1.192", &all)).expect("a remedy");
    let new = first(Code::ReceiveWindow, &facts("6.12.117", &all)).expect("a remedy");
    assert_eq!(old.changes[0].to, "8192 87380 67108864");
    // The field report's remedy, to the byte.
    assert_eq!(new.changes[0].to, "8192 87380 33554432");
    assert!(!new.reason.contains("adv_win_scale"), "{}", new.reason);
}

/// What is not known of a host is not set: a limit is only ever raised, and the text covers both kinds of kernel.
#[test]
fn a_capture_alone_gives_a_command_that_never_lowers_a_limit() {
    let unknown = SettingsReport::default();
    let known = facts("", &unknown);
    assert_eq!(known.kernel, None);
    let both = plan(Code::ReceiveWindow, &known);
    assert_eq!(both[0].changes[0].to, "4096 131072 33554432");
    assert_eq!(
        apply(&both[0].changes),
        ["kept=/run/thalweg-sysctl.net.ipv4.tcp_rmem; [ -s $kept ] || sysctl -n net.ipv4.tcp_rmem >$kept; \
             sysctl -w net.ipv4.tcp_rmem=\"$(sysctl -n net.ipv4.tcp_rmem | awk '{ print $1, $2, ($3 > 33554432 ? $3 : 33554432) }')\"   # on the client"]
    );
    let undo = undo(&both[0].changes);
    assert_eq!(
        undo,
        [
            "kept=/run/thalweg-sysctl.net.ipv4.tcp_rmem; sysctl -w net.ipv4.tcp_rmem=\"$(cat $kept)\" && rm $kept   # on the client"
        ]
    );
    assert!(both[0].reason.contains("6.6 and later") && both[0].reason.contains("before 6.6"), "{}", both[0].reason);
    assert_eq!(both[1].changes[0].setting, socket("rcvbuf"));

    // A window scale of 7 stands for 4 MiB and more: with a window of 300 KB the limit in force is the program's.
    let mut fixed = known;
    fixed.measured.window_max_bytes = 300_000;
    assert_eq!(plan(Code::ReceiveWindow, &fixed)[0].changes[0].setting, socket("rcvbuf"));
}

#[test]
fn limits_are_raised_no_further_than_64_mib_and_the_reason_says_so() {
    let unknown = SettingsReport::default();
    let mut long = facts("", &unknown);
    long.path_rate = Some(Rate::from_bits_per_second(100_000_000_000));
    for code in [Code::ReceiveWindow, Code::SendBuffer] {
        let remedy = first(code, &long).expect("a remedy");
        assert!(remedy.changes[0].to.ends_with(" 67108864"), "{:?}", remedy.changes);
        assert!(remedy.reason.contains("64MiB is the most"), "{}", remedy.reason);
    }
    long.path_rate = None;
    // Four times twice what is in flight, and where that is little or not known, what Linux ships.
    assert!(first(Code::SendBuffer, &long).expect("a remedy").changes[0].to.ends_with(" 16777216"));
    (long.measured.flight_max_bytes, long.measured.window_max_bytes) = (0, 0);
    assert!(first(Code::SendBuffer, &long).expect("a remedy").changes[0].to.ends_with(" 4194304"));
    assert!(first(Code::ReceiveWindow, &long).expect("a remedy").changes[0].to.ends_with(" 6291456"));
}

#[test]
fn what_is_large_enough_is_left_alone() {
    let large =
        settings(&[("net.ipv4.tcp_rmem", "4096 131072 134217728"), ("net.ipv4.tcp_wmem", "4096 16384 134217728")]);
    assert_eq!(first(Code::ReceiveWindow, &facts("6.12.117", &large)), None);
    assert_eq!(first(Code::SendBuffer, &facts("6.12.117", &large)), None);
}

#[test]
fn a_send_buffer_that_its_program_overfills_is_raised_by_what_it_is_to_hold() {
    let unknown = SettingsReport::default();
    let mut facts = facts("6.12.117", &unknown);
    facts.path_rate = Some(Rate::from_bits_per_second(182_000_000));
    facts.measured.flight_max_bytes = 2_700_000;
    // By what was in flight it would seem to be large enough for the 0.8 MB that the path holds.
    assert_eq!(first(Code::SendBuffer, &facts).expect("a remedy").changes[0].setting, socket("sndbuf"));
    facts.measured.send_buffer_bytes = Some(528_000);
    let remedy = first(Code::SendBuffer, &facts).expect("a remedy");
    assert!(remedy.changes[0].to.ends_with(" 4194304"), "{:?}", remedy.changes);
}

#[test]
fn the_queue_that_acknowledgements_wait_in_is_the_other_hosts_to_shorten() {
    let unknown = SettingsReport::default();
    let mut facts = facts("6.12.117", &unknown);
    assert_eq!(first(Code::Bufferbloat, &facts).expect("a remedy").changes[0].side, Side::Server);
    facts.acks_wait = true;
    assert_eq!(first(Code::Bufferbloat, &facts).expect("a remedy").changes[0].side, Side::Client);
    // Losses are the sender's to survive, wherever acknowledgements wait.
    assert_eq!(first(Code::RandomLoss, &facts).expect("a remedy").changes[0].side, Side::Server);
}

#[test]
fn an_option_answers_the_cause_that_was_diagnosed() {
    let settings = settings(&[]);
    let facts = facts("6.12.117", &settings);
    let code = |cause: Option<Code>, name: &str| {
        let planned = cause.map(|cause| plan(cause, &facts)).unwrap_or_default();
        let given = [(Side::Server, socket("max_pacing_rate"), "8mbit".to_owned())];
        let families = options::families(&facts, &options::Work::default(), &given, &planned);
        let mut all = families.into_iter().flat_map(|family| family.options);
        all.find(|one| one.changes[0].setting.name() == name).map(|one| one.code)
    };
    let congestion_control = "net.ipv4.tcp_congestion_control";
    assert_eq!(code(None, congestion_control), Some(Code::RandomLoss));
    for cause in [Code::CongestionLoss, Code::Bufferbloat, Code::Policer] {
        assert_eq!(code(Some(cause), congestion_control), Some(cause));
    }
    assert_eq!(code(None, "max_pacing_rate"), Some(Code::PacingRate));
}

#[test]
fn a_buffer_the_program_fixed_is_freed() {
    let small = settings(&[("net.ipv4.tcp_wmem", "4096 16384 4194304")]);
    let mut facts = facts("6.12.117", &small);
    facts.fixed_buffers = vec![(Side::Server, "sndbuf")];
    let remedy = first(Code::SendBuffer, &facts).expect("a remedy");
    assert!(remedy.changes.iter().any(|change| change.setting == socket("sndbuf") && change.to == "auto"));
}

#[test]
fn first_frames_get_a_larger_first_flight_and_no_more_than_the_path_or_the_transfer_holds() {
    let none = settings(&[]);
    let mut facts = facts("6.12.117", &none);
    let remedy = first(Code::InitialWindow, &facts).expect("a remedy");
    assert_eq!((remedy.changes[0].side, remedy.changes[0].to.as_str()), (Side::Server, "40"));
    facts.path_rate = Some(Rate::from_bits_per_second(8_000_000));
    // 35.7 kB: 24 segments.
    assert_eq!(first(Code::InitialWindow, &facts).expect("a remedy").changes[0].to, "24");
    // Five bursts of 20 kB: 14 segments each.
    (facts.bytes, facts.measured.bursts) = (100_000, 5);
    assert_eq!(first(Code::InitialWindow, &facts).expect("a remedy").changes[0].to, "14");
    // Where slow start ended early a larger beginning is the least that helps.
    facts.crept = true;
    let changes: Vec<String> =
        plan(Code::InitialWindow, &facts).iter().flat_map(|remedy| &remedy.changes).map(|c| c.to.clone()).collect();
    assert_eq!(changes, ["bbr", "14"]);
}

#[test]
fn loss_gets_bbr_once_and_only_where_the_kernel_has_it() {
    let cubic = settings(&[("net.ipv4.tcp_congestion_control", "cubic")]);
    assert_eq!(first(Code::RandomLoss, &facts("6.12.117", &cubic)).expect("a remedy").changes[0].to, "bbr");
    assert_eq!(first(Code::RandomLoss, &facts("4.4", &cubic)), None);
    let from = first(Code::RandomLoss, &facts("", &cubic)).expect("a remedy").kernels.and_then(|kernels| kernels.from);
    assert_eq!(from.as_deref(), Some("4.9"));
    let bbr = settings(&[("net.ipv4.tcp_congestion_control", "bbr")]);
    // Only the buffers of both hosts are left to it.
    let left: Vec<Change> =
        plan(Code::RandomLoss, &facts("6.12.117", &bbr)).into_iter().flat_map(|remedy| remedy.changes).collect();
    assert_eq!(
        left.iter().map(|one| one.setting.name()).collect::<Vec<_>>(),
        ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]
    );
}

#[test]
fn a_local_timeout_gets_a_shorter_timer_and_a_missing_sack_comes_first() {
    let off = settings(&[("net.ipv4.tcp_sack", "0")]);
    let mut facts = facts("6.12.117", &off);
    facts.rtt = Span::from_micros(250);
    assert_eq!(first(Code::RetransmissionTimeout, &facts).expect("a remedy").changes.len(), 2);
    let on = settings(&[("net.ipv4.tcp_sack", "1")]);
    facts.settings = &on;
    for (rtt, rto_min) in [(250, "10ms"), (20_000, "50ms")] {
        facts.rtt = Span::from_micros(rtt);
        let remedy = first(Code::RetransmissionTimeout, &facts).expect("a remedy");
        assert_eq!(
            (&remedy.changes[0].setting, remedy.changes[0].to.as_str()),
            (&Setting::Route("rto_min".into()), rto_min)
        );
    }
    facts.rtt = Span::from_millis(200);
    assert_eq!(first(Code::RetransmissionTimeout, &facts).expect("a remedy").changes[0].to, "bbr");
    facts.measured.flight_max_bytes = 600;
    assert!(first(Code::RetransmissionTimeout, &facts).is_none(), "a single packet is all there is");
}

#[test]
fn a_policed_sender_is_paced_below_the_rate_of_the_wire() {
    let none = settings(&[]);
    let remedy = first(Code::Policer, &facts("6.12", &none)).expect("a remedy");
    assert_eq!(remedy.changes[0].side, Side::Server);
    // 10 Mb/s with 66 bytes of headers for each 1448, less five percent.
    assert_eq!(remedy.changes[0].to.parse::<Rate>().expect("a rate").bits_per_second(), 9_080_000);
}

#[test]
fn the_sides_are_those_that_matter() {
    let none = settings(&[]);
    let mut facts = facts("", &none);
    let sides = |code, facts: &Facts<'_>| -> Vec<(Side, String)> {
        plan(code, facts).iter().flat_map(|remedy| &remedy.changes).map(|c| (c.side, c.to.clone())).collect()
    };
    let found = |side, to: &str| (side, to.to_owned());
    assert_eq!(sides(Code::DelayedAck, &facts), [found(Side::Client, "true"), found(Side::Server, "1")]);
    assert_eq!(sides(Code::PathMtuBlackHole, &facts), [found(Side::Server, "1"), found(Side::Server, "1372")]);
    assert_eq!(sides(Code::IdleRestart, &facts), [found(Side::Server, "0")]);
    assert_eq!(sides(Code::CongestionWindowClamp, &facts), [found(Side::Server, "auto")]);
    assert_eq!(sides(Code::WindowScalingMissing, &facts), [found(Side::Server, "1")]);
    // Four times the 4 MB of which its window was half, and then what its program set.
    let overrun = [found(Side::Client, "4096 131072 16777216"), found(Side::Client, "auto")];
    assert_eq!(sides(Code::ReceiveBufferOverrun, &facts), overrun);
    (facts.handshake.wscale_client, facts.measured.delivered_segment_bytes) = (None, 90);
    assert_eq!(sides(Code::WindowScalingMissing, &facts), [found(Side::Client, "1")]);
    // 90 bytes are a request, not what the path lets through; below 1280 IPv6 has no packets.
    assert_eq!(sides(Code::PathMtuBlackHole, &facts)[1].1, "1076");
    facts.measured.delivered_segment_bytes = 656;
    assert_eq!(sides(Code::PathMtuBlackHole, &facts)[1].1, "1076", "the end of a response may be of any length");
    facts.measured.link_mtu_bytes = Some(1_420);
    assert_eq!(sides(Code::PathMtuBlackHole, &facts)[1].1, "1420", "what the router asks for");
    (facts.ipv6, facts.measured.link_mtu_bytes) = (true, None);
    assert_eq!(sides(Code::PathMtuBlackHole, &facts)[1].1, "1280");
    assert_eq!(sides(Code::WindowScaleIgnored, &facts), [found(Side::Server, "0")]);
    assert_eq!(sides(Code::SackNotTranslated, &facts), [found(Side::Server, "0")]);
}

#[test]
fn every_cause_has_a_remedy_or_says_that_there_is_none_on_every_kernel() {
    let none = settings(&[]);
    for kernel in ["", "4.4", "6.1", "6.12"] {
        let facts = facts(kernel, &none);
        for code in Code::ALL {
            let remedies = plan(code, &facts);
            // What to look for after a reset or a silence stands in the claim.
            let is_without = matches!(code, Code::Reset | Code::VanishedPeer | Code::NothingToGain | Code::Unknown);
            let wanted = !is_without;
            assert_eq!(!remedies.is_empty(), wanted, "{code} on '{kernel}'");
            for remedy in remedies {
                assert!(remedy.code == code && remedy.reason.ends_with('.'), "{remedy:?}");
                for change in remedy.changes {
                    assert_ne!(change.setting, Setting::Sysctl("net.ipv4.tcp_adv_win_scale".to_owned()));
                    let first = since::first_kernel(&change.setting, &change.to);
                    assert!(first.is_none_or(|first| facts.kernel.is_none_or(|kernel| kernel >= first)), "{change:?}");
                }
            }
        }
    }
}

/// The default route is everybody's: a peer that has no route of its own is given one.
#[test]
fn a_route_is_set_for_the_peer_alone_and_never_for_this_host() {
    let none = settings(&[]);
    let remedy = first(Code::InitialWindow, &facts("6.12", &none)).expect("a remedy");
    let command = |client| commands::between(&remedy.changes, client, "192.0.2.1:80").remove(0);
    assert_eq!(
        command("198.51.100.7:4000"),
        "peer=198.51.100.7; kept=/run/thalweg-route.$peer; [ -s $kept ] || ip -o route get fibmatch $peer | sed -E \
         's/\\\\//g; s/ (dead|linkdown|pervasive|unresolved|(rt_)?(offload|trap)(_failed)?)//g; s/ expires [^ ]+//; s/ rto_min lock/ rto_min/' \
         >$kept; ip route replace $peer initcwnd 40 $(sed -E 's/^[^ ]+//; s/ (initcwnd)( lock)? [^ ]+//g' $kept)   # on the server"
    );
    let ipv6 = command("[2001:db8::7]:4000");
    assert!(ipv6.starts_with("peer=2001:db8::7; ") && ipv6.contains("; ip -6 route replace $peer "), "{ipv6}");
    for own in ["127.0.0.1:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"] {
        assert!(command(own).starts_with("# no command: "), "{}", command(own));
    }
    assert_eq!(
        undo(&remedy.changes),
        [
            "peer=CLIENT_ADDRESS; kept=/run/thalweg-route.$peer; case $(cut -d' ' -f1 $kept) in default|*/*) ip route del $peer;; \
          *) ip route replace $(cat $kept);; esac; rm $kept   # on the server"
        ]
    );
}

/// A host on the internet knows a private peer by its translator's address.
#[test]
fn no_route_is_set_for_an_address_that_the_host_cannot_see() {
    let none = settings(&[]);
    let remedy = first(Code::InitialWindow, &facts("6.12", &none)).expect("a remedy");
    let command = |client, server| commands::between(&remedy.changes, client, server).remove(0);
    for client in ["192.168.1.5:4000", "100.64.3.4:4000", "[fd00::5]:4000"] {
        assert!(command(client, "198.51.100.1:80").starts_with("# no command: "), "{client}");
    }
    assert!(command("192.168.1.5:4000", "10.0.0.1:80").starts_with("peer=192.168.1.5; "), "both are private");
    assert!(command("100.128.3.4:4000", "198.51.100.1:80").starts_with("peer=100.128.3.4; "));
}

#[test]
fn a_first_flight_is_told_as_it_was_seen_and_one_that_saves_nothing_is_not_proposed() {
    let none = settings(&[]);
    let mut facts = facts("6.12", &none);
    let reason = |facts: &Facts<'_>| plan(Code::InitialWindow, facts).remove(0).reason;
    assert!(
        reason(&facts).contains("40 segments instead of the 10 that Linux as it ships begins with"),
        "{}",
        reason(&facts)
    );
    facts.first_flight = Some((2, true));
    assert!(reason(&facts).contains("40 segments instead of 2: "), "{}", reason(&facts));
    facts.first_flight = Some((2, false));
    assert!(reason(&facts).contains("no more than 2 to send at first"), "{}", reason(&facts));
    facts.first_flight = Some((64, false));
    assert!(first(Code::InitialWindow, &facts).is_none(), "it begins with more already");
    facts.first_flight = None;
    (facts.rtt, facts.path_rate) = (Span::from_micros(600), None);
    assert!(reason(&facts).contains("saves one round trip of 600 µs."), "{}", reason(&facts));
    facts.rtt = Span::from_micros(36);
    assert!(first(Code::InitialWindow, &facts).is_none());
    assert!(reason(&facts).contains("would save 72 µs in all"), "{}", reason(&facts));
}

#[test]
fn what_is_no_limit_of_a_remedy_is_not_among_what_it_does_not_help() {
    let none = settings(&[]);
    let mut facts = facts("", &none);
    let policer = first(Code::Policer, &facts).expect("a remedy");
    assert!(!policer.wont_help.contains("maxrate") && policer.notes[0].contains("maxrate"), "{policer:?}");
    let bbr = first(Code::RandomLoss, &facts).expect("a remedy");
    assert!(!bbr.wont_help.contains("4.13") && bbr.notes.iter().any(|note| note.contains("4.13")), "{bbr:?}");
    let last = |facts: &Facts<'_>| plan(Code::RetransmissionTimeout, facts).pop().expect("advice").reason;
    assert!(!last(&facts).contains("seconds"), "{}", last(&facts));
    facts.silence = Span::from_millis(3_200);
    assert!(last(&facts).contains("a silence of seconds"), "{}", last(&facts));
}

#[test]
fn who_sends_with_bbr_is_not_told_to() {
    let unknown = settings(&[]);
    let is_told = |code: Code, facts: &Facts<'_>| {
        let remedies = plan(code, facts);
        remedies.iter().flat_map(|remedy| &remedy.changes).any(|change| change.to == "bbr")
    };
    let seen = Facts { family: Some(FamilyName::Bbr), ..facts("6.12.117", &unknown) };
    for code in [Code::RandomLoss, Code::CongestionLoss, Code::Bufferbloat, Code::Policer] {
        assert!(is_told(code, &facts("6.12.117", &unknown)) && !is_told(code, &seen), "{code:?}");
    }
    // What is behind a loss stays in the buffers of both hosts, however BBR is known.
    let set = settings(&[("net.ipv4.tcp_congestion_control", "bbr")]);
    let chosen = Facts { family: None, ..facts("6.12.117", &set) };
    for facts in [&seen, &chosen] {
        let remedy = first(Code::RandomLoss, facts).expect("buffers");
        let names: Vec<&str> = remedy.changes.iter().map(|change| change.setting.name()).collect();
        assert_eq!(names, ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"]);
    }
    // The queue of the other direction is another sender's.
    assert!(is_told(Code::Bufferbloat, &Facts { acks_wait: true, ..seen }));
}

#[test]
fn advice_follows_what_the_cause_shows() {
    let late = |challenged| {
        Cause::Connecting(Opening::Late { seconds: 1.0, challenged, syn: None, syn_ack: None, left_out: None })
    };
    let ports = by_cause(&late(1), None).expect("a challenge is no lost SYN");
    assert!(ports.reason.contains("ports are used again too soon"), "{}", ports.reason);
    assert!(by_cause(&late(0), None).is_none());
    let wait = Cause::WaitingForServer(ProgramWait { seconds: 1.0, answered: 0, tls_s: 0.0, to_end: false });
    let [client, server] = [Side::Client, Side::Server].map(|side| by_cause(&wait, Some(side)));
    assert!(client.is_some_and(|advice| advice.notes[0].contains("lost before the tap")) && server.is_none());
}
