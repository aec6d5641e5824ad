//! Connections that are shown as they are now.

use super::Look;
use crate::state::Socket;
use thalweg_model::{TuneFinding, Weight};

/// A tenth of the busy time, as the doctor's rules have it: below it there is little to gain.
const LIMITED_PERCENT: f64 = 10.0;

pub(super) fn findings(look: &Look<'_>) -> Vec<TuneFinding> {
    let sockets = &look.state.sockets;
    let mut found: Vec<TuneFinding> = sockets.iter().flat_map(|socket| one(look, socket)).collect();
    let unpaced = sockets.iter().find(|socket| socket.congestion.as_deref() == Some("bbr") && !socket.paced);
    found.extend(unpaced.map(|socket| {
        let says = "It sends with BBR and has no pacing rate.".to_owned();
        finding("bbr-unpaced", socket, says, "Without pacing BBR sends its window in bursts.", None)
    }));
    found
}

fn one(look: &Look<'_>, socket: &Socket) -> Vec<TuneFinding> {
    let mut found = Vec::new();
    let limits = look.numbers("net.ipv4.tcp_wmem").and_then(|numbers| numbers.get(2).copied());
    if let Some(percent) = socket.receive_window_limited.filter(|percent| *percent >= LIMITED_PERCENT) {
        let says = format!("For {percent} % of its busy time the peer's window was full.");
        let why = "The limit is at the other host: its receive buffer, or a program that reads too slowly.";
        let set = "net.ipv4.tcp_rmem, its third number, at the peer".to_owned();
        found.push(finding("receive-window-limits", socket, says, why, Some(set)));
    }
    if let Some(percent) = socket.send_buffer_limited.filter(|percent| *percent >= LIMITED_PERCENT) {
        let says = format!("For {percent} % of its busy time its send buffer was full.");
        let why =
            "The buffer holds less than the path does: net.ipv4.tcp_wmem bounds it, or the program set SO_SNDBUF.";
        let now = limits.map(|most| format!(" (now {most})")).unwrap_or_default();
        let set = format!("net.ipv4.tcp_wmem, its third number{now}; `thalweg diagnose --live` tells how much");
        found.push(finding("send-buffer-limits", socket, says, why, Some(set)));
    }
    if !socket.scaled {
        let says = "It has no window scale.".to_owned();
        let why = "No window passes 65,535 bytes; one end, or a middlebox, left the option out of the handshake.";
        found.push(finding("window-scaling-off", socket, says, why, None));
    }
    found
}

fn finding(code: &'static str, socket: &Socket, says: String, why: &str, set: Option<String>) -> TuneFinding {
    TuneFinding {
        code,
        weight: Weight::Trap,
        setting: format!("connection {}", socket.ends.as_deref().unwrap_or("(its ends are not shown)")),
        value: socket.congestion.clone().unwrap_or_default(),
        line: socket.line,
        says,
        why: why.to_owned(),
        set,
    }
}
