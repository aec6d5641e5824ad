//! The grammar all quantities share: a decimal number, then a unit.

use thiserror::Error;

/// Why a quantity could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is not {what}; {advice}")]
pub struct ParseError {
    /// What was given.
    pub text: String,
    /// What it should have been, with its article: "a rate".
    pub what: &'static str,
    /// What to write instead.
    pub advice: String,
}

/// Splits `text` into its number and its unit, both trimmed; `None` when no finite number leads.
///
/// A sign is read so that callers can say what is wrong with a negative quantity.
pub(crate) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(at, c)| !(c.is_ascii_digit() || c == '.' || c == '_' || (at == 0 && (c == '-' || c == '+'))))
        .map_or(text.len(), |(at, _)| at);
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

/// Returns `number · scale` as an integer, or `None` when it is negative or past `u64`.
pub(crate) fn scaled(number: f64, scale: f64) -> Option<u64> {
    let value = (number * scale).round();
    (value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)
}

/// Prints `value` in the largest unit that keeps it at or above one, exact to nine decimals.
pub(crate) fn print(f: &mut std::fmt::Formatter<'_>, value: f64, units: &[(f64, &str)]) -> std::fmt::Result {
    let (scale, unit) = units.iter().copied().find(|&(scale, _)| value >= scale).unwrap_or(units[units.len() - 1]);
    let text = format!("{:.9}", value / scale);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    write!(f, "{text}{unit}")
}

/// Implements serde, through the type's own text form, for a quantity.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use serde_as_text;
