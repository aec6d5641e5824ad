//! JSON values as the versions of iperf3 write them: one writes `1` where another writes `true`, a real or a string of digits.

use serde_json::Value;

/// A number that is not negative and whole, however it is written; a fraction is cut off.
pub(super) fn unsigned(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => text.trim().parse().ok().or_else(|| text.trim().parse().ok().and_then(whole)),
        Value::Bool(flag) => Some(u64::from(*flag)),
        _ => None,
    }
}

fn whole(value: f64) -> Option<u64> {
    // 2^53: above it a double does not hold every whole number, and no count of a test is that large.
    (0.0..=9_007_199_254_740_992.0).contains(&value).then_some(value as u64)
}

/// A number, however it is written.
pub(super) fn real(value: &Value) -> Option<f64> {
    let found = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        _ => None,
    };
    found.filter(|value| value.is_finite())
}

/// Whether a flag is set, however it is written.
pub(super) fn flag(value: &Value) -> bool {
    match value {
        Value::String(text) if text.eq_ignore_ascii_case("true") => true,
        value => real(value).is_some_and(|value| value != 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_value_has_many_spellings() {
        for (value, number) in [
            (json!(5), Some(5)),
            (json!(5.0), Some(5)),
            (json!(5.9), Some(5)),
            (json!(" 5 "), Some(5)),
            (json!("5e3"), Some(5_000)),
            (json!(true), Some(1)),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(-1), None),
            (json!(1e300), None),
            (json!("nan"), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            assert_eq!(unsigned(&value), number, "{value}");
        }
        assert_eq!(["1.5", "inf", ""].map(|text| real(&json!(text))), [Some(1.5), None, None]);
        assert!(flag(&json!(1)) && flag(&json!(true)) && flag(&json!("True")) && flag(&json!("1")));
        assert!(!flag(&json!(0)) && !flag(&json!(false)) && !flag(&json!(null)) && !flag(&json!({})));
    }
}
