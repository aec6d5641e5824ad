//! `crr`: connect, request, response, close, again and again.

use super::Findings;
use super::stage::{Event, Key, Stage};
use host::HostError;
use host::tcp_info::TcpInfo;
use model::{Metric, Side, Transactions};
use std::collections::BTreeMap;
use units::{Bytes, Span};

const CHUNK_BYTES: usize = 256 * 1024;
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];

/// A transaction under way.
struct Transaction {
    client: Key,
    server: Option<Key>,
    began: Span,
    connected: Option<Span>,
    request_left: u64,
    request_missing: u64,
    response_left: u64,
    response_missing: u64,
}

#[derive(Default)]
struct Totals {
    latencies_ms: Vec<f64>,
    connects_ms: Vec<f64>,
    retransmits: u64,
    timeouts: u64,
}

/// Runs the transactions, one after the other.
pub(super) fn run(
    stage: &mut Stage,
    request: Bytes,
    response: Bytes,
    amount: Transactions,
    found: &mut Findings<'_>,
) -> Result<(), HostError> {
    let listener = stage.listen()?;
    let began = stage.now();
    let mut totals = Totals::default();
    let mut ended = began;
    loop {
        let over = match amount {
            Transactions::Count(count) => {
                stage.done = totals.latencies_ms.len() as f64 / f64::from(count);
                totals.latencies_ms.len() >= count as usize
            }
            Transactions::Seconds(span) => {
                stage.done = (ended.as_secs_f64() - began.as_secs_f64()) / span.as_secs_f64();
                ended.as_nanos() >= began.as_nanos() + span.as_nanos()
            }
        };
        if over {
            break;
        }
        ended = transact(stage, listener, request.get(), response.get(), &mut totals, found)?;
    }

    let seconds = ended.as_secs_f64() - began.as_secs_f64();
    let count = totals.latencies_ms.len();
    let metrics = &mut found.metrics;
    let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
    put("transactions", Metric::Count(count as u64));
    put("transactions_per_s", Metric::One(count as f64 / seconds));
    put("duration_s", Metric::One(seconds));
    put("goodput_bps", Metric::One(count as f64 * response.get() as f64 * 8.0 / seconds));
    put("latency_ms", percentiles(totals.latencies_ms));
    put("connect_ms", percentiles(totals.connects_ms));
    put("retransmits", Metric::Count(totals.retransmits));
    put("retransmission_timeouts", Metric::Count(totals.timeouts));
    Ok(())
}

/// Makes one transaction; returns when its last byte was there.
fn transact(
    stage: &mut Stage,
    listener: Key,
    request: u64,
    response: u64,
    totals: &mut Totals,
    found: &mut Findings<'_>,
) -> Result<Span, HostError> {
    let began = stage.now();
    let mut one = Transaction {
        client: stage.connect()?,
        server: None,
        began,
        connected: None,
        request_left: request,
        request_missing: request,
        response_left: response,
        response_missing: response,
    };
    let mut done = None;
    loop {
        let Event::Ready { key, readable, writable } = stage.next()? else { continue };
        if key == listener {
            if let Some(server) = stage.accept(listener)? {
                found.note_socket(Side::Server, stage.tcp(server))?;
                one.server = Some(server);
            }
        } else if key == one.client {
            if writable && one.request_left > 0 {
                one.begin_request(stage, found)?;
            }
            if readable && done.is_none() && one.read_response(stage)? {
                done = Some(stage.now());
            }
        } else if Some(key) == one.server && one.serve(stage, key, readable, writable)? {
            let info = TcpInfo::of(stage.tcp(key))?;
            totals.retransmits += info.get("tcpi_total_retrans");
            totals.timeouts += info.get("tcpi_total_rto");
            stage.close_socket(key)?;
            one.server = None;
        }
        if let (Some(done), None, true) = (done, one.server, one.connected.is_some()) {
            let since = |at: Span| Span::from_nanos(at.as_nanos() - one.began.as_nanos()).as_millis_f64();
            totals.latencies_ms.push(since(done));
            totals.connects_ms.extend(one.connected.map(since));
            return Ok(done);
        }
    }
}

impl Transaction {
    fn begin_request(&mut self, stage: &mut Stage, found: &mut Findings<'_>) -> Result<(), HostError> {
        if self.connected.is_none() {
            stage.tcp(self.client).connected()?;
            self.connected = Some(stage.now());
            found.note_socket(Side::Client, stage.tcp(self.client))?;
        }
        let most = self.request_left.min(CHUNK_BYTES as u64) as usize;
        self.request_left -= stage.tcp(self.client).send(&PAYLOAD[..most])?.unwrap_or(0) as u64;
        stage.watch(self.client, true, self.request_left > 0)
    }

    /// Reads what came; true, with the client's socket closed, once the response is whole.
    fn read_response(&mut self, stage: &mut Stage) -> Result<bool, HostError> {
        let count = stage.tcp(self.client).discard(CHUNK_BYTES)?;
        if count == Some(0) && self.response_missing > 0 {
            return Err(HostError {
                act: "read a response".to_owned(),
                source: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server closed early"),
            });
        }
        self.response_missing = self.response_missing.saturating_sub(count.unwrap_or(0) as u64);
        if self.response_missing == 0 {
            stage.close_socket(self.client)?;
        }
        Ok(self.response_missing == 0)
    }

    /// Reads the request, then sends the response; true once the client has closed.
    fn serve(&mut self, stage: &mut Stage, key: Key, readable: bool, writable: bool) -> Result<bool, HostError> {
        if readable {
            match stage.tcp(key).discard(CHUNK_BYTES)? {
                Some(0) => return Ok(true),
                count => self.request_missing = self.request_missing.saturating_sub(count.unwrap_or(0) as u64),
            }
        }
        if self.request_missing == 0 && self.response_left > 0 && (writable || readable) {
            while self.response_left > 0 {
                let most = self.response_left.min(CHUNK_BYTES as u64) as usize;
                match stage.tcp(key).send(&PAYLOAD[..most])? {
                    Some(sent) => self.response_left -= sent as u64,
                    None => break,
                }
            }
            stage.watch(key, true, self.response_left > 0)?;
        }
        Ok(false)
    }
}

/// Percentiles by nearest rank.
pub(super) fn percentiles(mut values: Vec<f64>) -> Metric {
    values.sort_by(f64::total_cmp);
    let mut group = BTreeMap::new();
    if let (Some(min), Some(max)) = (values.first(), values.last()) {
        group.insert("min".to_owned(), Metric::One(*min));
        group.insert("max".to_owned(), Metric::One(*max));
        group.insert("mean".to_owned(), Metric::One(values.iter().sum::<f64>() / values.len() as f64));
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let rank = ((part * values.len() as f64).ceil() as usize).clamp(1, values.len());
            group.insert(name.to_owned(), Metric::One(values[rank - 1]));
        }
    }
    Metric::Group(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let Metric::Group(group) = percentiles((1..=1000).map(f64::from).collect()) else { panic!("a group") };
        for (name, value) in [("p50", 500.0), ("p90", 900.0), ("p99", 990.0), ("p999", 999.0), ("max", 1000.0)] {
            assert_eq!(group[name], Metric::One(value), "{name}");
        }
    }
}
