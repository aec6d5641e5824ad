//! The TLS handshake and the requests of a connection, as the report has them.

use crate::observe::requests::{Exchange, RequestLog};
use crate::observe::tls_handshake::TlsHandshake as Handshake;
use crate::tcp::connection::Connection;
use thalweg_model::{Application, NameLookup, RequestTiming, RequestWaits, TlsHandshake};

/// What the connection shows; `None` if that is nothing.
pub(crate) fn application(connection: &Connection) -> Option<Box<Application>> {
    let log = &connection.observers.requests;
    let found = Application {
        lookup: lookup(connection),
        tls: tls(&connection.observers.tls),
        waits: waits(log),
        requests: log.kept().iter().map(request).collect(),
    };
    (found != Application::default()).then(|| Box::new(found))
}

const fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn lookup(connection: &Connection) -> Option<NameLookup> {
    let lookup = connection.lookup.as_ref()?;
    let start = connection.started.as_nanos();
    Some(NameLookup {
        name: lookup.name.clone(),
        start_s: (lookup.began as f64 - start as f64) / 1e9,
        took_ms: millis(lookup.ended.saturating_sub(lookup.began)),
        again: lookup.again,
    })
}

fn tls(handshake: &Handshake) -> Option<TlsHandshake> {
    let began = handshake.began?;
    let version = handshake.server.as_ref().map(|server| match server.version {
        0x0300 => "SSL 3.0".to_owned(),
        version @ 0x0301..=0x0304 => format!("1.{}", version - 0x0301),
        version => format!("{version:#06x}"),
    });
    Some(TlsHandshake {
        start_s: began as f64 / 1e9,
        handshake_ms: handshake.ended.map(|ended| millis(ended.saturating_sub(began))),
        version,
        server_name: handshake.client.server_name.clone(),
        offered: handshake.client.protocols.clone(),
        chosen: handshake.server.as_ref().and_then(|server| server.protocol.clone()),
    })
}

fn waits(log: &RequestLog) -> Option<RequestWaits> {
    let is_answered = log.count > log.unanswered;
    let [p50_ms, p90_ms, max_ms] = log.percentiles([0.5, 0.9, 1.0]).map(|nanos| is_answered.then_some(millis(nanos)));
    let unlisted = log.count - log.kept().len() as u64;
    (log.count > 0).then_some(RequestWaits {
        count: log.count,
        unanswered: log.unanswered,
        unlisted,
        p50_ms,
        p90_ms,
        max_ms,
    })
}

fn request(exchange: &Exchange) -> RequestTiming {
    let head = exchange.request();
    RequestTiming {
        number: exchange.number,
        packet: exchange.packet,
        start_s: exchange.asked_at as f64 / 1e9,
        method: head.map(|head| head.method.clone()),
        target: head.map(|head| head.target.clone()),
        host: head.and_then(|head| head.host.clone()),
        status: exchange.status,
        request_ms: millis(exchange.asked_until.saturating_sub(exchange.asked_at)),
        wait_ms: exchange.wait().map(millis),
        transfer_ms: exchange.first_byte.map(|first| millis(exchange.last_byte.saturating_sub(first))),
        bytes_up: exchange.bytes_up,
        bytes_down: exchange.bytes_down,
    }
}
