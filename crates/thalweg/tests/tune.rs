//! `thalweg tune` as it is typed: what it refuses, and applications in network namespaces of their own, made by unshare(1).
//!
//! The host's own settings are never written.

mod common;
#[path = "common/schemas.rs"]
mod schemas;

use common::{run, texts, thalweg};
use schemas::Schemas;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const LIST: &str = "net.ipv4.tcp_rmem = 4096 131072 6291456\nnet.ipv4.tcp_tw_recycle = 1\n";

#[test]
fn a_pasted_list_is_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("list"), LIST).expect("written");
    let (out, _) = run(folder.path(), &["tune", "show", "--from", "list", "--kernel", "6.12"], 1);
    assert!(
        out.contains("list, Linux 6.12: 1 trap") && out.contains("removed-setting") && out.contains("line 2"),
        "{out}"
    );
    let (out, _) = run(folder.path(), &["tune", "show", "--from", "list", "--json"], 1);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(report["findings"][0]["code"], "removed-setting");
    fs::write(folder.path().join("good"), "net.ipv4.tcp_sack = 1\n").expect("written");
    run(folder.path(), &["tune", "show", "--from", "good"], 0);
    // Through a pipe, too.
    let mut command = thalweg(folder.path(), &["tune", "show", "--from", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    child.stdin.take().expect("a pipe").write_all(LIST.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).0.starts_with("stdin"), "{:?}", texts(&output));
}

#[test]
fn this_host_is_judged() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = thalweg(folder.path(), &["tune", "show", "--json"]).output().expect("starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}", texts(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(report["read"]["sysctls"].as_u64().expect("a number") > 50, "{report}");
    for finding in report["findings"].as_array().expect("findings") {
        let own =
            ["unknown-setting", "vendor-name", "mistyped-setting", "not-in-this-kernel", "out-of-range", "set-twice"];
        assert!(!own.contains(&finding["code"].as_str().expect("a code")), "a kernel's own list: {finding}");
    }
}

#[test]
fn bad_input_is_one_sentence_and_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("empty"), "nothing here\n").expect("written");
    fs::write(folder.path().join("lab.json"), "{\"schema\": \"thalweg.lab/1\"}").expect("written");
    let plan = |name: &str, to: &str| {
        let change = serde_json::json!({"reach": "namespace", "setting": {"sysctl": name}, "from": null, "to": to, "why": "", "risk": ""});
        let plan = serde_json::json!({"schema": "thalweg.tune-plan/1", "purpose": "x", "kernel": null, "arithmetic": [], "changes": [change], "enough": [], "warnings": []});
        fs::write(folder.path().join("plan.json"), plan.to_string()).expect("written");
    };
    let refused = |args: &[&str], part: &str| {
        let (_, err) = run(folder.path(), args, 2);
        assert!(err.contains(part) && err.contains("hint"), "{args:?}: {err}");
    };
    refused(&["tune", "show", "--from", "empty"], "holds no sysctl, no route and no connection");
    refused(&["tune", "plan", "--purpose", "bulk", "--rtt", "0ms", "--rate", "1gbit"], "hold no byte");
    refused(&["tune", "plan", "--diagnosis", "lab.json"], "its schema is 'thalweg.lab/1'");
    refused(&["explain", "tcp_rmen"], "tcp_rmem");
    refused(&["tune", "list", "nonesuch"], "no setting is like that");
    for (name, to, part) in [
        ("net.ipv4.tcp_rmen", "1 2 3", "net.ipv4.tcp_rmem is near"),
        ("net.ipv4.tcp_rmem", "lots", "takes 3 numbers"),
        ("net.ipv4.tcp_ecn", "99", "from 0 to 5"),
        ("kernel.core_pattern", "|/bin/sh", "no sysctl of TCP"),
        ("net.ipv4.tcp_available_ulp", "tls", "read-only"),
    ] {
        plan(name, to);
        refused(&["tune", "apply", "plan.json", "--state", "state"], part);
    }
    refused(&["tune", "apply", "lab.json", "--state", "state"], "is no plan");
    refused(&["tune", "rollback", "--state", "state"], "no application waits");
    refused(&["tune", "confirm", "1", "--state", "state"], "there is no application");
    refused(&["tune", "persist", "1", "--state", "state"], "there is no application");
    run(folder.path(), &["tune", "rollback", "--unless-confirmed", "--state", "state"], 0);
    run(folder.path(), &["tune", "log", "--state", "state"], 0);
    for args in [
        &["tune", "show", "--from", "absent"][..],
        &["tune", "plan"],
        &["tune", "plan", "--purpose", "fast"],
        &["tune", "plan", "--purpose", "bulk", "--rtt", "1ms", "--rate", "1gbit", "--to", "10.0.0.0/99"],
    ] {
        run(folder.path(), args, 2);
    }
}

/// Runs a shell's lines as root of a fresh network namespace; `$thalweg` is the program.
fn namespace(folder: &Path, lines: &str) -> Output {
    let mut command = Command::new("unshare");
    command.args(if rustix::process::getuid().is_root() { &["--net"][..] } else { &["--net", "--map-root-user"][..] });
    command.args(["sh", "-euc", &format!("ip link set lo up\nip link add v0 type veth peer name v1\nip address add 10.0.0.1/24 dev v0\nip link set v0 up\nip link set v1 up\nip route add default via 10.0.0.254 dev v0\nsysctl -qw net.ipv4.tcp_slow_start_after_idle=1 net.ipv4.tcp_congestion_control=reno\n{lines}")]);
    command
        .env("thalweg", env!("CARGO_BIN_EXE_thalweg"))
        .env("THALWEG_TUNE_STATE", folder.join("state"))
        .current_dir(folder);
    command.output().expect("unshare (util-linux)")
}

/// Whether this host has BBR, which the plan puts on the route.
fn has_bbr() -> bool {
    let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    let has = available.split_whitespace().any(|name| name == "bbr");
    assert!(has || std::env::var_os("CI").is_none(), "BBR is not loaded: modprobe tcp_bbr");
    if !has {
        let said = "SKIPPED: an application in a namespace: BBR is not loaded: modprobe tcp_bbr\n";
        std::io::stderr().write_all(said.as_bytes()).expect("stderr");
    }
    has
}

const PLAN: &str = "$thalweg tune plan --purpose live-edge --rtt 100ms --rate 8mbit --json > plan.json\n";
const APPLY: &str = "$thalweg tune apply plan.json --skip-sockets --confirm-within 2s --timer process\n";
const APPLY_JSON: &str =
    "$thalweg tune apply plan.json --skip-sockets --confirm-within 2s --timer process --json > apply.json\n";
const SHOW: &str = "echo \"NOW $(cat /proc/sys/net/ipv4/tcp_slow_start_after_idle) $(ip route show default)\"\n";

#[test]
fn what_nobody_confirms_is_undone_by_another_process() {
    if !has_bbr() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = namespace(folder.path(), &format!("{PLAN}{SHOW}{APPLY}{SHOW}sleep 4\n{SHOW}$thalweg tune log\n"));
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    let now: Vec<&str> = out.lines().filter(|line| line.starts_with("NOW")).collect();
    assert_eq!(now.len(), 3, "{out}");
    assert!(now[1].starts_with("NOW 0") && now[1].contains("initcwnd 40") && now[1].contains("congctl bbr"), "{out}");
    assert_eq!(now[0], now[2], "{out}{err}");
    assert!(out.contains("rolled back"), "{out}");
}

/// What `thalweg tune apply --help` shows runs as it stands.
#[test]
fn the_examples_of_apply_run() {
    if !has_bbr() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (help, _) = run(folder.path(), &["tune", "apply", "--help"], 0);
    let examples: Vec<String> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  thalweg "))
        .map(|rest| format!("$thalweg {}", rest.replace("--confirm-within", "--timer process --confirm-within")))
        .collect();
    assert_eq!(examples.len(), 3, "{help}");
    let output = namespace(folder.path(), &format!("{}\n{SHOW}", examples.join("\n")));
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.contains("initcwnd 40"), "{out}{err}");
    assert!(out.contains("initcwnd not set → 40"), "{out}");
}

#[test]
fn what_is_confirmed_stays_and_is_persisted() {
    if !has_bbr() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let lines = format!(
        "{PLAN}{APPLY_JSON}$thalweg tune confirm --json > confirm.json\nsleep 4\n{SHOW}id=$($thalweg tune log | head -n 1 | cut -d ' ' -f 1)\n$thalweg tune persist $id --file kept.conf || echo \"EXIT $?\"\necho \"KEPT $(grep idle kept.conf)\"\n$thalweg tune log --json > log.json\n$thalweg tune rollback $id --json > rollback.json\n{SHOW}"
    );
    let output = namespace(folder.path(), &lines);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}{err}");
    let now: Vec<&str> = out.lines().filter(|line| line.starts_with("NOW")).collect();
    assert!(now[0].contains("initcwnd 40") && now[0].starts_with("NOW 0"), "{out}");
    assert!(!now[1].contains("initcwnd") && now[1].starts_with("NOW 1"), "{out}");
    // The routes are not in the file, which is said.
    assert!(out.contains("EXIT 1") && err.contains("sysctl.d has no routes"), "{out}{err}");
    let mut schemas = Schemas::default();
    for name in ["apply.json", "confirm.json", "log.json", "rollback.json"] {
        let text = fs::read_to_string(folder.path().join(name)).expect("written");
        schemas.check(&serde_json::from_str(&text).expect("JSON"));
    }
    // The undo takes out of the file what it got, and nothing else was in it.
    assert!(out.contains("KEPT net.ipv4.tcp_slow_start_after_idle = 0"), "{out}");
    assert!(!folder.path().join("kept.conf").exists());
}

#[test]
fn a_host_that_does_not_allow_it_is_left_as_it_was() {
    if !has_bbr() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // A /proc/sys that cannot be written, as in most containers.
    let lines = format!(
        "{PLAN}mount --bind /proc/sys /proc/sys 2>/dev/null && mount -o remount,ro,bind /proc/sys\n$thalweg tune apply plan.json --skip-sockets || echo \"EXIT $?\"\n{SHOW}"
    );
    let mut command = Command::new("unshare");
    command.args(if rustix::process::getuid().is_root() {
        &["--net", "--mount"][..]
    } else {
        &["--net", "--mount", "--map-root-user"][..]
    });
    command.args(["sh", "-euc", &format!("ip link set lo up\nip link add v0 type veth peer name v1\nip address add 10.0.0.1/24 dev v0\nip link set v0 up\nip link set v1 up\nip route add default via 10.0.0.254 dev v0\nsysctl -qw net.ipv4.tcp_slow_start_after_idle=1 net.ipv4.tcp_congestion_control=reno\n{lines}")]);
    command
        .env("thalweg", env!("CARGO_BIN_EXE_thalweg"))
        .env("THALWEG_TUNE_STATE", folder.path().join("state"))
        .current_dir(folder.path());
    let output = command.output().expect("unshare (util-linux)");
    let (out, err) = texts(&output);
    assert!(output.status.success() && out.contains("EXIT 3"), "{out}{err}");
    assert!(err.contains("everything is as it was") && err.contains("hint:"), "{out}{err}");
    assert!(out.contains("NOW 1 default via 10.0.0.254 dev v0") && !out.contains("initcwnd 40"), "{out}");
}
