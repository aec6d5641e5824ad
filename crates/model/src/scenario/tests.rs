//! Tests of reading scenarios.

use super::*;
use crate::flow::Way;
use crate::path::Loss;
use crate::workload::Amount;
use units::{Bytes, Span};

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
    let scenario = Scenario::parse("slow.toml", SLOW, &[]).expect("valid");
    assert_eq!(scenario.arms.len(), 2);
    let [found, raised] = [&scenario.arms[0].experiment, &scenario.arms[1].experiment];
    assert_eq!(found.path.rtt(), Span::from_micros(35_700));
    assert_eq!(found.client.sysctl["net.ipv4.tcp_rmem"], "8192 87380 4194304");
    assert_eq!(raised.client.sysctl["net.ipv4.tcp_rmem"], "8192 87380 33554432");
    assert_eq!(raised.server.route.initcwnd, Some(20));
    assert_eq!(
        found.workload,
        Workload::Stream { direction: Way::Down, amount: Amount::Bytes(Bytes::new(500_000_000)) }
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
    let scenario = Scenario::parse("slow.toml", SLOW, &set).expect("valid");
    for arm in &scenario.arms {
        assert!(matches!(arm.experiment.path.down.loss, Loss::Random { .. }));
        assert_eq!(arm.experiment.client.sysctl["net.ipv4.tcp_rmem"], "1 2 3");
        assert_eq!(arm.experiment.server.route.initcwnd, Some(40));
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
        let error = Scenario::parse("slow.toml", &text, &[]).expect_err(says);
        assert!(error.problem.contains(says), "{error}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error}");
        let at: usize = error.place.rsplit(':').next().and_then(|line| line.parse().ok()).expect("a line");
        assert!(at.abs_diff(line) <= 2, "{error}: expected near line {line}");
    }
}
