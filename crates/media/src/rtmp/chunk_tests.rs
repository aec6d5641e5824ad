//! Chunks as encoders send them, and as nobody should.

use super::super::cut::ChunkWriter;
use super::*;
use proptest::prelude::*;

fn read_all(reader: &mut ChunkReader, bytes: &[u8], piece: usize) -> Result<Vec<Message>, ChunkError> {
    let mut messages = Vec::new();
    for mut input in bytes.chunks(piece) {
        while let Some(message) = reader.read(&mut input)? {
            messages.push(message);
        }
        assert!(input.is_empty());
    }
    Ok(messages)
}

#[test]
fn deltas_add_up_as_the_text_says() {
    // Chunk stream 4: whole header at 1000, then a delta of 20, then the same length, then nothing at all.
    let mut bytes = b"\x04\x00\x03\xe8\0\0\x02\x08\x01\0\0\0ab".to_vec();
    bytes.extend(b"\x44\0\0\x14\0\0\x01\x09c");
    bytes.extend(b"\x84\0\0\x0ad");
    bytes.extend(b"\xc4e");
    for piece in [1, 3, 100] {
        let messages = read_all(&mut ChunkReader::new(100), &bytes, piece).expect("messages");
        let times: Vec<u32> = messages.iter().map(|message| message.timestamp_ms).collect();
        assert_eq!(times, [1000, 1020, 1030, 1040]);
        assert!(messages.iter().all(|message| message.stream_id == 1));
        assert_eq!(messages[0].kind, MessageKind::Audio);
        assert_eq!(messages[3].kind, MessageKind::Video);
        assert_eq!(messages[3].payload, b"e");
    }
}

#[test]
fn a_message_without_a_header_is_as_late_again_as_the_whole_header_said() {
    let bytes = b"\x04\0\0\x14\0\0\x01\x08\x01\0\0\0a\xc4b";
    let messages = read_all(&mut ChunkReader::new(100), bytes, 100).expect("messages");
    assert_eq!(messages.iter().map(|message| message.timestamp_ms).collect::<Vec<_>>(), [20, 40]);
}

#[test]
fn large_numbers_of_chunk_streams_are_read() {
    for (head, id) in [(&b"\x00\x01"[..], 65), (b"\x01\x01\x01", 321)] {
        let mut bytes = head.to_vec();
        bytes.extend(b"\0\0\0\0\0\x01\x08\0\0\0\0a");
        let mut reader = ChunkReader::new(100);
        assert_eq!(read_all(&mut reader, &bytes, 1).expect("messages").len(), 1);
        assert_eq!(reader.streams[0].id, id);
    }
}

/// A message of 300 bytes at an extended timestamp, in chunks of 128, with the timestamp repeated or not.
fn extended(repeat: bool, payload: &[u8], timestamp_ms: u32) -> Vec<u8> {
    let mut bytes = b"\x04\xff\xff\xff".to_vec();
    bytes.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend(b"\x09\x01\0\0\0");
    bytes.extend(timestamp_ms.to_be_bytes());
    for (at, piece) in payload.chunks(128).enumerate() {
        if at > 0 {
            bytes.push(0xc4);
            if repeat {
                bytes.extend(timestamp_ms.to_be_bytes());
            }
        }
        bytes.extend(piece);
    }
    bytes
}

#[test]
fn extended_timestamps_may_be_repeated_or_not() {
    let timestamp_ms = 0x0123_4567;
    let mut payload: Vec<u8> = (0..258).map(|at| at as u8).collect();
    // The second chunk's payload begins as the timestamp does, and the last chunk is shorter than one.
    payload[128..131].copy_from_slice(&[0x01, 0x23, 0x45]);
    payload[256..].copy_from_slice(&[0x01, 0x23]);
    for repeat in [true, false] {
        let mut bytes = extended(repeat, &payload, timestamp_ms);
        bytes.extend(b"\x05\0\0\x07\0\0\x01\x08\x01\0\0\0a");
        for piece in [1, 2, 5, 129, 1000] {
            let messages = read_all(&mut ChunkReader::new(1000), &bytes, piece).expect("messages");
            assert_eq!(messages.len(), 2, "repeat {repeat}, pieces of {piece}");
            assert_eq!(messages[0].payload, payload);
            assert_eq!(messages[0].timestamp_ms, timestamp_ms);
            assert_eq!(messages[1].payload, b"a");
        }
    }
}

#[test]
fn limits_hold() {
    let long = b"\x04\0\0\0\xff\xff\xff\x08\x01\0\0\0";
    assert_eq!(
        read_all(&mut ChunkReader::new(1000), long, 100),
        Err(ChunkError::Long { length: 0x00ff_ffff, most: 1000 })
    );
    assert_eq!(read_all(&mut ChunkReader::new(1000), b"\xc4", 100), Err(ChunkError::Headless(4)));
    let twice = [&b"\x04\0\0\0\0\x01\0\x08\x01\0\0\0"[..], &[0; 128], b"\x04\0\0\0\0\x01\0\x08\x01\0\0\0"].concat();
    assert_eq!(read_all(&mut ChunkReader::new(1000), &twice, 100), Err(ChunkError::Unfinished(4)));
    let mut many = Vec::new();
    let mut held = Vec::new();
    for id in 2..64 {
        many.extend([id, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0]);
        held.extend([id, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0]);
        held.extend([0; 128]);
    }
    for id in 0..3 {
        many.extend([0, id, 0, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0]);
    }
    assert_eq!(read_all(&mut ChunkReader::new(1000), &many, 100), Err(ChunkError::Streams));
    assert_eq!(read_all(&mut ChunkReader::new(1000), &held, 100), Err(ChunkError::Held { most: 2000 }));
    assert_eq!(ChunkReader::new(1000).set_chunk_size(0), Err(ChunkError::Size(0)));
}

#[test]
fn an_aborted_message_is_forgotten() {
    let mut reader = ChunkReader::new(1000);
    let begun = [&b"\x04\0\0\0\0\x01\0\x08\x01\0\0\0"[..], &[0; 128]].concat();
    assert_eq!(read_all(&mut reader, &begun, 1000), Ok(vec![]));
    reader.abort(4);
    assert_eq!(reader.held_bytes, 0);
    let next = b"\x04\0\0\0\0\0\x01\x08\x01\0\0\0a";
    assert_eq!(read_all(&mut reader, next, 1000).expect("messages")[0].payload, b"a");
}

fn messages() -> impl Strategy<Value = Vec<(u8, Message)>> {
    let timestamp = prop_oneof![0u32..100_000, EXTENDED - 2..EXTENDED + 2, any::<u32>()];
    let message = (timestamp, 2u8..64, any::<u8>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..700));
    let one = message.prop_map(|(timestamp_ms, id, kind, stream_id, payload)| {
        (id, Message { timestamp_ms, kind: MessageKind::from(kind), stream_id, payload })
    });
    prop::collection::vec(one, 0..12)
}

proptest! {
    #[test]
    fn what_is_cut_is_put_together(sent in messages(), piece in 1usize..600, size in 1u32..800) {
        let mut writer = ChunkWriter::default();
        let mut reader = ChunkReader::new(700);
        writer.set_chunk_size(size);
        reader.set_chunk_size(size).expect("a size");
        let mut bytes = Vec::new();
        for (id, message) in &sent {
            writer.write(*id, message.kind, message.timestamp_ms, message.stream_id, &message.payload, &mut bytes);
        }
        let sent: Vec<Message> = sent.into_iter().map(|(_, message)| message).collect();
        prop_assert_eq!(read_all(&mut reader, &bytes, piece), Ok(sent));
    }

    #[test]
    fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1usize..50) {
        let mut reader = ChunkReader::new(200);
        let _ = read_all(&mut reader, &bytes, piece);
        prop_assert!(reader.held_bytes <= 400 + 128);
    }
}
