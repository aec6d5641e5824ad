//! The series as the page's script reads them: compact arrays, safe inside a script element.

use super::escape::script;
use super::{ArmPlots, findings};
use crate::figures::clean;
use serde_json::{Number, Value, json};
use thalweg_model::{LossMark, MarkKind, Point};

/// The arms as JSON: `[{"name", "series": {"flight": [[t…], [v…]], …}, "marks": [[t…], [byte…], [kind…]],
/// "retransmits": count or null, "pins": [t…]}]`.
pub(super) fn embed(arms: &[ArmPlots]) -> String {
    let arms: Vec<Value> = arms
        .iter()
        .map(|arm| {
            let series = &arm.series;
            json!({
                "name": clean(&arm.name),
                "series": {
                    "flight": points(&series.flight_bytes, 0),
                    "window": points(&series.receive_window_bytes, 0),
                    "cwnd": points(&series.cwnd_bytes, 0),
                    "sent": points(&series.sent_bytes, 0),
                    "acked": points(&series.acked_bytes, 0),
                    "rate": points(&series.throughput_bps, 0),
                    "rtt": points(&series.rtt_ms, 4),
                },
                "marks": marks(&series.marks),
                "retransmits": arm.retransmits,
                "pins": findings::pins(arm).filter_map(|time| rounded(time, 6)).collect::<Vec<_>>(),
            })
        })
        .collect();
    script(&Value::Array(arms).to_string())
}

/// Times to a microsecond and values to `decimals`, as two arrays; a point that is no number is left out.
fn points(points: &[Point], decimals: i32) -> Value {
    let (times, values): (Vec<Value>, Vec<Value>) = points
        .iter()
        .filter_map(|point| Some((Value::Number(rounded(point.t, 6)?), Value::Number(rounded(point.v, decimals)?))))
        .unzip();
    json!([times, values])
}

fn marks(marks: &[LossMark]) -> Value {
    let marks: Vec<_> =
        marks.iter().filter_map(|mark| Some((rounded(mark.t, 6)?, mark.byte, kind(mark.kind)))).collect();
    let times: Vec<_> = marks.iter().map(|mark| Value::Number(mark.0.clone())).collect();
    let bytes: Vec<_> = marks.iter().map(|mark| mark.1).collect();
    let kinds: Vec<_> = marks.iter().map(|mark| mark.2).collect();
    json!([times, bytes, kinds])
}

/// The kinds by their place in the script's list.
const fn kind(kind: MarkKind) -> u8 {
    match kind {
        MarkKind::Fast => 0,
        MarkKind::Rto => 1,
        MarkKind::Tlp => 2,
        MarkKind::Spurious => 3,
        MarkKind::ZeroWindow => 4,
    }
}

/// A number with at most `decimals` decimals, whole where it is whole: `452000000`, not `452000000.0`.
fn rounded(value: f64, decimals: i32) -> Option<Number> {
    let scale = 10f64.powi(decimals);
    let value = (value * scale).round() / scale;
    // 2⁵³: up to it a whole number in an f64 is exact, here and in JavaScript.
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::Series;

    #[test]
    fn numbers_are_short_and_names_cannot_leave_the_script() {
        let series = Series {
            flight_bytes: vec![Point { t: 0.123_456_789, v: 14_480.0 }, Point { t: 1.0, v: f64::NAN }],
            marks: vec![LossMark { t: 2.0, packet: 1, byte: 7, kind: MarkKind::Rto }],
            ..Series::default()
        };
        let text = embed(&[ArmPlots { name: "</script><!--".to_owned(), series, ..ArmPlots::default() }]);
        assert!(text.contains("\"flight\":[[0.123457],[14480]]"), "{text}");
        assert!(text.contains("\"marks\":[[2],[7],[1]]"), "{text}");
        assert!(!text.contains('<'), "{text}");
    }
}
