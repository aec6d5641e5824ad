//! The planner against the seeds' own figures.

use super::*;
use model::HostReport;
use std::collections::BTreeMap;

fn settings(pairs: &[(&str, &str)]) -> SettingsReport {
    let sysctl: BTreeMap<String, String> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let host = HostReport { sysctl, ..HostReport::default() };
    SettingsReport { client: host.clone(), server: host, path: Vec::new() }
}

fn facts<'a>(kernel: &'a str, settings: &'a SettingsReport) -> Facts<'a> {
    Facts {
        direction: Way::Down,
        kernel,
        settings,
        fixed_buffers: Vec::new(),
        rtt: Span::from_micros(35_700),
        path_rate: Some(Rate::from_bits_per_second(3_000_000_000)),
        mss: 1448,
    }
}

#[test]
fn the_receive_buffer_follows_the_kernels_own_formula() {
    let quarter = settings(&[("net.ipv4.tcp_rmem", "8192 87380 4194304"), ("net.ipv4.tcp_adv_win_scale", "2")]);
    let remedy = plan(Code::ReceiveWindow, &facts("6.1.192", &quarter)).expect("a remedy");
    // 1.25 × 13.4 MB of window at three quarters of the buffer: 22.3 MB.
    assert_eq!(remedy.changes[0].to, "8192 87380 23068672");
    assert_eq!(remedy.changes[0].side, Side::Client);
    assert_eq!(undo(&remedy), ["sysctl -w net.ipv4.tcp_rmem=\"8192 87380 4194304\"   # on the client"]);

    // Since 6.6 the sysctl is ignored, whatever it says.
    let all = settings(&[("net.ipv4.tcp_rmem", "8192 87380 4194304"), ("net.ipv4.tcp_adv_win_scale", "-2")]);
    let old = plan(Code::ReceiveWindow, &facts("6.1.192", &all)).expect("a remedy");
    let new = plan(Code::ReceiveWindow, &facts("6.12.117", &all)).expect("a remedy");
    assert_eq!(old.changes[0].to, "8192 87380 67108864");
    // The seed's own remedy, to the byte.
    assert_eq!(new.changes[0].to, "8192 87380 33554432");
    for remedy in [old, new] {
        assert!(
            remedy.changes.iter().all(|change| change.setting != Setting::Sysctl("net.ipv4.tcp_adv_win_scale".into()))
        );
    }
}

#[test]
fn what_is_large_enough_is_left_alone() {
    let large =
        settings(&[("net.ipv4.tcp_rmem", "4096 131072 134217728"), ("net.ipv4.tcp_wmem", "4096 16384 134217728")]);
    assert_eq!(plan(Code::ReceiveWindow, &facts("6.12.117", &large)), None);
    assert_eq!(plan(Code::SendBuffer, &facts("6.12.117", &large)), None);
    for code in [Code::PathRate, Code::Application, Code::NothingToGain, Code::Unknown, Code::Reader] {
        assert_eq!(plan(code, &facts("6.12.117", &large)), None, "{code}");
    }
}

#[test]
fn a_buffer_the_program_fixed_is_freed() {
    let small = settings(&[("net.ipv4.tcp_wmem", "4096 16384 4194304")]);
    let mut facts = facts("6.12.117", &small);
    facts.fixed_buffers = vec![(Side::Server, "sndbuf")];
    let remedy = plan(Code::SendBuffer, &facts).expect("a remedy");
    assert!(
        remedy.changes.iter().any(|change| change.setting == Setting::Socket("sndbuf".into()) && change.to == "auto")
    );
}

#[test]
fn first_frames_get_a_larger_first_flight_and_no_more_than_the_path_holds() {
    let none = settings(&[]);
    let mut facts = facts("6.12.117", &none);
    let remedy = plan(Code::InitialWindow, &facts).expect("a remedy");
    assert_eq!((remedy.changes[0].side, remedy.changes[0].to.as_str()), (Side::Server, "40"));
    facts.path_rate = Some(Rate::from_bits_per_second(8_000_000));
    // 35.7 kB: 24 segments.
    assert_eq!(plan(Code::InitialWindow, &facts).expect("a remedy").changes[0].to, "24");
}

#[test]
fn loss_gets_bbr_once() {
    let cubic = settings(&[("net.ipv4.tcp_congestion_control", "cubic")]);
    assert_eq!(plan(Code::RandomLoss, &facts("6.12.117", &cubic)).expect("a remedy").changes[0].to, "bbr");
    let bbr = settings(&[("net.ipv4.tcp_congestion_control", "bbr")]);
    assert_eq!(plan(Code::RandomLoss, &facts("6.12.117", &bbr)), None);
}

#[test]
fn a_local_timeout_gets_a_shorter_timer_and_a_missing_sack_comes_first() {
    let off = settings(&[("net.ipv4.tcp_sack", "0")]);
    let mut facts = facts("6.12.117", &off);
    facts.rtt = Span::from_micros(250);
    assert_eq!(plan(Code::RetransmissionTimeout, &facts).expect("a remedy").changes.len(), 2);
    let on = settings(&[("net.ipv4.tcp_sack", "1")]);
    facts.settings = &on;
    let remedy = plan(Code::RetransmissionTimeout, &facts).expect("a remedy");
    assert_eq!(remedy.changes[0].setting, Setting::Route("rto_min".into()));
}
