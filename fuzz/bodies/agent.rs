//! What the fuzz target of the agent's control connection does with an input, and the corpus test, too.

use thalweg_agent::message::{
    COOKIE_LEN, ClientMessage, Inbox, LINE_BYTES_MAX, MESSAGES_MAX, Purpose, ServerMessage, TIMES_MAX, TRAIN_BYTES_MAX,
    greeted_session, greeting, line,
};

/// Any bytes as what a client or a server sends: the first says in which pieces they come, and as what. Returns how much of it made sense.
///
/// Whatever they are: no more than a line is held, values that are taken are in their ranges, and what is written of what was read reads back the same.
pub(crate) fn agent(bytes: &[u8]) -> usize {
    let Some((&kind, bytes)) = bytes.split_first() else { return 0 };
    let mut sense = 0;
    if let Some(cookie) = bytes.first_chunk::<COOKIE_LEN>()
        && let Some(purpose) = Purpose::of_cookie(cookie)
    {
        assert_eq!(purpose.cookie(), *cookie);
        sense += 1;
    }
    if let Some(datagram) = bytes.first_chunk::<16>()
        && let Some(session) = greeted_session(datagram)
    {
        assert_eq!(greeting(session), *datagram);
        sense += 1;
    }
    let mut inbox = Inbox::default();
    for piece in bytes.chunks(usize::from(kind >> 1) + 1) {
        inbox.push(piece);
        assert!(inbox.room() <= LINE_BYTES_MAX);
        loop {
            match inbox.line() {
                Ok(Some(found)) if kind & 1 == 0 => sense += client(&found),
                Ok(Some(found)) => sense += server(&found),
                Ok(None) => break,
                Err(_) => return sense,
            }
        }
    }
    sense
}

fn client(found: &[u8]) -> usize {
    let Ok(message) = ClientMessage::read(found) else { return 0 };
    match &message {
        ClientMessage::Train(plan) => {
            assert!(plan.packets > 0 && u64::from(plan.packets) * u64::from(plan.size_bytes) <= TRAIN_BYTES_MAX);
        }
        ClientMessage::Topics(plan) => {
            let messages: u64 = plan.topics.iter().map(|topic| plan.messages(topic)).sum();
            assert!(messages <= MESSAGES_MAX);
        }
        _ => {}
    }
    let written = line(&message);
    assert_eq!(ClientMessage::read(&written), Ok(message));
    1
}

fn server(found: &[u8]) -> usize {
    let Ok(message) = ServerMessage::read(found) else { return 0 };
    if let ServerMessage::Times { ns, .. } = &message {
        assert!(ns.len() <= TIMES_MAX);
    }
    let written = line(&message);
    assert_eq!(ServerMessage::read(&written), Ok(message));
    1
}
