//! The facts of a connection in words: a name and a text each, for terminal and page alike.

pub(crate) mod application;
mod life;
mod motion;

pub(crate) use life::{phases, resent, reset, shares, silence, whole};

use crate::figures::{count, counted, data, percent, rate, times};
use thalweg_model::{Ecn, Facts, FastOpen, Flow, KeepAlives, Multipath, MultipathKind, OtherDirection, Way};

/// What there is to tell, in order.
pub(crate) fn lines(flow: &Flow) -> Vec<(&'static str, String)> {
    let Facts { tap_duplicates, missed_bytes, ecn, fast_open, multipath, keep_alives, .. } = &flow.facts;
    let mut lines = motion::lines(flow);
    lines.extend(ecn.as_ref().map(|ecn| ("ECN", self::ecn(ecn))));
    lines.extend(fast_open.as_ref().map(|open| ("Fast Open", self::fast_open(open))));
    lines.extend(multipath.as_ref().map(|multipath| ("MPTCP", self::multipath(multipath))));
    lines.extend(keep_alives.as_ref().map(|probes| ("keep-alives", self::keep_alives(probes))));
    if *tap_duplicates > 0 {
        lines.push(("tap", format!("{} delivered twice", counted(*tap_duplicates, "packet"))));
    }
    if *missed_bytes > 0 {
        lines.push(("capture", format!("{} acknowledged that are not in it", data(*missed_bytes as f64))));
    }
    lines
}

/// What held the other direction back, where that was judged.
pub(crate) fn other_direction(flow: &Flow) -> Option<String> {
    let OtherDirection { direction, goodput_bps, limits, verdict, .. } = &**flow.other_direction.as_ref()?;
    let (name, bytes) = match direction {
        Way::Up => ("up", flow.bytes_up),
        Way::Down => ("down", flow.bytes_down),
    };
    let gain = verdict.gain.filter(|&gain| gain > 1.0).map(|gain| format!(", {} to gain", times(gain)));
    let shares: Vec<String> = limits
        .named()
        .iter()
        .filter(|(_, share)| *share >= 0.05)
        .map(|(name, share)| format!("{} {}", name.replace('_', " "), percent(*share)))
        .collect();
    Some(format!(
        "The other way ({name}, {} at {}): {}{}. {} ({})",
        data(bytes as f64),
        rate(*goodput_bps),
        verdict.code(),
        gain.unwrap_or_default(),
        verdict.claim(),
        shares.join(", "),
    ))
}

fn ecn(ecn: &Ecn) -> String {
    let agreed = match ecn.negotiated {
        Some(true) => "negotiated",
        Some(false) => "asked for, not agreed",
        None => "handshake not captured",
    };
    let [capable, marked, echoes, reductions] =
        [ecn.capable, ecn.marked, ecn.echoes, ecn.reductions].map(|number| count(number as f64));
    format!("{agreed} · {capable} packets capable, {marked} marked · {echoes} echoes · {reductions} reductions")
}

fn fast_open(open: &FastOpen) -> String {
    let mut parts = Vec::new();
    parts.extend(open.asked.then(|| "cookie asked for".to_owned()));
    parts.extend(open.sent.then(|| "cookie sent".to_owned()));
    parts.extend(open.granted.then(|| "cookie granted".to_owned()));
    if open.syn_bytes > 0 {
        let taken = match open.accepted {
            Some(true) => ", accepted",
            Some(false) => ", not accepted",
            None => "",
        };
        parts.push(format!("{} bytes in the SYN{taken}", count(open.syn_bytes as f64)));
    }
    parts.join(" · ")
}

fn multipath(multipath: &Multipath) -> String {
    let kind = match multipath.kind {
        MultipathKind::Capable => "first subflow (MP_CAPABLE)",
        MultipathKind::Join => "joins another connection (MP_JOIN)",
        MultipathKind::Unknown => "a subflow, its beginning not captured",
    };
    let refused = if multipath.agreed == Some(false) { ", not agreed" } else { "" };
    format!("{kind}{refused}")
}

fn keep_alives(probes: &KeepAlives) -> String {
    let KeepAlives { client, server, window_probes, answers } = probes;
    let mut parts = Vec::new();
    for (number, whose) in [(client, "by the client"), (server, "by the server"), (window_probes, "of a closed window")]
    {
        if *number > 0 {
            parts.push(format!("{} {whose}", count(*number as f64)));
        }
    }
    parts.push(format!("{} answered", count(*answers as f64)));
    parts.join(" · ")
}
