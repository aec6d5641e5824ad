//! From a TOML tree to a [`Scenario`].

mod host;
mod path;
mod workload;

use super::{Arm, Experiment, Scenario};
use crate::document::{DocumentError, Node, NodeValue, Section, nearest};
use crate::expect::Expectation;
use crate::path::Path;
use crate::settings::HostSettings;

pub(super) fn scenario(mut root: Node, set: &[(String, String)]) -> Result<Scenario, DocumentError> {
    let arms = root.remove("arm");
    let expect = root.remove("expect");
    let header = Section::new(&root, "")?;
    let name = header.require("name", header.text("name")?)?.to_owned();
    let about = header.text("about")?.unwrap_or_default().to_owned();
    let kernel = header.text("kernel")?.map(str::to_owned);
    let mut base = root.clone();
    for key in ["name", "about", "kernel"] {
        base.remove(key);
    }

    let mut overlays = Vec::new();
    for (key, value) in set {
        overlays.push(overlay(key, value)?);
    }
    let overlaid = |mut node: Node| -> Result<Experiment, DocumentError> {
        overlays.iter().for_each(|over| node.overlay(over));
        experiment(&node)
    };

    let arms = match arms {
        None => vec![Arm { name: "as given".to_owned(), experiment: overlaid(base)? }],
        Some(Node { value: NodeValue::List(nodes), place }) if nodes.is_empty() => {
            return Err(DocumentError { place, problem: "the list of arms is empty".to_owned(), hint: None });
        }
        Some(Node { value: NodeValue::List(nodes), .. }) => {
            let mut arms: Vec<Arm> = Vec::new();
            for mut node in nodes {
                let name = {
                    let section = Section::new(&node, "arm")?;
                    section.require("name", section.text("name")?)?.to_owned()
                };
                if arms.iter().any(|arm| arm.name == name) {
                    return Err(node.error(format!("two arms are named '{name}'"), None));
                }
                if name.is_empty() || name.contains('/') {
                    return Err(node.error("an arm's name must not be empty or hold a '/'", None));
                }
                node.remove("name");
                let mut merged = base.clone();
                merged.overlay(&node);
                arms.push(Arm { name, experiment: overlaid(merged)? });
            }
            arms
        }
        Some(other) => return Err(other.error("arms are written as [[arm]]", None)),
    };

    Ok(Scenario { expect: expectations(expect, &arms)?, name, about, kernel, arms })
}

fn expectations(node: Option<Node>, arms: &[Arm]) -> Result<Vec<Expectation>, DocumentError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let section = Section::new(&node, "expect")?;
    let mut lines = Vec::new();
    for (key, value) in section.entries() {
        let text = section.require(key, section.text(key)?)?;
        let line = Expectation::parse(key, text).map_err(|problem| value.error(problem, None))?;
        if let Some(unknown) = line.arms().find(|name| !arms.iter().any(|arm| arm.name == **name)) {
            let hint = nearest(unknown, arms.iter().map(|arm| arm.name.as_str()))
                .map(|nearest| format!("did you mean '{nearest}'?"));
            return Err(value.error(format!("no arm is named '{unknown}'"), hint));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Makes a tree of one leaf from `a.b."c.d"` and a value, which is taken as TOML where it is TOML and as text otherwise.
fn overlay(key: &str, value: &str) -> Result<Node, DocumentError> {
    let name = format!("--set {key}={value}");
    let quoted = format!("{key} = {value}");
    let node = Node::parse(&name, &quoted).or_else(|_| {
        let text = toml::Value::String(value.to_owned());
        Node::parse(&name, &format!("{key} = {text}"))
    });
    let mut node = node.map_err(|error| DocumentError {
        place: name.clone(),
        problem: error.problem,
        hint: Some(
            "write it as --set path.rtt=100ms; quote names that hold dots: client.sysctl.\"net.ipv4.tcp_rmem\"".into(),
        ),
    })?;
    rename(&mut node, &name);
    Ok(node)
}

fn rename(node: &mut Node, place: &str) {
    node.place = place.to_owned();
    match &mut node.value {
        NodeValue::Table(entries) => entries.iter_mut().for_each(|(_, node)| rename(node, place)),
        NodeValue::List(nodes) => nodes.iter_mut().for_each(|node| rename(node, place)),
        _ => {}
    }
}

fn experiment(node: &Node) -> Result<Experiment, DocumentError> {
    let root = Section::new(node, "")?;
    for key in ["name", "about", "kernel", "arm", "expect"] {
        root.node(key);
    }
    let path = match root.section("path")? {
        Some(section) => path::read(&section)?,
        None => Path::default(),
    };
    let workload = workload::read(&root.require("workload", root.section("workload")?)?)?;
    let side =
        |key: &str| root.section(key)?.map_or_else(|| Ok(HostSettings::default()), |section| host::read(&section));
    let experiment = Experiment { path, workload, client: side("client")?, server: side("server")? };
    root.finish()?;
    Ok(experiment)
}

fn unknown(section: &Section<'_>, key: &str, word: &str, known: &[&str]) -> DocumentError {
    let hint = nearest(word, known.iter().copied())
        .map_or_else(|| format!("known: {}", known.join(", ")), |nearest| format!("did you mean '{nearest}'?"));
    let mut error = section.error_at(key, format!("'{word}' is no {key}"));
    error.hint = Some(hint);
    error
}
