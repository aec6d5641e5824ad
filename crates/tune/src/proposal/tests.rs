//! Plans: the arithmetic, what is left alone, and what each format holds.

use super::format::{Format, emit};
use super::*;
use crate::state::{HostState, parse};
use serde_json::json;
use thalweg_model::{Reach, Setting, Side, TunePlan};

const HOST: &str = "kernel.osrelease = 6.12.1
MemTotal: 8388608 kB
net.ipv4.tcp_rmem = 4096 131072 6291456
net.ipv4.tcp_wmem = 4096 16384 4194304
net.ipv4.tcp_mem = 93750 125000 187500
net.ipv4.tcp_congestion_control = cubic
net.ipv4.tcp_slow_start_after_idle = 1
net.ipv4.tcp_thin_linear_timeouts = 0
net.core.somaxconn = 4096
default via 10.0.0.254 dev eth0 metric 100
10.0.0.0/24 dev eth0 scope link
";

fn demand(rtt: &str, rate: &str, connections: u64) -> Demand {
    let (rtt, rate) = (rtt.parse().expect("a time"), rate.parse().expect("a rate"));
    Demand { rtt, rate, connections, queue: None, to: "default".to_owned() }
}

fn short(plan: &TunePlan) -> Vec<String> {
    let name = |setting: &Setting| setting.name().to_owned();
    plan.changes.iter().map(|change| format!("{:?} {} {}", change.reach, name(&change.setting), change.to)).collect()
}

fn plan(purpose: Purpose, demand: &Demand, host: &str) -> TunePlan {
    for_purpose(purpose, demand, &parse(host))
}

#[test]
fn a_live_edge_gets_the_smallest_set_the_narrowest_first() {
    let found = plan(Purpose::LiveEdge, &demand("100ms", "8mbit", 30_000), HOST);
    assert_eq!(
        short(&found),
        [
            "Socket notsent_lowat 131072",
            "Route initcwnd 40",
            "Route congctl bbr",
            "Namespace net.ipv4.tcp_slow_start_after_idle 0",
        ]
    );
    // 100 kB of BDP need 400 kB of buffer: less than there is, so nothing is written.
    assert!(found.enough.iter().any(|line| line.contains("tcp_wmem")), "{:?}", found.enough);
    assert!(found.enough.iter().any(|line| line.contains("somaxconn")), "{:?}", found.enough);
    assert_eq!(found.arithmetic[0].result, "97.7 KiB");
    // 30,000 × 1 MiB are 29.3 GiB; pressure begins at 125,000 pages.
    assert!(found.warnings[0].contains("29.3 GiB") && found.warnings[0].contains("488.3 MiB"), "{:?}", found.warnings);
    assert!(found.warnings[1].contains("more than the host's memory, 8 GiB"), "{:?}", found.warnings);
}

#[test]
fn a_long_fat_path_gets_the_window_of_its_kernel() {
    let demand = demand("210ms", "1gbit", 2);
    // BDP 26.25 MB: half of the buffer is window from 6.6 on, and half at tcp_adv_win_scale 1 before; 3/4 at 2.
    let new = plan(Purpose::LongFat, &demand, HOST);
    assert_eq!(
        short(&new),
        [
            "Route congctl bbr",
            "Namespace net.ipv4.tcp_wmem 4096 16384 67108864",
            "Namespace net.ipv4.tcp_rmem 4096 131072 66060288",
        ]
    );
    assert!(new.warnings.iter().any(|line| line.contains("Use 2 connections")), "{:?}", new.warnings);
    let old = HOST.replace("6.12.1", "6.1.0") + "net.ipv4.tcp_adv_win_scale = 2\n";
    let old = plan(Purpose::LongFat, &demand, &old);
    assert!(short(&old).contains(&"Namespace net.ipv4.tcp_rmem 4096 131072 44040192".to_owned()), "{:?}", short(&old));
    assert!(old.arithmetic.iter().any(|step| step.how.contains("÷ 0.75")), "{:?}", old.arithmetic);
}

#[test]
fn limits_are_raised_and_never_lowered_and_nothing_is_written_twice() {
    let high = HOST.replace("6291456", "134217728").replace("4194304", "134217728");
    let found = plan(Purpose::Bulk, &demand("50ms", "1gbit", 1), &high);
    assert_eq!(short(&found), Vec::<String>::new());
    let host = HOST.replace("metric 100", "metric 100 initcwnd 64 congctl bbr");
    let found = plan(Purpose::LiveEdge, &demand("100ms", "8mbit", 10), &host);
    assert!(
        !short(&found).iter().any(|line| line.contains("initcwnd") || line.contains("congctl")),
        "{:?}",
        short(&found)
    );
    for purpose in Purpose::ALL {
        for kernel in ["4.9.1", "5.10.1", "6.1.1", "6.18.1"] {
            let found = plan(purpose, &demand("200ms", "1gbit", 100), &HOST.replace("6.12.1", kernel));
            let mut keys: Vec<_> = found.changes.iter().map(|change| (&change.setting, &change.route)).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), count, "{purpose:?} {kernel}");
            assert!(found.changes.is_sorted_by_key(|change| change.reach), "{purpose:?}");
        }
    }
    assert!(
        short(&plan(Purpose::LongFat, &demand("200ms", "1gbit", 1), &HOST.replace("6.12.1", "4.9.1")))
            .contains(&"Host net.core.default_qdisc fq".to_owned())
    );
}

#[test]
fn a_vehicle_gets_short_timeouts_and_a_clamp() {
    let found = plan(Purpose::InVehicle, &demand("500us", "1gbit", 4), HOST);
    // (62,500 + 131,072 ÷ 4) ÷ 1,448 = 65.
    assert_eq!(
        short(&found),
        [
            "Route cwnd lock 65",
            "Route rto_min 5ms",
            "Route quickack 1",
            "Namespace net.ipv4.tcp_thin_linear_timeouts 1"
        ]
    );
    let many = plan(Purpose::InVehicle, &demand("500us", "1gbit", 100), HOST);
    assert!(many.warnings[0].contains("no clamp prevents that loss"), "{:?}", many.warnings);
}

#[test]
fn what_a_format_cannot_hold_is_refused_by_name() {
    let found = plan(Purpose::LiveEdge, &demand("100ms", "8mbit", 30_000), HOST);
    let refused = |format| emit(&found, format).refused.into_iter().map(|one| one.setting).collect::<Vec<_>>();
    assert_eq!(refused(Format::SysctlD), ["TCP_NOTSENT_LOWAT", "route attribute initcwnd", "route attribute congctl"]);
    assert_eq!(refused(Format::IpRoute), ["TCP_NOTSENT_LOWAT", "net.ipv4.tcp_slow_start_after_idle"]);
    assert_eq!(refused(Format::Networkd), ["TCP_NOTSENT_LOWAT", "net.ipv4.tcp_slow_start_after_idle"]);
    assert_eq!(
        refused(Format::Netplan),
        ["TCP_NOTSENT_LOWAT", "route attribute congctl", "net.ipv4.tcp_slow_start_after_idle"]
    );
    assert_eq!(
        refused(Format::NetworkManager),
        ["TCP_NOTSENT_LOWAT", "route attribute congctl", "net.ipv4.tcp_slow_start_after_idle"]
    );
    assert_eq!(refused(Format::Ansible), ["TCP_NOTSENT_LOWAT"]);
    for format in Format::ALL {
        assert!(emit(&found, format).refused.iter().all(|one| !one.instead.is_empty() && one.why.ends_with('.')));
    }
    let car = plan(Purpose::InVehicle, &demand("500us", "1gbit", 4), HOST);
    let netplan = emit(&car, Format::Netplan).refused;
    assert!(netplan[1].instead.contains("networkd"), "{netplan:?}");
    assert!(emit(&car, Format::Networkd).refused[0].instead.contains("ip-route"));
}

#[test]
fn every_format_is_as_it_was_reviewed() {
    let edge = plan(Purpose::LiveEdge, &demand("100ms", "8mbit", 30_000), HOST);
    let car = plan(Purpose::InVehicle, &demand("500us", "1gbit", 4), HOST);
    let mut text = String::new();
    for (name, plan) in [("live-edge", &edge), ("in-vehicle", &car)] {
        for format in Format::ALL {
            text += &format!("=== {name} {}\n{}\n", format.name(), emit(plan, format).text);
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_diagnosis_becomes_a_plan_of_one_side() {
    let change = |side: &str, to: u64| json!({"side": side, "setting": {"sysctl": "net.ipv4.tcp_rmem"}, "from": null, "to": format!("4096 87380 {to}")});
    let flow = |to| json!({"remedies": [{"reason": "Let it grow.", "changes": [change("client", to), change("server", 7)]}, {"reason": "x", "changes": [change("client", 1 << 40)]}]});
    let document = json!({"schema": "thalweg.diagnose/1", "captures": [{"flows": [flow(16 << 20), flow(32 << 20), flow(8 << 20)]}]});
    let demand = demand("1ms", "1gbit", 1);
    let of = |side| from_diagnosis(&document, side, "found.json", &demand, &parse(HOST));
    let client = of(Side::Client).expect("a plan");
    assert_eq!(
        short(&client),
        ["Namespace net.ipv4.tcp_rmem 4096 131072 33554432"],
        "the largest, and the host's own first two"
    );
    assert_eq!(client.changes[0].reach, Reach::Namespace);
    assert!(short(&of(Side::Server).expect("a plan")).is_empty(), "7 is less than there is");
    let other = from_diagnosis(&json!({"schema": "thalweg.lab/1"}), Side::Client, "x", &demand, &HostState::default());
    assert_eq!(other, Err(DiagnosisError::OtherSchema("thalweg.lab/1".to_owned())));
    let empty = json!({"schema": "thalweg.diagnose/1", "captures": []});
    assert_eq!(
        from_diagnosis(&empty, Side::Client, "x", &demand, &HostState::default()),
        Err(DiagnosisError::NothingToSet("client"))
    );
    for odd in [json!(null), json!([]), json!({"schema": "thalweg.diagnose/1", "captures": {"flows": 3}})] {
        assert!(from_diagnosis(&odd, Side::Client, "x", &demand, &HostState::default()).is_err());
    }
}

#[test]
fn a_plan_says_what_to_expect_and_where_that_is_from() {
    let change = json!({"side": "client", "setting": {"sysctl": "net.ipv4.tcp_rmem"}, "from": null, "to": "4096 87380 33554432"});
    let remedy = json!({"reason": "Let it grow.", "changes": [change]});
    let flow = |gain| json!({"verdict": {"gain": gain}, "remedies": [remedy]});
    let found = json!({"schema": "thalweg.diagnose/1", "captures": [{"flows": [flow(json!(4.2)), flow(json!(null)), flow(json!(1.5))]}]});
    let demand = demand("1ms", "1gbit", 1);
    let of = |document: &serde_json::Value| from_diagnosis(document, Side::Client, "f", &demand, &parse(HOST));
    let estimated = of(&found).expect("a plan").expected.expect("a gain");
    assert_eq!((estimated.ratio, estimated.before), (4.2, None), "the largest");
    assert!(estimated.source.contains("estimates"), "{}", estimated.source);

    let proof = json!({"scenario": "slow", "kernel": "6.12.1", "seed": 7});
    let fixed = json!({"schema": "thalweg.fix/1", "remedy": remedy, "metric": "goodput_bps", "before": 1e6, "after": 5e6, "ratio": 5.0, "proof": proof});
    let plan = of(&fixed).expect("a plan");
    assert_eq!(short(&plan), ["Namespace net.ipv4.tcp_rmem 4096 131072 33554432"]);
    let measured = plan.expected.expect("a gain");
    assert_eq!((measured.before, measured.after, measured.ratio), (Some(1e6), Some(5e6), 5.0));
    assert!(measured.source.contains("'slow', Linux 6.12.1, seed 7"), "{}", measured.source);

    let need = |side: &str, to: &str| json!({"side": side, "setting": {"sysctl": "net.ipv4.tcp_wmem"}, "from": null, "to": to});
    let mut more = fixed.clone();
    more["needs"] = json!([
        need("client", "4096 16384 268435456"),
        need("client", "4096 16384 1048576"),
        need("server", "4096 16384 536870912")
    ]);
    let all = ["Namespace net.ipv4.tcp_rmem 4096 131072 33554432", "Namespace net.ipv4.tcp_wmem 4096 16384 268435456"];
    assert_eq!(short(&of(&more).expect("a plan")), all, "what this host has less of, and no more");

    let nothing = json!({"schema": "thalweg.fix/1", "remedy": null, "ratio": null});
    assert_eq!(of(&nothing), Err(DiagnosisError::NothingToSet("client")));
}

#[test]
fn a_plan_survives_json() {
    let found = plan(Purpose::InVehicle, &demand("500us", "1gbit", 4), HOST);
    let text = serde_json::to_string(&found).expect("JSON");
    assert_eq!(serde_json::from_str::<TunePlan>(&text).expect("a plan"), found);
}
