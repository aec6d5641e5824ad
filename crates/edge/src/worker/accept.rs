//! Accepts connections while there is room.

use super::connection::Connection;
use super::{ACCEPTS, CONNECTION, Worker, seconds};
use crate::http::forwarded::is_trusted;
use crate::http::proxy::{self, NoProxy};
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use thalweg_host::HostError;
use thalweg_host::socket::Tcp;
use thalweg_model::LogLevel;

impl Worker {
    /// Starts or stops accepting connections.
    pub(super) fn accept(&mut self, wanted: bool) -> Result<(), HostError> {
        if wanted != self.is_accepting {
            for (at, listener) in self.listeners.iter().enumerate() {
                match wanted {
                    true => self.poller.add_readable(&listener.socket, at as u64 + 1)?,
                    false => self.poller.remove(&listener.socket)?,
                }
            }
            self.is_accepting = wanted;
        }
        Ok(())
    }

    /// Accepts the connections that wait at a listener.
    pub(super) fn take(&mut self, at: usize) {
        for _ in 0..ACCEPTS {
            match self.listeners[at].socket.accept_from() {
                Ok(None) => return,
                Ok(Some((socket, peer))) => self.welcome(at, socket, peer.ip()),
                Err(error) => {
                    // No descriptor is left: accepting resumes with the next tick.
                    let log = &self.shared.log;
                    log.event(LogLevel::Error, "accept-failed", || vec![("why", error.to_string().into())]);
                    self.shared.loads[self.number].refused.fetch_add(1, Ordering::Relaxed);
                    let _ = self.accept(false);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, at: usize, socket: Tcp, peer: IpAddr) {
        let (listener, config) = (&self.listeners[at], self.router.config.value());
        let load = &self.shared.loads[self.number];
        let is_trusted = is_trusted(peer, &config.trusted_proxies);
        let counted = (!is_trusted).then_some(peer);
        // Only a trusted proxy may send a PROXY header.
        let may_enter = is_trusted || !listener.proxy_protocol;
        if !may_enter || !self.shared.connections.enter(counted) {
            load.refused.fetch_add(1, Ordering::Relaxed);
            self.shared.log.event(LogLevel::Warn, "connection-refused", || vec![("address", peer.to_string().into())]);
            return;
        }
        let Some(tls) = listener.tls.as_ref().map_or(Some(None), |tls| tls.accept().map(Some)) else {
            return self.shared.connections.leave(counted);
        };
        load.accepted.fetch_add(1, Ordering::Relaxed);
        load.connections.fetch_add(1, Ordering::Relaxed);
        let deadline_s = self.router.now_s + seconds(config.limits.head_time);
        let mut connection = Connection::new(socket, tls.map(Box::new), peer, deadline_s);
        (connection.counted, connection.is_trusted) = (counted, is_trusted);
        connection.awaits_proxy = listener.proxy_protocol;
        let token = self.connections.insert(connection);
        let connection = self.connections.get(token).expect("invariant: it was just kept");
        if self.poller.add_edges(&connection.socket, token | CONNECTION).is_err() {
            return self.close(token);
        }
        // The request may have come with the handshake's ACK; reading now saves a wait.
        self.read(token);
    }

    /// Reads the PROXY header, if one is due. Returns whether the connection's own bytes are next.
    pub(super) fn is_introduced(&mut self, token: u64) -> bool {
        loop {
            let Some(connection) = self.connections.get(token) else { return false };
            if !connection.awaits_proxy {
                return true;
            }
            match proxy::parse(&connection.input) {
                Ok(Some(proxied)) => {
                    connection.awaits_proxy = false;
                    let rest = connection.input.split_off(proxied.used);
                    connection.input = Vec::new();
                    if let Some(source) = proxied.source {
                        let is_trusted = is_trusted(source, &self.router.config.value().trusted_proxies);
                        let counted = (!is_trusted).then_some(source);
                        if !self.shared.connections.is_really(connection.counted, counted) {
                            self.shared.loads[self.number].refused.fetch_add(1, Ordering::Relaxed);
                            let fields = || vec![("address", source.to_string().into())];
                            self.shared.log.event(LogLevel::Warn, "connection-refused", fields);
                            self.close(token);
                            return false;
                        }
                        (connection.peer, connection.counted, connection.is_trusted) = (source, counted, is_trusted);
                    }
                    if connection.begin(rest).is_err() {
                        self.close(token);
                        return false;
                    }
                }
                Ok(None) if !connection.unread => return false,
                Ok(None) => match connection.socket.receive(&mut self.scratch) {
                    Ok(Some(got)) if got > 0 => connection.input.extend_from_slice(&self.scratch[..got]),
                    Ok(None) => connection.unread = false,
                    _ => {
                        self.close(token);
                        return false;
                    }
                },
                Err(NoProxy) => {
                    self.close(token);
                    return false;
                }
            }
        }
    }
}
