//! Values that several commands take.

use std::net::{AddrParseError, IpAddr};
use thalweg_lab::Part;
use thalweg_model::since::Release;
use url::{ParseError, Url};

pub(crate) fn release(text: &str) -> Result<Release, String> {
    thalweg_model::since::release(text)
        .ok_or_else(|| "write it as MAJOR.MINOR, such as 6.12; uname -r prints it".to_owned())
}

/// An address; one of IPv4 that is mapped into IPv6 (RFC 4291 §2.5.5.2) is that of IPv4, as sockets of IPv6 here take IPv6 only.
pub(crate) fn ip_address(text: &str) -> Result<IpAddr, AddrParseError> {
    text.parse().map(|address: IpAddr| address.to_canonical())
}

/// A URL to load.
pub(crate) fn http_url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| match error {
        ParseError::RelativeUrlWithoutBase => "begin it with http:// or https://".to_owned(),
        error => error.to_string(),
    })
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
}
