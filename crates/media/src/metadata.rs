//! `onMetaData`: what a publisher says of its stream before the stream comes.

use crate::amf::{self, Value};

/// Whether metadata, as a script tag carries it, says that there is video: a codec, a width, or the flag.
///
/// Encoders write a codec as a number or in letters; a relay writes 0 where it does not know.
pub fn announces_video(payload: &[u8]) -> bool {
    announces(payload, &["videocodecid", "width", "hasVideo"])
}

/// Whether metadata, as a script tag carries it, says that there is sound: a codec, a rate, or the flag.
pub fn announces_sound(payload: &[u8]) -> bool {
    announces(payload, &["audiocodecid", "audiosamplerate", "hasAudio"])
}

fn announces(payload: &[u8], names: &[&str]) -> bool {
    let Ok(values) = amf::decode(payload) else { return false };
    let says = |value: &Value| match value {
        Value::Number(number) => *number > 0.0,
        Value::String(text) => !text.is_empty(),
        Value::Boolean(flag) => *flag,
        _ => false,
    };
    values.iter().skip(1).any(|value| names.iter().any(|name| value.get(name).is_some_and(says)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_a_size_or_a_flag_announce_video() {
        let payload = |name: &str, value: Value| {
            let mut out = Vec::new();
            amf::encode(&["onMetaData".into(), Value::Object(vec![(name.to_owned(), value)])], &mut out);
            out
        };
        assert!(announces_video(&payload("videocodecid", Value::Number(7.0))));
        assert!(announces_video(&payload("videocodecid", "avc1".into())));
        assert!(announces_video(&payload("hasVideo", Value::Boolean(true))));
        assert!(announces_video(&payload("width", Value::Number(640.0))));
        assert!(!announces_video(&payload("width", Value::Number(0.0))));
        assert!(!announces_video(&payload("hasVideo", Value::Boolean(false))));
        assert!(!announces_video(&payload("audiocodecid", Value::Number(10.0))));
        assert!(announces_sound(&payload("audiocodecid", Value::Number(10.0))));
        assert!(announces_sound(&payload("hasAudio", Value::Boolean(true))));
        assert!(!announces_sound(&payload("audiocodecid", Value::Number(0.0))));
        assert!(!announces_sound(&payload("width", Value::Number(640.0))));
        assert!(!announces_video(b"\x02\0\x0aonMetaData\x08\xff"));
    }
}
