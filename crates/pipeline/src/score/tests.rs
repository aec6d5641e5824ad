//! What counts as better and as worse.

use super::*;
use serde_json::{Value, json};

fn arm(metrics: &Value) -> ArmReport {
    let arm = json!({"name": "a", "kernel": "6.12", "baseline": null, "metrics": metrics, "diagnosis": [], "capture": null, "samples": null,
                     "settings": {"client": {"sysctl": {}, "route": {}, "socket": {}}, "server": {"sysctl": {}, "route": {}, "socket": {}}, "path": []}});
    serde_json::from_value(arm).expect("an arm")
}

fn workload(text: &str) -> Workload {
    let text = format!("name = \"s\"\n[workload]\n{text}");
    let scenario = thalweg_config::parse_scenario("s", &text, &[], &|_| Err(std::io::ErrorKind::NotFound.into()));
    scenario.expect("a scenario").arms.remove(0).experiment.workload
}

#[test]
fn what_makes_one_topic_worse_is_worth_nothing() {
    let topics = workload(
        "kind = \"topics\"\nseconds = \"4s\"\n[[workload.topic]]\nname = \"a\"\nperiod = \"20ms\"\nsize = \"1kB\"\n\
         [[workload.topic]]\nname = \"b\"\nperiod = \"20ms\"\nsize = \"1kB\"\n",
    );
    let of = |[a, b]: [[f64; 3]; 2], messages: u64| {
        let topic = |[p50, p90, p99]: [f64; 3]| json!({"messages": messages, "latency_ms": {"p50": p50, "p90": p90, "p99": p99}});
        arm(&json!({"topics": {"a": topic(a), "b": topic(b)}}))
    };
    let before = of([[1.0, 2.0, 8.0], [1.0, 2.0, 60.0]], 200);
    // The 99th percentile of one is a thirtieth, and of the other twice as late.
    let after = of([[1.0, 2.0, 16.0], [1.0, 2.0, 2.0]], 200);
    assert!(score(&topics, &after) > score(&topics, &before));
    let beyond = worse(&topics, &before, &after).expect("one is worse");
    assert!((beyond - 2.0 / LATE_TOLERABLE).abs() < 1e-9, "{beyond}");
    let slightly = of([[1.05, 2.5, 10.0], [0.5, 2.0, 2.0]], 200);
    assert_eq!(worse(&topics, &before, &slightly), None);
    // Of a few messages the 99th percentile is the first one, when the connection begins.
    assert_eq!(worse(&topics, &of([[1.0, 2.0, 8.0]; 2], 50), &of([[1.0, 2.0, 80.0]; 2], 50)), None);
}

#[test]
fn answers_that_come_later_are_worse_whatever_their_rate() {
    let answers = workload("kind = \"crr\"\nrequest = 400\nresponse = 400000\ntransactions = 10\n");
    let of = |rate: f64, p50: f64| arm(&json!({"transactions_per_s": rate, "latency_ms": {"p50": p50, "p99": p50}}));
    assert!(worse(&answers, &of(0.90, 612.0), &of(1.07, 782.0)).is_some());
    assert_eq!(worse(&answers, &of(0.90, 612.0), &of(1.07, 620.0)), None);
}
