//! The `[workload]` of a scenario.

use super::unknown;
use crate::document::{DocumentError, NodeValue, Section};
use crate::flow::Way;
use crate::workload::{Amount, Transactions, Workload};
use units::{Bytes, Span};

pub(super) fn read(section: &Section<'_>) -> Result<Workload, DocumentError> {
    let size = |key: &str| -> Result<Option<Bytes>, DocumentError> {
        let size = section.quantity::<Bytes>(key)?;
        if size == Some(Bytes::new(0)) {
            return Err(section.error_at(key, format!("'workload.{key}' must be more than nothing")));
        }
        Ok(size)
    };
    let workload = match section.require("kind", section.text("kind")?)? {
        "stream" => {
            let direction = match section.text("direction")? {
                None | Some("down") => Way::Down,
                Some("up") => Way::Up,
                Some(other) => return Err(unknown(section, "direction", other, &["down", "up"])),
            };
            let amount = match (size("bytes")?, section.quantity::<Span>("seconds")?) {
                (Some(bytes), None) => Amount::Bytes(bytes),
                (None, Some(span)) if span > Span::ZERO => Amount::Seconds(span),
                (None, None) => return Err(section.error_at("kind", "a stream needs 'bytes' or 'seconds' (\"10s\")")),
                _ => {
                    return Err(
                        section.error_at("seconds", "a stream ends by 'bytes' or by 'seconds' (\"10s\"): give one")
                    );
                }
            };
            Workload::Stream { direction, amount }
        }
        "crr" => {
            let amount = match (section.quantity::<u32>("transactions")?, section.quantity::<Span>("seconds")?) {
                (Some(count), None) if count > 0 => Transactions::Count(count),
                (None, Some(span)) if span > Span::ZERO => Transactions::Seconds(span),
                (None, None) => return Err(section.error_at("kind", "crr needs 'transactions' or 'seconds' (\"60s\")")),
                _ => {
                    return Err(section.error_at(
                        "transactions",
                        "crr ends by 'transactions', at least 1, or by 'seconds': give one",
                    ));
                }
            };
            Workload::Crr {
                request: section.require("request", size("request")?)?,
                response: section.require("response", size("response")?)?,
                amount,
            }
        }
        "burst" => {
            let total = section.require("total", size("total")?)?;
            let keyframe = size("keyframe")?.unwrap_or(total.min(Bytes::new(117_118)));
            let marks = match section.node("marks").map(|node| (&node.value, node)) {
                None => Vec::new(),
                Some((NodeValue::List(nodes), _)) => nodes
                    .iter()
                    .map(|node| match &node.value {
                        NodeValue::Text(text) | NodeValue::Number(text) => {
                            text.parse().map_err(|error: units::ParseError| node.error(error.to_string(), None))
                        }
                        _ => Err(node.error("a mark is a size", None)),
                    })
                    .collect::<Result<_, _>>()?,
                Some((_, node)) => return Err(node.error("'workload.marks' must be a list of sizes", None)),
            };
            if let Some(late) = marks.iter().chain([&keyframe]).find(|mark| **mark > total) {
                return Err(section.error_at("total", format!("the client leaves after {total}, before it has {late}")));
            }
            Workload::Burst {
                buffered: section.require("buffered", size("buffered")?)?,
                rate: section.require("rate", section.quantity("rate")?)?,
                total,
                keyframe,
                marks,
            }
        }
        other => return Err(unknown(section, "kind", other, &["stream", "crr", "burst"])),
    };
    section.finish()?;
    Ok(workload)
}
