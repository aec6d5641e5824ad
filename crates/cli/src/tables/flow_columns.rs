//! A connection as a row of a table.

use super::fact_columns;
use thalweg_model::{Flow, Vantage, Way};
use thalweg_report::tables::{Column, Kind, Value};

/// Columns before the shares of time; `seen_at` names the one that says where it was captured.
const COLUMNS: [(&str, Kind); 36] = {
    use Kind::{Count, Flag, Number, Text};
    [
        ("client", Text),
        ("server", Text),
        ("vantage", Text),
        ("direction", Text),
        ("start_s", Number),
        ("duration_s", Number),
        ("bytes_up", Count),
        ("bytes_down", Count),
        ("packets_up", Count),
        ("packets_down", Count),
        ("goodput_bps", Number),
        ("phase_s", Number),
        ("handshake_rtt_ms", Number),
        ("rtt_min_ms", Number),
        ("mss_client", Count),
        ("mss_server", Count),
        ("wscale_client", Count),
        ("wscale_server", Count),
        ("sack", Flag),
        ("timestamps", Flag),
        ("fast_open", Flag),
        ("syn_retransmits", Count),
        ("retransmits", Count),
        ("retransmits_fast", Count),
        ("retransmits_rto", Count),
        ("retransmits_tlp", Count),
        ("retransmits_spurious", Count),
        ("out_of_order", Count),
        ("dup_acks", Count),
        ("zero_windows", Count),
        ("window_full", Count),
        ("verdict", Text),
        ("share", Number),
        ("gain", Number),
        ("claim", Text),
        ("remedy", Text),
    ]
};

/// The columns; `seen_at` names the one that says where the connection was captured.
pub(crate) fn columns(seen_at: &str) -> Vec<Column> {
    let first = [("flow", Kind::Count), (seen_at, Kind::Text)];
    let limits =
        thalweg_model::Limits::default().named().map(|(name, _)| Column::new(format!("limit_{name}"), Kind::Number));
    first
        .iter()
        .chain(&COLUMNS)
        .map(|(name, kind)| Column::new(*name, *kind))
        .chain(limits)
        .chain(fact_columns::columns())
        .collect()
}

/// The values of a connection's row; `claim` is its verdict's, `begin` is when the capture begins, in seconds since the epoch.
pub(crate) fn values<'a>(flow: &'a Flow, claim: &'a str, begin: f64) -> Vec<Value<'a>> {
    let vantage = match flow.vantage {
        Vantage::Sender => "sender",
        Vantage::Receiver => "receiver",
        Vantage::Middle => "middle",
        Vantage::Unknown => "unknown",
    };
    let direction = match flow.direction {
        Way::Up => "up",
        Way::Down => "down",
    };
    let (handshake, retransmits, verdict) = (&flow.handshake, &flow.retransmits, &flow.verdict);
    let count = |number: Option<u16>| Value::from(number.map(u64::from));
    let mut values = vec![
        flow.id.into(),
        flow.interface.as_deref().into(),
        flow.client.as_str().into(),
        flow.server.as_str().into(),
        vantage.into(),
        direction.into(),
        (flow.start - begin).into(),
        flow.duration_s.into(),
        flow.bytes_up.into(),
        flow.bytes_down.into(),
        flow.packets_up.into(),
        flow.packets_down.into(),
        flow.goodput_bps.into(),
        flow.phase_s.into(),
        handshake.rtt_ms.into(),
        flow.rtt_min_ms.into(),
        count(handshake.mss_client),
        count(handshake.mss_server),
        count(handshake.wscale_client.map(u16::from)),
        count(handshake.wscale_server.map(u16::from)),
        handshake.sack.into(),
        handshake.timestamps.into(),
        handshake.fast_open.into(),
        u64::from(handshake.syn_retransmits).into(),
        retransmits.total.into(),
        retransmits.fast.into(),
        retransmits.rto.into(),
        retransmits.tlp.into(),
        retransmits.spurious.into(),
        flow.out_of_order.into(),
        flow.dup_acks.into(),
        flow.zero_windows.into(),
        flow.window_full.into(),
        verdict.code().as_str().into(),
        verdict.share.into(),
        verdict.gain.into(),
        Value::Text(claim),
        flow.remedies.first().map(|remedy| remedy.reason.as_str()).into(),
    ];
    values.extend(flow.limits.named().map(|(_, share)| Value::Number(share)));
    values.extend(fact_columns::values(&flow.facts));
    values
}
