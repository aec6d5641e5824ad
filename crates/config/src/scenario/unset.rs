//! The `unset` of an arm: keys of the scenario that the arm does without.

use super::matrix;
use crate::node::{ConfigError, Node, NodeValue, nearest};

/// Takes each key that `list` names out of `base`.
///
/// # Errors
/// [`ConfigError`] at the first name that is no key or that `base` does not set.
pub(super) fn apply(base: &mut Node, list: &Node) -> Result<(), ConfigError> {
    let hint = || Some("unset = [\"path.loss\", \"client.sysctl.\\\"net.ipv4.tcp_rmem\\\"\"]".to_owned());
    let NodeValue::List(nodes) = &list.value else {
        return Err(list.error("'unset' must be a list of keys", hint()));
    };
    for node in nodes {
        let NodeValue::Text(key) = &node.value else {
            return Err(node.error("'unset' must be a list of keys", hint()));
        };
        let path = matrix::dotted(key).ok_or_else(|| node.error(format!("'{key}' is no key of a scenario"), hint()))?;
        take(base, &path).map_err(|known| {
            let nearest = path.last().and_then(|last| nearest(last, known.iter().map(String::as_str)));
            let hint = nearest.map(|nearest| format!("did you mean '{nearest}'?"));
            node.error(format!("'{key}' is not set, so that an arm cannot unset it"), hint)
        })?;
    }
    Ok(())
}

/// Takes the value at `path` out; the keys there are at the place where it ends, if it is not there.
fn take(node: &mut Node, path: &[String]) -> Result<(), Vec<String>> {
    let NodeValue::Table(entries) = &mut node.value else { return Err(Vec::new()) };
    let Some(at) = entries.iter().position(|(name, _)| Some(name) == path.first()) else {
        return Err(entries.iter().map(|(name, _)| name.clone()).collect());
    };
    match path {
        [_] => {
            entries.remove(at);
            Ok(())
        }
        [_, below @ ..] => take(&mut entries[at].1, below),
        [] => Err(Vec::new()),
    }
}
