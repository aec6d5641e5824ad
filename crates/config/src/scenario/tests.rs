//! Tests of reading scenarios.

use super::*;
use thalweg_model::{Amount, Loss, Stream, Way, Workload};
use thalweg_units::{Bytes, Span};

const SLOW: &str = r#"
name = "slow-download"
about = "stuck"
[path]
rtt = "35.7ms"
rate = "3gbit"
queue = "1000 packets"
[workload]
kind = "stream"
direction = "down"
bytes = "500MB"
[client.sysctl]
"net.ipv4.tcp_rmem" = "8192 87380 4194304"
[[arm]]
name = "as found"
[[arm]]
name = "window raised"
client.sysctl."net.ipv4.tcp_rmem" = "8192 87380 33554432"
server.route.initcwnd = 20
[expect]
"window raised/goodput_bps" = ">= 4x as found"
"#;

#[test]
fn arms_are_laid_over_the_base() {
    let scenario = parse_scenario("slow.toml", SLOW, &[], &no_files).expect("valid");
    assert_eq!(scenario.arms.len(), 2);
    let [found, raised] = [&scenario.arms[0].experiment, &scenario.arms[1].experiment];
    assert_eq!(found.path.rtt(), Span::from_micros(35_700));
    assert_eq!(found.client.sysctl["net.ipv4.tcp_rmem"], "8192 87380 4194304");
    assert_eq!(raised.client.sysctl["net.ipv4.tcp_rmem"], "8192 87380 33554432");
    assert_eq!(raised.server.route.initcwnd, Some(20));
    assert_eq!(
        found.workload,
        Workload::Stream(Stream {
            direction: Way::Down,
            amount: Amount::Bytes(Bytes::new(500_000_000)),
            ..Stream::default()
        })
    );
    assert_eq!(scenario.expect.len(), 1);
}

#[test]
fn set_wins_over_every_arm() {
    let set = [
        ("path.loss".to_owned(), "2%".to_owned()),
        ("client.sysctl.\"net.ipv4.tcp_rmem\"".to_owned(), "1 2 3".to_owned()),
        ("server.route.initcwnd".to_owned(), "40".to_owned()),
    ];
    let scenario = parse_scenario("slow.toml", SLOW, &set, &no_files).expect("valid");
    for arm in &scenario.arms {
        assert!(matches!(arm.experiment.path.down.loss, Loss::Random { .. }));
        assert_eq!(arm.experiment.client.sysctl["net.ipv4.tcp_rmem"], "1 2 3");
        assert_eq!(arm.experiment.server.route.initcwnd, Some(40));
    }
}

#[test]
fn keys_of_the_whole_scenario_are_refused_in_an_arm_and_in_set() {
    for key in ["kernel", "about", "expect", "arm", "matrix", "name"] {
        let value = if key == "matrix" { "{ rtt = [\"1ms\"] }" } else { "\"6.1\"" };
        if key != "matrix" {
            let error = parse_scenario("slow.toml", SLOW, &[(key.to_owned(), "6.1".to_owned())], &no_files);
            let error = error.expect_err(key).to_string();
            assert!(error.contains(&format!("'{key}' belongs to the whole scenario")), "{error}");
            assert!(error.starts_with(&format!("--set {key}=6.1: ")), "{error}");
        }
        if key != "name" {
            let text = SLOW.replace("server.route.initcwnd = 20", &format!("{key} = {value}"));
            let error = parse_scenario("slow.toml", &text, &[], &no_files).expect_err(key).to_string();
            assert!(error.starts_with(&format!("slow.toml:19: '{key}' belongs to the whole scenario")), "{error}");
        }
    }
    let kernel = parse_scenario("slow.toml", SLOW, &[("kernel".to_owned(), "6.1".to_owned())], &no_files);
    assert!(kernel.expect_err("refused").hint.is_some_and(|hint| hint.contains("--kernel")));
}

#[test]
fn a_misspelt_verdict_and_a_bare_number_are_refused_before_the_run() {
    let expect = |line: &str| {
        let text = SLOW.replace("\"window raised/goodput_bps\" = \">= 4x as found\"", line);
        parse_scenario("slow.toml", &text, &[], &no_files)
    };
    let error = expect("\"as found/verdict\" = \"recieve-window\"").expect_err("misspelt");
    assert_eq!(error.hint.as_deref(), Some("did you mean 'receive-window'?"), "{error}");
    assert!(expect("\"as found/verdict\" = \"receive-window\"").is_ok());
    assert!(expect("\"as found/verdict\" = \"none\"").is_ok());
    let error = expect("\"as found/client_exit\" = \"7\"").expect_err("no bound").to_string();
    assert!(error.contains("\"7 +- 0%\" for exactly 7"), "{error}");
}

#[test]
fn numbers_out_of_bounds_are_named_by_their_bounds() {
    for (to, says) in [
        ("mtu = 100000", "'path.mtu' cannot be read: 100000 is more than 65535"),
        ("overhead = -1", "'path.overhead' cannot be read: -1 is less than 0"),
        ("delay_limit = \"x\"", "'path.delay_limit' cannot be read: 'x' is no whole number"),
    ] {
        let error = parse_scenario("slow.toml", &SLOW.replace("rate = \"3gbit\"", to), &[], &no_files).expect_err(to);
        assert!(error.to_string().contains(says), "{error}");
    }
    for (to, says) in [
        ("parallel = -1", "'workload.parallel' cannot be read: -1 is less than 0"),
        ("parallel = 1.5", "'workload.parallel' cannot be read: '1.5' is no whole number"),
    ] {
        let text = SLOW.replace("kind = \"stream\"", &format!("kind = \"stream\"\n{to}"));
        let error = parse_scenario("slow.toml", &text, &[], &no_files).expect_err(to);
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = parse_scenario("slow.toml", SLOW, &[("server.route.initcwnd".into(), "-1".into())], &no_files);
    let error = error.expect_err("negative").to_string();
    assert!(error.contains("-1 is less than 0"), "{error}");
}

#[test]
fn a_file_that_the_hosts_cannot_see_is_refused() {
    let file = |file: &str| {
        let text = SLOW.replace("kind = \"stream\"", &format!("kind = \"stream\"\nfile = \"{file}\""));
        parse_scenario("slow.toml", &text, &[], &no_files).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(file("/usr/lib/os-release"), Ok(()));
    assert!(file("data.bin").expect_err("relative").contains("'data.bin', which is no absolute path"));
    assert!(file("/tmp/data.bin").expect_err("hidden").contains("a /tmp, /run and /dev/shm of their own"));
}

#[test]
fn an_empty_name_or_list_of_kernels_is_refused() {
    for (from, to, says) in [
        ("name = \"slow-download\"", "name = \"\"", "a scenario's name must not be empty"),
        ("about = \"stuck\"", "kernel = []", "the list of kernels is empty"),
    ] {
        let error = parse_scenario("slow.toml", &SLOW.replace(from, to), &[], &no_files).expect_err(to);
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (from, to, line, says, hint) in [
        ("rtt = ", "rt = ", 5, "unknown key 'path.rt'", "did you mean 'rtt'?"),
        ("rtt = \"35.7ms\"", "delay = \"-5ms\"", 5, "'-5ms' is not a time", ""),
        ("rate = \"3gbit\"", "loss = \"200%\"", 6, "'200%' is not a part", ""),
        ("kind = \"stream\"", "kind = \"steam\"", 9, "'steam' is no kind", "did you mean 'stream'?"),
        ("queue = \"1000 packets\"", "queue = \"many\"", 7, "'many' is no queue", ""),
        ("[client.sysctl]", "[clint.sysctl]", 12, "unknown key 'clint'", "did you mean 'client'?"),
        (
            "\"net.ipv4.tcp_rmem\" = \"8192 87380 4194304\"",
            "net.ipv4.tcp_rmem = 1",
            13,
            "'net' is no network sysctl",
            "quote",
        ),
        (">= 4x as found", ">= 4x as fond", 20, "no arm is named 'as fond'", "did you mean 'as found'?"),
        ("name = \"window raised\"", "name = \"as found\"", 16, "two arms are named 'as found'", ""),
        ("bytes = \"500MB\"", "bytes = \"0\"", 11, "must be more than nothing", ""),
        ("name = \"slow-download\"", "name = ", 2, "not TOML", ""),
    ] {
        let text = SLOW.replacen(from, to, 1);
        assert_ne!(text, SLOW, "{from}");
        let error = parse_scenario("slow.toml", &text, &[], &no_files).expect_err(says);
        assert!(error.problem.contains(says), "{error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
        let at: usize = error.place.rsplit(':').next().and_then(|line| line.parse().ok()).expect("a line");
        assert!(at.abs_diff(line) <= 2, "{error}: expected near line {line}");
    }
}

fn with_matrix(matrix: &str) -> String {
    let (head, expect) = SLOW.split_once("[expect]").expect("expectations");
    format!(
        "{head}[matrix]\n{matrix}\n[expect]{}",
        expect
            .replace("window raised/", "window raised, initcwnd 20, rtt 10ms/")
            .replace("x as found", "x as found, initcwnd 10, rtt 10ms")
    )
}

#[test]
fn arms_are_run_at_every_point_of_the_matrix() {
    let text =
        with_matrix("initcwnd = [10, 20]\n\"path.rtt\" = [\"10ms\", \"100ms\"]").replace("rtt = \"35.7ms\"\n", "");
    let text = text.replace("server.route.initcwnd = 20\n", "");
    let mut scenario = parse_scenario("slow.toml", &text, &[], &no_files).expect("valid");
    let names: Vec<&str> = scenario.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names.len(), 8);
    assert_eq!(names[0], "as found, initcwnd 10, rtt 10ms");
    assert_eq!(names[1], "as found, initcwnd 10, rtt 100ms");
    assert_eq!(names[6], "window raised, initcwnd 20, rtt 10ms");
    let arm = &scenario.arms[6];
    assert_eq!(arm.experiment.server.route.initcwnd, Some(20));
    assert_eq!(arm.experiment.path.rtt(), Span::from_millis(10));
    assert_eq!(arm.baseline.as_deref(), Some("as found, initcwnd 20, rtt 10ms"));
    assert_eq!(scenario.arms[3].baseline, None);
    assert_eq!(scenario.expect.len(), 1);

    assert_eq!(scenario.keep(&["gone".to_owned()]), Err("gone"));
    let chosen = ["window raised".to_owned()];
    assert_eq!(scenario.keep(&chosen), Ok(()));
    assert_eq!(scenario.arms.len(), 4);
    assert!(scenario.expect.is_empty(), "one of its arms is not run");
    // One arm is left, so its points are compared with the first of them.
    assert_eq!(scenario.arms[0].baseline, None);
    assert_eq!(scenario.arms[3].baseline.as_deref(), Some("window raised, initcwnd 10, rtt 10ms"));
}

#[test]
fn without_arms_the_points_are_named_by_their_values() {
    let text = "name = \"n\"\nkernel = [\"6.1\", \"6.12\"]\n[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n[matrix]\n\
                path.down.loss = [\"0%\", \"1%\"]\npath.up.loss = [\"0%\"]\nclient.sysctl.\"net.ipv4.tcp_rmem\" = [\"1 2 3\"]";
    let scenario = parse_scenario("n.toml", text, &[], &no_files).expect("valid");
    assert_eq!(scenario.kernels, ["6.1", "6.12"]);
    assert_eq!(scenario.arms[1].name, "path.down.loss 1%, path.up.loss 0%, net.ipv4.tcp_rmem 1 2 3");
    assert_eq!(scenario.arms[1].baseline.as_deref(), Some(scenario.arms[0].name.as_str()));
    let set = ("matrix.path.down.loss".to_owned(), "[\"2%\", \"3%\", \"4%\"]".to_owned());
    let wider = parse_scenario("n.toml", text, &[set], &no_files).expect("valid");
    assert_eq!(wider.arms.len(), 3);
    let fixed = parse_scenario("n.toml", text, &[("path.down.loss".to_owned(), "2%".to_owned())], &no_files);
    assert!(fixed.expect_err("both").problem.contains("the matrix gives it several"));
}

#[test]
fn what_is_wrong_in_a_matrix_is_named_with_its_line() {
    let base = "name = \"n\"\n[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n[matrix]\n";
    let many = format!("initcwnd = [{}]\n", (1..=400).map(|n| n.to_string()).collect::<Vec<_>>().join(","));
    let too_many = format!("{many}{}", many.replace("initcwnd", "initrwnd"));
    for (line, says, hint) in [
        ("initcwn = [10]", "the matrix knows no key 'initcwn'", "did you mean 'initcwnd'?"),
        ("serve.route.initcwnd = [10]", "the matrix knows no key 'serve'", "did you mean"),
        ("\"sever.route.initcwnd\" = [10]", "no key 'sever.route.initcwnd'", "did you mean 'server'?"),
        ("initcwnd = 10", "must be a list of values", "initcwnd = [10, 20]"),
        ("initcwnd = []", "must be a list of values", ""),
        ("initcwnd = [10, 10]", "is 10 twice", ""),
        ("initcwnd = [10]\nserver.route.initcwnd = [20]", "is in the matrix twice", ""),
        ("initcwnd = [\"many\"]", "'server.route.initcwnd' cannot be read", ""),
        ("\"server.route.initcwn\" = [10]", "unknown key 'server.route.initcwn'", "did you mean 'initcwnd'?"),
        (too_many.as_str(), "more than 100000 runs", ""),
    ] {
        let error = parse_scenario("n.toml", &format!("{base}{line}"), &[], &no_files).expect_err(says);
        assert!(error.problem.contains(says), "{error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
        assert!(error.place == "n.toml:6" || error.place == "n.toml:5" || error.place == "n.toml:7", "{error}");
    }
}

fn no_files(name: &str) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no {name}")))
}

#[test]
fn the_programs_of_a_command_are_checked_before_anything_starts() {
    let text = |lines: &str| format!("name = \"x\"\n[workload]\nkind = \"command\"\n{lines}\n");
    let files = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    let good = text("client = \"curl http://{server}/\"\ntimes = 3\nfigures = { total_s = 'total=([0-9.]+)' }");
    let scenario = parse_scenario("x.toml", &good, &[], &files).expect("valid");
    let Workload::Command(command) = &scenario.arms[0].experiment.workload else { panic!("a command") };
    assert_eq!((command.client.len(), command.times), (2, 3));

    for (lines, problem) in [
        ("client = \"a\"\nfigures = { t = 'x=(' }", "x.toml:5: 'workload.figures.t' cannot be used: unclosed group"),
        (
            "client = \"a\"\n[workload.figures]\nt = 'x=1'",
            "x.toml:6: 'workload.figures.t' cannot be used: it has no group",
        ),
        ("client = \"a\"\nfigures = { t = '(a)(b)' }", "'workload.figures.t' cannot be used: it has several groups"),
        (
            "client = \"a\"\nfigures = { 'a.b' = '(a)' }",
            "x.toml:5: a figure's name must not be empty or hold '.' or '/'",
        ),
        (
            "client = \"a\"\nport = 80",
            "x.toml:5: 'workload.port' is what a server listens on, and there is no 'server'",
        ),
        ("client = \"\"", "x.toml:4: 'workload.client' is a program and its arguments"),
        ("client = \"a\"\ntimeout = \"0s\"", "x.toml:5: 'workload.timeout' must be more than nothing"),
        ("client = \"a\"\nfiles = { \"../x\" = \"\" }", "x.toml:5: '../x' is no name of a file"),
    ] {
        let error = parse_scenario("x.toml", &text(lines), &[], &files).expect_err(lines).to_string();
        assert!(error.contains(problem), "{lines}\n{error}");
    }
}

#[test]
fn an_arm_unsets_keys_and_changes_the_kind_of_a_table() {
    let text = r#"
name = "n"
[path]
rtt = "10ms"
rate = "10mbit"
loss = { model = "gilbert-elliott", p = "1%", r = "10%" }
[workload]
kind = "stream"
direction = "down"
seconds = "10s"
[client.sysctl]
"net.ipv4.tcp_rmem" = "1 2 3"
[[arm]]
name = "as found"
[[arm]]
name = "without"
unset = ["path.rate", 'client.sysctl."net.ipv4.tcp_rmem"']
[[arm]]
name = "short/lived"
workload = { kind = "crr", request = 100, response = 1000, transactions = 3 }
path.delay = "7ms"
path.loss = { model = "random", probability = "2%" }
[[arm]]
name = "by size"
workload.bytes = "1MB"
[[arm]]
name = "by size, then by exchange"
workload.kind = "rr"
workload.request = 1
workload.response = 1
[expect]
"short/lived/transactions_per_s" = "> 1/s"
"#;
    let scenario = parse_scenario("n.toml", text, &[], &no_files).expect("valid");
    let [found, without, short, size, rr] = scenario.arms.as_slice() else { panic!("five arms") };
    assert!(found.experiment.path.down.rate.is_some() && without.experiment.path.down.rate.is_none());
    assert!(without.experiment.client.sysctl.is_empty() && !found.experiment.client.sysctl.is_empty());
    assert!(matches!(short.experiment.workload, Workload::Crr(_)));
    assert_eq!(short.experiment.path.rtt(), Span::from_millis(14));
    assert!(matches!(short.experiment.path.down.loss, Loss::Random { .. }));
    assert!(matches!(&size.experiment.workload, Workload::Stream(Stream { amount: Amount::Bytes(_), .. })));
    // The time is a key of both kinds, and stays.
    let Workload::Rr(rr) = &rr.experiment.workload else { panic!("request and response") };
    assert_eq!(rr.amount, thalweg_model::Transactions::Seconds(Span::from_millis(10_000)));
    assert_eq!(scenario.expect[0].arm, "short/lived");

    for (from, to, says, hint) in [
        ("\"path.rate\",", "\"path.rates\",", "'path.rates' is not set", "did you mean 'rate'?"),
        ("unset = [\"path.rate\",", "unset = [3,", "must be a list of keys", "unset = ["),
        ("unset = [", "unset = [\"a b\", ", "'a b' is no key", ""),
        ("transactions = 3 }", "transactions = 3, bytes = 3 }", "unknown key 'workload.bytes'", ""),
        ("workload.bytes = \"1MB\"", "workload.byte = \"1MB\"", "unknown key 'workload.byte'", "did you mean 'bytes'?"),
    ] {
        let text = text.replacen(from, to, 1);
        let error = parse_scenario("n.toml", &text, &[], &no_files).expect_err(says);
        assert!(error.problem.contains(says), "{error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
    }
}

#[test]
fn every_example_of_the_documentation_is_valid() {
    let workload = "[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n";
    let files = |name: &str| Ok(if name.ends_with(".dist") { "-1 0 1" } else { "1\n2\n" }.to_owned());
    let mut examples = 0;
    for page in ["lab.md", "path.md"] {
        let path = format!("{}/../../docs/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("the page");
        for block in text.split("```toml\n").skip(1) {
            let block = block.split("```").next().expect("a first part");
            let name = if block.starts_with("name =") { "" } else { "name = \"part\"\n" };
            let rest = if block.contains("[workload]") { "" } else { workload };
            let whole = format!("{name}{block}{rest}");
            parse_scenario(page, &whole, &[], &files).unwrap_or_else(|error| panic!("{error}\n{whole}"));
            examples += 1;
        }
    }
    assert!(examples >= 8, "{examples}");
}

const GRAPH: &str = r#"
name = "graph"
[path]
rtt = "1ms"
[workload]
kind = "topics"
seconds = "1s"
[[workload.topic]]
name = "camera"
publisher = "client"
period = "33ms"
phase = "4ms"
size = "80KB"
[[workload.topic]]
name = "radar"
publisher = "client"
period = "50ms"
size = "10KB"
[[workload.topic]]
name = "plan"
after = ["camera"]
compute = "5ms"
size = "1KB"
"#;

#[test]
fn a_topic_that_waits_for_others_has_their_period() {
    let scenario = parse_scenario("graph.toml", GRAPH, &[], &no_files).expect("valid");
    let Workload::Topics(topics) = &scenario.arms[0].experiment.workload else { panic!("topics") };
    let plan = &topics.topics[2];
    assert_eq!((plan.after.as_slice(), plan.compute), (["camera".to_owned()].as_slice(), Span::from_millis(5)));
    assert_eq!((plan.period, plan.phase), (Span::from_millis(33), Span::from_millis(4)));
}

#[test]
fn topics_that_cannot_wait_for_others_are_refused() {
    for (of, instead, wanted) in [
        ("[\"camera\"]", "[\"plan\"]", "no topic above this one is named 'plan'"),
        ("[\"camera\"]", "[\"camera\", \"radar\"]", "another period"),
        ("[\"camera\"]", "[]", "a list of topics"),
        ("[\"camera\"]", "\"camera\"", "a list of topics"),
        ("after =", "publisher = \"client\"\nsubscribers = [\"server\"]\nafter =", "does not subscribe to it"),
        ("after =", "period = \"33ms\"\nafter =", "has the 'period' of the topics"),
        ("after = [\"camera\"]", "period = \"33ms\"", "'workload.topic.compute' is the time"),
        ("publisher", "pubisher", "unknown key 'workload.topic.pubisher'"),
    ] {
        let text = GRAPH.replace(of, instead);
        let error = parse_scenario("graph.toml", &text, &[], &no_files).expect_err(instead).to_string();
        assert!(error.contains(wanted), "{instead}: {error}");
    }
}

#[test]
fn behind_a_switch_there_is_neither_a_rate_nor_a_policer() {
    let text = |path: &str| {
        format!(
            "name = \"s\"\n[topology]\nkind = \"switch\"\nrate = \"1gbit\"\nbuffer = \"128KiB\"\n\
             [path]\n{path}\n[workload]\nkind = \"stream\"\nbytes = 1\n"
        )
    };
    let error = |path: &str| {
        let read = parse_scenario("s.toml", &text(path), &[], &no_files);
        read.expect_err("refused").to_string()
    };
    assert!(error("rate = \"1mbit\"").contains("set topology.rate and topology.buffer, not path.rate"));
    assert!(error("policer = { rate = \"1mbit\", burst = \"30KB\" }").contains("a policer needs a bottleneck"));
    parse_scenario("s.toml", &text("rtt = \"1ms\""), &[], &no_files).expect("valid");
}

#[test]
fn queues_that_hold_no_frame_are_refused_with_the_least() {
    let base = "name = \"n\"\n[workload]\nkind = \"stream\"\nbytes = \"1MB\"\n";
    let switch = "[topology]\nkind = \"switch\"\nrate = \"1gbit\"";
    for (lines, line, says, hint) in [
        (
            "[path]\nqueue = \"64B\"",
            6,
            "a queue of 64B drops every full frame, which has 1514 bytes at an MTU of 1500",
            "1514B",
        ),
        ("[path]\nqueue = \"1513B\"", 6, "a queue of 1513B", "1514B"),
        ("[path]\nqueue = \"1514B\"", 0, "", ""),
        ("[path]\nqueue = \"1294B\"\nmtu = 1280", 0, "", ""),
        ("[path]\nqueue = \"2KB\"\nmtu = 9000", 6, "which has 9014 bytes at an MTU of 9000", "9014B"),
        ("[path]\nqueue = \"64KB\"\n[path.up]\nqueue = \"1KB\"", 8, "a queue of 1kB", "1514B"),
        ("[path]\nqueue = \"1 packet\"", 0, "", ""),
        ("[path.down]\npolicer = { rate = \"1mbit\", burst = \"100B\" }", 6, "a policer's burst of 100B", "1514B"),
        (&format!("{switch}\nbuffer = \"64B\""), 8, "a switch's buffer of 64B", "1514B"),
        (
            &format!("{switch}\nbuffer = \"64KB\"\nnic = {{ rate = \"1gbit\", packets = 0 }}"),
            9,
            "sends none",
            "1 or more",
        ),
    ] {
        match (parse_scenario("n.toml", &format!("{base}{lines}\n"), &[], &no_files), line) {
            (Ok(_), 0) => {}
            (Err(error), 1..) => {
                assert!(error.problem.contains(says), "{lines}: {error}");
                assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{lines}: {error}");
                assert_eq!(error.place, format!("n.toml:{line}"), "{lines}: {error}");
            }
            (other, _) => panic!("{lines}: {other:?}"),
        }
    }
    // Laid over by the command line, which the error names.
    let set = [("path.queue".to_owned(), "64B".to_owned())];
    let error = parse_scenario("n.toml", base, &set, &no_files).expect_err("refused");
    assert_eq!(error.place, "--set path.queue=64B");
}
