//! ICMP errors about a connection's segments: a link on the path does not carry packets so long.

use crate::tcp::recovery::Loss;
use thalweg_units::Timestamp;

/// Sights that are kept. Bounds memory.
const MAX_SIGHTS: usize = 3;

/// Errors about what each side sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct PacketTooBig {
    sides: [TooBigErrors; 2],
}

/// Errors about what one side sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct TooBigErrors {
    pub(crate) count: u64,
    /// The least MTU that they name, headers of IP and TCP included.
    pub(crate) mtu: Option<u32>,
    /// The first of them: number and time.
    pub(crate) first: Vec<(u64, Timestamp)>,
}

impl PacketTooBig {
    /// Takes in an error about what `side` sent; an MTU of 0 is none (RFC 1191 §5).
    pub(crate) fn told(&mut self, side: usize, mtu: u32, at: (u64, Timestamp)) {
        let own = &mut self.sides[side];
        own.count += 1;
        let named = (mtu > 0).then_some(mtu);
        own.mtu = own.mtu.into_iter().chain(named).min();
        if own.first.len() < MAX_SIGHTS {
            own.first.push(at);
        }
    }

    /// Whether all that `side` sent again had been too long, and it heeded the errors: each loss was repaired within `patience` nanoseconds
    /// after one. The connection began at `started`.
    pub(crate) fn explains(&self, side: usize, losses: &[Loss], started: Timestamp, patience: u64) -> bool {
        let errors = &self.sides[side].first;
        let is_told = |at: u64| {
            let since = |error: Timestamp| at.checked_sub(error.since(started).as_nanos());
            errors.iter().any(|&(_, error)| since(error).is_some_and(|late| late <= patience))
        };
        !losses.is_empty() && losses.iter().all(|loss| is_told(loss.at))
    }

    /// Errors about what `side` sent, where there were some.
    pub(crate) fn about(&self, side: usize) -> Option<&TooBigErrors> {
        Some(&self.sides[side]).filter(|errors| errors.count > 0)
    }
}
