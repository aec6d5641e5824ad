//! Figures as sentences show them.

use std::fmt::Write;

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

/// So many of something.
pub(crate) fn count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A part of a whole.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let mut text = String::with_capacity(8);
    // What is nearly all is not told as all.
    let nearly = percent > 99.0 && percent < 100.0;
    let told = if nearly { percent.min(99.94) } else { percent };
    fixed(&mut text, told, usize::from(percent < 10.0 || nearly));
    text.push_str(" %");
    text
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
    let mut text = String::with_capacity(12);
    fixed(&mut text, value, digits);
    text.push(' ');
    text.push_str(unit);
    text
}

/// Writes a number with so many digits after the point: what `{:.digits$}` does, in a tenth of its time where the number is of a usual size.
fn fixed(text: &mut String, value: f64, digits: usize) {
    let scaled = (value * [1.0, 10.0, 100.0][digits]).round();
    if !(0.0..1e9).contains(&scaled) {
        let _ = write!(text, "{value:.digits$}");
        return;
    }
    let (scaled, one) = (scaled as u32, [1, 10, 100][digits]);
    let _ = write!(text, "{}", scaled / one);
    if digits > 0 {
        text.push('.');
        if digits == 2 {
            text.push(char::from(b'0' + (scaled / 10 % 10) as u8));
        }
        text.push(char::from(b'0' + (scaled % 10) as u8));
    }
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
        assert_eq!([0.0, 0.0123, 0.5, 1.0].map(super::percent), ["0.0 %", "1.2 %", "50 %", "100 %"]);
        assert_eq!([0.9951, 0.999_96].map(super::percent), ["99.5 %", "99.9 %"]);
        assert_eq!((super::time(1e12), super::time(0.0)), ("1000000000000 s".into(), "0 µs".into()));
    }
}
