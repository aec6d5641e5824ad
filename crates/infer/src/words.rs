//! Figures as sentences show them.

/// A rate given in bytes per second, in bits per second with three digits.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    scaled(bytes_per_second * 8.0, &[(1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")], "b/s")
}

/// A size in bytes.
pub(crate) fn size(bytes: f64) -> String {
    scaled(bytes, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")], "B")
}

/// A time in seconds.
pub(crate) fn time(seconds: f64) -> String {
    if seconds < 1.0 { scaled(seconds * 1e6, &[(1e3, "ms")], "µs") } else { scaled(seconds, &[], "s") }
}

/// A part of a whole.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent < 10.0 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

fn scaled(value: f64, units: &[(f64, &str)], smallest: &str) -> String {
    let (scale, unit) = units.iter().copied().find(|(scale, _)| value >= *scale * 0.9995).unwrap_or((1.0, smallest));
    let value = value / scale;
    let digits = if value >= 99.95 || value == 0.0 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn three_digits() {
        assert_eq!(super::rate(56_500_000.0), "452 Mb/s");
        assert_eq!(super::rate(361_250_000.0), "2.89 Gb/s");
        assert_eq!(super::size(4_194_304.0), "4.19 MB");
        assert_eq!(super::time(0.0357), "35.7 ms");
        assert_eq!(super::time(12.0), "12.0 s");
    }
}
