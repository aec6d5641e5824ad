//! In which order connections are listed.

use crate::rules::WORTH;
use model::{Code, Verdict};
use std::cmp::Reverse;

/// By what a connection is listed, the costliest first: by the time that another setting or another path could save, then by the bytes it
/// carried.
///
/// What its program alone could save counts for nothing here: nothing else is to be done about it, and an idle session would come
/// before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    saved: Reverse<u64>,
    bytes: Reverse<u64>,
    first_packet: u64,
}

impl Cost {
    /// Of a connection whose data phase took `phase_s` seconds and which carried `bytes` both ways; `first_packet` tells it from those that
    /// cost the same.
    pub(crate) fn of(verdict: &Verdict, phase_s: f64, bytes: u64, first_packet: u64) -> Self {
        let gain = verdict.gain.filter(|_| verdict.code != Code::Application).unwrap_or(1.0).max(1.0);
        let saved_s = (phase_s * (1.0 - 1.0 / gain)).max(0.0);
        Self { saved: Reverse(saved_s.to_bits()), bytes: Reverse(bytes), first_packet }
    }
}

/// Whether something other than its program makes the connection slower than it could be on its path.
pub fn is_slowed(verdict: &Verdict) -> bool {
    let own = matches!(verdict.code, Code::NothingToGain | Code::Unknown | Code::Application | Code::PathRate);
    !own && verdict.gain.is_some_and(|gain| gain >= WORTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_setting_could_save_comes_first_and_then_the_most_bytes() {
        let mut order = [
            (Code::Application, Some(177.0), 1_500, 500.0),
            (Code::PathRate, None, 9_000_000, 5.0),
            (Code::RandomLoss, Some(1.2), 4_000, 5.0),
            (Code::ReceiveWindow, Some(2.0), 90_000, 5.0),
        ];
        order.sort_by_key(|&(code, gain, bytes, phase_s)| {
            let verdict = Verdict { code, share: 1.0, claim: String::new(), gain, evidence: Vec::new() };
            Cost::of(&verdict, phase_s, bytes, 1)
        });
        assert_eq!(
            order.map(|(code, ..)| code),
            [Code::ReceiveWindow, Code::RandomLoss, Code::PathRate, Code::Application]
        );
    }
}
