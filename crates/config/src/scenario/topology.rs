//! The `[topology]` of a scenario.

use super::unknown;
use crate::node::{ConfigError, NodeValue};
use crate::section::Section;
use thalweg_model::{Between, Nic, Switch, Topology};

/// Most clients one guest holds; each has a namespace and devices of its own.
const CLIENTS_MAX: u32 = 200;

/// Reads the hosts' cards. At a switch they have the rate of its ports unless something else is said: a cable has two ends, and a card
/// without a rate would hand a whole window to the switch in one instant.
fn nic(section: &Section<'_>, between: &Between) -> Result<Option<Nic>, ConfigError> {
    if let Some(NodeValue::Flag(false)) = section.node("nic").map(|node| &node.value) {
        return Ok(None);
    }
    let nic: Option<Nic> = section.read("nic")?;
    if nic.is_some_and(|nic| nic.packets == 0) {
        let node = section.value_or_table("nic").at("packets");
        let hint = "give 1 or more; the default is 1000".to_owned();
        return Err(node.error("a card whose queue holds no packet sends none", Some(hint)));
    }
    Ok(nic.or(match between {
        Between::Switch(switch) => Some(Nic::of(switch)),
        Between::Shared | Between::Own => None,
    }))
}

pub(super) fn read(section: &Section<'_>) -> Result<Topology, ConfigError> {
    let clients = section.read::<u32>("clients")?.unwrap_or(1);
    if !(1..=CLIENTS_MAX).contains(&clients) {
        return Err(section.error_at("clients", format!("'topology.clients' must be 1 to {CLIENTS_MAX}")));
    }
    let between = match section.text("kind")? {
        None | Some("shared") => Between::Shared,
        Some("own") => Between::Own,
        Some("switch") => Between::Switch(Switch {
            rate: section.require("rate", section.quantity("rate")?)?,
            buffer: section.require("buffer", section.quantity("buffer")?)?,
            shared: section.flag("shared")?.unwrap_or(true),
            overhead: section.read("overhead")?.unwrap_or(0),
        }),
        Some(other) => return Err(unknown(section, "kind", other, &["shared", "own", "switch"])),
    };
    let nic = nic(section, &between)?;
    section.finish()?;
    Ok(Topology { clients, between, nic })
}
