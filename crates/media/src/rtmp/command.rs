//! Commands (§7.2): a name, a number that the answer repeats, an object, and what else there is.

use super::message::{Message, MessageKind};
use crate::amf::{self, AmfError, Value};

/// A command message.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: String,
    /// What the answer has to repeat; 0 wants none.
    pub(super) transaction: f64,
    /// The command object, then the arguments.
    pub(super) values: Vec<Value>,
}

impl Command {
    /// The command in `message`, whichever AMF it is in.
    pub(super) fn parse(message: &Message) -> Result<Self, AmfError> {
        let mut values = amf::decode(body(message))?.into_iter();
        let Some(Value::String(name)) = values.next() else { return Err(AmfError::Cut) };
        let transaction = values.next().as_ref().and_then(Value::as_number).unwrap_or(0.0);
        Ok(Self { name, transaction, values: values.collect() })
    }

    /// The argument at `at` behind the command object, if it is a string.
    pub(super) fn text(&self, at: usize) -> Option<&str> {
        self.values.get(at + 1)?.as_str()
    }

    /// The argument at `at` behind the command object, if it is a number.
    pub(super) fn number(&self, at: usize) -> Option<f64> {
        self.values.get(at + 1)?.as_number()
    }
}

/// The AMF 0 values of a command or data message: those for AMF 3 begin with a byte that says AMF 0, and switch by marker.
pub(super) fn body(message: &Message) -> &[u8] {
    match message.kind {
        MessageKind::CommandAmf3 | MessageKind::DataAmf3 => {
            message.payload.strip_prefix(&[0]).unwrap_or(&message.payload)
        }
        _ => &message.payload,
    }
}

/// An object of strings and what else is given, as `onStatus` and the answers to `connect` have it.
pub(super) fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

/// What `onStatus` says: `level` is `status` or `error`.
pub(super) fn status(level: &str, code: &str, description: &str) -> Value {
    object(&[("level", level.into()), ("code", code.into()), ("description", description.into())])
}
