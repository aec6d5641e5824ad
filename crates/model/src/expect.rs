//! What a scenario expects of its figures: `"window raised/goodput_bps" = ">= 4x as found"`.

use crate::metric::{Metric, Metrics};
use crate::report::{ArmReport, Outcome};
use thalweg_units::{Bytes, Rate, Span};

/// One line of `[expect]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// The arm whose figure it is.
    pub arm: String,
    /// The figure: its name, and its place within a group after a dot.
    pub metric: String,
    /// The bound, as it was written.
    pub wanted: String,
    bound: Bound,
}

#[derive(Debug, Clone, PartialEq)]
enum Bound {
    Compare { order: Order, times: f64, of_arm: Option<String> },
    Within { value: f64, part: f64 },
    Verdict(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Order {
    Less,
    AtMost,
    AtLeast,
    More,
}

impl Expectation {
    /// Reads `key = wanted`: `arm/figure` and one of `>= 2.8gbit`, `< 900ms`, `>= 4x other arm`, `801ms +- 1%`, or, for
    /// the figure `verdict`, a code.
    ///
    /// Names of arms and of topics may hold a `/`: the arm is the longest of `arms` that `key` begins with. Where none
    /// is, it is what stands before the last `/`, for the caller to say that there is no such arm.
    ///
    /// # Errors
    /// A sentence saying what cannot be read.
    pub fn parse<'a>(key: &str, wanted: &str, arms: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let figure_of = |arm: &'a str| Some((arm, key.strip_prefix(arm)?.strip_prefix('/')?));
        let known = arms.into_iter().filter_map(figure_of).max_by_key(|(arm, _)| arm.len());
        let (arm, metric) = known
            .or_else(|| key.rsplit_once('/'))
            .ok_or_else(|| format!("'{key}' must name an arm and a figure: \"as found/goodput_bps\""))?;
        let bound = match metric {
            "verdict" => Bound::Verdict(wanted.trim().to_owned()),
            metric => Bound::parse(wanted, Unit::of(metric))?,
        };
        Ok(Self { arm: arm.to_owned(), metric: metric.to_owned(), wanted: wanted.to_owned(), bound })
    }

    /// The arms it speaks of.
    pub fn arms(&self) -> impl Iterator<Item = &str> {
        let other = match &self.bound {
            Bound::Compare { of_arm, .. } => of_arm.as_deref(),
            _ => None,
        };
        std::iter::once(self.arm.as_str()).chain(other)
    }

    /// The same expectation of arms whose names go on with `suffix`, such as ` · Linux 6.1`.
    #[must_use]
    pub fn of_arms_with(&self, suffix: &str) -> Self {
        let mut line = self.clone();
        line.arm.push_str(suffix);
        if let Bound::Compare { of_arm: Some(other), .. } = &mut line.bound {
            other.push_str(suffix);
            line.wanted = format!("{}{suffix}", line.wanted.trim_end());
        }
        line
    }

    /// Holds the expectation against what was measured.
    pub fn check(&self, arms: &[ArmReport]) -> Outcome {
        let report = |name: &str| arms.iter().find(|arm| arm.name == name);
        let value = |name: &str| report(name).and_then(|arm| figure(&arm.metrics, &self.metric));
        let unit = Unit::of(&self.metric);
        let (got, met) = match &self.bound {
            Bound::Verdict(code) => {
                let got =
                    report(&self.arm).and_then(|arm| arm.diagnosis.first()).map_or("none", |line| line.code.as_str());
                (got.to_owned(), got == code)
            }
            Bound::Within { value: middle, part } => match value(&self.arm) {
                Some(got) => (unit.print(got), (got - middle).abs() <= middle.abs() * part),
                None => ("no such figure".to_owned(), false),
            },
            Bound::Compare { order, times, of_arm } => {
                let base = of_arm.as_ref().map_or(Some(1.0), |name| value(name));
                match (value(&self.arm), base) {
                    (Some(got), Some(base)) => {
                        let limit = times * base;
                        let met = match order {
                            Order::Less => got < limit,
                            Order::AtMost => got <= limit,
                            Order::AtLeast => got >= limit,
                            Order::More => got > limit,
                        };
                        let text = if of_arm.is_some() { format!("{:.3}x", got / base) } else { unit.print(got) };
                        (text, met)
                    }
                    _ => ("no such figure".to_owned(), false),
                }
            }
        };
        Outcome { metric: format!("{}/{}", self.arm, self.metric), wanted: self.wanted.clone(), got, met }
    }
}

impl Bound {
    fn parse(text: &str, unit: Unit) -> Result<Self, String> {
        let text = text.trim();
        let orders = [(">=", Order::AtLeast), ("<=", Order::AtMost), (">", Order::More), ("<", Order::Less)];
        if let Some((sign, order)) = orders.into_iter().find(|(sign, _)| text.starts_with(sign)) {
            let rest = text[sign.len()..].trim();
            if let Some((times, arm)) = rest.split_once("x ")
                && let Ok(times) = times.trim().parse()
            {
                return Ok(Self::Compare { order, times, of_arm: Some(arm.trim().to_owned()) });
            }
            return Ok(Self::Compare { order, times: quantity(rest, unit)?, of_arm: None });
        }
        if let Some((value, part)) = text.split_once("+-") {
            let part: thalweg_units::Ratio =
                part.parse().map_err(|error: thalweg_units::ParseError| error.to_string())?;
            return Ok(Self::Within { value: quantity(value, unit)?, part: part.get() });
        }
        Err(format!(
            "'{text}' is no bound; write \">= 2.8gbit\", \"801ms +- 1%\", \"7 +- 0%\" for exactly 7, or \">= 4x other arm\""
        ))
    }
}

/// The unit of a figure, as its name ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    BitsPerSecond,
    PerSecond,
    Milliseconds,
    Seconds,
    Bytes,
    Packets,
    None,
}

impl Unit {
    fn of(metric: &str) -> Self {
        let endings = [
            ("_bps", Self::BitsPerSecond),
            ("_per_s", Self::PerSecond),
            ("_ms", Self::Milliseconds),
            ("_s", Self::Seconds),
            ("_bytes", Self::Bytes),
            ("_packets", Self::Packets),
        ];
        let of = |name: &str| endings.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, unit)| *unit);
        metric.rsplit('.').find_map(of).unwrap_or(Self::None)
    }

    /// A value to three decimals, with its unit.
    fn print(self, value: f64) -> String {
        let number = |value: f64| {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        match self {
            Self::BitsPerSecond => {
                let steps = [(1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")];
                let step = steps.into_iter().find(|(step, _)| value.abs() >= *step);
                step.map_or_else(
                    || format!("{} b/s", number(value)),
                    |(step, name)| format!("{} {name}", number(value / step)),
                )
            }
            Self::PerSecond => format!("{}/s", number(value)),
            Self::Milliseconds => format!("{} ms", number(value)),
            Self::Seconds => format!("{} s", number(value)),
            Self::Bytes => format!("{} bytes", number(value)),
            Self::Packets => format!("{} packets", number(value)),
            Self::None => number(value),
        }
    }
}

/// A number in the unit the figure has: one without a unit is taken as it is.
fn quantity(text: &str, unit: Unit) -> Result<f64, String> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number);
    }
    let say = |error: thalweg_units::ParseError| error.to_string();
    match unit {
        Unit::BitsPerSecond => text.parse::<Rate>().map(|rate| rate.bits_per_second() as f64).map_err(say),
        Unit::Milliseconds => text.parse::<Span>().map(Span::as_millis_f64).map_err(say),
        Unit::Seconds => text.parse::<Span>().map(Span::as_secs_f64).map_err(say),
        Unit::Bytes => text.parse::<Bytes>().map(|bytes| bytes.get() as f64).map_err(say),
        Unit::PerSecond | Unit::Packets | Unit::None => {
            let bare = text.strip_suffix("/s").or_else(|| text.strip_suffix("packets")).unwrap_or(text);
            bare.trim().parse().map_err(|_| format!("'{text}' is no number"))
        }
    }
}

fn figure(metrics: &Metrics, name: &str) -> Option<f64> {
    Metric::named(metrics, name)?.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &str, goodput: f64) -> ArmReport {
        ArmReport {
            name: name.to_owned(),
            kernel: "6.12.1".to_owned(),
            matrix: Default::default(),
            baseline: None,
            settings: Default::default(),
            metrics: Metrics::from([
                ("goodput_bps".to_owned(), Metric::One(goodput)),
                ("duration_s".to_owned(), Metric::One(1.79)),
            ]),
            differences: Default::default(),
            outliers: Vec::new(),
            intervals: Vec::new(),
            diagnosis: Vec::new(),
            capture: None,
            samples: None,
            live: None,
        }
    }

    #[test]
    fn bounds_hold_and_fail() {
        let arms = [arm("a", 452e6), arm("b", 2.89e9)];
        for (key, wanted, met) in [
            ("a/goodput_bps", "452mbit +- 3%", true),
            ("a/goodput_bps", "470mbit +- 3%", false),
            ("b/goodput_bps", ">= 6x a", true),
            ("b/goodput_bps", ">= 7x a", false),
            ("b/goodput_bps", ">= 2.8gbit", true),
            ("b/goodput_bps", "< 2.8gbit", false),
            ("b/latency_ms.p50", "< 1ms", false),
            ("b/duration_s", "1.79s +- 1%", true),
            ("b/duration_s", "< 1800ms", true),
        ] {
            let expectation = Expectation::parse(key, wanted, ["a", "b"]).expect(wanted);
            assert_eq!(expectation.check(&arms).met, met, "{key} {wanted}");
        }
        for (key, wanted) in [
            ("goodput_bps", "> 1"),
            ("a/goodput_bps", "fast"),
            ("a/goodput_bps", "> 100ms"),
            ("a/goodput_bps", "> 10MB"),
            ("a/retransmits", "> 1ms"),
        ] {
            assert!(Expectation::parse(key, wanted, ["a"]).is_err(), "{key} {wanted}");
        }
    }

    #[test]
    fn names_may_hold_a_slash() {
        let arms = ["a", "a/b", "in/out"];
        for (key, arm, metric) in [
            ("a/goodput_bps", "a", "goodput_bps"),
            ("a/b/goodput_bps", "a/b", "goodput_bps"),
            ("in/out/topics.camera/front.latency_ms.p50", "in/out", "topics.camera/front.latency_ms.p50"),
            ("gone/goodput_bps", "gone", "goodput_bps"),
        ] {
            let line = Expectation::parse(key, "> 1", arms).expect(key);
            assert_eq!((line.arm.as_str(), line.metric.as_str()), (arm, metric));
        }
    }

    #[test]
    fn what_was_measured_is_told_with_its_unit() {
        for (name, value, text) in [
            ("goodput_bps", 452_013_000.0, "452.013 Mb/s"),
            ("time_to_bytes_ms.1000000", 800.009, "800.009 ms"),
            ("topics.wheel_s.latency_ms.p50", 1.5, "1.5 ms"),
            ("transactions_per_s", 1.06, "1.06/s"),
            ("duration_s", 2.0, "2 s"),
            ("retransmits", 7.0, "7"),
        ] {
            assert_eq!(Unit::of(name).print(value), text);
        }
    }

    #[test]
    fn a_kernel_in_the_arms_names_is_in_both_and_reads_back() {
        let line = Expectation::parse("b/goodput_bps", ">= 4x a", ["b"]).expect("valid").of_arms_with(" · Linux 6.1");
        assert_eq!(line.arms().collect::<Vec<_>>(), ["b · Linux 6.1", "a · Linux 6.1"]);
        assert_eq!(
            Expectation::parse("b · Linux 6.1/goodput_bps", &line.wanted, [line.arm.as_str()]),
            Ok(line.clone())
        );
    }
}
