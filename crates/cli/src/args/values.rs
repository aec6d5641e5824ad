//! Values that several commands take.

use std::net::{AddrParseError, IpAddr};
use thalweg_lab::Part;
use thalweg_model::since::Release;
use thalweg_units::Span;
use url::Url;

/// iperf3 takes a day at most (`MAX_TIME`).
const SECONDS_BEYOND: u64 = 86_401;

pub(crate) fn release(text: &str) -> Result<Release, String> {
    thalweg_model::since::release(text)
        .ok_or_else(|| "write it as MAJOR.MINOR, such as 6.12; uname -r prints it".to_owned())
}

/// An address; one of IPv4 that is mapped into IPv6 (RFC 4291 §2.5.5.2) is that of IPv4, as sockets of IPv6 here take IPv6 only.
pub(crate) fn ip_address(text: &str) -> Result<IpAddr, AddrParseError> {
    text.parse().map(|address: IpAddr| address.to_canonical())
}

/// How many experiments at a time.
pub(crate) fn jobs(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|jobs| *jobs > 0).ok_or_else(|| "it is 1 or more".to_owned())
}

/// A URL; of a text that has no scheme it says so.
pub(crate) fn web_url(text: &str) -> Result<Url, String> {
    text.parse().map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => {
            format!("it has no scheme\n\nhint: write it as http://{text} or https://{text}")
        }
        error => error.to_string(),
    })
}

/// A time; a number without a unit is seconds, as iperf3 and netperf take it.
pub(crate) fn time_or_seconds(text: &str) -> Result<Span, String> {
    let is_plain = text.parse::<f64>().is_ok();
    let unit = if is_plain { "s" } else { "" };
    format!("{text}{unit}").parse().map_err(|error: thalweg_units::ParseError| error.to_string())
}

/// A time of whole seconds, the only ones that iperf3's protocol has, with or without a unit.
pub(crate) fn whole_seconds(text: &str) -> Result<u64, String> {
    let span = time_or_seconds(text)?;
    let seconds = span.as_nanos() / 1_000_000_000;
    match seconds {
        _ if span != Span::from_millis(seconds.saturating_mul(1_000)) => {
            Err("it is whole seconds, such as 10 or 10s".to_owned())
        }
        SECONDS_BEYOND.. => Err("it can be up to 86400 s".to_owned()),
        seconds => Ok(seconds),
    }
}

pub(crate) fn part(text: &str) -> Result<Part, String> {
    let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((index, of)) if index >= 1 && index <= of => Ok(Part { index, of }),
        _ => Err("write it as I/N with I from 1 to N, such as 2/8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_mapped_into_ipv6_is_one_of_ipv4() {
        for (text, is) in [("::ffff:127.0.0.1", "127.0.0.1"), ("127.0.0.3", "127.0.0.3"), ("::1", "::1")] {
            assert_eq!(ip_address(text).map(|address| address.to_string()), Ok(is.to_owned()));
        }
        assert!(ip_address("here").is_err());
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        assert_eq!(time_or_seconds("0.5"), Ok(Span::from_millis(500)));
        assert_eq!(time_or_seconds("500ms"), Ok(Span::from_millis(500)));
        assert!(time_or_seconds("ten").is_err() && time_or_seconds("-1").is_err() && time_or_seconds("inf").is_err());
        assert_eq!((whole_seconds("10"), whole_seconds("10s"), whole_seconds("2min")), (Ok(10), Ok(10), Ok(120)));
        for wrong in ["0.5", "500ms", "86401", "1e30", "x"] {
            assert!(whole_seconds(wrong).is_err(), "{wrong}");
        }
    }
}
