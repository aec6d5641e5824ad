//! In which order connections are listed.

use model::{Code, Flow};
use std::cmp::Reverse;

/// By what a connection whose data phase took so many seconds is listed, the costliest first: by the time that another setting or another path
/// could save, then by the bytes it carried.
///
/// What its program alone could save counts for nothing here: nothing else is to be done about it, and an idle session would come
/// before all others.
pub fn costliest(flow: &Flow, phase_s: f64) -> impl Ord + use<> {
    let gain = flow.verdict.gain.filter(|_| flow.verdict.code != Code::Application).unwrap_or(1.0).max(1.0);
    let saved_s = (phase_s * (1.0 - 1.0 / gain)).max(0.0);
    (Reverse(saved_s.to_bits()), Reverse(flow.bytes_up + flow.bytes_down), flow.first_packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::flow;
    use crate::handmade::{connection, packet};
    use wire::Flags;

    #[test]
    fn what_a_setting_could_save_comes_first_and_then_the_most_bytes() {
        let (_, plain) = flow(&connection(&[packet(true, Flags::ACK, 1, 1, 10), packet(false, Flags::ACK, 1, 11, 0)]));
        let flows = [
            (Code::Application, Some(177.0), 1_500, 500.0),
            (Code::PathRate, None, 9_000_000, 5.0),
            (Code::RandomLoss, Some(1.2), 4_000, 5.0),
            (Code::ReceiveWindow, Some(2.0), 90_000, 5.0),
        ];
        let mut order = flows.map(|(code, gain, bytes_down, phase_s)| {
            let mut flow = plain.clone();
            (flow.verdict.code, flow.verdict.gain, flow.bytes_down) = (code, gain, bytes_down);
            (code, flow, phase_s)
        });
        order.sort_by_cached_key(|(_, flow, phase_s)| costliest(flow, *phase_s));
        assert_eq!(
            order.map(|(code, ..)| code),
            [Code::ReceiveWindow, Code::RandomLoss, Code::PathRate, Code::Application]
        );
    }
}
