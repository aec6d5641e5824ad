//! Printed route commands pasted into a shell: in a network namespace of the test's own, with `ip` of this machine.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::fmt::Write as _;
use std::process::Command;
use thalweg_model::{Change, Setting, Side};

/// A namespace with two addresses and /run of its own, and a default route with attributes that have to stay.
const BEGIN: &str = "set -e
mount -t tmpfs none /run
ip link add v0 type veth peer name v1
ip link set v0 up
ip link set v1 up
ip addr add 10.9.0.1/24 dev v0
ip addr add 10.9.0.7/24 dev v0
ip -6 addr add fd09::1/64 dev v0 nodad
ip route add default via 10.9.0.254 src 10.9.0.7 mtu 1400 initrwnd 30
ip -6 route add default via fd09::5 expires 900 hoplimit 60
";

fn change(name: &str, to: &str, from: Option<&str>) -> Change {
    Change {
        side: Side::Server,
        setting: Setting::Route(name.to_owned()),
        from: from.map(str::to_owned),
        to: to.to_owned(),
    }
}

/// Runs `script` after [`BEGIN`] and gives what it prints; `None`, and a word on stderr, where a namespace cannot be made here.
fn in_namespace(script: &str) -> Option<String> {
    let run = |script: &str| Command::new("unshare").args(["-rnm", "sh", "-c", script]).output();
    if !run(BEGIN).is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: unshare(1), ip(8) and a network namespace with a veth pair are needed");
        return None;
    }
    let output = run(&format!("{BEGIN}{script}")).expect("unshare starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{script}\n{out}\n{err}");
    Some(out.into_owned())
}

/// The route that leads to `peer` at first, after the commands that apply `changes`, twice, and after those that undo them.
fn routes(before: &str, peer: &str, changes: &[Change]) -> Option<[String; 3]> {
    let end = format!("[{peer}]:4000");
    let show = format!(
        "ip -o {} route get fibmatch {peer} | sed 's/\\\\//g; s/ expires [^ ]*//; s/ linkdown//'\n",
        if peer.contains(':') { "-6" } else { "-4" }
    );
    let mut script = format!("{before}\n{show}");
    for commands in [
        [thalweg_tune::between(changes, &end, "[10.9.0.1]:80"), thalweg_tune::between(changes, &end, "[10.9.0.1]:80")]
            .concat(),
        thalweg_tune::undo_between(changes, &end, "[10.9.0.1]:80"),
    ] {
        let _ = write!(script, "{}\n{show}", commands.join("\n"));
    }
    let out = in_namespace(&script)?;
    let lines: Vec<String> = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    Some(lines.try_into().expect("three routes"))
}

#[test]
fn a_route_keeps_what_the_default_route_has_and_is_gone_after_undo() {
    let changes = [change("initcwnd", "42", None), change("quickack", "1", None), change("rto_min", "5ms", None)];
    let Some([before, applied, undone]) = routes("", "192.0.2.5", &changes) else { return };
    assert_eq!(before, "default via 10.9.0.254 dev v0 src 10.9.0.7 mtu 1400 initrwnd 30");
    assert_eq!(
        applied,
        "192.0.2.5 via 10.9.0.254 dev v0 src 10.9.0.7 mtu 1400 initcwnd 42 rto_min lock 5ms initrwnd 30 quickack 1"
    );
    assert_eq!(undone, before);
}

#[test]
fn a_route_of_the_peers_own_keeps_its_attributes_and_comes_back() {
    let own = "ip route add 192.0.2.5 via 10.9.0.254 src 10.9.0.7 metric 50 initcwnd 4 cwnd lock 60 rto_min 20ms";
    let changes = [change("initcwnd", "42", Some("4")), change("cwnd", "auto", None), change("quickack", "1", None)];
    let Some([before, applied, undone]) = routes(own, "192.0.2.5", &changes) else { return };
    assert_eq!(
        before,
        "192.0.2.5 via 10.9.0.254 dev v0 src 10.9.0.7 metric 50 cwnd lock 60 initcwnd 4 rto_min lock 20ms"
    );
    assert_eq!(
        applied,
        "192.0.2.5 via 10.9.0.254 dev v0 src 10.9.0.7 metric 50 initcwnd 42 rto_min lock 20ms quickack 1"
    );
    assert_eq!(undone, before);
}

#[test]
fn several_next_hops_stay() {
    let own = "ip route add 198.51.100.0/24 initcwnd 12 nexthop via 10.9.0.2 weight 2 nexthop via 10.9.0.3";
    let Some([before, applied, undone]) = routes(own, "198.51.100.7", &[change("initcwnd", "42", None)]) else {
        return;
    };
    let hops = "nexthop via 10.9.0.2 dev v0 weight 2 nexthop via 10.9.0.3 dev v0 weight 1";
    assert_eq!(before, format!("198.51.100.0/24 initcwnd 12 {hops}"));
    assert_eq!(applied, format!("198.51.100.7 initcwnd 42 {hops}"));
    assert_eq!(undone, before);
}

#[test]
fn ipv6_routes_by_advertisement_do_not_expire_with_it() {
    let Some([before, applied, undone]) = routes("", "2001:db8::1", &[change("initcwnd", "42", None)]) else { return };
    assert_eq!(before, "default via fd09::5 dev v0 metric 1024 hoplimit 60 pref medium");
    assert_eq!(applied, "2001:db8::1 via fd09::5 dev v0 metric 1024 hoplimit 60 initcwnd 42 pref medium");
    assert_eq!(undone, before);
}
