//! The `[path]` of a scenario.

use super::unknown;
use crate::document::{DocumentError, NodeValue, Section};
use crate::path::{Distribution, Jitter, Loss, Path, PathDirection, Queue};
use units::{Bytes, Ratio, Span};

/// No path between two places on Earth takes this long; longer is a slip of the unit.
const LONGEST_DELAY: Span = Span::from_millis(60_000);

pub(super) fn read(section: &Section<'_>) -> Result<Path, DocumentError> {
    let mut both = PathDirection::default();
    if let Some(rtt) = section.quantity::<Span>("rtt")? {
        if section.node("delay").is_some() {
            return Err(
                section.error_at("delay", "'path.rtt' and 'path.delay' are two ways to say one thing: give one")
            );
        }
        both.delay = Span::from_nanos(rtt.as_nanos() / 2);
    }
    direction(section, &mut both)?;
    let mut path = Path { down: both.clone(), up: both, mtu: 1500 };
    if let Some(mtu) = section.quantity::<u16>("mtu")? {
        if mtu < 1280 {
            return Err(section
                .error_at("mtu", format!("'path.mtu' of {mtu} is below 1280, the least IPv6 allows (RFC 8200 §5)")));
        }
        path.mtu = mtu;
    }
    for (key, into) in [("down", &mut path.down), ("up", &mut path.up)] {
        if let Some(section) = section.section(key)? {
            direction(&section, into)?;
            section.finish()?;
        }
    }
    section.finish()?;
    Ok(path)
}

fn direction(section: &Section<'_>, into: &mut PathDirection) -> Result<(), DocumentError> {
    if let Some(delay) = section.quantity("delay")? {
        into.delay = delay;
    }
    if into.delay > LONGEST_DELAY {
        return Err(
            section.error_at("delay", format!("a one-way delay of {} is more than {LONGEST_DELAY}", into.delay))
        );
    }
    if let Some(node) = section.node("jitter") {
        into.jitter = Some(match &node.value {
            NodeValue::Table(_) => {
                let jitter = section.section("jitter")?.expect("invariant: the key was just seen");
                let distribution = match jitter.text("distribution")? {
                    None | Some("normal") => Distribution::Normal,
                    Some("uniform") => Distribution::Uniform,
                    Some(other) => return Err(unknown(&jitter, "distribution", other, &["normal", "uniform"])),
                };
                let stddev = jitter.require("stddev", jitter.quantity("stddev")?)?;
                let reorder = jitter.flag("reorder")?.unwrap_or(false);
                jitter.finish()?;
                Jitter { stddev, distribution, reorder }
            }
            _ => {
                let stddev = section.require("jitter", section.quantity("jitter")?)?;
                Jitter { stddev, distribution: Distribution::Normal, reorder: false }
            }
        });
    }
    if let Some(node) = section.node("loss") {
        into.loss = match &node.value {
            NodeValue::Table(_) => {
                let loss = section.section("loss")?.expect("invariant: the key was just seen");
                let ratio = |key: &str| -> Result<Option<Ratio>, DocumentError> { loss.quantity(key) };
                let of = match loss.text("model")? {
                    Some("random") => Loss::Random { probability: loss.require("probability", ratio("probability")?)? },
                    Some("gilbert-elliott") => Loss::GilbertElliott {
                        p: loss.require("p", ratio("p")?)?,
                        r: loss.require("r", ratio("r")?)?,
                        h: ratio("h")?.unwrap_or_default(),
                        k: ratio("k")?.or(Ratio::new(1.0)).expect("invariant: 1 is a ratio"),
                    },
                    Some(other) => return Err(unknown(&loss, "model", other, &["random", "gilbert-elliott"])),
                    None => return Err(loss.error_at("model", "'loss.model' is missing")),
                };
                loss.finish()?;
                of
            }
            _ => match section.require("loss", section.quantity::<Ratio>("loss")?)? {
                none if none.get() == 0.0 => Loss::None,
                probability => Loss::Random { probability },
            },
        };
    }
    if let Some(rate) = section.quantity::<units::Rate>("rate")? {
        if rate.bits_per_second() < 8_000 {
            return Err(
                section.error_at("rate", format!("a rate of {rate} is below 8kbit, the least the lab emulates"))
            );
        }
        into.rate = Some(rate);
    }
    if let Some(text) = section.text("queue")? {
        into.queue = queue(text).ok_or_else(|| {
            section.error_at("queue", format!("'{text}' is no queue; write \"1000 packets\", \"128KiB\" or \"20ms\""))
        })?;
    }
    Ok(())
}

fn queue(text: &str) -> Option<Queue> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let queue = match words.as_slice() {
        [number, "packet" | "packets"] => Queue::Packets(number.parse().ok()?),
        _ => match text.parse::<Span>() {
            Ok(span) => Queue::Time(span),
            Err(_) if text.trim().parse::<u64>().is_ok() => return None,
            Err(_) => Queue::Bytes(text.parse().ok()?),
        },
    };
    let empty = matches!(queue, Queue::Packets(0) | Queue::Time(Span::ZERO)) || queue == Queue::Bytes(Bytes::new(0));
    (!empty).then_some(queue)
}
