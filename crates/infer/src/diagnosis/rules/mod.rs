//! Rules, one a file: each turns facts into at most one finding, and explains itself.

mod application;
mod bufferbloat;
mod congestion_loss;
mod congestion_window_clamp;
mod delayed_ack;
mod idle_restart;
pub(crate) mod initial_window;
mod path_mtu_black_hole;
pub(crate) mod path_rate;
mod policer;
mod random_loss;
mod reader;
mod receive_window;
mod reordering;
mod retransmission_timeout;
mod send_buffer;
mod window_scaling_missing;

use crate::diagnosis::finding::Rule;
use crate::diagnosis::no_cause;
use model::Code;

/// Every rule, in the order of [`Code::ALL`].
pub(crate) const RULES: [Rule; 17] = [
    receive_window::RULE,
    window_scaling_missing::RULE,
    reader::RULE,
    send_buffer::RULE,
    initial_window::RULE,
    random_loss::RULE,
    congestion_loss::RULE,
    policer::RULE,
    retransmission_timeout::RULE,
    path_rate::RULE,
    congestion_window_clamp::RULE,
    idle_restart::RULE,
    delayed_ack::RULE,
    path_mtu_black_hole::RULE,
    reordering::RULE,
    bufferbloat::RULE,
    application::RULE,
];

/// What a code means, why it matters, what it rests on, how to confirm it, and where it is described.
pub fn explain(code: Code) -> &'static str {
    match code {
        Code::NothingToGain => no_cause::NOTHING_TO_GAIN,
        Code::Unknown => no_cause::UNKNOWN,
        _ => RULES.iter().find(|rule| rule.code == code).map_or(no_cause::UNKNOWN, |rule| rule.explain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_explained_in_the_same_parts() {
        for code in Code::ALL {
            let text = explain(code);
            assert!(text.starts_with(code.as_str()), "{code}");
            for part in ["What it means", "Why it matters", "Evidence", "How to confirm", "References"] {
                assert!(text.contains(part), "{code}: {part}");
            }
        }
    }
}
