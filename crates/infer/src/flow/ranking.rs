//! In which order connections are listed.

use crate::diagnosis::finding::MIN_GAIN;
use crate::estimate::data_phase::DataPhase;
use std::cmp::Reverse;
use thalweg_model::{Code, Flow, Life, Verdict};

/// By what a connection is listed: those that failed first, then the costliest, by the time that another setting, another path or a faster
/// server could save, then by the bytes it carried.
///
/// What its program alone could save counts for nothing here: nothing else is to be done about it, and an idle session would come
/// before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowCost {
    failed: Reverse<bool>,
    saved: Reverse<u64>,
    bytes: Reverse<u64>,
    first_packet: u64,
}

impl FlowCost {
    /// Of a connection that carried `bytes` both ways; `first_packet` tells it from those that cost the same.
    pub(crate) fn of(verdict: &Verdict, phase: DataPhase, bytes: u64, first_packet: u64) -> Self {
        let gain = verdict.gain.filter(|_| verdict.code() != Code::Application).unwrap_or(1.0).max(1.0);
        let saved_s = (phase.took * (1.0 - 1.0 / gain)).clamp(0.0, phase.most_saved());
        Self { failed: Reverse(false), saved: Reverse(saved_s.to_bits()), bytes: Reverse(bytes), first_packet }
    }

    /// The same, of a connection with this life and verdict: what the whole lost counts if that costs more than the data phase could save.
    pub(crate) fn with_life(self, life: Option<&Life>, code: Code) -> Self {
        let Some(life) = life else { return self };
        let lost = Reverse(life.lost_s(code).to_bits());
        Self { failed: Reverse(life.failure.is_some()), saved: self.saved.min(lost), ..self }
    }
}

/// Whether the connection is slower than it could be on its path, either way, by something other than a program's own pauses, or fails.
pub fn is_slowed(flow: &Flow) -> bool {
    flow.life.is_some_and(|life| life.failure.is_some())
        || is_held(&flow.verdict)
        || flow.other_direction.as_ref().is_some_and(|other| is_held(&other.verdict))
}

/// Whether the verdict is something other than the programs, with a gain that is worth it; or a fault, or a server that does not answer.
pub(crate) fn is_held(verdict: &Verdict) -> bool {
    let code = verdict.code();
    code.is_slowdown() && (code.is_of_life() || code.is_fault() || verdict.gain.is_some_and(|gain| gain >= MIN_GAIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::{Cause, DelayedWrites, Occurrences, Pauses, PausesSeen};

    fn cause() -> Cause {
        Cause::DelayedAck(DelayedWrites { writes: Occurrences::default(), waited_s: 1.0, by_round_trips: false })
    }

    fn pauses() -> Cause {
        let seen = PausesSeen::Sender;
        Cause::Application(Pauses { idle_s: 490.0, of_s: 500.0, bursts: None, waited: None, timer: None, seen })
    }

    #[test]
    fn no_verdict_saves_more_than_all_but_a_round_trip() {
        let phase = |took| DataPhase { took, least: 0.1 };
        let cost = |took, gain| {
            let verdict = Verdict::new(cause(), 1.0, gain);
            FlowCost::of(&verdict, phase(took), 0, 0)
        };
        let saved = |cost: FlowCost| f64::from_bits(cost.saved.0);
        let all = cost(1.5, Some(f64::INFINITY));
        assert!((saved(all) - 1.4).abs() < 1e-9 && (saved(cost(2.0, Some(2.0))) - 1.0).abs() < 1e-9);
        assert!(cost(1.5, Some(1_000.0)) == all, "a thousand times as fast would be less than a round trip");
        assert!(saved(cost(5.0, None)) == 0.0 && saved(cost(0.05, Some(2.0))) == 0.0);
    }

    #[test]
    fn what_a_setting_could_save_comes_first_and_then_the_most_bytes() {
        let mut order = [
            ("idle", pauses(), Some(177.0), 1_500, 500.0),
            ("full path", cause(), None, 9_000_000, 5.0),
            ("small gain", cause(), Some(1.2), 4_000, 5.0),
            ("large gain", cause(), Some(2.0), 90_000, 5.0),
        ];
        order.sort_by_key(|(_, cause, gain, bytes, took)| {
            let verdict = Verdict::new(cause.clone(), 1.0, *gain);
            FlowCost::of(&verdict, DataPhase { took: *took, least: 0.0 }, *bytes, 1)
        });
        assert_eq!(order.map(|(name, ..)| name), ["large gain", "small gain", "full path", "idle"]);
    }
}
