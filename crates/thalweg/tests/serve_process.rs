//! The live edge as a process: signals, files that are broken, a death that nobody announced, and routes that are put back.

mod common;

use common::edge::{Edge, LOCAL, eventually};
use rustix::process::Signal;
use std::process::Command;

#[test]
fn a_broken_file_leaves_all_as_it_was_and_shows_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("edge.toml");
    let write = |rest: &str| std::fs::write(&file, format!("{LOCAL}{rest}")).expect("written");
    let first = format!("{LOCAL}[auth]\nplay_key = 'the-first-secret'\n[log]\nformat = 'json'\n");
    let mut served = Edge::start(folder.path(), &first, &["--demo"]);
    assert_eq!(eventually("the stream", || Some(served.get("/live/demo.m3u8").0).filter(|status| *status != 404)), 401);
    let broken = [
        "[auth]\nplay_key = 'the-second-secret",
        "[auth]\nplay_key 'the-third-secret'",
        "[limits]\nstreams = 0",
        "[no]",
    ];
    for (at, text) in broken.into_iter().enumerate() {
        write(text);
        served.signal(Signal::HUP);
        eventually("its complaint", || (served.said().matches("reload-failed").count() > at).then_some(()));
        assert_eq!(served.get("/live/demo.m3u8").0, 401, "{text}");
    }
    write("[log]\nformat = 'json'\n");
    served.signal(Signal::HUP);
    eventually("the other configuration", || (served.get("/live/demo.m3u8").0 == 200).then_some(()));
    write("[log]\nlevel = 'error'\n[journal]\npath = 'x'\n");
    served.signal(Signal::HUP);
    eventually("what needs a restart", || served.said().contains("\"needs_restart\":\"journal\"").then_some(()));
    served.signal(Signal::TERM);
    assert!(served.wait().success());
    let said = served.said();
    assert!(!said.contains("-secret") && !said.contains("had ended"), "{said}");
    for line in said.lines().filter(|line| line.starts_with('{')) {
        let _: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn each_line_of_a_log_in_json_is_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{LOCAL}[log]\nformat = 'json'\n[limits]\nconnections = 4000000000\n");
    let mut served = Edge::start(folder.path(), &text, &[]);
    served.signal(Signal::TERM);
    assert!(served.wait().success());
    let said = served.said();
    for name in ["connections-limited", "signal", "end"] {
        assert!(said.contains(&format!("\"event\":\"{name}\"")), "{name} is not in\n{said}");
    }
    for line in said.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
}

#[test]
fn who_plays_goes_on_after_a_death_and_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{LOCAL}[auth]\nplay_key = {{ env = 'PLAY_KEY' }}\n[hls]\ntarget = '1s'\n");
    std::fs::write(folder.path().join("edge.toml"), text).expect("written");
    let key = "a-key-of-the-test";
    let start = || {
        let mut command = common::thalweg(folder.path(), &["serve", "edge.toml", "--demo"]);
        command.env("PLAY_KEY", key);
        Edge::spawn(command, folder.path())
    };
    let first = start();
    // As the book says to make one.
    let script =
        format!("printf 'live/demo\\n4000000000\\nalice\\n\\n' | openssl dgst -sha256 -hmac {key} -r | cut -d' ' -f1");
    let mac = Command::new("sh").args(["-c", &script]).output().expect("openssl");
    let token = format!("4000000000.alice.{}", common::texts(&mac).0.trim());
    let uri = eventually("a session", || {
        let (status, text) = first.get(&format!("/live/demo.m3u8?token={token}"));
        (status == 200).then(|| format!("/live/{}", text.lines().last().expect("a URI")))
    });
    let sequence = |text: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix("#EXT-X-MEDIA-SEQUENCE:"));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no sequence: {text}"))
    };
    let before = sequence(&first.get(&uri).1);
    // Dropping it kills it, as `kill -9` does.
    drop(first);
    let second = start();
    let text = eventually("the same session", || Some(second.get(&uri)).filter(|(status, _)| *status == 200)).1;
    assert!(sequence(&text) > before, "{text}");
    let segment = text.lines().find(|line| line.ends_with(".ts")).expect("a segment");
    assert_eq!(second.get(&uri.replace("index.m3u8", segment)).0, 200);
}

#[test]
fn a_second_server_does_not_share_the_ports_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Edge::start(folder.path(), LOCAL, &["--demo"]);
    let listens = |what: &str| {
        let url = first.url(what, if what == "publish" { "rtmp" } else { "http" });
        url.split('/').nth(2).expect("an address").to_owned()
    };
    for (table, what) in [("rtmp", "publish"), ("http", "play"), ("api", "api")] {
        let taken = listens(what);
        let others = ["rtmp", "http", "api"].map(|other| {
            let at = if other == table { &taken } else { "127.0.0.1:0" };
            format!("[{other}]\nlisten = ['{at}']\n")
        });
        std::fs::write(folder.path().join("second.toml"), others.concat()).expect("written");
        let ended = common::thalweg(folder.path(), &["serve", "second.toml"]).output().expect("it ends");
        let (_, said) = common::texts(&ended);
        assert_eq!(ended.status.code(), Some(3), "{said}");
        assert!(
            said.contains(&format!("cannot listen at {taken}")) && said.contains("hint: another program"),
            "{said}"
        );
    }
}

#[test]
fn check_looks_at_what_the_configuration_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |text: &str, code: i32| {
        std::fs::write(folder.path().join("edge.toml"), text).expect("written");
        let (out, err) = common::run(folder.path(), &["serve", "edge.toml", "--check"], code);
        out + &err
    };
    assert!(
        check("[webhooks]\non_play = 'https://hooks.test/play'\n[journal]\npath = 'viewers.jsonl'", 0)
            .contains("is good")
    );
    let said = check("[auth]\npublish_key = 'abc+def/ghi&=='", 0);
    assert!(said.contains("'/': publishers have to write it as %2F") && said.contains("as %26"), "{said}");
    std::fs::write(folder.path().join("edge.bin"), [0xff]).expect("written");
    let (_, err) = common::run(folder.path(), &["serve", "edge.bin", "--check"], 2);
    assert!(err.contains("edge.bin is no text of UTF-8") && err.contains("hint:"), "{err}");
    for (text, problem) in [
        ("[webhooks]\non_play = 'http://a:99999999/'", "webhooks.on_play is no URL that can be called"),
        ("[journal]\npath = 'none/viewers.jsonl'", "the journal cannot be written in none"),
        ("[https]\ncertificate = 'none.pem'\nkey = 'none.pem'", "https.certificate: cannot use none.pem: No such file"),
        (
            "[https]\ncertificate = 'edge.toml'\nkey = 'none.pem'",
            "cannot use edge.toml: it holds no certificate in PEM",
        ),
        ("workers = 63", "workers is 63: there can be 1 to 62"),
        ("workers = 3000", "there can be 1 to 62"),
        ("[auth]\nplay_key = { file = 'none' }", "play_key cannot be had: none: No such file"),
        ("[auth]\nplay_key = { env = 'NO_SUCH_VARIABLE' }", "play_key cannot be had: NO_SUCH_VARIABLE"),
    ] {
        let said = check(text, 2);
        assert!(said.contains(problem), "{said}");
    }
}

#[test]
fn routes_have_their_windows_while_the_server_runs_and_no_longer() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!("{LOCAL}[tcp_route]\ninitcwnd = 30\nstate = 'routes'\n");
    std::fs::write(folder.path().join("edge.toml"), &text).expect("written");
    // A network of its own, in which it is root.
    let script = r#"
        ip link set lo up && ip link add v0 type veth peer name v1 && ip address add 10.0.0.1/24 dev v0
        ip link set v0 up && ip link set v1 up && ip route add default via 10.0.0.254 initrwnd 20 || exit 99
        until_is() { for _ in $(seq 600); do [ "$(ip route show default | grep -c 'initcwnd 30')" = "$1" ] && return; sleep 0.1; done; echo "never $1: $3"; exit 1; }
        before=$(ip route show)
        same() { [ "$(ip route show)" = "$before" ] || { echo "$1: $(ip route show)"; exit 1; }; }
        "$0" serve edge.toml 2>>log & until_is 1 - start
        ip route show default | grep -q 'initrwnd 20' || { echo "another metric has gone"; exit 1; }
        kill -TERM $!; wait $!; same "after SIGTERM"; [ ! -e routes ] || { echo "the file stays"; exit 1; }
        "$0" serve edge.toml 2>>log & until_is 1 - again
        kill -KILL $!; wait $! 2>/dev/null; until_is 1 - "after kill -9"; [ -e routes ] || exit 1
        "$0" serve edge.toml --undo || exit 1; same "after --undo"; [ ! -e routes ] || exit 1
        "$0" serve edge.toml 2>>log & until_is 1 - third
        kill -KILL $!; wait $! 2>/dev/null
        "$0" serve edge.toml 2>>log & for _ in $(seq 600); do [ "$(grep -c routes-raised log)" = 4 ] && break; sleep 0.1; done
        kill -TERM $!; wait $!; same "after a start that put back first"
        "$0" serve edge.toml 2>>log & until_is 1 - fourth
        ip route replace default via 10.0.0.253; kill -TERM $!; wait $!
        ip route show default | grep -q 10.0.0.253 || { echo "what somebody changed was put back"; exit 1; }
        echo all-is-well
    "#;
    let output = Command::new("unshare")
        .args(["-r", "-n", "sh", "-c", script, env!("CARGO_BIN_EXE_thalweg")])
        .current_dir(folder.path())
        .output()
        .expect("unshare");
    let (out, err) = common::texts(&output);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    assert!(output.status.success() && out.contains("all-is-well"), "{out}\n{err}\n{log}");

    // Root without the capability is refused: it says so, and runs.
    let script = r#"
        ip link set lo up && ip link add v0 type veth peer name v1 && ip address add 10.0.0.1/24 dev v0 && ip link set v0 up &&
        ip link set v1 up && ip route add default via 10.0.0.254 &&
        exec setpriv --bounding-set -net_admin --inh-caps -net_admin "$0" serve edge.toml
    "#;
    let mut command = Command::new("unshare");
    command.args(["-r", "-n", "sh", "-c", script, env!("CARGO_BIN_EXE_thalweg")]).current_dir(folder.path());
    let edge = Edge::spawn(command, folder.path());
    let refused = |said: String| said.contains("option-refused why=\"tcp_route: ") && said.contains("not permitted");
    eventually("its complaint", || refused(edge.said()).then_some(()));
}
