//! A serde deserializer over a tree of nodes, whose errors name the place, the key and the nearest key there is.
//!
//! It is for tables whose keys are one type's fields: a new key is a new field. An unknown key is found before any value is read,
//! since serde gives the names of a struct's fields. A number is read by its text, as its type's `FromStr` does.

use crate::node::{ConfigError, Node, NodeValue, unknown_key, unknown_word};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt;

/// Reads a value from `node`, which errors call `title`: its dotted key, empty for the root.
pub(crate) fn deserialize<'a, T: Deserialize<'a>>(node: &'a Node, title: &str) -> Result<T, ConfigError> {
    let reader = Reader { node, title: title.to_owned() };
    T::deserialize(reader.clone()).map_err(|fault| reader.placed(fault))
}

/// An error of serde's, before and after its place is known.
#[derive(Debug)]
enum Fault {
    Placed(ConfigError),
    Text(String),
    MissingKey(&'static str),
    UnknownWord(String, &'static [&'static str]),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed(error) => error.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::MissingKey(key) => write!(f, "'{key}' is missing"),
            Self::UnknownWord(word, _) => write!(f, "'{word}' is not known"),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Text(text.to_string())
    }

    fn missing_field(key: &'static str) -> Self {
        Self::MissingKey(key)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Self::UnknownWord(word.to_owned(), known)
    }
}

#[derive(Clone)]
struct Reader<'a> {
    node: &'a Node,
    title: String,
}

impl<'a> Reader<'a> {
    fn child(&self, key: &str, node: &'a Node) -> Self {
        Self { node, title: self.title_of(key) }
    }

    fn title_of(&self, key: &str) -> String {
        if self.title.is_empty() { key.to_owned() } else { format!("{}.{key}", self.title) }
    }

    /// Gives an error its place, unless a value within has given it one.
    fn placed(&self, fault: Fault) -> ConfigError {
        let Self { node, title } = self;
        match fault {
            Fault::Placed(error) => error,
            Fault::Text(text) => node.error(format!("'{title}' cannot be read: {text}"), None),
            Fault::MissingKey(key) => node.error(format!("'{}' is missing", self.title_of(key)), None),
            Fault::UnknownWord(word, known) => {
                unknown_word(node, title.rsplit('.').next().unwrap_or(title), &word, known)
            }
        }
    }

    fn fail<T>(&self, fault: Fault) -> Result<T, Fault> {
        Err(Fault::Placed(self.placed(fault)))
    }

    fn wrong<T>(&self, wanted: &str) -> Result<T, Fault> {
        let problem = format!("'{}' must be {wanted}, not {}", self.title, self.node.value.kind());
        Err(Fault::Placed(self.node.error(problem, None)))
    }

    fn text(&self) -> Result<&'a str, Fault> {
        match &self.node.value {
            NodeValue::Text(text) | NodeValue::Number(text) => Ok(text),
            _ => self.wrong("a text"),
        }
    }

    fn entries(&self) -> Result<&'a [(String, Node)], Fault> {
        match &self.node.value {
            NodeValue::Table(entries) => Ok(entries),
            _ => self.wrong("a table"),
        }
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
            let text = self.text()?;
            match text.parse::<$type>() {
                Ok(number) => visitor.$visit(number),
                Err(_) => self.fail(Fault::Text(not_whole(text, <$type>::MIN.into(), <$type>::MAX.into()))),
            }
        }
    )*};
}

/// Why a text is no whole number of these bounds.
fn not_whole(text: &str, least: i128, most: i128) -> String {
    match text.parse::<i128>() {
        Ok(number) if number < least => format!("{text} is less than {least}"),
        Ok(_) => format!("{text} is more than {most}"),
        Err(_) => format!("'{text}' is no whole number"),
    }
}

impl<'a> Deserializer<'a> for Reader<'a> {
    type Error = Fault;

    whole_numbers! {
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.text()?;
        match text.parse() {
            Ok(number) => visitor.visit_f64(number),
            Err(_) => self.fail(Fault::Text(format!("'{text}' is no number"))),
        }
    }

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            NodeValue::Text(text) | NodeValue::Number(text) => visitor.visit_borrowed_str(text),
            NodeValue::Flag(flag) => visitor.visit_bool(*flag),
            NodeValue::List(_) => self.deserialize_seq(visitor),
            NodeValue::Table(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = self.text()?;
        visitor.visit_borrowed_str(text).or_else(|fault| self.fail(fault))
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.value {
            NodeValue::Flag(flag) => visitor.visit_bool(flag),
            _ => self.wrong("true or false"),
        }
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    /// A list, or a text as the list of its words.
    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            NodeValue::List(nodes) => {
                let items = nodes.iter().map(|node| Reader { node, title: self.title.clone() });
                visitor.visit_seq(Items(items))
            }
            NodeValue::Text(text) => {
                let words = text.split_whitespace().map(|word| Word { word, of: &self });
                visitor.visit_seq(Items(words))
            }
            _ => self.wrong("a list"),
        }
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        let entries = self.entries()?.iter().collect::<Vec<_>>().into_iter();
        visitor.visit_map(Entries { of: &self, entries, value: None }).or_else(|fault| self.fail(fault))
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let mut known = Vec::new();
        for entry in self.entries()? {
            if fields.contains(&entry.0.as_str()) {
                known.push(entry);
            } else if !entry.1.is_of_other_kind() {
                let title = self.title_of(&entry.0);
                return Err(Fault::Placed(unknown_key(&entry.1, &title, &entry.0, fields)));
            }
        }
        visitor
            .visit_map(Entries { of: &self, entries: known.into_iter(), value: None })
            .or_else(|fault| self.fail(fault))
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text: de::value::BorrowedStrDeserializer<'a, Fault> = de::value::BorrowedStrDeserializer::new(self.text()?);
        visitor.visit_enum(text).or_else(|fault| self.fail(fault))
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        i8 i16 i32 i128 u128 f32 char bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// A word of a text that stands for a list.
struct Word<'a, 'r> {
    word: &'a str,
    of: &'r Reader<'a>,
}

impl<'a> Deserializer<'a> for Word<'a, '_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.word).or_else(|fault| self.of.fail(fault))
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let text: de::value::BorrowedStrDeserializer<'a, Fault> = de::value::BorrowedStrDeserializer::new(self.word);
        visitor.visit_enum(text).or_else(|fault| self.of.fail(fault))
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Items<I>(I);

impl<'a, I> SeqAccess<'a> for Items<I>
where
    I: Iterator<Item: Deserializer<'a, Error = Fault>>,
{
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }
}

struct Entries<'a, 'r> {
    of: &'r Reader<'a>,
    entries: std::vec::IntoIter<&'a (String, Node)>,
    value: Option<Reader<'a>>,
}

impl<'a> MapAccess<'a> for Entries<'a, '_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, node)) = self.entries.next() else { return Ok(None) };
        self.value = Some(self.of.child(key, node));
        seed.deserialize(key.as_str().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let value = self.value.take().expect("invariant: a value is asked for after its key");
        // A field's own function may refuse what was read well.
        seed.deserialize(value.clone()).or_else(|fault| value.fail(fault))
    }
}
