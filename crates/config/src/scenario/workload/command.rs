//! The programs of a `command` workload.

use crate::node::{ConfigError, NodeValue};
use crate::section::Section;
use std::collections::BTreeMap;
use thalweg_model::Command;
use thalweg_units::Span;

/// Virtual time a program gets unless something else is said.
const TIMEOUT: Span = Span::from_millis(600_000);

pub(super) fn read(section: &Section<'_>) -> Result<Command, ConfigError> {
    let client = section.require("client", words(section, "client")?)?;
    let times = section.read::<u32>("times")?.unwrap_or(1);
    if times == 0 {
        return Err(section.error_at("times", "'workload.times' must be at least 1"));
    }
    let (files, figures) = (texts(section, "files")?, texts(section, "figures")?);
    for name in files.keys() {
        if name.is_empty() || name.contains('/') || name == ".." || name == "." {
            return Err(section.error_at("files", format!("'{name}' is no name of a file; folders are not made")));
        }
    }
    if let Some(table) = section.section("figures")? {
        for (name, node) in table.entries() {
            if name.is_empty() || name.contains(['.', '/']) {
                return Err(node.error(format!("a figure's name must not be empty or hold '.' or '/': '{name}'"), None));
            }
            Command::figure_pattern(figures.get(name).map_or("", String::as_str))
                .map_err(|wrong| node.error(format!("'workload.figures.{name}' cannot be used: {wrong}"), None))?;
        }
    }
    let timeout = section.quantity("timeout")?.unwrap_or(TIMEOUT);
    if timeout == Span::ZERO {
        return Err(section.error_at("timeout", "'workload.timeout' must be more than nothing"));
    }
    let (server, port) = (words(section, "server")?, section.read("port")?);
    if port.is_some() && server.is_none() {
        return Err(section.error_at("port", "'workload.port' is what a server listens on, and there is no 'server'"));
    }
    Ok(Command { server, port, client, times, timeout, files, figures })
}

/// A program and its arguments: a list, or a text that is split at white space.
fn words(section: &Section<'_>, key: &str) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    let wrong =
        || node.error(format!("'workload.{key}' is a program and its arguments: a text or a list of texts"), None);
    let words: Vec<String> = match &node.value {
        NodeValue::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
        NodeValue::List(nodes) => nodes
            .iter()
            .map(|node| match &node.value {
                NodeValue::Text(text) | NodeValue::Number(text) => Ok(text.clone()),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    if words.first().is_none_or(String::is_empty) { Err(wrong()) } else { Ok(Some(words)) }
}

fn texts(section: &Section<'_>, key: &str) -> Result<BTreeMap<String, String>, ConfigError> {
    let Some(table) = section.section(key)? else { return Ok(BTreeMap::new()) };
    let mut texts = BTreeMap::new();
    for (name, _) in table.entries() {
        texts.insert(name.clone(), table.require(name, table.text(name)?)?.to_owned());
    }
    Ok(texts)
}
