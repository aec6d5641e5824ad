//! The `[[cross]]` of a scenario.

use super::unknown;
use crate::node::{ConfigError, NodeValue};
use crate::section::Section;
use thalweg_model::Way;
use thalweg_model::{Cross, CrossTraffic};
use thalweg_units::{Bytes, Rate, Span};

/// Most background flows of one kind.
const FLOWS_MAX: u32 = 1000;

pub(super) fn read(root: &Section<'_>) -> Result<Vec<Cross>, ConfigError> {
    let Some(node) = root.node("cross") else { return Ok(Vec::new()) };
    let NodeValue::List(nodes) = &node.value else {
        return Err(node.error("cross traffic is written as [[cross]]", None));
    };
    nodes.iter().map(|node| one(&Section::new(node, "cross")?)).collect()
}

fn one(section: &Section<'_>) -> Result<Cross, ConfigError> {
    let flows = section.read::<u32>("flows")?.unwrap_or(1);
    if !(1..=FLOWS_MAX).contains(&flows) {
        return Err(section.error_at("flows", format!("'cross.flows' must be 1 to {FLOWS_MAX}")));
    }
    let start = section.quantity("start")?.unwrap_or(Span::ZERO);
    let end = section.quantity::<Span>("end")?;
    if end.is_some_and(|end| end <= start) {
        return Err(section.error_at("end", "'cross.end' must be after 'cross.start'"));
    }
    let traffic = match section.require("kind", section.text("kind")?)? {
        "stream" => CrossTraffic::Stream { congestion: section.text("congestion")?.map(str::to_owned) },
        "udp" => {
            let size = section.quantity("size")?.unwrap_or(Bytes::new(1200));
            if !(16..=65_507).contains(&size.get()) {
                let why = "its number and time take 16, and UDP carries no more";
                return Err(section.error_at("size", format!("'cross.size' must be 16 to 65507 bytes: {why}")));
            }
            let rate = section.require("rate", section.quantity::<Rate>("rate")?)?;
            if rate.bits_per_second() == 0 {
                return Err(section.error_at("rate", "'cross.rate' must be more than nothing"));
            }
            CrossTraffic::Udp { rate, size }
        }
        other => return Err(unknown(section, "kind", other, &["stream", "udp"])),
    };
    let cross = Cross { flows, direction: way(section)?, start, end, traffic };
    section.finish()?;
    Ok(cross)
}

/// The direction of data; down where none is given.
pub(super) fn way(section: &Section<'_>) -> Result<Way, ConfigError> {
    match section.text("direction")? {
        None | Some("down") => Ok(Way::Down),
        Some("up") => Ok(Way::Up),
        Some(other) => Err(unknown(section, "direction", other, &["down", "up"])),
    }
}
