//! The handshake left the window scale out: allow it again.

use crate::Facts;
use model::{Applicability, Change, Code, Remedy, Setting, Side};

const SYSCTL: &str = "net.ipv4.tcp_window_scaling";

pub(crate) fn plan(facts: &Facts<'_>) -> Option<Remedy> {
    let off = [Side::Client, Side::Server]
        .into_iter()
        .filter(|side| facts.sysctl(*side, SYSCTL).as_deref() == Some("0"))
        .map(|side| Change {
            side,
            setting: Setting::Sysctl(SYSCTL.to_owned()),
            from: Some("0".to_owned()),
            to: "1".to_owned(),
        });
    let changes: Vec<Change> = off.collect();
    if changes.is_empty() {
        return None;
    }
    Some(Remedy {
        code: Code::WindowScalingMissing,
        reason: "Allow window scaling (RFC 7323 §2): without it no window passes 65,535 bytes, whatever the buffer."
            .to_owned(),
        changes,
        applicability: Applicability::Safe,
        wont_help:
            "Paths on which a middlebox strips the option from the SYN, and connections already open: the scale is \
                    agreed in the handshake."
                .to_owned(),
    })
}
