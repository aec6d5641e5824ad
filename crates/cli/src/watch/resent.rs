//! What TCP sends again: by the kernel's tracepoint, or by what sockets count.

use std::collections::HashMap;
use std::net::SocketAddr;
use thalweg_host::HostError;
use thalweg_host::bpf::{RetransmissionKind, Retransmissions};
use thalweg_host::sockets::connections;
use thalweg_model::{BurstResent, ResentKind, ResentSource};
use thalweg_watch::{Bursts, Resent};

/// What tells of it.
#[derive(Debug)]
pub(super) enum ResentFeed {
    /// Each segment.
    Tracepoint(Retransmissions),
    /// What each connection had sent again at the last look, by its cookie.
    Sockets(HashMap<u64, u64>),
}

impl ResentFeed {
    /// Begins, by the tracepoint where it is permitted; and what the report says of it.
    pub(super) fn start() -> (Self, BurstResent) {
        match Retransmissions::start() {
            Ok(feed) => {
                let said = BurstResent { source: ResentSource::Tracepoint, ..BurstResent::default() };
                (Self::Tracepoint(feed), said)
            }
            Err(error) => {
                let said = BurstResent { reason: Some(why(&error)), ..BurstResent::default() };
                let mut feed = Self::Sockets(HashMap::new());
                // What was sent again before is not of the first interval.
                let _ = feed.counted();
                (feed, said)
            }
        }
    }

    /// Takes what there is at the end of an interval.
    pub(super) fn take(&mut self, bursts: &mut Bursts) {
        let Self::Tracepoint(feed) = self else {
            bursts.resent_counted(self.counted());
            return;
        };
        for one in feed.read() {
            let kind = match one.kind {
                RetransmissionKind::Syn => ResentKind::Syn,
                RetransmissionKind::Fast => ResentKind::Fast,
                RetransmissionKind::Timeout => ResentKind::Timeout,
                RetransmissionKind::Probe => ResentKind::Probe,
            };
            let (at, segments, round_trip) = (one.at, one.segments, one.round_trip);
            bursts.resent(Resent { at, local: one.local, peer: one.peer, kind, segments, round_trip });
        }
        bursts.resent_missed(feed.lost());
    }

    /// What connections have sent again since the last look, by their ends. A kernel that does not say has counted none.
    fn counted(&mut self) -> HashMap<(SocketAddr, SocketAddr), u64> {
        let Self::Sockets(before) = self else { return HashMap::new() };
        let mut now = HashMap::new();
        let mut counted = HashMap::new();
        for one in connections().unwrap_or_default() {
            let all = one.info.get("tcpi_total_retrans");
            let since = all.saturating_sub(before.get(&one.cookie).copied().unwrap_or(0));
            now.insert(one.cookie, all);
            if since > 0 {
                counted.insert((SocketAddr::from(one.local), SocketAddr::from(one.remote)), since);
            }
        }
        *before = now;
        counted
    }
}

/// Why the tracepoint does not tell, as the end of a sentence.
fn why(error: &HostError) -> String {
    if error.source.raw_os_error() == Some(rustix::io::Errno::PERM.raw_os_error()) {
        return "the tracepoint needs CAP_BPF and CAP_PERFMON".to_owned();
    }
    error.to_string()
}
