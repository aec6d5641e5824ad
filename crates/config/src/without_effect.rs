//! Settings of an experiment that cannot do anything: nothing is wrong with them, and their author expects something of them.

use thalweg_model::{Experiment, PathDirection, Way, Workload};
use thalweg_units::Span;

/// What an experiment asks for in vain, one sentence each.
pub fn without_effect(experiment: &Experiment) -> Vec<String> {
    let path = &experiment.path;
    let mut found = of_bottleneck(&path.down, &path.up);
    for way in [Way::Down, Way::Up] {
        let PathDirection { reorder, delay, steps, .. } = path.direction(way);
        let is_delayed = *delay > Span::ZERO || steps.iter().any(|step| step.delay.is_some());
        if reorder.is_some() && !is_delayed {
            found.push(format!("path.{}.reorder has no effect: without a delay no packet can skip it", way.as_str()));
        }
    }
    found.extend(of_topics(&experiment.workload));
    found
}

/// Whether two directions have one value of a key.
type IsSame = fn(&PathDirection, &PathDirection) -> bool;

/// Keys of a bottleneck, where neither direction has one, or only the direction that has other values.
fn of_bottleneck(down: &PathDirection, up: &PathDirection) -> Vec<String> {
    let usual = PathDirection::default();
    let has_rate = |way: &PathDirection| way.rate.is_some() || way.trace.is_some();
    let is_vain = |is_same: IsSame| {
        let vain = |own: &PathDirection, other: &PathDirection| {
            let is_of_other = has_rate(other) && is_same(own, other);
            !(has_rate(own) || is_of_other || is_same(own, &usual))
        };
        vain(down, up) || vain(up, down)
    };
    let keys: [(&str, IsSame); 4] = [
        ("queue", |a, b| a.queue == b.queue),
        ("discipline", |a, b| a.discipline == b.discipline),
        ("burst", |a, b| a.burst == b.burst),
        ("overhead", |a, b| a.overhead == b.overhead),
    ];
    let vain = keys.into_iter().filter(|(_, is_same)| is_vain(*is_same));
    vain.map(|(key, _)| format!("path.{key} has no effect: it is a bottleneck's, and without path.rate there is none"))
        .collect()
}

/// Topics whose first message is due when publishing is over.
fn of_topics(workload: &Workload) -> Vec<String> {
    match workload {
        Workload::Topics(topics) => {
            let late = topics.topics.iter().filter(|topic| topic.after.is_empty() && topic.phase >= topics.seconds);
            late.map(|topic| {
                format!(
                    "topic '{}' publishes nothing: its phase of {} is not before the end of publishing, {}",
                    topic.name, topic.phase, topics.seconds
                )
            })
            .collect()
        }
        Workload::Mixed { parts } => parts.iter().flat_map(|part| of_topics(&part.workload)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_scenario;

    fn vain(path: &str, workload: &str) -> String {
        let text = format!("name = \"x\"\n[path]\n{path}\n[workload]\n{workload}\n");
        let none = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
        let scenario = parse_scenario("x.toml", &text, &[], &none).expect("valid");
        without_effect(&scenario.arms[0].experiment).join("\n")
    }

    #[test]
    fn keys_of_a_bottleneck_that_is_not_there_are_named() {
        let stream = "kind = \"stream\"\nseconds = \"1s\"";
        for (key, value) in [("queue", "\"5ms\""), ("discipline", "\"pie\""), ("burst", "\"30KB\""), ("overhead", "24")]
        {
            let says = format!("path.{key} has no effect");
            assert!(vain(&format!("{key} = {value}"), stream).contains(&says), "{key}");
            assert_eq!(vain(&format!("rate = \"1mbit\"\n{key} = {value}"), stream), "");
            assert_eq!(
                vain(&format!("down.rate = \"1mbit\"\n{key} = {value}"), stream),
                "",
                "the other way has a rate"
            );
            assert!(vain(&format!("down.rate = \"1mbit\"\nup.{key} = {value}"), stream).contains(&says), "{key} up");
        }
        assert_eq!(vain("trace = [1, 2]\nqueue = \"20 packets\"", stream), "");
    }

    #[test]
    fn reordering_without_a_delay_and_a_phase_after_the_end_are_named() {
        let stream = "kind = \"stream\"\nseconds = \"1s\"";
        assert!(vain("reorder = \"1%\"", stream).contains("path.up.reorder has no effect"));
        assert_eq!(vain("rtt = \"1ms\"\nreorder = \"1%\"", stream), "");
        let topic = |phase| {
            let head =
                "kind = \"topics\"\nseconds = \"1s\"\n[[workload.topic]]\nname = \"a\"\nperiod = \"10ms\"\nsize = 100";
            vain("", &format!("{head}\nphase = \"{phase}\""))
        };
        assert!(topic("5s").contains("topic 'a' publishes nothing"));
        assert_eq!(topic("5ms"), "");
    }
}
