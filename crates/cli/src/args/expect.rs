//! What a load must show: `first_frame_p99 <= 500ms`.

use std::str::FromStr;
use thalweg_load::Tally;
use thalweg_model::{Held, Percentiles};
use thalweg_units::{Ratio, Span};

/// One expectation.
#[derive(Debug, Clone)]
pub(crate) struct Expectation {
    text: String,
    figure: Figure,
    is_most: bool,
    limit: f64,
}

#[derive(Debug, Clone, Copy)]
enum Figure {
    /// Of which times, which percentile; in milliseconds.
    Time(fn(&Tally) -> Option<Percentiles>, fn(&Percentiles) -> f64),
    /// A part of the time watched.
    Stalled,
    Failures,
    Playing,
}

type Times = (&'static str, fn(&Tally) -> Option<Percentiles>);
const TIMES: [Times; 4] = [
    ("first_frame", |tally| tally.first_frame.summary()),
    ("playlist", |tally| tally.playlist.summary()),
    ("segment", |tally| tally.segment.summary()),
    ("stall", |tally| tally.stall.summary()),
];
type Percentile = (&'static str, fn(&Percentiles) -> f64);
const PERCENTILES: [Percentile; 5] =
    [("p50", |s| s.p50), ("p90", |s| s.p90), ("p99", |s| s.p99), ("p999", |s| s.p999), ("max", |s| s.max)];

fn figure(name: &str) -> Option<Figure> {
    match name {
        "stalled" => return Some(Figure::Stalled),
        "failures" => return Some(Figure::Failures),
        "playing" => return Some(Figure::Playing),
        _ => {}
    }
    let (times, percentile) = name.rsplit_once('_')?;
    let (_, times) = TIMES.iter().find(|(name, _)| *name == times)?;
    let (_, percentile) = PERCENTILES.iter().find(|(name, _)| *name == percentile)?;
    Some(Figure::Time(*times, *percentile))
}

impl FromStr for Expectation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [name, sign, limit] = words[..] else {
            return Err("write it as 'first_frame_p99 <= 500ms'".to_owned());
        };
        let figure = figure(name).ok_or_else(|| {
            let times = TIMES.map(|(name, _)| format!("{name}_…")).join(", ");
            format!("there is no figure '{name}'; there are {times} with p50, p90, p99, p999 or max, stalled, failures and playing")
        })?;
        let is_most = match sign {
            "<=" => true,
            ">=" => false,
            _ => return Err(format!("'{sign}' is neither '<=' nor '>='")),
        };
        let limit = match figure {
            Figure::Time(..) => limit.parse::<Span>().map_err(|error| error.to_string())?.as_secs_f64() * 1e3,
            Figure::Stalled => limit.parse::<Ratio>().map_err(|error| error.to_string())?.get(),
            Figure::Failures | Figure::Playing => {
                limit.parse::<u64>().map_err(|_| format!("'{limit}' is no number"))? as f64
            }
        };
        Ok(Self { text: text.to_owned(), figure, is_most, limit })
    }
}

impl Expectation {
    /// What was found, and whether that is as expected. Times that nobody met are no more than any limit, and no less.
    pub(crate) fn check(&self, tally: &Tally) -> Held {
        let found = match self.figure {
            Figure::Time(times, percentile) => times(tally).map(|summary| percentile(&summary)),
            Figure::Stalled => Some(tally.stalled_part()),
            Figure::Failures => Some(tally.failures() as f64),
            Figure::Playing => Some(tally.playing as f64),
        };
        let holds = found.is_none_or(|found| if self.is_most { found <= self.limit } else { found >= self.limit });
        Held { text: self.text.clone(), found, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_hold_or_not() {
        let tally = Tally { playing: 9, stalled_s: 1.0, watched_s: 100.0, ..Tally::default() };
        for (text, holds) in [
            ("stalled <= 1%", true),
            ("stalled <= 0.5%", false),
            ("playing >= 10", false),
            ("failures <= 0", true),
            ("first_frame_p99 <= 500ms", true),
        ] {
            assert_eq!(text.parse::<Expectation>().expect(text).check(&tally).holds, holds, "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        for (text, part) in [
            ("first_frame_p98 <= 1s", "there is no figure 'first_frame_p98'"),
            ("stalled < 1%", "neither '<=' nor '>='"),
            ("segment_max <= 5", "is not a time"),
            ("stalled", "write it as"),
        ] {
            let error = text.parse::<Expectation>().expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
