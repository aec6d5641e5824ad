//! Plans: the arithmetic, what is left alone, and what each format holds.

use super::format::{Format, emit};
use super::*;
use crate::state::{HostState, parse};
use serde_json::json;
use thalweg_model::{CarriedData, Cause, Occurrences, Reach, Restarts, Setting, Side, TunePlan, Verdict};

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
    for_purpose(purpose, demand, &parse(host)).expect("the host has the route")
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
    assert!(new.warnings.iter().any(|line| line.ends_with("which carries 1/2 of the rate.")), "{:?}", new.warnings);
    let alone = plan(Purpose::LongFat, &Demand { connections: 1, ..demand.clone() }, HOST);
    assert!(alone.warnings.iter().any(|line| line.ends_with("Use 2 connections.")), "{:?}", alone.warnings);
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
            "Route rto_min lock 5ms",
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
    assert!(netplan[2].instead.contains("networkd"), "{netplan:?}");
    let networkd = emit(&car, Format::Networkd).refused;
    assert!(networkd[0].instead.contains("ip-route"), "{networkd:?}");
    // networkd sends it without its lock, so that the kernel ignores it.
    assert_eq!(networkd[1].setting, "route attribute rto_min");
    assert!(networkd[1].why.contains("lock") && networkd[1].instead.contains("ip-route"), "{networkd:?}");
}

/// The line of `ip route` that is written for a host with this route, or why it is refused.
fn written(route: &str, to: &str, format: Format) -> Result<String, String> {
    let host = format!("kernel.osrelease = 6.12.1\n{route}\n");
    let demand = Demand { to: to.to_owned(), ..demand("100ms", "8mbit", 1) };
    let emission = emit(&plan(Purpose::LiveEdge, &demand, &host), format);
    let refusal = emission.refused.iter().find(|one| one.setting == "route attribute initcwnd");
    refusal.map_or_else(|| Ok(emission.text), |refusal| Err(refusal.why.clone()))
}

#[test]
fn a_command_repeats_the_whole_route() {
    let command = |route: &str, to: &str| {
        let text = written(route, to, Format::IpRoute).expect("written");
        text.lines().last().expect("a command").trim_end_matches(" congctl bbr initcwnd 40").to_owned()
    };
    let whole = "default via 10.9.0.1 dev d0 proto static src 10.9.0.2 metric 100";
    assert_eq!(
        written(&format!("{whole} mtu lock 1400"), "default", Format::IpRoute).expect("written").lines().last(),
        Some(format!("ip route change {whole} congctl bbr initcwnd 40 mtu lock 1400").as_str())
    );
    for (route, to, wanted) in [
        ("10.81.0.0/16 via inet6 2001:db8:1::1 dev d0", "10.81.0.0/16", "ip route change "),
        ("10.60.0.0/16 tos 0x10 via 10.9.0.1 dev d0", "10.60.0.0/16", "ip route change "),
        ("10.61.0.0/16 via 10.250.0.1 dev d0 onlink", "10.61.0.0/16", "ip route change "),
        ("10.80.0.0/16 nhid 10 via 10.9.0.1 dev d0", "10.80.0.0/16", "ip route change "),
        (
            "2001:db8:77::/48 via 2001:db8:1::1 dev d0 metric 1024 pref medium",
            "2001:db8:77::/48",
            "ip -6 route change ",
        ),
        ("default dev wg0 proto static metric 1024 pref medium", "::/0", "ip -6 route change "),
    ] {
        let wanted = format!("{wanted}{}", route.replace(" nhid 10 via 10.9.0.1 dev d0", " nhid 10"));
        assert_eq!(command(route, to), wanted);
    }
    let hops = "10.50.0.0/16 proto static metric 7\n\tnexthop via 10.9.0.3 dev d0 weight 1 linkdown\n\tnexthop via 10.9.0.4 dev d0 weight 2";
    assert_eq!(
        command(hops, "10.50.0.0/16"),
        "ip route change 10.50.0.0/16 proto static metric 7 nexthop via 10.9.0.3 dev d0 weight 1 nexthop via 10.9.0.4 dev d0 weight 2"
    );
}

#[test]
fn a_route_that_cannot_be_repeated_is_refused() {
    let announced = "default via fe80::1 dev d0 proto ra metric 1024 expires 598sec pref high";
    for format in [Format::IpRoute, Format::Networkd, Format::Netplan, Format::NetworkManager, Format::Ansible] {
        assert!(written(announced, "::/0", format).expect_err("refused").contains("goes away by itself"));
        assert!(written("", "10.7.0.0/16", format).expect_err("refused").contains("whole route is known"));
    }
    assert!(written("10.7.0.0/16 encap ip id 7 dev d0", "10.7.0.0/16", Format::IpRoute).is_err());
    let hops = "10.50.0.0/16\n nexthop via 10.9.0.3 dev d0 weight 1\n nexthop via 10.9.0.4 dev d0 weight 1";
    for (route, to, part) in [
        (hops, "10.50.0.0/16", "no name for 'nexthop'"),
        ("10.81.0.0/16 via inet6 2001:db8:1::1 dev d0", "10.81.0.0/16", "no name for 'via'"),
        ("10.60.0.0/16 tos 0x10 via 10.9.0.1 dev d0", "10.60.0.0/16", "no name for 'tos'"),
        ("10.80.0.0/16 nhid 10 via 10.9.0.1 dev d0", "10.80.0.0/16", "no name for 'nhid'"),
    ] {
        for format in [Format::Networkd, Format::Netplan, Format::NetworkManager] {
            let why = written(route, to, format).expect_err("refused");
            assert!(why.contains(part), "{why}");
        }
    }
    let source = "default via 10.9.0.1 dev d0 src 10.9.0.2 onlink";
    for (format, parts) in [
        (Format::Networkd, ["PreferredSource=10.9.0.2", "GatewayOnLink=yes"]),
        (Format::Netplan, ["from: 10.9.0.2", "on-link: true"]),
        (Format::NetworkManager, ["src=10.9.0.2", "onlink=true"]),
    ] {
        // netplan and NetworkManager have no name for congctl, which is refused by itself.
        let text = written(source, "default", format).expect("written");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn each_default_route_is_planned_by_its_family_and_one_that_is_not_there_is_refused() {
    let both = "default via 10.0.0.254 dev eth0\ndefault via fe80::1 dev eth0 metric 1024 pref medium\n";
    let of = |to: &str, host: &str| {
        let demand = Demand { to: to.to_owned(), ..demand("100ms", "8mbit", 1) };
        for_purpose(Purpose::LiveEdge, &demand, &parse(host))
    };
    let target = |to: &str, host: &str| {
        let plan = of(to, host).expect("there");
        (plan.changes[1].route.clone().expect("a route").ipv6, plan.warnings.len())
    };
    assert_eq!(target("default", both), (false, 1), "a warning names the other one");
    assert_eq!(target("::/0", both), (true, 0));
    assert_eq!(target("default", "default dev wg0 metric 1024 pref medium\n"), (true, 0));
    assert_eq!(of("10.77.0.0/16", both), Err(NoRoute("10.77.0.0/16".to_owned())));
    assert_eq!(of("default", "10.0.0.0/8 dev eth0\n"), Err(NoRoute("default".to_owned())));
    // Of a host whose routes were not read the plan names the destination alone.
    assert_eq!(target("::/0", "net.ipv4.tcp_sack = 1\n"), (true, 0));
}

#[test]
fn a_plan_never_lengthens_the_timeout() {
    let of = |rtt: &str, host: &str| {
        let found = plan(Purpose::InVehicle, &demand(rtt, "10mbit", 1), host);
        found.changes.iter().find(|change| change.setting.name() == "rto_min").map(|change| change.to.clone())
    };
    assert_eq!(of("49ms", HOST).as_deref(), Some("lock 196ms"));
    for rtt in ["50ms", "100ms"] {
        assert_eq!(of(rtt, HOST), None, "{rtt}: 200 ms are shorter");
    }
    let route = |value: &str| HOST.replace("metric 100", &format!("metric 100 rto_min {value}"));
    assert_eq!(of("10ms", &route("lock 20ms")), None);
    assert_eq!(of("10ms", &route("lock 60ms")).as_deref(), Some("lock 40ms"));
    assert_eq!(of("10ms", &route("40ms")).as_deref(), Some("lock 40ms"), "one that is not locked is ignored");
    assert_eq!(of("10ms", &format!("{HOST}net.ipv4.tcp_rto_min_us = 30000\n")), None);
}

#[test]
fn options_that_bound_every_buffer_are_switched_on() {
    let off = format!("{HOST}net.ipv4.tcp_window_scaling = 0\nnet.ipv4.tcp_sack = 0\n");
    for purpose in [Purpose::LongFat, Purpose::Bulk, Purpose::LiveEdge] {
        let found = short(&plan(purpose, &demand("200ms", "1gbit", 1), &off));
        for name in ["net.ipv4.tcp_window_scaling 1", "net.ipv4.tcp_sack 1"] {
            assert!(found.contains(&format!("Namespace {name}")), "{purpose:?}: {found:?}");
        }
    }
    // 50,000 bytes fit in a window without a scale.
    let near = short(&plan(Purpose::Bulk, &demand("1ms", "400mbit", 1), &off));
    assert!(!near.iter().any(|line| line.contains("window_scaling")), "{near:?}");
}

#[test]
fn numbers_that_do_harm_are_not_copied() {
    for (value, wanted) in [
        ("a b c", "4096 16384 67108864"),
        ("8388608 1048576 16777216", "4096 16384 67108864"),
        ("4096 16384", "4096 16384 67108864"),
        ("8192 65536 4194304", "8192 65536 67108864"),
    ] {
        let host = HOST.replace("4096 16384 4194304", value);
        let found = plan(Purpose::Bulk, &demand("200ms", "1gbit", 1), &host);
        let change = found.changes.iter().find(|change| change.setting.name() == "net.ipv4.tcp_wmem").expect(value);
        assert_eq!(change.to, wanted, "{value}");
        assert_eq!(change.why.contains("The first two numbers"), !value.starts_with("8192"), "{value}: {}", change.why);
    }
}

#[test]
fn the_arithmetic_says_what_is_rounded_and_cut() {
    let found = |rtt: &str, rate: &str, connections| plan(Purpose::Bulk, &demand(rtt, rate, connections), HOST);
    let step = |plan: &TunePlan| plan.arithmetic[1].how.clone();
    assert!(step(&found("1ms", "600kbit", 1)).ends_with("; 300 bytes, rounded up to a whole MiB"));
    let large = found("10s", "6gbit", 10_000_000);
    assert!(step(&large).ends_with("; 27.9 GiB, of which 64 MiB is the most that is proposed"), "{}", step(&large));
    assert!(!large.warnings.iter().any(|warning| warning.contains("Use ")), "{:?}", large.warnings);
    assert!(found("10s", "6gbit", 1).arithmetic[2].how.starts_with("1 connection ×"));
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
    let carried = CarriedData { bytes: 1e6, seconds: 1.0, turns_s: None };
    let full = |gain| Verdict::new(Cause::NothingToGain(carried), 0.9, gain);
    let bursts =
        Verdict::new(Cause::IdleRestart(Restarts { restarted: Occurrences::default(), timing: None }), 0.1, Some(9.0));
    let flow = |verdict: Verdict| json!({"verdict": verdict, "remedies": [remedy]});
    let flows = [flow(full(Some(4.2))), flow(full(None)), flow(full(Some(1.5))), flow(bursts)];
    let found = json!({"schema": "thalweg.diagnose/1", "captures": [{"flows": flows}]});
    let demand = demand("1ms", "1gbit", 1);
    let of = |document: &serde_json::Value| from_diagnosis(document, Side::Client, "f", &demand, &parse(HOST));
    let estimated = of(&found).expect("a plan").expected.expect("a gain");
    assert_eq!((estimated.ratio, estimated.before), (4.2, None), "the largest");
    assert!(estimated.source.contains("estimates"), "{}", estimated.source);
    let mut enough = found.clone();
    for at in 0..4 {
        enough["captures"][0]["flows"][at]["remedies"][0]["changes"][0]["to"] = json!("4096 87380 7");
    }
    let nothing = of(&enough).expect("a plan");
    assert!(nothing.changes.is_empty() && nothing.expected.is_none(), "what changes nothing gains nothing");

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
