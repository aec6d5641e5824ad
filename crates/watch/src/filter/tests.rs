//! Filters against rows, and what is wrong with those that cannot be read.

use super::*;
use crate::tests::row;
use proptest::prelude::*;

fn wants(filter: &str) -> bool {
    filter.parse::<Filter>().expect("a filter").wants(&row())
}

#[test]
fn terms_are_joined_by_and_values_by_or() {
    for filter in [
        "",
        "port:443",
        "port:22,443",
        "port:400-500 state:established",
        "state:ESTAB retrans:>0.01 retrans:<100%",
        "local-port:443 peer-port:40000-50000",
        "peer:10.0.0.0/8 local:192.0.2.1",
        "proc:nginx",
        "proc:NGI*",
        "cgroup:*nginx* cc:cubic",
        "pid:4711 uid:33",
        "cause:receive-window,send-buffer life:receive-window",
        "rtt:>10ms min-rtt:<=20ms",
        "retrans:>1% rate:>=80mbit backlog:>1MiB",
        "-proc:ssh -state:syn-sent",
        "-peer:10.0.0.0/16",
    ] {
        assert!(wants(filter), "{filter}");
    }
    for filter in [
        "port:22",
        "port:443 state:syn-sent",
        "state:closed",
        "peer-port:443",
        "peer:10.0.0.0/16",
        "proc:ngin",
        "proc:ngx*",
        "-port:443",
        "-cause:receive-window,timeout",
        "cause:idle",
        "rtt:<10ms",
        "retrans:>2%",
        "rate:>80mbit",
    ] {
        assert!(!wants(filter), "{filter}");
    }
}

#[test]
fn a_wrong_term_has_one_error_and_the_nearest_name() {
    let errors: Vec<String> = [
        "prot:443",
        "port",
        "nginx",
        "port:",
        "port:x",
        "port:9-1",
        "state:estblished",
        "state:open",
        "cause:recieve-window",
        "peer:10.0.0.0/40",
        "rtt:100ms",
        "rtt:>100",
        "retrans:>200%",
        "retrans:>1",
        "rate:>10M",
        "backlog:>1mbit",
        "pid:-1",
    ]
    .into_iter()
    .map(|text| {
        let error = text.parse::<Filter>().expect_err(text);
        format!("{text}\n    {error}\n    hint: {}", error.hint)
    })
    .collect();
    insta::assert_snapshot!(errors.join("\n"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,40}", name in 0..NAMES.len(), value in "[-*,:><=%/.0-9a-z]{0,12}") {
        for text in [text, format!("-{}:{value}", NAMES[name].0)] {
            if let Ok(filter) = text.parse::<Filter>() {
                let _ = filter.wants(&row());
                prop_assert_eq!(&filter.to_string().parse::<Filter>().expect("again"), &filter);
            }
        }
    }
}
