//! Action Message Format, versions 0 and 3: the values that RTMP's commands and metadata are made of.
//!
//! Source: Adobe, "Action Message Format -- AMF 0" (2007) and "AMF 3" (2013).

mod three;
mod zero;

pub use zero::{decode, encode};

/// A value of either version. What AMF can say and RTMP never uses (references, dates' time zones) is not kept.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// An IEEE 754 double: AMF 0 has no other number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Text, of either length form, and XML.
    String(String),
    /// Named values, in their order.
    Object(Vec<(String, Value)>),
    /// Named values that are sent as an array, as `onMetaData` is.
    EcmaArray(Vec<(String, Value)>),
    /// Values in a row.
    StrictArray(Vec<Value>),
    /// Milliseconds since 1970.
    Date(f64),
    /// Null.
    Null,
    /// Undefined, unsupported, and bytes nobody reads.
    Undefined,
}

impl Value {
    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The number of a number.
    pub const fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The value named `name` of an object or array.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(named) | Self::EcmaArray(named) => {
                named.iter().find(|(n, _)| n == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// Why bytes are no AMF values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmfError {
    /// The bytes end within a value.
    #[error("an AMF value is cut off")]
    Cut,
    /// A marker that neither version has, or that cannot occur here.
    #[error("no AMF value begins with the marker {0:#04x}")]
    Marker(u8),
    /// Objects within objects past [`DEPTH_MAX`].
    #[error("AMF objects are nested more than {DEPTH_MAX} deep")]
    Deep,
    /// More values than [`VALUES_MAX`] in a message.
    #[error("a message holds more than {VALUES_MAX} AMF values")]
    Many,
    /// An AMF 3 reference to something that was not sent.
    #[error("an AMF 3 reference points to nothing")]
    Reference,
}

/// How deep objects may be nested. Encoders in use nest two deep.
pub const DEPTH_MAX: usize = 16;
/// How many values a message may hold. `onMetaData` of a recorded file with a keyframe index holds a few thousand.
pub const VALUES_MAX: usize = 16_384;

/// What is left to read, and how much may still be made of it.
struct Input<'a> {
    bytes: &'a [u8],
    values: usize,
    depth: usize,
}

impl<'a> Input<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, values: VALUES_MAX, depth: DEPTH_MAX }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8], AmfError> {
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(AmfError::Cut)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], AmfError> {
        let taken = self.take(N)?;
        Ok(taken.try_into().expect("invariant: N bytes were taken"))
    }

    fn u8(&mut self) -> Result<u8, AmfError> {
        Ok(self.array::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, AmfError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, AmfError> {
        self.array().map(u32::from_be_bytes)
    }

    fn f64(&mut self) -> Result<f64, AmfError> {
        self.array().map(f64::from_be_bytes)
    }

    fn text(&mut self, n: usize) -> Result<String, AmfError> {
        Ok(String::from_utf8_lossy(self.take(n)?).into_owned())
    }

    fn one_more(&mut self) -> Result<(), AmfError> {
        self.values = self.values.checked_sub(1).ok_or(AmfError::Many)?;
        Ok(())
    }

    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, AmfError>) -> Result<T, AmfError> {
        self.depth = self.depth.checked_sub(1).ok_or(AmfError::Deep)?;
        let value = read(self)?;
        self.depth += 1;
        Ok(value)
    }
}
