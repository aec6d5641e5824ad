//! What must not be seen: keys and tokens, and where they come from.

use crate::document::{DocumentError, NodeValue, Section};
use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

/// A text that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Where a secret is kept when the configuration does not hold it itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A file with nothing else in it.
    File(PathBuf),
    /// A variable of the environment.
    Env(String),
}

/// Fetches a secret, or says why it cannot be had.
pub type FetchSecret<'a> = dyn Fn(&SecretSource) -> Result<String, String> + 'a;

/// The secret under `key`: a text, `{ file = … }` or `{ env = … }`.
pub(super) fn secret(
    section: &Section<'_>,
    key: &str,
    fetch: &FetchSecret<'_>,
) -> Result<Option<Secret>, DocumentError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    let text = match (&node.value, section) {
        (NodeValue::Table(_), _) => {
            let Some(from) = section.section(key)? else { return Ok(None) };
            let source = match (from.text("file")?, from.text("env")?) {
                (Some(path), None) => SecretSource::File(path.into()),
                (None, Some(name)) => SecretSource::Env(name.to_owned()),
                _ => return Err(section.error_at(key, format!("{key} is a text, or has one of 'file' and 'env'"))),
            };
            from.finish()?;
            fetch(&source).map_err(|why| section.error_at(key, format!("{key} cannot be had: {why}")))?
        }
        _ => section.text(key)?.unwrap_or_default().to_owned(),
    };
    match text.len() {
        0..8 => Err(section.error_at(key, format!("{key} has fewer than 8 characters"))),
        _ => Ok(Some(Secret(text))),
    }
}
