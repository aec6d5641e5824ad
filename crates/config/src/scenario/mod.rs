//! Scenarios, from a tree in which arms, the matrix and `--set` have been laid over the base.

mod cross;
mod host;
mod matrix;
mod path;
mod topology;
mod unset;
mod workload;

pub(crate) use host::check_socket;

use crate::node::{ConfigError, Node, NodeValue, nearest, unknown_word};
use crate::section::Section;
use std::io;
use thalweg_model::{Arm, Between, Code, Expectation, Experiment, HostSettings, Path, Scenario, Topology};

/// Runs one scenario may make, arms, points of the matrix and repeats multiplied: more is a slip, and would fill the
/// memory with plans before the first guest boots.
pub const RUNS_MAX: usize = 100_000;

/// Keys of a scenario that its arms share.
const OF_THE_SCENARIO: [&str; 6] = ["name", "about", "kernel", "arm", "matrix", "expect"];

/// Reads a file that a scenario names.
type Files<'a> = &'a dyn Fn(&str) -> io::Result<String>;

/// Reads a scenario from TOML. `name` is what errors call the text; `set` are `(key, value)` pairs laid over every
/// arm, keys dotted, as `--set path.rtt=100ms` gives them; `files` reads the files it names.
///
/// # Errors
/// [`ConfigError`] with the line of whatever is malformed, unknown or impossible.
pub fn parse_scenario(
    name: &str,
    text: &str,
    set: &[(String, String)],
    files: &dyn Fn(&str) -> io::Result<String>,
) -> Result<Scenario, ConfigError> {
    scenario(Node::parse(name, text)?, set, files)
}

fn scenario(mut root: Node, set: &[(String, String)], files: Files<'_>) -> Result<Scenario, ConfigError> {
    let arms = root.remove("arm");
    let expect = root.remove("expect");
    let mut matrix = root.remove("matrix");
    let header = Section::new(&root, "")?;
    let name = header.require("name", header.text("name")?)?.to_owned();
    if name.is_empty() {
        return Err(header.error_at("name", "a scenario's name must not be empty"));
    }
    let about = header.text("about")?.unwrap_or_default().to_owned();
    let kernels = kernels(&header)?;
    let mut base = root.clone();
    for key in OF_THE_SCENARIO {
        base.remove(key);
    }

    let mut overlays = Vec::new();
    for (key, value) in set {
        let mut over = overlay(key, value)?;
        match (over.remove("matrix"), &mut matrix) {
            (None, _) => overlays.push(over),
            (Some(over), Some(matrix)) => matrix.overlay(&over),
            (Some(over), None) => matrix = Some(over),
        }
    }
    let axes = matrix.as_ref().map(matrix::axes).transpose()?.unwrap_or_default();
    if let Some(fixed) = overlays.iter().find_map(|over| axes.iter().find(|axis| axis.is_set_by(over))) {
        return Err(fixed.error(
            format!("--set gives '{}' one value, and the matrix gives it several", fixed.key()),
            Some("change the matrix instead: --set 'matrix.initcwnd=[10, 20]'".to_owned()),
        ));
    }

    let bases = named_arms(arms, base, !axes.is_empty())?;
    if matrix::points(&axes).saturating_mul(bases.len()) > RUNS_MAX {
        let problem = format!("the matrix makes more than {RUNS_MAX} runs");
        return Err(matrix.as_ref().unwrap_or(&root).error(problem, None));
    }
    let mut arms = Vec::new();
    for (own, node) in bases {
        for point in matrix::each(&axes) {
            let mut node = node.clone();
            let mut at = Vec::new();
            for (axis, value) in point {
                node.overlay(&value.node);
                at.push((axis.label.clone(), value.label.clone()));
            }
            overlays.iter().for_each(|over| node.overlay(over));
            let words = at.iter().map(|(key, value)| format!("{key} {value}"));
            let name = (!own.is_empty()).then(|| own.clone()).into_iter().chain(words).collect::<Vec<_>>().join(", ");
            arms.push(Arm {
                name,
                own: own.clone(),
                matrix: at,
                baseline: None,
                experiment: experiment(&node, files)?,
            });
        }
    }

    let expect = expectations(expect, &arms)?;
    let mut scenario = Scenario { name, about, kernels, arms, expect };
    scenario.name_baselines();
    Ok(scenario)
}

fn kernels(header: &Section<'_>) -> Result<Vec<String>, ConfigError> {
    let Some(node) = header.node("kernel") else { return Ok(Vec::new()) };
    let nodes = match &node.value {
        NodeValue::List(nodes) if nodes.is_empty() => return Err(node.error("the list of kernels is empty", None)),
        NodeValue::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut kernels: Vec<String> = Vec::new();
    for node in nodes {
        match &node.value {
            NodeValue::Text(text) if kernels.contains(text) => {
                return Err(node.error(format!("kernel {text} is named twice"), None));
            }
            NodeValue::Text(text) if !text.is_empty() => kernels.push(text.clone()),
            // As a number 6.10 would be 6.1.
            _ => return Err(node.error("a kernel is written as a text: kernel = \"6.12\"", None)),
        }
    }
    Ok(kernels)
}

/// The arms before the matrix, each with its name and laid over `base`.
fn named_arms(arms: Option<Node>, base: Node, matrix: bool) -> Result<Vec<(String, Node)>, ConfigError> {
    let nodes = match arms {
        // A point of the matrix needs no other name.
        None => return Ok(vec![(if matrix { String::new() } else { "as given".to_owned() }, base)]),
        Some(Node { value: NodeValue::List(nodes), place, .. }) if nodes.is_empty() => {
            return Err(ConfigError { place, problem: "the list of arms is empty".to_owned(), hint: None });
        }
        Some(Node { value: NodeValue::List(nodes), .. }) => nodes,
        Some(other) => return Err(other.error("arms are written as [[arm]]", None)),
    };
    let mut arms: Vec<(String, Node)> = Vec::new();
    for mut node in nodes {
        let name = {
            let section = Section::new(&node, "arm")?;
            let name = section.require("name", section.text("name")?)?.to_owned();
            if arms.iter().any(|(other, _)| *other == name) {
                return Err(section.error_at("name", format!("two arms are named '{name}'")));
            }
            if name.is_empty() {
                return Err(section.error_at("name", "an arm's name must not be empty"));
            }
            name
        };
        node.remove("name");
        let mut merged = base.clone();
        if let Some(list) = node.remove("unset") {
            unset::apply(&mut merged, &list)?;
        }
        merged.overlay(&node);
        arms.push((name, merged));
    }
    Ok(arms)
}

fn expectations(node: Option<Node>, arms: &[Arm]) -> Result<Vec<Expectation>, ConfigError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let section = Section::new(&node, "expect")?;
    let mut lines = Vec::new();
    for (key, value) in section.entries() {
        let text = section.require(key, section.text(key)?)?;
        let names = arms.iter().map(|arm| arm.name.as_str());
        let line = Expectation::parse(key, text, names).map_err(|problem| value.error(problem, None))?;
        let verdicts: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).chain(["none"]).collect();
        if line.metric == "verdict" && !verdicts.contains(&text.trim()) {
            return Err(unknown_word(value, "verdict", text.trim(), &verdicts));
        }
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
fn overlay(key: &str, value: &str) -> Result<Node, ConfigError> {
    let name = format!("--set {key}={value}");
    let quoted = format!("{key} = {value}");
    let node = Node::parse(&name, &quoted).or_else(|_| {
        let text = toml::Value::String(value.to_owned());
        Node::parse(&name, &format!("{key} = {text}"))
    });
    let mut node = node.map_err(|error| ConfigError {
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

fn experiment(node: &Node, files: Files<'_>) -> Result<Experiment, ConfigError> {
    let root = Section::new(node, "")?;
    // A misspelt table is reported before the keys that are missing because of it.
    for key in ["topology", "path", "workload", "client", "server", "cross"] {
        root.node(key);
    }
    for key in OF_THE_SCENARIO {
        if let Some(node) = root.node(key) {
            let problem = format!("'{key}' belongs to the whole scenario; neither an arm nor --set changes it");
            let hint = if key == "kernel" {
                "--kernel 6.1,6.12 runs every arm on each kernel"
            } else {
                "write it at the top of the scenario"
            };
            return Err(node.error(problem, Some(hint.to_owned())));
        }
    }
    root.finish()?;
    let topology = match root.section("topology")? {
        Some(section) => topology::read(&section)?,
        None => Topology::default(),
    };
    let path = match root.section("path")? {
        Some(section) => path::read(&section, files)?,
        None => Path::default(),
    };
    if let (Between::Switch(switch), Some(node)) = (&topology.between, root.node("topology")) {
        path::holds_a_frame(node.at("buffer"), "a switch's buffer", switch.buffer, path.mtu)?;
    }
    let workload = workload::read(&root.require("workload", root.section("workload")?)?, &topology)?;
    let side = |key: &str| root.node(key).map_or_else(|| Ok(HostSettings::default()), |node| host::read(node, key));
    let cross = cross::read(&root)?;
    let experiment = Experiment { topology, path, workload, cross, client: side("client")?, server: side("server")? };
    together(&experiment).map_err(|(key, problem)| root.error_at(key, problem))?;
    Ok(experiment)
}

/// What is well by itself and impossible together: the key to blame, and why.
fn together(experiment: &Experiment) -> Result<(), (&'static str, String)> {
    let Experiment { topology, path, cross, .. } = experiment;
    let directions = [&path.down, &path.up];
    if matches!(topology.between, Between::Switch(_)) {
        if directions.iter().any(|way| way.rate.is_some() || way.trace.is_some()) {
            let why = "behind a switch the ports have the rate and the buffer: set topology.rate and topology.buffer";
            return Err(("path", format!("{why}, not path.rate")));
        }
        if directions.iter().any(|way| way.policer.is_some()) {
            return Err(("path", "a policer needs a bottleneck, and behind a switch there is none".to_owned()));
        }
    }
    if !cross.is_empty() && topology.between != Between::Shared {
        return Err(("cross", "cross traffic needs a path that is shared: topology.kind = \"shared\"".to_owned()));
    }
    Ok(())
}

fn unknown(section: &Section<'_>, key: &str, word: &str, known: &[&str]) -> ConfigError {
    unknown_word(section.value_or_table(key), key, word, known)
}

#[cfg(test)]
mod tests;
