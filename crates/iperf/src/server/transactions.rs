//! The server of transactions: one thread for the connections of all clients.

use crate::protocol::COOKIE_LEN;
use crate::protocol::exchange::Exchange;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::{Poller, Waker};
use thalweg_host::socket::Tcp;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 8_192;
/// A connection on which nothing moves for so long is closed.
const SILENCE: Duration = Duration::from_secs(120);
/// How often that is looked at, and the stop.
const LOOK: Duration = Duration::from_millis(200);
/// What one call sends or receives at most.
const BLOCK: usize = 64 << 10;
const WAKER: u64 = u64::MAX;

/// A connection, and how much of its request is to come and of its response to go.
struct Connection {
    tcp: Tcp,
    exchange: Exchange,
    request_left: usize,
    response_left: usize,
    is_over: bool,
    moved: Instant,
}

/// Serves what `arrived` brings until `stop` is set; `open` is the number of connections.
///
/// # Errors
/// When the kernel gives no descriptor.
pub(super) fn serve(
    arrived: &Receiver<(Tcp, Exchange)>,
    waker: &Arc<Waker>,
    open: &AtomicUsize,
    stop: &AtomicBool,
) -> Result<(), HostError> {
    let poller = Poller::new()?;
    poller.add_readable(&**waker, WAKER)?;
    let block: Vec<u8> = (0..BLOCK).map(|at| b'0' + (at % 10) as u8).collect();
    let mut connections: HashMap<u64, Connection> = HashMap::new();
    let (mut next, mut ready, mut looked) = (0, Vec::new(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        ready.clear();
        poller.wait(Some(LOOK), &mut ready)?;
        waker.clear();
        for (tcp, exchange) in arrived.try_iter() {
            if connections.len() < CONNECTIONS_MAX && poller.add_edges(&tcp, next).is_ok() {
                let first = if exchange.connects { COOKIE_LEN } else { 0 };
                let request_left = exchange.request as usize - first;
                let mut connection =
                    Connection { tcp, exchange, request_left, response_left: 0, is_over: false, moved: Instant::now() };
                if request_left == 0 {
                    connection.response_left = exchange.response as usize;
                }
                if connection.advance(&block).is_ok() {
                    connections.insert(next, connection);
                }
                next += 1;
            }
        }
        for event in &ready {
            let is_gone = connections.get_mut(&event.token).is_some_and(|one| one.advance(&block).is_err());
            if is_gone {
                connections.remove(&event.token);
            }
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            connections.retain(|_, one| looked.saturating_duration_since(one.moved) < SILENCE);
        }
        open.store(connections.len(), Ordering::Relaxed);
    }
    Ok(())
}

impl Connection {
    /// Moves what can be moved.
    ///
    /// # Errors
    /// When it is over, or broken.
    fn advance(&mut self, block: &[u8]) -> Result<(), HostError> {
        let over = || HostError { act: "receive".to_owned(), source: std::io::ErrorKind::UnexpectedEof.into() };
        self.moved = Instant::now();
        loop {
            if self.response_left > 0 {
                // A response is the digits in order, from 0 on.
                let sent = self.exchange.response as usize - self.response_left;
                let from = sent % 10;
                let end = block.len().min(from + self.response_left);
                let Some(count) = self.tcp.send(&block[from..end])? else { return Ok(()) };
                self.response_left -= count;
                if self.response_left == 0 && self.exchange.connects {
                    self.tcp.end_sending()?;
                    self.is_over = true;
                } else if self.response_left == 0 {
                    self.request_left = self.exchange.request as usize;
                }
                continue;
            }
            let most = if self.is_over { BLOCK } else { self.request_left.min(BLOCK) };
            match self.tcp.discard(most)? {
                None => return Ok(()),
                Some(0) => return Err(over()),
                // More than a request is thrown away, once the transaction is over.
                Some(_) if self.is_over => {}
                Some(count) => {
                    self.request_left -= count;
                    if self.request_left == 0 {
                        self.response_left = self.exchange.response as usize;
                    }
                }
            }
        }
    }
}
