//! What the fuzz target of iperf3's protocol does with an input, and the corpus test, too.

use std::time::Duration;
use thalweg_iperf::protocol::datagram::{Header, Received};
use thalweg_iperf::protocol::inbox::{Inbox, MAX_PARAMETERS, MAX_RESULTS};
use thalweg_iperf::protocol::parameters::Parameters;
use thalweg_iperf::protocol::results::Results;
use thalweg_iperf::protocol::{MAX_STREAMS, State};

/// Any bytes as what a client or a server sends: the first says in which pieces they come, and as what. Returns how much of it made sense.
///
/// Whatever they are: no more is held than the largest document, parameters that are taken are in their ranges, and what is written of what was
/// read reads back the same.
pub(crate) fn iperf(bytes: &[u8]) -> usize {
    let Some((&kind, bytes)) = bytes.split_first() else { return 0 };
    let mut inbox = Inbox::default();
    let mut pieces = bytes.chunks(usize::from(kind >> 2) + 1);
    let mut sense = 0;
    let mut next = |inbox: &mut Inbox| pieces.next().map(|piece| inbox.push(piece));
    if kind & 1 == 0 {
        // A client: its cookie and its parameters.
        let cookie = loop {
            match inbox.cookie() {
                Some(cookie) => break cookie,
                None if next(&mut inbox).is_none() => return sense,
                None => {}
            }
        };
        sense += usize::from(cookie.is_valid());
        let document = loop {
            match inbox.document(MAX_PARAMETERS, "parameters") {
                Ok(Some(document)) => break document,
                Ok(None) if next(&mut inbox).is_some() => {}
                _ => return sense,
            }
        };
        if let Ok(read) = Parameters::read(&document) {
            assert!((1..=MAX_STREAMS).contains(&read.streams) && read.length > 0);
            assert_eq!(Parameters::read(read.document().as_object().expect("an object")), Ok(read));
            sense += 1;
        }
    }
    loop {
        match inbox.state() {
            Ok(Some(State::ExchangeResults)) => loop {
                match inbox.document(MAX_RESULTS, "results") {
                    Ok(Some(document)) => {
                        sense += results(&document);
                        break;
                    }
                    Ok(None) if next(&mut inbox).is_some() => {}
                    _ => return sense,
                }
            },
            Ok(Some(State::ServerError)) => sense += usize::from(inbox.refusal().is_some()),
            Ok(Some(_)) => sense += 1,
            Ok(None) if next(&mut inbox).is_some() => assert!(inbox.room() < Inbox::CAPACITY || bytes.is_empty()),
            _ => break,
        }
    }
    sense + datagrams(bytes, kind & 2 == 0)
}

fn results(document: &serde_json::Map<String, serde_json::Value>) -> usize {
    let Ok(read) = Results::read(document) else { return 0 };
    assert_eq!(Results::read(read.document().as_object().expect("an object")), Ok(read));
    1
}

fn datagrams(bytes: &[u8], wide: bool) -> usize {
    let mut received = Received::default();
    for datagram in bytes.chunks(16) {
        if let Some(header) = Header::read(datagram, wide) {
            received.take(header, Duration::from_millis(header.number >> 40));
        }
    }
    assert!(received.jitter_s.is_finite() && received.lost <= received.highest);
    0
}
