//! A TOML document as a tree of nodes that know their places. Trees of several texts can be laid over each other.

use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// Why a scenario or a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}{}", hint.as_ref().map(|hint| format!("\n\nhint: {hint}")).unwrap_or_default())]
pub struct ConfigError {
    /// File and line, or the option it came by.
    pub place: String,
    /// What is wrong, one sentence.
    pub problem: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A value and the place it was written at.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) place: String,
    /// Whether it was written for a table of another kind: its key may be one that this kind does not have.
    of_other_kind: bool,
}

/// A TOML value with its numbers as they were written.
#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    Text(String),
    Number(String),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<(String, Node)>),
}

impl NodeValue {
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Number(_) => "a number",
            Self::Flag(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    /// Reads a TOML text; `name` is what errors call it.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, ConfigError> {
        let line = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| ConfigError {
            place: format!("{name}:{}", error.span().map_or(1, |span| line(span.start))),
            problem: format!("this is not TOML: {} in '{}'", error.message(), line_at(text, &error)),
            hint: None,
        })?;
        let place = |offset: usize| format!("{name}:{}", line(offset));
        Ok(Self::new(place(0), convert_table(table.get_ref(), &place)?))
    }

    /// A value and the place it was written at.
    pub(crate) const fn new(place: String, value: NodeValue) -> Self {
        Self { value, place, of_other_kind: false }
    }

    /// Lays `over` on top of this one: tables are joined key by key, anything else is replaced.
    ///
    /// A key takes the place of its [`ALTERNATIVES`]. Where `over` changes the kind of a table, the keys below that the
    /// new kind does not have are passed over.
    pub(crate) fn overlay(&mut self, over: &Self) {
        self.of_other_kind = false;
        match (&mut self.value, &over.value) {
            (NodeValue::Table(mine), NodeValue::Table(theirs)) => {
                let given = |key: &str| theirs.iter().any(|(name, _)| name == key);
                let replaced = |key: &str| {
                    ALTERNATIVES.iter().any(|keys| keys.contains(&key) && keys.iter().any(|other| given(other)))
                };
                mine.retain(|(key, _)| given(key) || !replaced(key));
                if KINDS
                    .iter()
                    .any(|key| word(mine, key).is_some_and(|was| word(theirs, key).is_some_and(|is| is != was)))
                {
                    mine.iter_mut().for_each(|(_, node)| node.of_other_kind = true);
                }
                for (key, node) in theirs {
                    match mine.iter_mut().find(|(name, _)| name == key) {
                        Some((_, old)) => old.overlay(node),
                        None => mine.push((key.clone(), node.clone())),
                    }
                }
            }
            _ => *self = over.clone(),
        }
    }

    /// Takes `key` out of a table.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Self> {
        let NodeValue::Table(entries) = &mut self.value else { return None };
        let at = entries.iter().position(|(name, _)| name == key)?;
        Some(entries.remove(at).1)
    }

    /// The value at a dotted key, or the nearest table around it: the place of an error about that key.
    pub(crate) fn at(&self, key: &str) -> &Self {
        key.split('.').try_fold(self, |node, part| node.get(part).ok_or(node)).unwrap_or_else(|last| last)
    }

    /// The value of `key` in a table.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let NodeValue::Table(entries) = &self.value else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The value of `key` in a table, to be changed.
    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Self> {
        let NodeValue::Table(entries) = &mut self.value else { return None };
        entries.iter_mut().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// Whether it was written for a table of another kind: its key may be one that this kind does not have.
    pub(crate) const fn is_of_other_kind(&self) -> bool {
        self.of_other_kind
    }

    /// An error about this value.
    pub(crate) fn error(&self, problem: impl Into<String>, hint: Option<String>) -> ConfigError {
        ConfigError { place: self.place.clone(), problem: problem.into(), hint }
    }
}

/// Keys that say which others a table has.
const KINDS: [&str; 3] = ["kind", "model", "distribution"];
/// Keys of which a table has one at most.
const ALTERNATIVES: [&[&str]; 6] = [
    &["bytes", "seconds", "transactions"],
    &["rtt", "delay"],
    &["rate", "trace"],
    &["segments", "packets"],
    &["file", "pace"],
    &["file", "distribution"],
];

/// The text under `key`.
fn word<'a>(entries: &'a [(String, Node)], key: &str) -> Option<&'a str> {
    match &entries.iter().find(|(name, _)| name == key)?.1.value {
        NodeValue::Text(text) => Some(text),
        _ => None,
    }
}

/// The line an error is in.
fn line_at<'a>(text: &'a str, error: &toml::de::Error) -> &'a str {
    let at = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text.get(..at).unwrap_or_default().matches('\n').count();
    text.lines().nth(before).unwrap_or_default().trim()
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> String) -> Result<NodeValue, ConfigError> {
    let mut entries: Vec<(usize, String, Node)> = Vec::new();
    for (key, value) in table {
        let node = convert(value.get_ref(), place(value.span().start), place)?;
        entries.push((key.span().start, key.get_ref().to_string(), Node { place: place(key.span().start), ..node }));
    }
    entries.sort_by_key(|(at, ..)| *at);
    Ok(NodeValue::Table(entries.into_iter().map(|(_, key, node)| (key, node)).collect()))
}

fn convert(value: &DeValue<'_>, at: String, place: &dyn Fn(usize) -> String) -> Result<Node, ConfigError> {
    let value = match value {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            match i64::from_str_radix(digits, number.radix()) {
                Ok(value) => NodeValue::Number(value.to_string()),
                Err(_) => {
                    return Err(ConfigError {
                        place: at,
                        problem: format!("{digits} is too large a number"),
                        hint: None,
                    });
                }
            }
        }
        DeValue::Float(number) => NodeValue::Number(number.as_str().to_owned()),
        DeValue::Boolean(flag) => NodeValue::Flag(*flag),
        DeValue::Datetime(date) => {
            let problem = format!("{date} is a date, which has no meaning here");
            return Err(ConfigError { place: at, problem, hint: None });
        }
        DeValue::Array(items) => NodeValue::List(
            items
                .iter()
                .map(|item| convert(item.get_ref(), place(item.span().start), place))
                .collect::<Result<_, _>>()?,
        ),
        DeValue::Table(table) => convert_table(table, place)?,
    };
    Ok(Node::new(at, value))
}

/// An error about a key that is none of `known`.
pub(crate) fn unknown_key(node: &Node, title: &str, key: &str, known: &[&str]) -> ConfigError {
    let hint = nearest(key, known.iter().copied())
        .map_or_else(|| format!("known here: {}", known.join(", ")), |nearest| format!("did you mean '{nearest}'?"));
    node.error(format!("unknown key '{title}'"), Some(hint))
}

/// An error about the value of `key`, which is none of the words it may be.
pub(crate) fn unknown_word(node: &Node, key: &str, word: &str, known: &[&str]) -> ConfigError {
    let hint = nearest(word, known.iter().copied())
        .map_or_else(|| format!("known: {}", known.join(", ")), |nearest| format!("did you mean '{nearest}'?"));
    node.error(format!("'{word}' is no {key}"), Some(hint))
}

/// The known word most like `word`, when one is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
