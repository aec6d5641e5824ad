//! Reading a TOML document strictly: every key is asked for, and one that nobody asked for is an error that names the
//! line and the nearest key there is.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// Why a scenario cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{place}: {problem}{}", hint.as_ref().map(|hint| format!("\n\nhint: {hint}")).unwrap_or_default())]
pub struct DocumentError {
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
    const fn kind(&self) -> &'static str {
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
    pub(crate) fn parse(name: &str, text: &str) -> Result<Self, DocumentError> {
        let line = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
        let table = DeTable::parse(text).map_err(|error| DocumentError {
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

    /// An error about this value.
    pub(crate) fn error(&self, problem: impl Into<String>, hint: Option<String>) -> DocumentError {
        DocumentError { place: self.place.clone(), problem: problem.into(), hint }
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

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> String) -> Result<NodeValue, DocumentError> {
    let mut entries: Vec<(usize, String, Node)> = Vec::new();
    for (key, value) in table {
        let node = convert(value.get_ref(), place(value.span().start), place)?;
        entries.push((key.span().start, key.get_ref().to_string(), Node { place: place(key.span().start), ..node }));
    }
    entries.sort_by_key(|(at, ..)| *at);
    Ok(NodeValue::Table(entries.into_iter().map(|(_, key, node)| (key, node)).collect()))
}

fn convert(value: &DeValue<'_>, at: String, place: &dyn Fn(usize) -> String) -> Result<Node, DocumentError> {
    let value = match value {
        DeValue::String(text) => NodeValue::Text(text.to_string()),
        DeValue::Integer(number) => {
            let digits = number.as_str();
            match i64::from_str_radix(digits, number.radix()) {
                Ok(value) => NodeValue::Number(value.to_string()),
                Err(_) => {
                    return Err(DocumentError {
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
            return Err(DocumentError { place: at, problem, hint: None });
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

/// A table being read: remembers which keys were asked for, so that the others can be refused.
#[derive(Debug)]
pub(crate) struct Section<'a> {
    node: &'a Node,
    name: String,
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Section<'a> {
    /// Begins to read `node`, which errors call `name`.
    pub(crate) fn new(node: &'a Node, name: &str) -> Result<Self, DocumentError> {
        match &node.value {
            NodeValue::Table(_) => Ok(Self { node, name: name.to_owned(), asked: RefCell::default() }),
            other => Err(node.error(format!("{name} must be a table, not {}", other.kind()), None)),
        }
    }

    fn title(&self, key: &str) -> String {
        if self.name.is_empty() { format!("'{key}'") } else { format!("'{}.{key}'", self.name) }
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
    pub(crate) fn section(&self, key: &str) -> Result<Option<Section<'a>>, DocumentError> {
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        self.node(key).map(|node| Section::new(node, &name)).transpose()
    }

    /// The text or number under `key`, as text.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, DocumentError> {
        self.node(key)
            .map(|node| match &node.value {
                NodeValue::Text(text) | NodeValue::Number(text) => Ok(text.as_str()),
                other => Err(node.error(format!("{} must be a text, not {}", self.title(key), other.kind()), None)),
            })
            .transpose()
    }

    /// The quantity under `key`.
    pub(crate) fn quantity<T>(&self, key: &str) -> Result<Option<T>, DocumentError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let wrong = |error: T::Err| self.error_at(key, format!("{} cannot be read: {error}", self.title(key)));
        text.parse().map(Some).map_err(wrong)
    }

    /// The flag under `key`.
    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, DocumentError> {
        self.node(key)
            .map(|node| match &node.value {
                NodeValue::Flag(flag) => Ok(*flag),
                other => {
                    Err(node.error(format!("{} must be true or false, not {}", self.title(key), other.kind()), None))
                }
            })
            .transpose()
    }

    /// The text under `key`, or the texts in its list.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<Vec<&'a str>>, DocumentError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let nodes = match &node.value {
            NodeValue::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let text = |node: &'a Node| match &node.value {
            NodeValue::Text(text) => Ok(text.as_str()),
            other => Err(node.error(format!("{} must be texts, not {}", self.title(key), other.kind()), None)),
        };
        nodes.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// The value under `key`, which must be there.
    pub(crate) fn require<T>(&self, key: &str, value: Option<T>) -> Result<T, DocumentError> {
        value.ok_or_else(|| self.missing(&[key], self.node.error(format!("{} is missing", self.title(key)), None)))
    }

    /// What is said where none of `keys` is there: that one of them is misspelt, where one seems to be, else `error`.
    pub(crate) fn missing(&self, keys: &[&str], error: DocumentError) -> DocumentError {
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
    pub(crate) fn error_at(&self, key: &str, problem: impl Into<String>) -> DocumentError {
        self.node(key).unwrap_or(self.node).error(problem, None)
    }

    /// Refuses every key that was not asked for, naming the nearest that was.
    pub(crate) fn finish(&self) -> Result<(), DocumentError> {
        let asked = self.asked.borrow();
        for (key, node) in self.entries() {
            if !asked.contains(key) && !node.of_other_kind {
                let hint = nearest(key, asked.iter().map(String::as_str))
                    .map(|nearest| format!("did you mean '{nearest}'?"))
                    .unwrap_or_else(|| format!("known here: {}", asked.iter().cloned().collect::<Vec<_>>().join(", ")));
                return Err(node.error(format!("unknown key {}", self.title(key)), Some(hint)));
            }
        }
        Ok(())
    }
}

/// The known word most like `word`, when one is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
