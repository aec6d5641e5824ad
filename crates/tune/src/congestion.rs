//! Loss keeps the congestion window below what the path holds: a congestion control that does not read every loss as a
//! full queue.

use crate::Facts;
use model::{Applicability, Change, Code, Remedy, Setting};

const SYSCTL: &str = "net.ipv4.tcp_congestion_control";

pub(crate) fn plan(code: Code, facts: &Facts<'_>) -> Option<Remedy> {
    let side = facts.sender();
    let host = match side {
        model::Side::Client => &facts.settings.client,
        model::Side::Server => &facts.settings.server,
    };
    let used = host.socket.get("congestion").cloned().or_else(|| facts.sysctl(side, SYSCTL));
    if used.as_deref() == Some("bbr") {
        return None;
    }
    Some(Remedy {
        code,
        reason: "Send with BBR: it models the path's rate and round trip and keeps sending at that rate through a loss, where \
                 CUBIC gives up 30 % of its window at each."
            .to_owned(),
        changes: vec![Change {
            side,
            setting: Setting::Sysctl(SYSCTL.to_owned()),
            from: used,
            to: "bbr".to_owned(),
        }],
        // It shares a full queue with CUBIC flows otherwise than CUBIC does (Ware et al., IMC 2019).
        applicability: Applicability::NeedsThought,
        wont_help: "The other direction, whose sender chooses for itself; a path whose rate is used up; and a program that \
                    chooses its congestion control by TCP_CONGESTION. Against CUBIC flows in a shallow shared queue BBR v1 \
                    takes more than its share and retransmits more."
            .to_owned(),
    })
}
