//! Figures as people read them: three digits and a prefix, `452 Mb/s`, `801 ms`, `4.00 MiB`.

/// A rate in bits per second, three digits and a decimal prefix: `452 Mb/s`.
pub fn rate(bits_per_second: f64) -> String {
    let (value, prefix) = scale(bits_per_second, 1000.0, &["", "k", "M", "G", "T"]);
    format!("{} {prefix}b/s", digits(value))
}

/// A time given in milliseconds, in the unit that suits it: `35.7 ms`, `1.20 s`.
pub fn milliseconds(value: f64) -> String {
    // Two units up to 10 s: 1,214 ms and 801 ms compare better than 1.21 s and 801 ms.
    match value.abs() {
        0.0 => "0 ms".to_owned(),
        v if v < 0.9995 => format!("{} µs", digits(value * 1e3)),
        v if v < 9_999.5 => format!("{} ms", if v < 999.5 { digits(value) } else { count(value) }),
        _ => format!("{} s", digits(value / 1e3)),
    }
}

/// How long something took, in seconds from one second on: `8.92 s`, `677 ms`.
///
/// Unlike [`milliseconds`], which keeps figures of one table in one unit.
pub fn elapsed(seconds: f64) -> String {
    if seconds.abs() < 0.9995 { milliseconds(seconds * 1e3) } else { format!("{} s", digits(seconds)) }
}

/// A memory or window size, three digits and a binary prefix: `4.00 MiB`.
pub fn bytes(value: f64) -> String {
    let (value, prefix) = scale(value, 1024.0, &["", "Ki", "Mi", "Gi", "Ti"]);
    format!("{} {prefix}B", digits(value))
}

/// An amount of data, three digits and a decimal prefix: `500 MB`.
pub fn data(value: f64) -> String {
    let (value, prefix) = scale(value, 1000.0, &["", "k", "M", "G", "T"]);
    format!("{} {prefix}B", digits(value))
}

/// A count, whole where it is whole, with thousands set apart: `1,234,567`.
pub fn count(value: f64) -> String {
    if value.fract() != 0.0 && value.abs() < 100.0 {
        return digits(value);
    }
    let whole = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 && whole != "0" { format!("-{text}") } else { text }
}

/// A number of things: `1 packet`, `2 packets`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number as f64), if number == 1 { "" } else { "s" })
}

/// A share of a whole: `97 %`, and `<1 %` for what is there but small.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.95 => "<1 %".to_owned(),
        p => near_all(p).unwrap_or_else(|| format!("{p:.0} %")),
    }
}

/// A share of a whole that may be small, as a loss rate: `1.2 %`, `0.05 %`.
pub fn fine_percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.095 => format!("{} %", digits(p)),
        p if p < 9.95 => format!("{p:.1} %"),
        p => near_all(p).unwrap_or_else(|| format!("{p:.0} %")),
    }
}

/// What is nearly all is not printed as all.
fn near_all(percent: f64) -> Option<String> {
    (percent > 99.0 && percent < 100.0).then(|| format!("{percent:.1} %").replace("100.0", "99.9"))
}

/// How many times: `6.38×`, `41×`.
pub fn times(ratio: f64) -> String {
    format!("{}×", digits(ratio))
}

/// Three significant digits, without an exponent: `4.19`, `35.7`, `1,234`.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 0.0095 => format!("{value:.4}"),
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => count(value.round()),
    }
}

/// Divides `value` by `step` until three digits hold it.
fn scale(value: f64, step: f64, prefixes: &[&'static str]) -> (f64, &'static str) {
    let mut value = value;
    let mut prefixes = prefixes.iter();
    let mut prefix = prefixes.next().copied().unwrap_or_default();
    for next in prefixes {
        if value.abs() < 999.5 {
            break;
        }
        value /= step;
        prefix = next;
    }
    (value, prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        assert_eq!(rate(452e6), "452 Mb/s");
        assert_eq!(rate(2.89e9), "2.89 Gb/s");
        assert_eq!(data(4_194_304.0), "4.19 MB");
        assert_eq!(elapsed(0.0357), "35.7 ms");
        assert_eq!(elapsed(12.0), "12.0 s");
        assert_eq!([0.0, 0.0005, 0.0123, 0.5, 1.0].map(fine_percent), ["0.0 %", "0.05 %", "1.2 %", "50 %", "100 %"]);
        assert_eq!([0.0, 0.005, 0.9951, 0.999_96].map(percent), ["0 %", "<1 %", "99.5 %", "99.9 %"]);
    }
}
