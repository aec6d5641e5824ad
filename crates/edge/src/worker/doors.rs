//! Taking connections, as long as there is room.

use super::connection::Connection;
use super::{ACCEPTS, CONNECTION, Worker, seconds};
use host::HostError;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Worker {
    /// Begins or ends to listen for connections.
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

    pub(super) fn take(&mut self, at: usize) {
        let shared = Arc::clone(&self.shared);
        let load = &shared.loads[self.number];
        for _ in 0..ACCEPTS {
            let listener = &self.listeners[at];
            match listener.socket.accept_from() {
                Ok(None) => return,
                Ok(Some((socket, peer))) => {
                    let address = peer.ip();
                    let tls = listener.tls.as_ref().map(|tls| tls.accept());
                    let tls = match tls {
                        Some(None) => continue,
                        Some(Some(tls)) => Some(Box::new(tls)),
                        None => None,
                    };
                    if !self.shared.crowd.enter(address) {
                        load.refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    load.accepted.fetch_add(1, Ordering::Relaxed);
                    load.connections.fetch_add(1, Ordering::Relaxed);
                    let deadline_s = self.desk.now_s + seconds(self.shared.hub.config.limits.head_time);
                    let token = self.connections.insert(Connection::new(socket, tls, address, deadline_s));
                    let connection = self.connections.get(token).expect("invariant: it was just kept");
                    if self.poller.add_edges(&connection.socket, token | CONNECTION).is_err() {
                        self.close(token);
                        continue;
                    }
                    // Its request may have come with it, and costs no further wait then.
                    self.read(token);
                }
                Err(_) => {
                    // No descriptor is left: those who wait do so until the next second.
                    load.refused.fetch_add(1, Ordering::Relaxed);
                    let _ = self.accept(false);
                    return;
                }
            }
        }
    }
}
