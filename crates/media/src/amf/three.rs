//! AMF 3, from bytes: what Flash-era encoders send in commands of type 17. Nothing of ours is sent in it.

use super::{AmfError, Input, Value};

const UNDEFINED: u8 = 0x00;
const NULL: u8 = 0x01;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const INTEGER: u8 = 0x04;
const DOUBLE: u8 = 0x05;
const STRING: u8 = 0x06;
const XML_DOCUMENT: u8 = 0x07;
const DATE: u8 = 0x08;
const ARRAY: u8 = 0x09;
const OBJECT: u8 = 0x0a;
const XML: u8 = 0x0b;
const BYTE_ARRAY: u8 = 0x0c;

/// Strings and the shapes of objects may be referred to by number; a reference to a whole object is not followed.
#[derive(Default)]
struct Seen {
    strings: Vec<String>,
    traits: Vec<(bool, Vec<String>)>,
}

/// Returns the value at the head of `input`.
pub(super) fn value(input: &mut Input<'_>) -> Result<Value, AmfError> {
    one(input, &mut Seen::default())
}

fn one(input: &mut Input<'_>, seen: &mut Seen) -> Result<Value, AmfError> {
    input.one_more()?;
    Ok(match input.u8()? {
        UNDEFINED => Value::Undefined,
        NULL => Value::Null,
        FALSE => Value::Boolean(false),
        TRUE => Value::Boolean(true),
        INTEGER => {
            // 29 bits, two's complement.
            let bits = u29(input)?;
            Value::Number(f64::from(((bits << 3) as i32) >> 3))
        }
        DOUBLE => Value::Number(input.f64()?),
        STRING => Value::String(string(input, seen)?),
        XML_DOCUMENT | XML => match inline(input)? {
            Some(length) => Value::String(input.text(length)?),
            None => Value::Undefined,
        },
        BYTE_ARRAY => {
            if let Some(length) = inline(input)? {
                input.take(length)?;
            }
            Value::Undefined
        }
        DATE => match inline(input)? {
            Some(_) => Value::Date(input.f64()?),
            None => Value::Undefined,
        },
        ARRAY => match inline(input)? {
            Some(count) => input.within(|input| array(input, seen, count))?,
            None => Value::Undefined,
        },
        OBJECT => {
            let header = u29(input)?;
            if header & 1 == 0 {
                return Ok(Value::Undefined);
            }
            input.within(|input| object(input, seen, header))?
        }
        marker => return Err(AmfError::Marker(marker)),
    })
}

fn array(input: &mut Input<'_>, seen: &mut Seen, count: usize) -> Result<Value, AmfError> {
    let mut named = Vec::new();
    loop {
        let name = string(input, seen)?;
        if name.is_empty() {
            break;
        }
        named.push((name, one(input, seen)?));
    }
    if named.is_empty() {
        return (0..count).map(|_| one(input, seen)).collect::<Result<_, _>>().map(Value::StrictArray);
    }
    for index in 0..count {
        named.push((index.to_string(), one(input, seen)?));
    }
    Ok(Value::EcmaArray(named))
}

fn object(input: &mut Input<'_>, seen: &mut Seen, header: u32) -> Result<Value, AmfError> {
    let (dynamic, names) = if header & 2 == 0 {
        seen.traits.get((header >> 2) as usize).cloned().ok_or(AmfError::Reference)?
    } else if header & 4 != 0 {
        // An externalizable class: only its program knows how long it is.
        return Err(AmfError::Marker(OBJECT));
    } else {
        let dynamic = header & 8 != 0;
        string(input, seen)?;
        let mut names = Vec::new();
        for _ in 0..header >> 4 {
            input.one_more()?;
            names.push(string(input, seen)?);
        }
        seen.traits.push((dynamic, names.clone()));
        (dynamic, names)
    };
    let mut members = Vec::new();
    for name in names {
        members.push((name, one(input, seen)?));
    }
    if dynamic {
        loop {
            let name = string(input, seen)?;
            if name.is_empty() {
                break;
            }
            members.push((name, one(input, seen)?));
        }
    }
    Ok(Value::Object(members))
}

fn string(input: &mut Input<'_>, seen: &mut Seen) -> Result<String, AmfError> {
    let header = u29(input)?;
    if header & 1 == 0 {
        // Each use counts as a value, so that many references to a long string do not make much of few bytes.
        let text = seen.strings.get((header >> 1) as usize).ok_or(AmfError::Reference)?;
        input.values = input.values.checked_sub(1 + text.len() / 64).ok_or(AmfError::Many)?;
        return Ok(text.clone());
    }
    let text = input.text((header >> 1) as usize)?;
    if !text.is_empty() {
        seen.strings.push(text.clone());
    }
    Ok(text)
}

/// A length or count that is given here; `None` for a reference to an earlier object.
fn inline(input: &mut Input<'_>) -> Result<Option<usize>, AmfError> {
    let header = u29(input)?;
    Ok((header & 1 != 0).then_some((header >> 1) as usize))
}

/// A number of 29 bits, in one to four bytes.
fn u29(input: &mut Input<'_>) -> Result<u32, AmfError> {
    let mut number = 0;
    for _ in 0..3 {
        let byte = input.u8()?;
        number = number << 7 | u32::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Ok(number << 8 | u32::from(input.u8()?))
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    #[test]
    fn an_object_with_a_sealed_and_a_dynamic_member_is_read() {
        // {app: "live"} sealed, then n = -1 dynamic; behind AMF 0's switch.
        let bytes = b"\x11\x0a\x1b\x01\x07app\x06\x09live\x03n\x04\xff\xff\xff\xff\x01";
        let values = decode(bytes).expect("values");
        assert_eq!(values, [Value::Object(vec![("app".into(), "live".into()), ("n".into(), Value::Number(-1.0))])]);
    }

    #[test]
    fn references_are_followed_or_refused() {
        // ["ab", "ab" by reference].
        assert_eq!(
            decode(b"\x11\x09\x05\x01\x06\x05ab\x06\x00"),
            Ok(vec![Value::StrictArray(vec!["ab".into(), "ab".into()])])
        );
        assert_eq!(decode(b"\x11\x06\x02"), Err(AmfError::Reference));
    }

    #[test]
    fn few_bytes_do_not_become_much() {
        let mut bytes = b"\x11\x09\x87\xff\xff\x01\x06\x87\xff\x7f".to_vec();
        bytes.extend(vec![b'x'; 16_383]);
        bytes.extend(b"\x06\x00".repeat(10_000));
        assert!(decode(&bytes).is_err());
    }
}
