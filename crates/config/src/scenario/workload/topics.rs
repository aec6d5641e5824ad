//! The topics of a `topics` workload.

use super::size;
use crate::node::{ConfigError, Node, NodeValue};
use crate::scenario::unknown;
use crate::section::Section;
use thalweg_model::{HostName, Topology};
use thalweg_model::{Size, Topic, Topics};
use thalweg_units::{Ratio, Span};

pub(super) fn read(section: &Section<'_>, topology: &Topology) -> Result<Topics, ConfigError> {
    let seconds = section.require("seconds", section.quantity::<Span>("seconds")?)?;
    let node = section.require("topic", section.node("topic"))?;
    let NodeValue::List(nodes) = &node.value else {
        return Err(node.error("topics are written as [[workload.topic]]", None));
    };
    let mut topics: Vec<Topic> = Vec::new();
    for node in nodes {
        let topic = topic(&Section::new(node, "workload.topic")?, topology, &topics)?;
        if topics.iter().any(|other| other.name == topic.name) {
            return Err(node.error(format!("two topics are named '{}'", topic.name), None));
        }
        topics.push(topic);
    }
    if topics.is_empty() {
        return Err(node.error("a topics workload has at least one topic", None));
    }
    Ok(Topics { topics, seconds })
}

const KEYS: [&str; 10] =
    ["name", "publisher", "subscribers", "period", "phase", "after", "compute", "size", "priority", "deadline"];

fn topic(section: &Section<'_>, topology: &Topology, above: &[Topic]) -> Result<Topic, ConfigError> {
    section.expect(&KEYS)?;
    let name = section.require("name", section.text("name")?)?.to_owned();
    if name.is_empty() || name.contains('.') {
        return Err(section.error_at("name", "a topic's name must not be empty or hold a '.'"));
    }
    let publisher = match section.node("publisher") {
        None => HostName::Server,
        Some(node) => host("publisher", node, topology)?,
    };
    let subscribers = match section.node("subscribers") {
        None if publisher == HostName::Server => (1..=topology.clients).map(HostName::Client).collect(),
        None => vec![HostName::Server],
        Some(node) => {
            let NodeValue::List(nodes) = &node.value else {
                return Err(node.error("'subscribers' is a list of hosts, such as [\"client\", \"client2\"]", None));
            };
            nodes.iter().map(|node| host("subscribers", node, topology)).collect::<Result<Vec<_>, _>>()?
        }
    };
    if subscribers.is_empty() || subscribers.contains(&publisher) {
        let rule = "a topic has at least one subscriber, and its publisher is none of them";
        return Err(section.error_at("subscribers", rule));
    }
    let inputs = inputs(section, publisher, above)?;
    let (period, phase) = times(section, &inputs)?;
    let priority = section.read::<u8>("priority")?.unwrap_or(0);
    if priority > 7 {
        return Err(section.error_at("priority", "'workload.topic.priority' must be 0 to 7"));
    }
    let topic = Topic {
        name,
        publisher,
        subscribers,
        period,
        phase,
        after: inputs.iter().map(|input| input.name.clone()).collect(),
        compute: section.quantity("compute")?.unwrap_or(Span::ZERO),
        size: sizes(section)?,
        priority,
        deadline: section.quantity("deadline")?,
    };
    if topic.after.is_empty() && topic.compute > Span::ZERO {
        return Err(section.error_at(
            "compute",
            "'workload.topic.compute' is the time from the topics in 'after' until a message is published",
        ));
    }
    Ok(topic)
}

/// The topics above this one that it waits for.
fn inputs<'a>(section: &Section<'_>, publisher: HostName, above: &'a [Topic]) -> Result<Vec<&'a Topic>, ConfigError> {
    let Some(node) = section.node("after") else { return Ok(Vec::new()) };
    let rule = "'after' is a list of topics that are above this one, such as [\"camera\", \"lidar\"]";
    let NodeValue::List(nodes) = &node.value else { return Err(node.error(rule, None)) };
    let mut inputs: Vec<&Topic> = Vec::new();
    for node in nodes {
        let NodeValue::Text(name) = &node.value else { return Err(node.error(rule, None)) };
        let input = above.iter().find(|topic| topic.name == *name);
        let input = input.ok_or_else(|| node.error(format!("no topic above this one is named '{name}'"), None))?;
        if !input.subscribers.contains(&publisher) {
            return Err(node.error(format!("{publisher} cannot wait for '{name}': it does not subscribe to it"), None));
        }
        if inputs.first().is_some_and(|first| first.period != input.period) {
            return Err(node.error(format!("'{name}' has another period than the topic before it in 'after'"), None));
        }
        inputs.push(input);
    }
    if inputs.is_empty() {
        return Err(node.error(rule, None));
    }
    Ok(inputs)
}

/// Period and phase: its own, or those of the topics that it waits for.
fn times(section: &Section<'_>, inputs: &[&Topic]) -> Result<(Span, Span), ConfigError> {
    if let Some(first) = inputs.first() {
        for key in ["period", "phase"] {
            if section.node(key).is_some() {
                return Err(section
                    .error_at(key, format!("a topic with 'after' has the '{key}' of the topics that it waits for")));
            }
        }
        let phase = inputs.iter().map(|input| input.phase).max().unwrap_or(Span::ZERO);
        return Ok((first.period, phase));
    }
    let period = section.require("period", section.quantity::<Span>("period")?)?;
    if period == Span::ZERO {
        return Err(section.error_at("period", "'workload.topic.period' must be more than nothing"));
    }
    Ok((period, section.quantity("phase")?.unwrap_or(Span::ZERO)))
}

fn host(key: &str, node: &Node, topology: &Topology) -> Result<HostName, ConfigError> {
    let NodeValue::Text(text) = &node.value else {
        return Err(node.error(format!("'workload.topic.{key}' takes a host's name, such as \"server\""), None));
    };
    let host: HostName = text.parse().map_err(|problem: String| node.error(problem, None))?;
    match host {
        HostName::Client(number) if number > topology.clients => {
            let hint = Some(format!("topology.clients = {number}"));
            Err(node.error(format!("there is no {host}: the topology has {} of them", topology.clients), hint))
        }
        other => Ok(other),
    }
}

fn sizes(section: &Section<'_>) -> Result<Size, ConfigError> {
    let node = section.require("size", section.node("size"))?;
    let NodeValue::Table(_) = &node.value else {
        return Ok(Size::Fixed { bytes: section.require("size", size(section, "size")?)? });
    };
    let table = Section::new(node, "workload.topic.size")?;
    let of = match table.require("distribution", table.text("distribution")?)? {
        "fixed" => Size::Fixed { bytes: table.require("bytes", size(&table, "bytes")?)? },
        "uniform" => {
            let min = table.require("min", size(&table, "min")?)?;
            let max = table.require("max", size(&table, "max")?)?;
            if min > max {
                return Err(table.error_at("min", format!("'min' of {min} is above 'max' of {max}")));
            }
            Size::Uniform { min, max }
        }
        "mixture" => Size::Mixture {
            usual: table.require("usual", size(&table, "usual")?)?,
            rare: table.require("rare", size(&table, "rare")?)?,
            part: table.require("part", table.quantity::<Ratio>("part")?)?,
        },
        other => return Err(unknown(&table, "distribution", other, &["fixed", "uniform", "mixture"])),
    };
    table.finish()?;
    Ok(of)
}
