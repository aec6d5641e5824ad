//! Whole connections: our own publisher, and what encoders do that it does not.

use super::super::{Publisher, PublisherEvent};
use super::*;
use proptest::prelude::*;

/// A server and a publisher, with nothing but memory between them.
struct Pair {
    session: Session,
    publisher: Publisher,
    to_session: Vec<u8>,
    events: Vec<Event>,
    heard: Vec<PublisherEvent>,
    piece: usize,
}

impl Pair {
    fn new(name: &str, piece: usize) -> Self {
        Self {
            session: Session::new([7; 1536], Limits::default()),
            publisher: Publisher::new([9; 1536], "live", name),
            to_session: Vec::new(),
            events: Vec::new(),
            heard: Vec::new(),
            piece,
        }
    }

    /// Carries bytes both ways until none is left; `decide` answers who wants to publish.
    fn run(&mut self, decide: impl Fn(&mut Session)) {
        loop {
            let n = self.publisher.output().len();
            self.to_session.extend_from_slice(self.publisher.output());
            self.publisher.sent(n);
            let held = std::mem::take(&mut self.to_session);
            for piece in held.chunks(self.piece) {
                let mut input = piece;
                while let Some(event) = self.session.handle(&mut input).expect("a session") {
                    if matches!(event, Event::Publish { .. }) {
                        assert!(self.session.is_waiting());
                        let before = input;
                        assert_eq!(self.session.handle(&mut input), Ok(None));
                        assert_eq!(before, input, "nothing is read while the answer is open");
                        decide(&mut self.session);
                    }
                    self.events.push(event);
                }
                assert!(input.is_empty());
            }
            let output = self.session.output().to_vec();
            self.session.sent(output.len());
            for mut piece in output.chunks(self.piece) {
                while let Some(event) = self.publisher.handle(&mut piece).expect("a publisher") {
                    self.heard.push(event);
                }
            }
            if self.publisher.output().is_empty() {
                return;
            }
        }
    }
}

#[test]
fn a_stream_is_published_and_ended() {
    for piece in [1, 100, 100_000] {
        let mut pair = Pair::new("news?key=secret", piece);
        pair.run(Session::accept);
        assert_eq!(pair.heard, [PublisherEvent::Published]);
        assert_eq!(
            pair.events,
            [Event::Publish { app: "live".into(), name: "news".into(), query: "key=secret".into() }]
        );
        pair.events.clear();
        let tags = [
            Tag { kind: TagKind::Script, timestamp_ms: 0, payload: b"\x02\0\x0aonMetaData\x05".to_vec() },
            Tag { kind: TagKind::Video, timestamp_ms: 0, payload: vec![0x17; 100_000] },
            Tag { kind: TagKind::Audio, timestamp_ms: 0x0100_0000, payload: vec![0xaf; 300] },
        ];
        for tag in &tags {
            pair.publisher.tag(tag);
        }
        pair.run(Session::accept);
        assert_eq!(pair.events, tags.map(Event::Tag));
        pair.events.clear();
        pair.publisher.end();
        pair.run(Session::accept);
        assert_eq!(pair.events, [Event::Unpublish]);
    }
}

#[test]
fn who_is_refused_hears_why() {
    let mut pair = Pair::new("news", 1000);
    pair.run(|session| session.refuse(Refusal::Busy));
    assert!(matches!(&pair.heard[..], [PublisherEvent::Refused { code, .. }] if code == "NetStream.Publish.BadName"));
    pair.publisher.tag(&Tag { kind: TagKind::Video, timestamp_ms: 0, payload: vec![1] });
    assert!(pair.publisher.output().is_empty());
}

/// A session past its handshake.
fn connected() -> Session {
    let mut session = Session::new([7; 1536], Limits::default());
    let hello = [&[3][..], &[0; 2 * 1536]].concat();
    assert_eq!(session.handle(&mut &hello[..]), Ok(None));
    session.sent(usize::MAX);
    session
}

fn bytes(kind: MessageKind, stream_id: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ChunkWriter::default().write(3, kind, 0, stream_id, payload, &mut bytes);
    bytes
}

fn command(stream_id: u32, values: &[Value]) -> Vec<u8> {
    let mut payload = Vec::new();
    amf::encode(values, &mut payload);
    bytes(MessageKind::Command, stream_id, &payload)
}

fn say(session: &mut Session, bytes: &[u8]) -> Result<Option<Event>, SessionError> {
    session.handle(&mut &bytes[..])
}

/// What the session answered, put together.
fn answers(session: &mut Session) -> Vec<Message> {
    let output = session.output().to_vec();
    session.sent(output.len());
    let mut reader = ChunkReader::new(10_000);
    let mut input = &output[..];
    let mut messages = Vec::new();
    while let Some(message) = reader.read(&mut input).expect("chunks") {
        if message.kind == MessageKind::SetChunkSize {
            reader.set_chunk_size(4096).expect("a size");
        }
        messages.push(message);
    }
    messages
}

#[test]
fn commands_in_amf_3_are_taken() {
    let mut session = connected();
    let mut payload = vec![0];
    amf::encode(&["connect".into(), 1.0.into()], &mut payload);
    // {app: "tv", objectEncoding: 3} in AMF 3.
    payload.extend(b"\x11\x0a\x23\x01\x07app\x1dobjectEncoding\x06\x05tv\x04\x03");
    assert_eq!(say(&mut session, &bytes(MessageKind::CommandAmf3, 0, &payload)), Ok(None));
    assert_eq!(session.app, "tv");
    let answers = answers(&mut session);
    let values = amf::decode(&answers.last().expect("an answer").payload).expect("values");
    assert_eq!(values[0].as_str(), Some("_result"));
    assert_eq!(values[3].get("code").and_then(Value::as_str), Some("NetConnection.Connect.Success"));
    assert_eq!(values[3].get("objectEncoding").and_then(Value::as_number), Some(3.0));
}

#[test]
fn paths_are_divided_at_the_last_slash() {
    for (app, name, expected) in [
        ("/live/", "a", ("live", "a", "")),
        ("live?key=1", "a", ("live", "a", "key=1")),
        ("live?key=1", "a?key=2", ("live", "a", "key=2")),
        ("live", "x/a?b=c/d", ("live/x", "a", "b=c/d")),
        ("", "a", ("", "a", "")),
    ] {
        let mut session = connected();
        let app = object(&[("app", app.into())]);
        say(&mut session, &command(0, &["connect".into(), 1.0.into(), app])).expect("a session");
        say(&mut session, &command(0, &["createStream".into(), 2.0.into(), Value::Null])).expect("a session");
        let publish = command(1, &["publish".into(), 3.0.into(), Value::Null, name.into(), "live".into()]);
        let (app, name, query) = expected;
        let wanted = Event::Publish { app: app.into(), name: name.into(), query: query.into() };
        assert_eq!(say(&mut session, &publish), Ok(Some(wanted)));
    }
}

#[test]
fn a_long_name_is_refused_as_such() {
    let mut session = connected();
    say(&mut session, &command(0, &["createStream".into(), 2.0.into(), Value::Null])).expect("a session");
    answers(&mut session);
    let name = "a".repeat(3_000);
    let publish = command(1, &["publish".into(), 3.0.into(), Value::Null, name.as_str().into()]);
    assert_eq!(say(&mut session, &publish), Ok(Some(Event::Refused(Refusal::Name))));
    let answer = &answers(&mut session)[0];
    assert!(answer.payload.windows(8).any(|part| part == b"too long"));
}

#[test]
fn one_stream_at_a_time_is_published() {
    let mut session = connected();
    let publish = |stream| command(stream, &["publish".into(), 3.0.into(), Value::Null, "a".into()]);
    assert_eq!(say(&mut session, &publish(1)), Err(SessionError::Order("publish")));
    let mut session = connected();
    for _ in 0..2 {
        say(&mut session, &command(0, &["createStream".into(), 2.0.into(), Value::Null])).expect("a session");
    }
    assert!(matches!(say(&mut session, &publish(1)), Ok(Some(Event::Publish { .. }))));
    session.accept();
    answers(&mut session);
    assert_eq!(say(&mut session, &publish(2)), Ok(Some(Event::Refused(Refusal::Second))));
    let answer = &answers(&mut session)[0];
    assert!(answer.payload.windows(25).any(|part| part == b"NetStream.Publish.BadName"));
    // Tags of another stream are not this one's.
    assert_eq!(say(&mut session, &bytes(MessageKind::Video, 2, b"x")), Ok(None));
    let tag = Tag { kind: TagKind::Video, timestamp_ms: 0, payload: b"x".to_vec() };
    assert_eq!(say(&mut session, &bytes(MessageKind::Video, 1, b"x")), Ok(Some(Event::Tag(tag))));
    let close = command(1, &["closeStream".into(), 0.0.into(), Value::Null]);
    assert_eq!(say(&mut session, &close), Ok(Some(Event::Unpublish)));
    assert_eq!(say(&mut session, &close), Ok(None));
    assert!(matches!(say(&mut session, &publish(2)), Ok(Some(Event::Publish { .. }))));
}

#[test]
fn aggregates_come_apart_one_tag_at_a_time() {
    let mut session = connected();
    say(&mut session, &command(0, &["createStream".into(), 2.0.into(), Value::Null])).expect("a session");
    say(&mut session, &command(1, &["publish".into(), 3.0.into(), Value::Null, "a".into()])).expect("a session");
    session.accept();
    let one = b"\x08\0\0\x01\0\0\x0a\0\0\0\0a\0\0\0\x0c";
    let both = bytes(MessageKind::Aggregate, 1, &one.repeat(2));
    let mut input = &both[..];
    let tag = Event::Tag(Tag { kind: TagKind::Audio, timestamp_ms: 0, payload: b"a".to_vec() });
    for expected in [Some(tag.clone()), Some(tag), None] {
        assert_eq!(session.handle(&mut input), Ok(expected));
    }
}

#[test]
fn bytes_are_acknowledged_and_pings_answered() {
    let mut session = connected();
    say(&mut session, &bytes(MessageKind::WindowAcknowledgementSize, 0, &5000u32.to_be_bytes())).expect("a session");
    answers(&mut session);
    say(&mut session, &bytes(MessageKind::Other(99), 0, &[0; 1000])).expect("a session");
    assert!(session.output().is_empty());
    say(&mut session, &bytes(MessageKind::Other(99), 0, &[0; 4000])).expect("a session");
    let answer = &answers(&mut session)[0];
    assert_eq!(answer.kind, MessageKind::Acknowledgement);
    assert_eq!(answer.payload, session.received.to_be_bytes());
    say(&mut session, &bytes(MessageKind::UserControl, 0, b"\0\x06\x01\x02\x03\x04")).expect("a session");
    assert_eq!(answers(&mut session)[0].payload, b"\0\x07\x01\x02\x03\x04");
    session.ping(77);
    assert_eq!(answers(&mut session)[0].payload, b"\0\x06\0\0\0\x4d");
    assert_eq!(say(&mut session, &bytes(MessageKind::UserControl, 0, b"\0\x07\0\0\0\x4d")), Ok(Some(Event::Pong(77))));
}

#[test]
fn who_asks_much_and_reads_nothing_is_cut_off() {
    let mut session = connected();
    let flood = command(0, &["connect".into(), 1.0.into()]).repeat(10_000);
    assert_eq!(say(&mut session, &flood), Err(SessionError::Deaf(64 << 10)));
    assert!(session.output.len() < 66 << 10);
}

proptest! {
    #[test]
    fn nothing_panics(parts in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20)) {
        let mut session = connected();
        for (kind, payload) in parts {
            let sent = bytes(MessageKind::from(kind % 24), 1, &payload);
            let mut input = &sent[..];
            loop {
                match session.handle(&mut input) {
                    Ok(Some(Event::Publish { .. })) => session.accept(),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
        }
    }
}
