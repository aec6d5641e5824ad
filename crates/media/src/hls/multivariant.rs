//! The multivariant playlist: one variant, described by what was measured.

use super::rates::Rates;
use crate::Config;
use std::fmt::Write;

/// The attributes of a variant with these rates and tracks (RFC 8216 §4.3.4.2), without its tag.
pub fn stream_attributes<'a>(rates: &Rates, configs: impl Iterator<Item = &'a Config>) -> String {
    let mut out = format!(
        "BANDWIDTH={},AVERAGE-BANDWIDTH={}",
        rates.peak_bits_per_second.max(1),
        rates.average_bits_per_second.max(1)
    );
    let (mut codecs, mut size) = (Vec::new(), None);
    for config in configs {
        codecs.push(config.codec());
        if let Config::Avc(avc) = config {
            size = Some((avc.width, avc.height)).filter(|&(width, _)| width > 0);
        }
    }
    // Writing to a string does not fail.
    if !codecs.is_empty() {
        let _ = write!(out, ",CODECS=\"{}\"", codecs.join(","));
    }
    if let Some((width, height)) = size {
        let _ = write!(out, ",RESOLUTION={width}x{height}");
    }
    if let Some(rate) = rates.pictures_per_1000_s {
        let _ = write!(out, ",FRAME-RATE={}.{:03}", rate / 1_000, rate % 1_000);
    }
    out
}

/// Appends a multivariant playlist of one variant, whose media playlist is at `uri`.
pub fn write_multivariant(attributes: &str, uri: &str, out: &mut String) {
    let _ = write!(out, "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-STREAM-INF:{attributes}\n{uri}\n");
}
