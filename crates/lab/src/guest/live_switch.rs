//! A switch in real time: each host's router has a TUN device, and the emulator carries frames between them.

use super::lines::{Count, End, Fidelity, lost_on_the_way};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_host::HostError;
use thalweg_live::{LiveError, SwitchWire};
use thalweg_model::{Nic, Path, Switch};
use thalweg_path::PortCounters;
use thalweg_units::Seed;

/// A switch; it carries nothing until it is told so.
#[derive(Debug)]
pub(super) struct LiveSwitch {
    asked: Switch,
    /// Each host's card.
    nic: Option<Nic>,
    /// The server's device and address, then those of the clients.
    plugs: Vec<(End, Ipv4Addr)>,
    wire: Option<SwitchWire>,
    /// What is between each client and the switch.
    path: Path,
}

impl LiveSwitch {
    pub(super) fn new(asked: Switch, nic: Option<Nic>) -> Self {
        Self { asked, nic, plugs: Vec::new(), wire: None, path: Path::default() }
    }

    /// Plugs in the next host: first the server, then each client.
    pub(super) fn plug(&mut self, end: End, host: Ipv4Addr) {
        self.plugs.push((end, host));
    }

    /// Carries frames from now on.
    pub(super) fn carry(&mut self, path: &Path, seed: Seed) -> Result<(), LiveError> {
        self.rest()?;
        let hosts = self.plugs.iter().map(|(end, host)| (Arc::clone(&end.tun), IpAddr::V4(*host))).collect();
        self.wire = Some(SwitchWire::start(&self.asked, self.nic.as_ref(), path, seed, hosts)?);
        self.path = path.clone();
        Ok(())
    }

    /// Carries nothing any more.
    pub(super) fn rest(&mut self) -> Result<(), HostError> {
        self.wire.take().map_or(Ok(()), |wire| wire.finish().map(drop))
    }

    /// How true it was, frames that were not read included.
    pub(super) fn fidelity(&self) -> Result<Fidelity, HostError> {
        let Some(wire) = &self.wire else { return Ok(Fidelity::default()) };
        let mut progress = wire.progress();
        for (end, _) in &self.plugs {
            progress.lost.unread += end.unread()?;
        }
        let faults = thalweg_live::switch_verdict(&self.path, &progress).faults;
        let mut fidelity = Fidelity { faults, lost: progress.lost.in_all(), ..Fidelity::default() };
        [&progress.lateness.down, &progress.lateness.up].iter().for_each(|lateness| fidelity.add_lateness(lateness));
        Ok(fidelity)
    }

    /// Packets that ports and wires dropped, and the longest queues, by the figures and labels of the virtual lab.
    pub(super) fn counts(&self) -> Vec<Count> {
        let Some(wire) = &self.wire else { return Vec::new() };
        let progress = wire.progress();
        let of = |way: &str, ports: &[PortCounters]| {
            let (dropped, peak) = (|port: &PortCounters| port.dropped.packets, |port: &PortCounters| port.peak.get());
            let label = format!("{way}_port");
            [
                ("dropped_packets", label.clone(), ports.iter().map(dropped).sum()),
                ("queue_max_bytes", label, ports.iter().map(peak).sum()),
            ]
        };
        let (server, clients) = progress.ports.split_at(1);
        let mut found: Vec<Count> = [of("down", clients), of("up", server)].into_iter().flatten().collect();
        found.extend(lost_on_the_way(&self.path.down, "down", &progress.wires.down));
        found.extend(lost_on_the_way(&self.path.up, "up", &progress.wires.up));
        found
    }

    /// What is emulated, in one line.
    pub(super) fn describe(&self) -> String {
        let Switch { rate, buffer, shared, .. } = self.asked;
        let ports = self.plugs.len();
        let of = if shared { "for all of them" } else { "for each" };
        format!("switch: emulator, {ports} ports of {rate}, {buffer} {of}")
    }
}
