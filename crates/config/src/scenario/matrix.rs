//! The `[matrix]` of a scenario: values that are tried in all their combinations.

use crate::node::{ConfigError, Node, NodeValue, nearest};

/// Bare words that mean a key of the path, `path.rtt` and so on.
const PATH: [&str; 17] = [
    "rtt",
    "delay",
    "jitter",
    "loss",
    "duplicate",
    "corrupt",
    "reorder",
    "black_hole",
    "rate",
    "trace",
    "overhead",
    "burst",
    "queue",
    "discipline",
    "ecn",
    "mtu",
    "offloads",
];
/// Bare words that mean a key of the topology.
const TOPOLOGY: [&str; 1] = ["clients"];
/// Bare words that mean the server's: it sends in a download.
const ROUTE: [&str; 9] =
    ["initcwnd", "initrwnd", "cwnd", "ssthresh", "rto_min", "quickack", "congctl", "advmss", "features"];
const SOCKET: [&str; 10] = [
    "congestion",
    "sndbuf",
    "rcvbuf",
    "notsent_lowat",
    "nodelay",
    "max_pacing_rate",
    "fastopen",
    "window_clamp",
    "delack_max",
    "user_timeout",
];
/// What a dotted key may begin with.
const TABLES: [&str; 5] = ["path", "workload", "client", "server", "topology"];

/// One key of the matrix, with the values it takes.
#[derive(Debug)]
pub(super) struct Axis {
    /// What names of arms call it: the key's last part, or all of it where two keys end alike.
    pub(super) label: String,
    pub(super) values: Vec<Value>,
    path: Vec<String>,
    place: String,
}

/// One value of a key.
#[derive(Debug)]
pub(super) struct Value {
    /// What names of arms call it.
    pub(super) label: String,
    /// A tree with this one leaf, to be laid over an arm.
    pub(super) node: Node,
}

impl Axis {
    /// The key, dotted.
    pub(super) fn key(&self) -> String {
        self.path.join(".")
    }

    /// Whether `over` holds a value for the key, or for a part or the whole of it.
    pub(super) fn is_set_by(&self, over: &Node) -> bool {
        let mut node = over;
        for part in &self.path {
            let NodeValue::Table(entries) = &node.value else { return true };
            match entries.iter().find(|(key, _)| key == part) {
                Some((_, next)) => node = next,
                None => return false,
            }
        }
        true
    }

    /// An error about this key.
    pub(super) fn error(&self, problem: String, hint: Option<String>) -> ConfigError {
        ConfigError { place: self.place.clone(), problem, hint }
    }
}

/// Reads the keys in the order they were written.
pub(super) fn axes(matrix: &Node) -> Result<Vec<Axis>, ConfigError> {
    let NodeValue::Table(entries) = &matrix.value else {
        return Err(matrix.error("'matrix' must be a table of lists", hint()));
    };
    let mut axes: Vec<Axis> = Vec::new();
    for (key, node) in entries {
        flatten(resolve(key, node)?, node, &mut axes)?;
    }
    let keys: Vec<Vec<String>> = axes.iter().map(|axis| axis.path.clone()).collect();
    for (at, axis) in axes.iter_mut().enumerate() {
        let others = || keys.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, key)| key);
        if others().any(|key| *key == axis.path) {
            return Err(axis.error(format!("'{}' is in the matrix twice", axis.key()), None));
        }
        if others().any(|key| key.last() == axis.path.last()) {
            axis.label = axis.key();
        }
    }
    Ok(axes)
}

/// How many points the matrix has.
pub(super) fn points(axes: &[Axis]) -> usize {
    axes.iter().fold(1, |points, axis| points.saturating_mul(axis.values.len()))
}

/// The points, the last key turning fastest; one point without keys where the matrix is empty.
pub(super) fn each(axes: &[Axis]) -> impl Iterator<Item = Vec<(&Axis, &Value)>> {
    (0..points(axes)).map(move |mut point| {
        let mut at: Vec<(&Axis, &Value)> = axes
            .iter()
            .rev()
            .map(|axis| {
                let value = &axis.values[point % axis.values.len()];
                point /= axis.values.len();
                (axis, value)
            })
            .collect();
        at.reverse();
        at
    })
}

/// What a key of the table means: a dotted path as `--set` takes it, or a bare word.
fn resolve(key: &str, node: &Node) -> Result<Vec<String>, ConfigError> {
    let path = dotted(key).ok_or_else(|| node.error(format!("'{key}' is no key of a scenario"), hint()))?;
    let [word] = path.as_slice() else {
        return match TABLES.contains(&path[0].as_str()) {
            true => Ok(path),
            false => Err(unknown(key, &path[0], node, TABLES.into_iter().collect())),
        };
    };
    let tables: &[&str] = match word.as_str() {
        // An unquoted dotted key: the rest of it is below.
        word if TABLES.contains(&word) && matches!(node.value, NodeValue::Table(_)) => &[],
        word if PATH.contains(&word) => &["path"],
        word if TOPOLOGY.contains(&word) => &["topology"],
        word if ROUTE.contains(&word) => &["server", "route"],
        word if SOCKET.contains(&word) => &["server", "socket"],
        _ => return Err(unknown(key, word, node, words().collect())),
    };
    Ok(tables.iter().map(|table| (*table).to_owned()).chain([word.clone()]).collect())
}

/// Every bare word.
fn words() -> impl Iterator<Item = &'static str> {
    PATH.into_iter().chain(TOPOLOGY).chain(ROUTE).chain(SOCKET)
}

/// Takes a key apart where it is dotted; quoted parts keep their dots.
pub(super) fn dotted(key: &str) -> Option<Vec<String>> {
    let mut node = Node::parse("key", &format!("{key} = 0")).ok()?;
    let mut path = Vec::new();
    while let NodeValue::Table(entries) = node.value {
        let [(part, below)] = <[(String, Node); 1]>::try_from(entries).ok()?;
        path.push(part);
        node = below;
    }
    Some(path)
}

fn flatten(path: Vec<String>, node: &Node, axes: &mut Vec<Axis>) -> Result<(), ConfigError> {
    match &node.value {
        NodeValue::Table(entries) => {
            for (key, below) in entries {
                flatten(path.iter().cloned().chain([key.clone()]).collect(), below, axes)?;
            }
            Ok(())
        }
        NodeValue::List(values) if !values.is_empty() => {
            let mut axis = Axis {
                label: path.last().cloned().unwrap_or_default(),
                values: Vec::new(),
                path,
                place: node.place.clone(),
            };
            for value in values {
                let label = label(value);
                if axis.values.iter().any(|other| other.label == label) {
                    return Err(value.error(format!("'{}' is {label} twice", axis.key()), None));
                }
                axis.values.push(Value { label, node: tree(&axis.path, value) });
            }
            axes.push(axis);
            Ok(())
        }
        _ => Err(node.error(format!("'matrix.{}' must be a list of values", path.join(".")), hint())),
    }
}

/// A tree with `leaf` at `path`.
fn tree(path: &[String], leaf: &Node) -> Node {
    path.iter()
        .rev()
        .fold(leaf.clone(), |below, part| Node::new(leaf.place.clone(), NodeValue::Table(vec![(part.clone(), below)])))
}

/// A value as names of arms have it.
fn label(value: &Node) -> String {
    match &value.value {
        NodeValue::Text(text) | NodeValue::Number(text) => text.clone(),
        NodeValue::Flag(flag) => flag.to_string(),
        NodeValue::List(nodes) => nodes.iter().map(label).collect::<Vec<_>>().join(" "),
        NodeValue::Table(entries) => {
            entries.iter().map(|(key, node)| format!("{key} {}", label(node))).collect::<Vec<_>>().join(" ")
        }
    }
}

fn unknown(key: &str, word: &str, node: &Node, known: Vec<&str>) -> ConfigError {
    let hint = nearest(word, known.iter().copied().chain(TABLES)).map_or_else(
        || format!("a whole key, such as \"server.route.initcwnd\", or one of {}", known.join(", ")),
        |nearest| format!("did you mean '{nearest}'?"),
    );
    node.error(format!("the matrix knows no key '{key}'"), Some(hint))
}

fn hint() -> Option<String> {
    Some("write it as initcwnd = [10, 20] or \"path.rtt\" = [\"10ms\", \"100ms\"]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::Section;

    #[test]
    fn every_bare_word_is_a_key_the_reader_takes() {
        for word in words() {
            let matrix = Node::parse("m", &format!("{word} = [0]")).expect("TOML");
            let axes = axes(&matrix).expect(word);
            let NodeValue::Table(tables) = &axes[0].values[0].node.value else { panic!("{word} is in no table") };
            let (table, below) = &tables[0];
            let section = Section::new(below, table).expect("a table");
            let error = match table.as_str() {
                "path" => {
                    let none = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
                    super::super::path::read(&section, &none).err()
                }
                "topology" => super::super::topology::read(&section).err(),
                "server" => super::super::host::read(below, table).err(),
                other => panic!("{word} is in '{other}'"),
            };
            // 0 is not always a good value; the key must be known.
            let problem = error.map(|error| error.problem).unwrap_or_default();
            assert!(!problem.contains("unknown key"), "{word}: {problem}");
        }
    }
}
