//! The receive window is smaller than the path: raise what the receive buffer may grow to.

use crate::{Facts, human, human_time, round_up};
use model::{Applicability, Change, Code, Remedy, Setting};

/// The least part of a receive buffer that is offered as window, on kernels that measure it: a small packet costs as much
/// again in overhead. Source: Linux 6.6, `TCP_DEFAULT_SCALING_RATIO` = 128/256, include/net/tcp.h.
const MEASURED_PART: f64 = 0.5;
/// What the window is given beyond what the path holds, for the queue in front of it. More would let a sender that knows only
/// loss fill that queue to the brim.
const MARGIN: f64 = 1.25;
/// Where the path's rate is not known: so many times the limit there is, then measure again.
const STEP: u64 = 4;

pub(crate) fn plan(facts: &Facts<'_>) -> Option<Remedy> {
    let side = facts.receiver();
    let fixed = facts.fixed_buffers.contains(&(side, "rcvbuf"));
    let part = window_part(facts);
    let limit = facts.sysctl(side, "net.ipv4.tcp_rmem")?.split_whitespace().nth(2)?.parse::<u64>().ok()?;
    let (needed, why) = match facts.bdp() {
        Some(bdp) => (
            round_up((bdp.get() as f64 * MARGIN / part) as u64),
            format!(
                "the path holds {} ({} × {}), a quarter is for its queue, and Linux {} offers {:.0} % of the buffer as window",
                human(bdp),
                facts.path_rate.map(|rate| rate.to_string()).unwrap_or_default(),
                human_time(facts.rtt),
                facts.kernel,
                part * 100.0
            ),
        ),
        None => (
            round_up(limit * STEP),
            "the path's rate is not known: four times the limit, then measure again".to_owned(),
        ),
    };
    let mut changes: Vec<Change> = facts.raise(side, "net.ipv4.tcp_rmem", needed).into_iter().collect();
    if fixed {
        changes.push(Change {
            side,
            setting: Setting::Socket("rcvbuf".to_owned()),
            from: Some("set by the program".to_owned()),
            to: "auto".to_owned(),
        });
    }
    if changes.is_empty() {
        return None;
    }
    Some(Remedy {
        code: Code::ReceiveWindow,
        reason: format!("Let the receive buffer grow to {needed}: {why}."),
        changes,
        // It is a limit: a connection's buffer grows to it only where its own rate and round trip ask for it.
        applicability: Applicability::Safe,
        wont_help: "Connections whose program sets SO_RCVBUF itself (that ends auto-tuning), those already open, and \
                    those that end before their window has grown: for these the initial window decides."
            .to_owned(),
    })
}

/// The part of the buffer offered as window. Up to 6.5 it follows from `tcp_adv_win_scale`; later kernels ignore that.
fn window_part(facts: &Facts<'_>) -> f64 {
    if facts.kernel_is_at_least(6, 6) {
        return MEASURED_PART;
    }
    let scale = facts
        .sysctl(facts.receiver(), "net.ipv4.tcp_adv_win_scale")
        .and_then(|text| text.parse::<i32>().ok())
        .unwrap_or(1)
        .clamp(-31, 31);
    // net/ipv4: `tcp_win_from_space`.
    if scale <= 0 { 0.5f64.powi(-scale) } else { 1.0 - 0.5f64.powi(scale) }
}
