//! The catalogue is sound in itself, and agrees with `thalweg_model::since`.

use super::*;
use std::collections::BTreeSet;
use thalweg_model::Setting;
use thalweg_model::since;

#[test]
fn every_entry_is_whole_and_is_there_once() {
    let mut names = BTreeSet::new();
    for entry in &catalogue().entries {
        let name = &entry.name;
        assert!(names.insert((entry.kind, name.clone())), "{name} is there twice");
        assert!(entry.about.ends_with('.') && !entry.about.contains("\n"), "{name}: {}", entry.about);
        assert!(entry.cost.as_ref().is_none_or(|cost| cost.ends_with('.')), "{name}");
        assert!(
            entry.shape == Shape::Tree || !entry.defaults.is_empty() || entry.varies.is_some(),
            "{name}: no default"
        );
        assert!(!entry.read_by.is_empty() && !entry.source.is_empty(), "{name}");
        for (first, value) in &entry.defaults {
            let kernel = (*first).max(entry.since.unwrap_or_default());
            let taken =
                value.is_empty() || entry.scope == Scope::ReadOnly || entry.refuses(value, Some(kernel)).is_none();
            assert!(taken, "{name}: its default {value} is refused: {:?}", entry.refuses(value, Some(kernel)));
            assert!(entry.since.is_none_or(|since| *first == (0, 0) || *first > since), "{name}: {first:?}");
        }
        let numbers: Vec<Vec<i128>> = entry.defaults.values().filter_map(|value| entry.numbers(value)).collect();
        assert!(!entry.ordered || numbers.iter().all(|numbers| numbers.is_sorted()), "{name}");
    }
    assert!(catalogue().entries.len() > 250, "{}", catalogue().entries.len());
    for vendor in &catalogue().vendors {
        assert!(sysctl(&vendor.name).is_none(), "{} is a vendor's and mainline's", vendor.name);
    }
    for removed in &catalogue().removed {
        assert!(sysctl(&removed.name).is_none() && removed.gone() > (0, 0), "{}", removed.name);
    }
}

/// `thalweg_model::since` is what the lab and the host ask; it cannot know more or other than the catalogue.
#[test]
fn it_agrees_with_what_the_lab_knows_of_versions() {
    for entry in &catalogue().entries {
        let setting = match (entry.kind, &entry.scenario) {
            (Kind::Sysctl, _) => Setting::Sysctl(entry.name.clone()),
            (Kind::Socket, Some(name)) => Setting::Socket(name.clone()),
            _ => continue,
        };
        let value = if entry.name.ends_with("congestion_control") { "cubic" } else { "1" };
        let lab = since::first_kernel(&setting, value);
        if entry.name == "TCP_FASTOPEN" {
            // The scenario's option is two of the kernel's, by the side.
            continue;
        }
        assert!(
            lab.is_none() || lab == entry.since,
            "{}: {lab:?} in thalweg_model::since, {:?} here",
            entry.name,
            entry.since
        );
        let vain = since::without_effect_since(&setting).map(|(from, _)| from);
        assert!(vain.is_none() || vain == entry.no_effect.as_ref().map(|(from, _)| *from), "{}", entry.name);
    }
}

#[test]
fn defaults_follow_the_version() {
    let on = |name: &str, kernel| sysctl(name).expect("known").default_on(Some(kernel));
    assert_eq!(on("net.ipv4.tcp_rmem", (4, 19)), Some("4096 87380 6291456"));
    assert_eq!(on("net.ipv4.tcp_rmem", (6, 12)), Some("4096 131072 6291456"));
    assert_eq!(on("net.ipv4.tcp_rmem", (6, 18)), Some("4096 131072 33554432"));
    assert_eq!(on("net.core.somaxconn", (5, 3)), Some("128"));
    assert_eq!(on("net.ipv4.tcp_rto_min_us", (6, 1)), None);
    assert_eq!(sysctl("net.ipv4.tcp_rmem").expect("known").default_on(None), Some("4096 131072 33554432"));
    assert!(sysctl("net.ipv4.tcp_mem").expect("known").default_on(None).is_none());
}

#[test]
fn names_are_known_for_what_they_are() {
    let what = |name: &str| match known(name) {
        Known::Setting(entry) => format!("setting {}", entry.name),
        Known::Vendor(vendor) => format!("vendor {}", vendor.of.split('\'').next().unwrap_or_default()),
        Known::Removed(removed) => format!("removed {}", removed.until),
        Known::Outside(outside) => format!("outside {}", outside.of),
        Known::Mistyped(entry) => format!("mistyped {}", entry.name),
        Known::Unknown => "unknown".to_owned(),
    };
    for (name, expected) in [
        ("net.ipv4.tcp_rmem", "setting net.ipv4.tcp_rmem"),
        ("/proc/sys/net/ipv4/tcp_rmem", "setting net.ipv4.tcp_rmem"),
        ("net.ipv4.tcp_init_cwnd", "vendor Tencent"),
        ("net.ipv4.tcp_collapse_max_bytes", "vendor Cloudflare"),
        ("net.ipv4.tcp_tw_recycle", "removed 4.12"),
        ("net.ipv4.tcp_low_latency", "setting net.ipv4.tcp_low_latency"),
        ("net.ipv4.kcp_autocorking", "mistyped net.ipv4.tcp_autocorking"),
        ("net.ipv4.tcp_rmen", "mistyped net.ipv4.tcp_rmem"),
        ("net.ipv4.udp_rmem_min", "outside UDP"),
        ("net.ipv4.conf.all.rp_filter", "outside devices' addresses and forwarding"),
        ("vm.swappiness", "unknown"),
        ("net.ipv4.tcp_magic_speed", "unknown"),
        ("", "unknown"),
    ] {
        assert_eq!(what(name), expected, "{name}");
    }
    let names =
        |name: &str| find(name).iter().map(|entry| format!("{}:{}", entry.kind, entry.name)).collect::<Vec<_>>();
    assert_eq!(names("tcp_rmem"), ["sysctl:net.ipv4.tcp_rmem"]);
    assert_eq!(names("mtu"), ["route:mtu", "nic:mtu"]);
    assert_eq!(names("nic:mtu"), ["nic:mtu"]);
    assert_eq!(names("so_rcvbuf"), ["socket:SO_RCVBUF"]);
    assert_eq!(names("rcvbuf"), ["socket:SO_RCVBUF"]);
    assert!(names("nothing").is_empty());
}

#[test]
fn values_are_refused_with_a_reason() {
    let refuses = |name: &str, value: &str| sysctl(name).expect("known").refuses(value, Some((6, 12)));
    let is = |name, value, part: &str| {
        let said = refuses(name, value).unwrap_or_else(|| panic!("{name} = {value} is refused"));
        assert!(said.contains(part), "{said}");
    };
    assert_eq!(refuses("net.ipv4.tcp_rmem", "4096 131072 33554432"), None);
    is("net.ipv4.tcp_rmem", "4096 131072", "takes 3 numbers");
    is("net.ipv4.tcp_rmem", "4096 131072 4294967296", "from 1 to 2147483647, not 4294967296");
    is("net.ipv4.tcp_ecn", "9", "from 0 to 5, not 9");
    is("net.ipv4.tcp_fastopen", "8", "has others");
    is("net.ipv4.tcp_available_congestion_control", "bbr", "read-only");
    is("net.ipv4.tcp_rto_max_ms", "5000", "Linux 6.15 is the first");
    is("net.ipv4.tcp_congestion_control", "", "takes one word");
    assert_eq!(refuses("net.ipv4.tcp_fastopen", "0x403"), None);
}
