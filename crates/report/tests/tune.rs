//! What is wrong with a host's settings, as JSON and in the terminal.

use serde_json::{Value, json};
use thalweg_model::{
    ExpectedGain, PlanStep, PlannedChange, Reach, RouteTarget, Setting, TuneDifference, TuneFinding, TunePlan,
    TuneRead, TuneShow, Weight,
};

const SCHEMA: &str = include_str!("../../../docs/schema/thalweg.tune-show-1.json");
const PLAN_SCHEMA: &str = include_str!("../../../docs/schema/thalweg.tune-plan-1.json");

fn finding(code: &'static str, weight: Weight, setting: &str, line: Option<usize>, set: Option<&str>) -> TuneFinding {
    TuneFinding {
        code,
        weight,
        setting: setting.to_owned(),
        value: "1".to_owned(),
        line,
        says: "Linux 4.12 removed it: it broke connections from behind one address.".to_owned(),
        why: "sysctl answers 'No such file or directory'.".to_owned(),
        set: set.map(str::to_owned),
    }
}

fn sample() -> TuneShow {
    TuneShow {
        schema: "thalweg.tune-show/1",
        source: "list.txt".to_owned(),
        kernel: None,
        read: TuneRead { sysctls: 80, other_sysctls: 3, routes: 1, sockets: 0 },
        findings: vec![
            finding(
                "removed-setting",
                Weight::Trap,
                "net.ipv4.tcp_tw_recycle",
                Some(12),
                Some("net.ipv4.tcp_tw_reuse"),
            ),
            finding("fastopen-client-only", Weight::Note, "net.ipv4.tcp_fastopen", None, None),
        ],
        differences: vec![TuneDifference {
            setting: "net.core.netdev_max_backlog".to_owned(),
            value: "3000".to_owned(),
            default: "1000".to_owned(),
            about: "Packets that wait for a processor.".to_owned(),
        }],
    }
}

fn sample_plan() -> TunePlan {
    TunePlan {
        schema: TunePlan::SCHEMA.to_owned(),
        purpose: "live-edge".to_owned(),
        kernel: Some("6.12".to_owned()),
        expected: Some(ExpectedGain {
            figure: "goodput_steady_bps".to_owned(),
            before: Some(586_434_635.0),
            after: Some(2_869_548_997.0),
            ratio: 4.893,
            source: "measured in the virtual lab".to_owned(),
        }),
        arithmetic: vec![PlanStep {
            what: "what the path holds (BDP)".to_owned(),
            how: "8mbit × 100.0 ms ÷ 8".to_owned(),
            result: "97.7 KiB".to_owned(),
        }],
        changes: vec![PlannedChange {
            reach: Reach::Route,
            setting: Setting::Route("initcwnd".to_owned()),
            route: Some(RouteTarget { to: "default".to_owned(), ..RouteTarget::default() }),
            from: None,
            to: "40".to_owned(),
            why: "A first picture takes 2.0 round trips less, 100.0 ms each.".to_owned(),
            risk: "A shallow queue drops the burst.".to_owned(),
        }],
        enough: vec!["net.ipv4.tcp_wmem is 4096 16384 4194304".to_owned()],
        warnings: vec!["The worst case is more than the host's memory.".to_owned()],
    }
}

#[test]
fn the_document_is_as_its_schema_says_and_nothing_else_is() {
    let schema = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "not a schema of draft 2020-12");
    let schema = jsonschema::draft202012::new(&schema).expect("the schema can be used");
    let document: Value = serde_json::to_value(sample()).expect("JSON");
    assert!(schema.is_valid(&document), "{document}");
    for place in ["", "/read", "/findings/0", "/differences/0"] {
        let mut more = document.clone();
        more.pointer_mut(place).expect("there")["x"] = json!(1);
        assert!(!schema.is_valid(&more), "{place}");
    }
    let mut other = document.clone();
    other["findings"][0]["code"] = json!("no-such-code");
    assert!(!schema.is_valid(&other));
}

#[test]
fn a_plan_is_as_its_schema_says_and_nothing_else_is() {
    let schema = serde_json::from_str(PLAN_SCHEMA).expect("the schema is JSON");
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "not a schema of draft 2020-12");
    let schema = jsonschema::draft202012::new(&schema).expect("the schema can be used");
    let document = serde_json::to_value(sample_plan()).expect("JSON");
    assert!(schema.is_valid(&document), "{document}");
    let purpose = serde_json::to_value(TunePlan { expected: None, ..sample_plan() }).expect("JSON");
    assert!(schema.is_valid(&purpose), "{purpose}");
    for place in ["", "/expected", "/arithmetic/0", "/changes/0", "/changes/0/setting", "/changes/0/route"] {
        let mut more = document.clone();
        more.pointer_mut(place).expect("there")["x"] = json!(1);
        assert!(!schema.is_valid(&more), "{place}");
    }
}

#[test]
fn a_terminal_shows_traps_first() {
    let text = thalweg_report::terminal::tune_show(&sample(), 100, false);
    let plan = sample_plan();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("list.txt: 1 trap") < at("Traps") && at("Traps") < at("Notes"));
    assert!(at("Notes") < at("Differs from the default") && at("line 12") > at("net.ipv4.tcp_tw_recycle = 1"));
    assert!(!text.contains('\x1b'), "{text}");
    let text = thalweg_report::terminal::tune_plan(&plan, 100, false);
    for part in [
        "live-edge, Linux 6.12: 1 change",
        "route initcwnd of default = 40",
        "97.7 KiB",
        "risk:",
        "4.89× better",
        "Enough as it is",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
