//! The catalogue of settings against kernels: what is in /proc/sys/net is known, and what is known is there, at its default.
//!
//! Needs the lab kernels 6.12 and 6.1 for their part; what is missing is said aloud, and fails in continuous integration.

mod common;

use common::{json, thalweg, two_at_a_time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Everything below /proc/sys/net by its dotted name; what cannot be read, such as a trigger, has an empty value.
fn kernel_has(text: &str) -> BTreeMap<String, String> {
    let line = |line: &str| {
        let (path, value) = line.strip_prefix("SYSCTL ")?.split_once('|')?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((path.trim_start_matches("/proc/sys/").replace('/', "."), value))
    };
    text.lines().filter_map(line).collect()
}

const PRINT: &str = "find /proc/sys/net -type f | while read -r f; do printf 'SYSCTL %s|%s\\n' \"$f\" \"$(tr '\\n\\000' '  ' < \"$f\" 2>/dev/null)\"; done";

fn release(text: &str) -> (u32, u32) {
    let mut parts = text.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    (parts.next().expect("a release"), parts.next().expect("a release"))
}

/// The entries of `thalweg tune list` for a release.
fn listed(folder: &Path, kernel: &str) -> Vec<Value> {
    let document = json(folder, &["tune", "list", "--kind", "sysctl", "--kernel", kernel]);
    document["settings"].as_array().expect("settings").clone()
}

fn default_on(entry: &Value, kernel: (u32, u32)) -> Option<String> {
    let defaults = entry["defaults"].as_object().expect("defaults");
    let from = |first: &str| if first == "first" { (0, 0) } else { release(first) };
    let mut known: Vec<_> = defaults.iter().map(|(first, value)| (from(first), value)).collect();
    known.sort_by_key(|(first, _)| *first);
    let value = known.into_iter().rfind(|(first, _)| *first <= kernel)?.1;
    value.as_str().map(str::to_owned)
}

/// Nothing unknown, nothing missing; with `fresh` every value that is the same on all hosts is at its default.
fn hold(folder: &Path, kernel: &str, has: &BTreeMap<String, String>, whole_host: bool, fresh: bool) {
    assert!(has.len() > 50, "Linux {kernel}: /proc/sys/net was not read: {has:?}");
    let entries = listed(folder, kernel);
    let names: Vec<&str> = entries.iter().map(|entry| entry["name"].as_str().expect("a name")).collect();
    let mut wrong = Vec::new();
    for name in has.keys().filter(|name| !names.contains(&name.as_str())) {
        // Not an entry: `explain` knows whose it is, and does not take it for mistyped.
        let output = thalweg(folder, &["explain", name]).output().expect("starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let of_another = text.contains("not TCP's") || text.contains("without effect");
        if !output.status.success() || !of_another {
            wrong.push(format!("it has {name}, which the catalogue does not know: {text}"));
        }
    }
    for entry in &entries {
        let name = entry["name"].as_str().expect("a name");
        let global = entry["scope"] != "namespace" || !entry["host_before"].is_null();
        let Some(value) = has.get(name) else {
            let may_lack = !entry["optional"].is_null() || (global && !whole_host);
            if !may_lack {
                wrong.push(format!("it does not have {name}, which the catalogue says it has"));
            }
            continue;
        };
        if let Some(default) = default_on(entry, release(kernel)).filter(|_| fresh && entry["varies"].is_null()) {
            let same =
                if entry["shape"] == "mask" { value.trim_matches(['0', ',']).is_empty() } else { *value == default };
            if !same {
                wrong.push(format!("{name} is '{value}', and the catalogue's default is '{default}'"));
            }
        }
    }
    assert!(wrong.is_empty(), "Linux {kernel}: {}", wrong.join("\n"));
}

#[test]
fn this_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let (major, minor) = release(&kernel);
    let output = Command::new("sh").args(["-c", PRINT]).output().expect("sh");
    let has = kernel_has(&String::from_utf8_lossy(&output.stdout));
    // Somebody may have set what they liked here, so values are held in fresh namespaces of lab kernels alone.
    hold(folder.path(), &format!("{major}.{minor}"), &has, has.contains_key("net.core.netdev_budget"), false);
}

#[test]
fn lab_kernels() {
    two_at_a_time(vec!["6.12", "6.1"], |kernel| {
        let folder = tempfile::tempdir().expect("a folder");
        let text = format!(
            "name = \"sysctls\"\n[path]\nrtt = \"1ms\"\n[workload]\nkind = \"command\"\nclient = [\"sh\", \"-c\", {PRINT:?}]\n"
        );
        std::fs::write(folder.path().join("s.toml"), text).expect("written");
        let run =
            ["lab", "run", "s.toml", "--kernel", kernel, "--capture", "off", "--samples", "off", "--out", "out", "-q"];
        let output = thalweg(folder.path(), &run).output().expect("starts");
        if output.status.code() == Some(3) {
            let said = format!("SKIPPED: the catalogue on Linux {kernel}: thalweg lab kernel build {kernel}\n");
            assert!(std::env::var_os("CI").is_none(), "{said}");
            std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes()).expect("stderr");
            return;
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let log = std::fs::read_to_string(folder.path().join("out/0-as-given.client.log")).expect("the log");
        hold(folder.path(), kernel, &kernel_has(&log), false, true);
    });
}

/// Writes the ends of each range, and what is beyond them, in a namespace of its own.
#[test]
fn ranges_are_what_the_kernel_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    if release(&kernel) < (6, 18) {
        std::io::Write::write_all(
            &mut std::io::stderr(),
            b"SKIPPED: ranges of sysctls: they are those of Linux 6.18\n",
        )
        .expect("stderr");
        return;
    }
    // AccECN's values, which releases after 6.18 take, and what another sysctl bounds or the kernel's ticks do.
    let others = ["tcp_ecn", "tcp_ecn_option", "ip_unprivileged_port_start", "tcp_probe_interval"];
    let mut lines = String::new();
    for entry in listed(folder.path(), "6.18") {
        let name = entry["name"].as_str().expect("a name");
        let single = ["flag", "integer", "bits"].contains(&entry["shape"].as_str().expect("a shape"));
        let range = entry["range"]
            .as_array()
            .map(|ends| ends.iter().map(|end| end.as_i64().expect("a number")).collect::<Vec<_>>());
        let Some([least, most]) = range.as_deref().filter(|_| single && entry["scope"] == "namespace") else {
            continue;
        };
        if others.iter().any(|other| name.ends_with(other)) {
            continue;
        }
        for (number, wanted) in
            [(i128::from(*least), 0), (i128::from(*most), 0), (i128::from(*least) - 1, 1), (i128::from(*most) + 1, 1)]
        {
            // The kernel's number is unsigned there, and the catalogue's ends before it.
            if number > i128::from(i64::MAX) {
                continue;
            }
            lines += &format!("try {} {number} {wanted}\n", name.replace('.', "/"));
        }
    }
    let script = format!(
        "try() {{ f=/proc/sys/$1; test -w $f || return 0; was=$(cat $f); echo $was 2>/dev/null > $f || return 0; got=0; echo $2 2>/dev/null > $f || got=1; echo $was > $f; test $got = $3 || echo WRONG $*; }}\n{lines}"
    );
    let root = rustix::process::getuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if root { &["--net"][..] } else { &["--net", "--map-root-user"][..] });
    let output = command.args(["bash", "-c", &script]).output().expect("unshare (util-linux)");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(lines.lines().count() > 200 && !text.contains("WRONG"), "{text}");
}
