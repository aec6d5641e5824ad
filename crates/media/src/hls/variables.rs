//! Variables of playlists: `EXT-X-DEFINE`, and the references `{$name}` to them.
//!
//! Source: RFC 8216bis (draft-pantos-hls-rfc8216bis) §4.3, §4.4.2.3.

use super::parse_error::ParseError;
use std::borrow::Cow;

/// Bytes that all references of a playlist may stand for. Each may name a value that was itself made of references.
const SUBSTITUTED_MAX: usize = 1 << 20;

/// Variables and their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    defined: Vec<(String, String)>,
}

impl Variables {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.defined.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What a playlist's variables may refer to outside of its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The variables of the multivariant playlist that a media playlist was found in (`IMPORT`).
    pub multivariant: Option<&'a Variables>,
    /// The names and values in the query of the playlist's own URI, decoded (`QUERYPARAM`).
    pub query: &'a [(String, String)],
}

/// The variables of a playlist that is being read.
#[derive(Debug, Default)]
pub(super) struct Definitions<'a> {
    origin: Origin<'a>,
    variables: Variables,
    substituted: usize,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(origin: Origin<'a>) -> Self {
        Self { origin, ..Self::default() }
    }

    pub(super) fn finish(self) -> Variables {
        self.variables
    }

    /// Takes the attributes of an `EXT-X-DEFINE`.
    pub(super) fn define<'t>(
        &mut self,
        line: usize,
        attribute: impl Fn(&'static str) -> Option<&'t str>,
    ) -> Result<(), ParseError> {
        let none = |from, name: &str| ParseError::NoSource { line, name: name.to_owned(), from };
        let (name, value) = match ["NAME", "IMPORT", "QUERYPARAM"].map(&attribute) {
            [Some(name), None, None] => {
                let value = attribute("VALUE").ok_or(ParseError::Value { line, tag: "EXT-X-DEFINE" })?;
                (name, self.resolve(line, value)?.into_owned())
            }
            [None, Some(name), None] => {
                let value = self.origin.multivariant.and_then(|variables| variables.get(name));
                (name, value.ok_or_else(|| none("the multivariant playlist", name))?.to_owned())
            }
            [None, None, Some(name)] => {
                let value = self.origin.query.iter().find(|(known, value)| known == name && !value.is_empty());
                (name, value.ok_or_else(|| none("the query of the playlist's URI", name))?.1.clone())
            }
            _ => return Err(ParseError::Value { line, tag: "EXT-X-DEFINE" }),
        };
        if !is_name(name) {
            return Err(ParseError::Value { line, tag: "EXT-X-DEFINE" });
        }
        if self.variables.get(name).is_some() {
            return Err(ParseError::DefinedTwice { line, name: name.to_owned() });
        }
        self.variables.defined.push((name.to_owned(), value));
        Ok(())
    }

    /// `text` with values in place of references.
    pub(super) fn resolve<'t>(&mut self, line: usize, text: &'t str) -> Result<Cow<'t, str>, ParseError> {
        let mut resolved = String::new();
        let (mut rest, mut begin) = (text, 0);
        while let Some(at) = rest[begin..].find("{$") {
            let at = begin + at;
            let name = rest[at + 2..].split_once('}').map(|(name, _)| name).filter(|name| is_name(name));
            let Some(name) = name else {
                begin = at + 2;
                continue;
            };
            let undefined = || ParseError::Undefined { line, name: name.to_owned() };
            let value = self.variables.get(name).ok_or_else(undefined)?;
            self.substituted += value.len();
            if self.substituted > SUBSTITUTED_MAX {
                return Err(ParseError::Substituted { line });
            }
            resolved.push_str(&rest[..at]);
            resolved.push_str(value);
            (rest, begin) = (&rest[at + 2 + name.len() + 1..], 0);
        }
        if rest.len() == text.len() {
            return Ok(Cow::Borrowed(text));
        }
        resolved.push_str(rest);
        Ok(Cow::Owned(resolved))
    }
}

/// Whether it is made of what a variable's name may hold (§4.3).
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}
