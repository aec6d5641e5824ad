//! A strict reader of tables: every key is asked for, and one that nobody asked for is an error that names the line and the nearest
//! key there is.
//!
//! It is for tables that no derived type can read with as good an error: values that are a text or a table, keys that depend on
//! another's value, and keys that exclude each other.

use crate::deserialize::deserialize;
use crate::node::{ConfigError, Node, NodeValue, unknown_key};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;

/// A table being read: remembers which keys were asked for, so that the others can be refused.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    node: &'a Node,
    name: String,
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Section<'a> {
    /// Begins to read `node`, which errors call `name`.
    pub(crate) fn new(node: &'a Node, name: &str) -> Result<Self, ConfigError> {
        match &node.value {
            NodeValue::Table(_) => Ok(Self { node, name: name.to_owned(), asked: RefCell::default() }),
            other => Err(node.error(format!("{name} must be a table, not {}", other.kind()), None)),
        }
    }

    fn title(&self, key: &str) -> String {
        format!("'{}'", self.dotted(key))
    }

    fn dotted(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    /// The value under `key`, whose keys are the fields of a type; `None` where the key is not there.
    pub(crate) fn read<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, ConfigError> {
        self.node(key).map(|node| deserialize(node, &self.dotted(key))).transpose()
    }

    /// The table's entries in the order they were written, for tables whose keys are free.
    pub(crate) fn entries(&self) -> &'a [(String, Node)] {
        match &self.node.value {
            NodeValue::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The value of `key`.
    pub(crate) fn node(&self, key: &str) -> Option<&'a Node> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.entries().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The table under `key`.
    pub(crate) fn section(&self, key: &str) -> Result<Option<Section<'a>>, ConfigError> {
        self.node(key).map(|node| Section::new(node, &self.dotted(key))).transpose()
    }

    /// The text or number under `key`, as text.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        self.node(key)
            .map(|node| match &node.value {
                NodeValue::Text(text) | NodeValue::Number(text) => Ok(text.as_str()),
                other => Err(node.error(format!("{} must be a text, not {}", self.title(key), other.kind()), None)),
            })
            .transpose()
    }

    /// The quantity under `key`.
    pub(crate) fn quantity<T>(&self, key: &str) -> Result<Option<T>, ConfigError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let wrong = |error: T::Err| self.error_at(key, format!("{} cannot be read: {error}", self.title(key)));
        text.parse().map(Some).map_err(wrong)
    }

    /// The flag under `key`.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, ConfigError> {
        self.node(key)
            .map(|node| match &node.value {
                NodeValue::Flag(flag) => Ok(*flag),
                other => {
                    Err(node.error(format!("{} must be true or false, not {}", self.title(key), other.kind()), None))
                }
            })
            .transpose()
    }

    /// The value under `key`, which must be there.
    pub(crate) fn require<T>(&self, key: &str, value: Option<T>) -> Result<T, ConfigError> {
        value.ok_or_else(|| self.missing(&[key], self.node.error(format!("{} is missing", self.title(key)), None)))
    }

    /// What is said where none of `keys` is there: that one of them is misspelt, where one seems to be, else `error`.
    pub(crate) fn missing(&self, keys: &[&str], error: ConfigError) -> ConfigError {
        let asked = self.asked.borrow();
        let others = self.entries().iter().filter(|(name, _)| !asked.contains(name));
        let slip = |name: &str, key: &&str| strsim::damerau_levenshtein(name, key) <= 1 + usize::from(key.len() > 7);
        let slips =
            others.filter_map(|(name, node)| keys.iter().find(|key| slip(name, key)).map(|key| (name, node, key)));
        slips.into_iter().next().map_or(error, |(name, node, key)| {
            node.error(format!("unknown key {}", self.title(name)), Some(format!("did you mean '{key}'?")))
        })
    }

    /// An error about `key`.
    pub(crate) fn error_at(&self, key: &str, problem: impl Into<String>) -> ConfigError {
        self.value_or_table(key).error(problem, None)
    }

    /// The value of `key`, or the table where it is not there: the place of an error about it.
    pub(crate) fn value_or_table(&self, key: &str) -> &'a Node {
        self.node(key).unwrap_or(self.node)
    }

    /// Refuses keys that are none of these, before what the others say is judged together: a misspelt key leaves a default behind, which may not go
    /// with them.
    pub(crate) fn expect(&self, keys: &[&str]) -> Result<(), ConfigError> {
        self.asked.borrow_mut().extend(keys.iter().map(|key| (*key).to_owned()));
        self.finish()
    }

    /// Refuses every key that was not asked for, naming the nearest that was.
    pub(crate) fn finish(&self) -> Result<(), ConfigError> {
        let asked = self.asked.borrow();
        for (key, node) in self.entries() {
            if !asked.contains(key) && !node.is_of_other_kind() {
                let known: Vec<&str> = asked.iter().map(String::as_str).collect();
                return Err(unknown_key(node, &self.dotted(key), key, &known));
            }
        }
        Ok(())
    }
}
