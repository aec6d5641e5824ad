//! How the program behaves: what it leaves behind, what it needs, and what it says when the input is wrong.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod common;

use common::{files, processes_in, run, texts, thalweg};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LONG: &str =
    "name = \"long\"\n[path]\nrtt = \"10ms\"\nrate = \"1gbit\"\n[workload]\nkind = \"stream\"\nseconds = \"3600s\"\n";

/// Waits until `condition` holds; panics after a while.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(20), "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn nothing_is_left(folder: &Path) {
    wait_until("no process is left", || processes_in(folder).is_empty());
    assert_eq!(files(&folder.join("tmp")), Vec::<std::path::PathBuf>::new());
}

#[test]
fn success_and_failure_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &["lab", "run", "first-frame", "--arm", "cubic 10", "--out", "out"], 0);
    nothing_is_left(folder.path());
    assert_eq!(
        files(&folder.path().join("out")).iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        ["0-cubic-10.csv", "0-cubic-10.pcapng", "report.html", "report.json"]
    );

    // The guest refuses a congestion control its kernel does not have.
    let args =
        ["lab", "run", "first-frame", "--arm", "cubic 10", "--set", "server.socket.congestion=hybla", "--out", "bad"];
    let (_, err) = run(folder.path(), &args, 3);
    assert!(err.contains("TCP_CONGESTION") && err.contains("hybla"), "{err}");
    nothing_is_left(folder.path());
    assert!(!folder.path().join("bad").exists(), "an empty folder was left");
}

#[test]
fn ctrl_c_and_kill_leave_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("long.toml"), LONG).expect("written");
    for (signal, leaves_folder) in [(libc::SIGINT, false), (libc::SIGTERM, false), (libc::SIGKILL, true)] {
        let mut command = thalweg(folder.path(), &["lab", "run", "long.toml", "--out", "out"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");
        wait_until("the guest runs", || processes_in(&folder.path().join("tmp")).len() >= 2);
        Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status().expect("kill");
        let status = child.wait().expect("ended");
        assert!(!status.success());
        wait_until("no process is left", || processes_in(&folder.path().join("tmp")).is_empty());
        if leaves_folder {
            // Nobody could remove it: the next run does.
            run(folder.path(), &["lab", "run", "first-frame", "--arm", "cubic 10", "--out", "next"], 0);
        } else {
            assert_eq!(status.code(), Some(130));
        }
        nothing_is_left(folder.path());
    }
}

/// Stopped after its first run, and resumed: the report is that of one that was never stopped, but for the wall's clock.
#[test]
fn a_stopped_run_is_resumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = [
        "lab",
        "run",
        "first-frame",
        "--arm",
        "cubic 10",
        "--repeat",
        "12",
        "--jobs",
        "1",
        "--capture",
        "off",
        "--json",
    ];
    let report = |out: &str, more: &[&str], code| {
        let (text, err) = run(folder.path(), &[&words[..], &["--out", out], more].concat(), code);
        let mut report: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        report.as_object_mut().map(|fields| fields.remove("wall_s"));
        (report, err)
    };
    let (whole, _) = report("whole", &[], 0);
    let mut child = thalweg(folder.path(), &[&words[..], &["--out", "part"]].concat());
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("started");
    let journal = folder.path().join("part/runs.jsonl");
    wait_until("a run is over", || fs::read_to_string(&journal).is_ok_and(|text| text.contains('\n')));
    Command::new("kill").arg("-INT").arg(child.id().to_string()).status().expect("kill");
    let mut err = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().expect("a pipe"), &mut err).expect("text");
    assert_eq!(child.wait().expect("ended").code(), Some(130), "{err}");
    assert!(err.contains("--resume --out part"), "{err}");
    let known = fs::read_to_string(&journal).expect("a journal").lines().count();
    assert!((1..12).contains(&known), "{known} runs");
    let (resumed, err) = report("part", &["--resume"], 0);
    assert!(err.contains(&format!("{known} of the runs are known")), "{err}");
    assert_eq!(resumed, whole);
    assert!(!journal.exists());
    nothing_is_left(folder.path());
}

#[test]
fn the_lab_needs_no_privilege() {
    let folder = tempfile::tempdir_in("/tmp").expect("a folder");
    let open = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path, mode).expect("mode");
    };
    // Copies, since a build folder and a cache may be closed to others.
    let (kernels, _) = run(folder.path(), &["lab", "kernel", "list", "--json"], 0);
    let kernels: serde_json::Value = serde_json::from_str(&kernels).expect("JSON");
    let kernels = kernels["kernels"].as_array().expect("a list");
    let current = kernels.iter().find(|kernel| kernel["current"] == true).expect("a lab kernel; ./x test builds one");
    let path = current["path"].as_str().expect("its path");
    fs::copy(path, folder.path().join("linux")).expect("copied");
    fs::copy(env!("CARGO_BIN_EXE_thalweg"), folder.path().join("thalweg")).expect("copied");
    for name in ["", "linux", "thalweg", "tmp"] {
        open(&folder.path().join(name));
    }
    let mut command = Command::new(folder.path().join("thalweg"));
    command.args(["lab", "run", "first-frame", "--arm", "cubic 10", "--kernel", "./linux", "--out", "out"]);
    command.current_dir(folder.path()).env_clear().env("TMPDIR", folder.path().join("tmp"));
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().expect("started");
    assert!(output.status.success(), "{:?}", texts(&output));
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn wrong_input_gets_one_sentence_a_hint_and_the_right_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write("key.toml", &LONG.replace("rtt", "rrt"));
    write("not.pcap", "This is a letter, and no capture at all.\n");
    write("empty.pcap", "");
    fs::write(folder.path().join("real.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 0xff, 0xfe]).expect("written");
    fs::create_dir(folder.path().join("none")).expect("made");
    let before = files(folder.path());
    for (args, code, says, hint) in [
        (vec!["lab", "run", "key.toml"], 2, "key.toml:3: unknown key 'path.rrt'", "did you mean 'rtt'?"),
        (vec!["lab", "run", "first-frame", "--set", "path.rtt=-5ms"], 2, "'-5ms' is not a time", ""),
        (
            vec!["lab", "run", "first-frame", "--set", "path.loss=200%"],
            2,
            "'200%' is not a part between 0% and 100%",
            "",
        ),
        (
            vec!["lab", "run", "first-frme"],
            2,
            "no built-in scenario is named 'first-frme'",
            "did you mean 'first-frame'?",
        ),
        (vec!["lab", "run", "none.toml"], 2, "cannot read the scenario file 'none.toml'", ""),
        (vec!["lab", "run", "first-frame", "--arm", "reno"], 2, "has no arm named 'reno'", "its arms are"),
        (vec!["lab", "run", "first-frame", "--kernel", "7.9"], 2, "7.9", "hint"),
        (vec!["lab", "run", "first-frame", "--kernel", "./not.pcap"], 2, "not.pcap", ""),
        (vec!["lab", "run", "first-frame", "--samples", "often"], 2, "'often' is not a time", ""),
        (vec!["diagnose", "none.pcap"], 2, "none.pcap", "is the name right?"),
        (vec!["diagnose", "--interface", "lo", "real.pcap"], 2, "'--interface <NAME>' cannot be used with", "--help"),
        (vec!["diagnose", "--for", "1s", "real.pcap"], 2, "'--for <TIME>' cannot be used with", "--help"),
        (vec!["diagnose", "--sockets", "real.pcap"], 2, "'--sockets' cannot be used with", "--help"),
        (vec!["diagnose", "not.pcap"], 2, "not.pcap", "hint"),
        (vec!["diagnose", "empty.pcap"], 2, "empty.pcap", "hint"),
        (vec!["diagnose", "."], 2, "./not.pcap is not a pcap or pcapng capture", "hint"),
        (vec!["diagnose", "none"], 2, "no capture", "hint"),
        (
            vec!["explain", "receive-windw"],
            2,
            "no verdict and no setting has the name",
            "did you mean 'receive-window'?",
        ),
        (vec!["fix", "real.pcap"], 2, "real.pcap is not a pcap or pcapng capture", "fix takes a capture"),
        (vec!["lab", "run", "real.pcap"], 2, "'real.pcap' is no scenario file", "thalweg diagnose real.pcap"),
        (vec!["diagnose", "real.pcap"], 2, "real.pcap", "hint"),
        (vec!["lab", "run"], 2, "required", "--help"),
        (vec!["fix", "none.pcap"], 2, "there is no file 'none.pcap'", "thalweg lab list"),
        (vec!["fix", "nothing"], 2, "no built-in scenario is named 'nothing'", "built in are"),
    ] {
        let (out, err) = run(folder.path(), &args, code);
        assert!(err.contains(says) && err.contains(hint), "{args:?}\n{err}");
        assert_eq!(out, "", "{args:?}");
        assert!(!err.contains("panicked"), "{args:?}\n{err}");
    }
    assert_eq!(files(folder.path()), before, "something was left");
    assert!(!folder.path().join("thalweg-runs").exists(), "a folder for results was left, without any");
}

/// A capture without a packet.
const EMPTY: [u8; 24] = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];

#[test]
fn what_is_read_is_never_written_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
    write("self.pcap", &EMPTY);
    write("other.pcap", &EMPTY);
    write("report.json", b"{}");
    std::os::unix::fs::symlink("self.pcap", folder.path().join("link.pcap")).expect("linked");
    let before = files(folder.path());
    for (args, says) in [
        (&["diagnose", "-q", "self.pcap", "--html", "self.pcap"][..], "--html would write over 'self.pcap'"),
        (&["diagnose", "-q", "link.pcap", "--html", "./self.pcap"], "--html would write over 'link.pcap'"),
        (&["diagnose", "other.pcap", "self.pcap", "--html", "link.pcap"], "--html would write over 'self.pcap'"),
        (&["diagnose", "self.pcap", "--html", "x", "--pcapng", "./x"], "--html and --pcapng would both write './x'"),
        (&["diagnose", "self.pcap", "--html", "t/flows.parquet", "--parquet", "t"], "--parquet would both write"),
        (&["lab", "compare", "report.json", "report.json", "--html", "report.json"], "would write over 'report.json'"),
        (&["lab", "run", "report.json", "--junit", "report.json"], "--junit would write over 'report.json'"),
    ] {
        let (out, err) = run(folder.path(), args, 2);
        assert!(err.contains(says) && out.is_empty(), "{args:?}\n{err}");
    }
    let file = fs::File::open(folder.path().join("self.pcap")).expect("opened");
    let stdin =
        thalweg(folder.path(), &["diagnose", "-", "--html", "self.pcap"]).stdin(file).output().expect("started");
    assert_eq!(stdin.status.code(), Some(2), "{:?}", texts(&stdin));
    assert_eq!(files(folder.path()), before);
    assert_eq!(fs::read(folder.path().join("self.pcap")).expect("there"), EMPTY);

    // What is not read is replaced, but tables, which are hours of work, are not.
    write("page.html", b"old");
    run(folder.path(), &["diagnose", "self.pcap", "--html", "page.html", "--parquet", "tables"], 0);
    assert!(fs::read(folder.path().join("page.html")).expect("there").starts_with(b"<!doctype html>"));
    let (out, err) = run(folder.path(), &["diagnose", "-q", "self.pcap", "--html", "page.html"], 0);
    assert_eq!((out.as_str(), err.as_str()), ("", ""), "files were asked for, and nothing else");
    let (out, _) = run(folder.path(), &["diagnose", "-q", "self.pcap"], 0);
    assert!(out.contains("0 packets"), "{out}");
    let tables = files(&folder.path().join("tables"));
    let (_, err) = run(folder.path(), &["diagnose", "other.pcap", "--parquet", "tables"], 2);
    assert!(err.contains("there is a table already: tables/captures.parquet"), "{err}");
    assert_eq!(files(&folder.path().join("tables")), tables);
}

#[test]
fn what_cannot_be_printed_is_said_where_it_can_be_and_never_a_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("bad")).expect("made");
    for n in 0..50 {
        fs::write(folder.path().join(format!("bad/{n}.pcap")), "no capture").expect("written");
    }
    fs::write(folder.path().join("ok.pcap"), EMPTY).expect("written");
    let full = || fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let gone = || std::io::pipe().expect("a pipe").1;
    for args in [["diagnose", "nosuch"], ["diagnose", "bad"]] {
        for stderr in [Stdio::from(full()), Stdio::from(gone())] {
            let output = thalweg(folder.path(), &args).stderr(stderr).output().expect("started");
            assert_eq!(output.status.code(), Some(2), "{args:?}");
        }
    }
    for args in [&["diagnose", "ok.pcap"][..], &["diagnose", "ok.pcap", "--json"], &["lab", "list"], &["explain"]] {
        let lost = thalweg(folder.path(), args).stdout(full()).output().expect("started");
        let (_, err) = texts(&lost);
        assert_eq!(lost.status.code(), Some(3), "{args:?}: {err}");
        assert!(err.contains("cannot write to stdout: No space left on device"), "{args:?}: {err}");
        // A reader that has seen enough is no failure.
        let enough = thalweg(folder.path(), args).stdout(gone()).output().expect("started");
        assert_eq!((enough.status.code(), texts(&enough).1.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_half_written_stays() {
    if !is_root() {
        // Past the test harness, which swallows what a passing test prints.
        let text =
            "SKIPPED a_full_disk_is_said_and_nothing_half_written_stays: mounting a small file system needs root\n";
        let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), text.as_bytes());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let small = folder.path().join("small");
    fs::create_dir(&small).expect("made");
    let script = "mount -t tmpfs -o size=4m none small && cd small && mkdir tmp && TMPDIR=$PWD/tmp \"$0\" lab run slow-download \
                  --arm 'as found' --set workload.bytes=50MB --out out; code=$?; find . -type f; exit $code";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_thalweg")])
        .current_dir(folder.path())
        .output()
        .expect("unshare, of util-linux");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(3), "{out}\n{err}");
    assert!(err.contains("No space left on device"), "{err}");
    assert_eq!(out, "", "files were left");
}

#[test]
fn the_guests_part_is_never_played_on_a_host() {
    let folder = tempfile::tempdir().expect("a folder");
    for part in ["run", "self-test"] {
        let output = thalweg(folder.path(), &["lab", "list"]).env("THALWEG_GUEST", part).output().expect("started");
        assert!(output.status.success(), "{:?}", texts(&output));
        assert!(texts(&output).0.contains("slow-download"));
    }
}
