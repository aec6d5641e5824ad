//! What a connection did in each interval of its life, as iperf3 prints it.

use thalweg_model::{FlowInterval, MarkKind, Point, Series};

/// Intervals at most; a longer connection is cut there.
const INTERVALS_MAX: usize = 10_000;

/// Divides a connection's series into intervals of `every_s` seconds. Series are thinned, so figures of an interval far shorter than a
/// thousandth of the connection are those of its surroundings.
#[must_use]
pub fn intervals(series: &Series, every_s: f64) -> Vec<FlowInterval> {
    let carried = if series.acked_bytes.is_empty() { &series.sent_bytes } else { &series.acked_bytes };
    let end_s =
        [carried, &series.sent_bytes].iter().filter_map(|points| points.last()).fold(0.0, |end, p| p.t.max(end));
    if every_s <= 0.0 || end_s <= 0.0 {
        return Vec::new();
    }
    let count = ((end_s / every_s).ceil() as usize).clamp(1, INTERVALS_MAX);
    let mut before = 0.0;
    (0..count)
        .map(|place| {
            let (start_s, end) = (place as f64 * every_s, (place + 1) as f64 * every_s);
            // Each instant is in one interval, and the last takes what comes at its end.
            let within = |t: f64| t >= start_s && (t < end || place + 1 == count);
            let bytes = carried[..carried.partition_point(|point| within(point.t) || point.t < start_s)]
                .last()
                .map_or(before, |point| point.v.max(before));
            let marks = series.marks.iter().filter(|mark| within(mark.t));
            let interval = FlowInterval {
                start_s,
                end_s: end.min(end_s.max(start_s)),
                bytes: bytes - before,
                retransmits: marks
                    .filter(|mark| matches!(mark.kind, MarkKind::Fast | MarkKind::Rto | MarkKind::Tlp))
                    .count() as u64,
                flight_bytes: of(&series.flight_bytes, within).map(|point| point.v).reduce(f64::max),
                rtt_ms: mean(of(&series.rtt_ms, within).map(|point| point.v)),
            };
            before = bytes;
            interval
        })
        .collect()
}

fn of(points: &[Point], within: impl Fn(f64) -> bool) -> impl Iterator<Item = &Point> {
    points.iter().filter(move |point| within(point.t))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::LossMark;

    #[test]
    fn what_intervals_carry_adds_up_to_all() {
        let points = |values: &[(f64, f64)]| values.iter().map(|&(t, v)| Point { t, v }).collect::<Vec<_>>();
        let mark = |t, kind| LossMark { t, packet: 1, byte: 0, kind };
        let series = Series {
            acked_bytes: points(&[(0.1, 100.0), (0.9, 900.0), (1.0, 1_000.0), (1.5, 1_200.0), (3.0, 5_000.0)]),
            flight_bytes: points(&[(0.5, 10.0), (0.6, 30.0), (2.9, 7.0)]),
            rtt_ms: points(&[(0.1, 10.0), (0.2, 20.0)]),
            marks: vec![mark(1.2, MarkKind::Fast), mark(1.3, MarkKind::Spurious), mark(3.0, MarkKind::Rto)],
            ..Series::default()
        };
        let found = intervals(&series, 1.0);
        assert_eq!(found.iter().map(|one| one.bytes).collect::<Vec<_>>(), [900.0, 300.0, 3_800.0]);
        assert_eq!(found.iter().map(|one| one.retransmits).collect::<Vec<_>>(), [0, 1, 1]);
        assert_eq!((found[0].flight_bytes, found[0].rtt_ms), (Some(30.0), Some(15.0)));
        assert_eq!((found[1].flight_bytes, found[1].rtt_ms), (None, None));
        assert!(intervals(&Series::default(), 1.0).is_empty());
    }
}
