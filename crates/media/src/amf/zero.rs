//! AMF 0, to and from bytes.

use super::{AmfError, Input, Value, three};

const NUMBER: u8 = 0x00;
const BOOLEAN: u8 = 0x01;
const STRING: u8 = 0x02;
const OBJECT: u8 = 0x03;
const NULL: u8 = 0x05;
const UNDEFINED: u8 = 0x06;
const ECMA_ARRAY: u8 = 0x08;
const OBJECT_END: u8 = 0x09;
const STRICT_ARRAY: u8 = 0x0a;
const DATE: u8 = 0x0b;
const LONG_STRING: u8 = 0x0c;
const UNSUPPORTED: u8 = 0x0d;
const XML: u8 = 0x0f;
const TYPED_OBJECT: u8 = 0x10;
const AVM_PLUS: u8 = 0x11;

/// Returns all values that `bytes` are, of AMF 0 or switched to AMF 3 by its marker.
///
/// # Errors
/// [`AmfError`] where they are none; whatever the bytes are, the values take no more than a small multiple of their memory.
pub fn decode(bytes: &[u8]) -> Result<Vec<Value>, AmfError> {
    let mut input = Input::new(bytes);
    let mut values = Vec::new();
    while !input.bytes.is_empty() {
        values.push(value(&mut input)?);
    }
    Ok(values)
}

/// Appends `values` to `out` as AMF 0.
pub fn encode(values: &[Value], out: &mut Vec<u8>) {
    for value in values {
        put(value, out);
    }
}

fn value(input: &mut Input<'_>) -> Result<Value, AmfError> {
    input.one_more()?;
    Ok(match input.u8()? {
        NUMBER => Value::Number(input.f64()?),
        BOOLEAN => Value::Boolean(input.u8()? != 0),
        STRING => Value::String(short(input)?),
        LONG_STRING | XML => {
            let length = input.u32()? as usize;
            Value::String(input.text(length)?)
        }
        OBJECT => Value::Object(input.within(members)?),
        TYPED_OBJECT => {
            short(input)?;
            Value::Object(input.within(members)?)
        }
        ECMA_ARRAY => {
            // The count is a hint that encoders get wrong; the end marker counts.
            input.u32()?;
            Value::EcmaArray(input.within(members)?)
        }
        STRICT_ARRAY => {
            let count = input.u32()?;
            Value::StrictArray(input.within(|input| (0..count).map(|_| value(input)).collect())?)
        }
        DATE => {
            let milliseconds = input.f64()?;
            input.u16()?;
            Value::Date(milliseconds)
        }
        NULL => Value::Null,
        UNDEFINED | UNSUPPORTED => Value::Undefined,
        AVM_PLUS => three::value(input)?,
        marker => return Err(AmfError::Marker(marker)),
    })
}

fn short(input: &mut Input<'_>) -> Result<String, AmfError> {
    let length = input.u16()?;
    input.text(length.into())
}

fn members(input: &mut Input<'_>) -> Result<Vec<(String, Value)>, AmfError> {
    let mut members = Vec::new();
    loop {
        // Some encoders leave the end marker out where the message ends.
        if input.bytes.is_empty() {
            return Ok(members);
        }
        let name = short(input)?;
        if name.is_empty() && input.bytes.first() == Some(&OBJECT_END) {
            input.u8()?;
            return Ok(members);
        }
        members.push((name, value(input)?));
    }
}

fn put(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            out.push(NUMBER);
            out.extend(number.to_be_bytes());
        }
        Value::Boolean(boolean) => out.extend([BOOLEAN, u8::from(*boolean)]),
        Value::String(text) => match u16::try_from(text.len()) {
            Ok(_) => {
                out.push(STRING);
                put_short(text, out);
            }
            Err(_) => {
                out.push(LONG_STRING);
                out.extend((text.len() as u32).to_be_bytes());
                out.extend(text.as_bytes());
            }
        },
        Value::Object(members) => {
            out.push(OBJECT);
            put_members(members, out);
        }
        Value::EcmaArray(members) => {
            out.push(ECMA_ARRAY);
            out.extend((members.len() as u32).to_be_bytes());
            put_members(members, out);
        }
        Value::StrictArray(values) => {
            out.push(STRICT_ARRAY);
            out.extend((values.len() as u32).to_be_bytes());
            encode(values, out);
        }
        Value::Date(milliseconds) => {
            out.push(DATE);
            out.extend(milliseconds.to_be_bytes());
            out.extend([0, 0]);
        }
        Value::Null => out.push(NULL),
        Value::Undefined => out.push(UNDEFINED),
    }
}

fn put_members(members: &[(String, Value)], out: &mut Vec<u8>) {
    for (name, value) in members {
        put_short(name, out);
        put(value, out);
    }
    out.extend([0, 0, OBJECT_END]);
}

/// A name longer than the format can say is cut at a character.
fn put_short(text: &str, out: &mut Vec<u8>) {
    let mut end = text.len().min(u16::MAX.into());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    out.extend((end as u16).to_be_bytes());
    out.extend(&text.as_bytes()[..end]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_connect_command_is_read() {
        // As OBS sends it, cut to two members.
        let mut bytes = b"\x02\x00\x07connect\x00\x3f\xf0\0\0\0\0\0\0\x03\x00\x03app\x02\x00\x04live".to_vec();
        bytes.extend(b"\0\0\x09");
        let values = decode(&bytes).expect("values");
        assert_eq!(values[0].as_str(), Some("connect"));
        assert_eq!(values[1].as_number(), Some(1.0));
        assert_eq!(values[2].get("app").and_then(Value::as_str), Some("live"));
    }

    #[test]
    fn bombs_are_refused() {
        let deep: Vec<u8> = [OBJECT, 0, 1, b'a'].repeat(10_000);
        assert_eq!(decode(&deep), Err(AmfError::Deep));
        assert_eq!(decode(&vec![NULL; super::super::VALUES_MAX + 1]), Err(AmfError::Many));
        assert_eq!(decode(&[STRICT_ARRAY, 0xff, 0xff, 0xff, 0xff]), Err(AmfError::Cut));
        assert_eq!(decode(&[LONG_STRING, 0xff, 0xff, 0xff, 0xff]), Err(AmfError::Cut));
        assert_eq!(decode(&[0x7f]), Err(AmfError::Marker(0x7f)));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            (-1e12f64..1e12).prop_map(Value::Number),
            any::<bool>().prop_map(Value::Boolean),
            ".{0,20}".prop_map(Value::String),
            Just(Value::Null),
            Just(Value::Undefined),
            (0f64..1e13).prop_map(Value::Date),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            let members = prop::collection::vec((".{1,10}", inner.clone()), 0..8);
            prop_oneof![
                members.clone().prop_map(Value::Object),
                members.prop_map(Value::EcmaArray),
                prop::collection::vec(inner, 0..8).prop_map(Value::StrictArray),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in values()) {
            let mut bytes = Vec::new();
            encode(std::slice::from_ref(&value), &mut bytes);
            prop_assert_eq!(decode(&bytes), Ok(vec![value]));
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes);
        }
    }
}
