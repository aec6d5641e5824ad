//! Messages in pieces, out of their ranges, and of any bytes.

use super::*;
use proptest::prelude::*;

fn train() -> TrainPlan {
    TrainPlan { number: 3, way: Way::Up, packets: 64, size_bytes: 1_400, interval_ns: 0 }
}

fn topics() -> TopicsPlan {
    let topic = TopicPlan {
        way: Way::Down,
        period: Span::from_millis(100),
        phase: Span::from_millis(5),
        size: Size::Fixed { bytes: Bytes::new(60_000) },
        priority: 6,
    };
    TopicsPlan { topics: vec![topic], span: Span::from_millis(1_000), seed: 1, congestion: None }
}

#[test]
fn lines_come_in_any_pieces() {
    let messages = [ClientMessage::Train(train()), ClientMessage::Sent, ClientMessage::Topics(topics())];
    let bytes: Vec<u8> = messages.iter().flat_map(line).collect();
    for size in 1..bytes.len() {
        let (mut inbox, mut found) = (Inbox::default(), Vec::new());
        for piece in bytes.chunks(size) {
            inbox.push(piece);
            while let Some(line) = inbox.line().expect("short") {
                found.push(ClientMessage::read(&line).expect("a message"));
            }
        }
        assert_eq!(found, messages);
        assert!(inbox.is_empty());
    }
}

#[test]
fn a_line_without_an_end_is_refused_once_it_is_too_long() {
    let mut inbox = Inbox::default();
    inbox.push(&vec![b'{'; LINE_BYTES_MAX - 1]);
    assert_eq!(inbox.line(), Ok(None));
    inbox.push(b"  ");
    assert_eq!((inbox.line(), inbox.room()), (Err(MessageError::Long), 0));
    // The first byte of an iperf3 server.
    let mut inbox = Inbox::default();
    inbox.push(&[9]);
    assert_eq!(inbox.line(), Err(MessageError::Syntax));
}

#[test]
fn values_are_in_their_ranges() {
    assert_eq!(train().check(), Ok(()));
    for (wrong, name) in [
        (TrainPlan { packets: 0, ..train() }, "packets"),
        (TrainPlan { packets: TRAIN_PACKETS_MAX, size_bytes: TRAIN_SIZE_MAX, ..train() }, "packets"),
        (TrainPlan { size_bytes: 15, ..train() }, "size_bytes"),
        (TrainPlan { packets: 100, interval_ns: TRAIN_INTERVAL_NS_MAX, ..train() }, "interval_ns"),
        (TrainPlan { interval_ns: u64::MAX, ..train() }, "interval_ns"),
    ] {
        assert_eq!(ClientMessage::read(&line(&ClientMessage::Train(wrong))), Err(MessageError::Value(name)));
    }
    assert_eq!((topics().check(), topics().messages(&topics().topics[0])), (Ok(()), 10));
    let with = |change: fn(&mut TopicsPlan)| {
        let mut plan = topics();
        change(&mut plan);
        plan.check()
    };
    assert_eq!(with(|plan| plan.topics.clear()), Err(MessageError::Value("topics")));
    assert_eq!(with(|plan| plan.span = Span::ZERO), Err(MessageError::Value("span")));
    assert_eq!(with(|plan| plan.topics[0].period = Span::ZERO), Err(MessageError::Value("period")));
    assert_eq!(
        with(|plan| {
            plan.topics[0].period = PERIOD_MIN;
            plan.span = TOPICS_SPAN_MAX;
        }),
        Err(MessageError::Value("period"))
    );
    assert_eq!(
        with(|plan| plan.topics[0].size = Size::Fixed { bytes: Bytes::new(15) }),
        Err(MessageError::Value("size"))
    );
    assert_eq!(with(|plan| plan.congestion = Some("a name".to_owned())), Err(MessageError::Value("congestion")));
    let hello = ServerMessage::Hello { protocol: 2, challenge: "0".repeat(32), token: true };
    assert_eq!(ServerMessage::read(&line(&hello)), Err(MessageError::Version(2)));
    let escape = ServerMessage::Refuse { code: RefusalCode::Other, reason: "\u{1b}[2J".to_owned() };
    assert_eq!(ServerMessage::read(&line(&escape)), Err(MessageError::Value("reason")));
}

#[test]
fn the_times_of_a_message_fit_into_a_line() {
    let times = ServerMessage::Times { of: u32::MAX, first: u32::MAX, ns: vec![Some(u64::MAX); TIMES_MAX] };
    assert!(line(&times).len() <= LINE_BYTES_MAX);
}

proptest! {
    #[test]
    fn a_cookie_says_what_its_connection_is_for(session: u64, topic: u16, bytes in prop::collection::vec(any::<u8>(), COOKIE_LEN)) {
        for purpose in [Purpose::Control, Purpose::Topic { session, topic }] {
            prop_assert_eq!(Purpose::of_cookie(&purpose.cookie()), Some(purpose));
        }
        let mut any = [0; COOKIE_LEN];
        any.copy_from_slice(&bytes);
        prop_assert_eq!(Purpose::of_cookie(&any), None);
        prop_assert_eq!(greeted_session(&greeting(session)), Some(session));
    }

    #[test]
    fn any_line_is_a_message_or_refused(text in "[{}\\[\\]\",:a-z0-9_-]{0,80}") {
        let _ = (ClientMessage::read(text.as_bytes()), ServerMessage::read(text.as_bytes()));
    }
}
