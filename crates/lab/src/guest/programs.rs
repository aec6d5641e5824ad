//! What the path does to packets that no discipline of the kernel's does, as programs the kernel runs for each.

use super::hosts::Topology;
use super::path::{Shaped, What};
use super::stage::clock;
use host::bpf::{BlackHole, Buffer, DropSegments, Occupancy, Serializer, Service, Trace};
use host::filter::{self, Direction, Police};
use host::netns::NetNs;
use host::{HostError, link};
use model::{Between, Counted, Experiment, Loss, PathDirection, Queue};
use std::sync::Arc;
use units::Bytes;

/// The order in which a packet meets them.
const POLICER: u16 = 1;
const LIST: u16 = 2;
const HOLE: u16 = 3;
const LINK: u16 = 4;

/// The programs of one device.
#[derive(Debug, Default)]
pub(super) struct Programs {
    policer: bool,
    list: Option<DropSegments>,
    link: Option<Serializer>,
}

impl Programs {
    /// Puts a device's programs in place; `index` is the device's in the current namespace.
    pub(super) fn attach(index: u32, what: What, direction: &PathDirection) -> Result<Self, HostError> {
        let mut programs = Self::default();
        match what {
            What::Bottleneck => {
                if let Some(policer) = direction.policer {
                    let police = Police { rate: policer.rate, burst: policer.burst };
                    filter::police(index, Direction::Egress, POLICER, &police)?;
                    programs.policer = true;
                }
            }
            What::Propagation => {
                if let Loss::List { of, numbers } = &direction.loss {
                    let counted = match of {
                        Counted::Segments => host::bpf::Counted::DataSegments,
                        Counted::Packets => host::bpf::Counted::Packets,
                    };
                    let numbers: Vec<u32> = numbers.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
                    let list = DropSegments::load(counted, &numbers)?;
                    filter::attach(index, Direction::Egress, LIST, list.program())?;
                    programs.list = Some(list);
                }
                if let Some(longest) = direction.black_hole {
                    filter::attach(index, Direction::Egress, HOLE, BlackHole::load(longest)?.program())?;
                }
            }
            What::Port => {}
        }
        Ok(programs)
    }

    /// What they dropped, by the figure's name.
    pub(super) fn counts(&self, index: u32) -> Result<Vec<(&'static str, u64)>, HostError> {
        let mut counts = Vec::new();
        if self.policer {
            counts.push(("policed_packets", filter::policed(index, Direction::Egress)?.drops));
        }
        if let Some(list) = &self.list {
            counts.push(("dropped_packets", list.counters()?.dropped));
        }
        if let Some(link) = &self.link {
            let port = link.counters()?;
            counts.extend([("dropped_packets", port.drops), ("queue_max_bytes", port.peak.get())]);
        }
        Ok(counts)
    }

    /// Whether a link's own program queues here.
    pub(super) const fn queues(&self) -> bool {
        self.link.is_some()
    }
}

/// Makes links of the devices that replay a trace, and of a switch's ports.
pub(super) fn attach_links(topology: &mut Topology, experiment: &Experiment) -> Result<(), HostError> {
    let mtu = experiment.path.mtu;
    let switch = match experiment.topology.between {
        Between::Switch(switch) => Some(switch),
        Between::Shared | Between::Own => None,
    };
    let shared = match switch {
        Some(switch) if switch.shared => Some(Buffer::new(switch.buffer)?),
        _ => None,
    };
    let mut links = Vec::new();
    for shaped in &topology.shaped {
        let direction = super::path::direction(experiment, shaped.way);
        let link = match (shaped.what, switch, &direction.trace) {
            (What::Port, Some(switch), _) => {
                let service = Service::Rate { rate: switch.rate, overhead: switch.overhead };
                let own = Occupancy { bytes: (!switch.shared).then_some(switch.buffer), packets: None };
                Some(Serializer::load(&service, own, shared.as_ref().map(Arc::clone))?)
            }
            (What::Bottleneck, _, Some(trace)) => {
                let trace = Trace::new(trace.opportunities_ms.clone()).map_err(|error| HostError {
                    act: "replay the trace".to_owned(),
                    source: std::io::Error::new(std::io::ErrorKind::InvalidInput, error),
                })?;
                Some(Serializer::load(&Service::Trace { trace, begins: clock() }, occupancy(direction, mtu), None)?)
            }
            _ => None,
        };
        links.push(link);
    }
    for (at, link) in links.into_iter().enumerate() {
        let Some(link) = link else { continue };
        let shaped = &topology.shaped[at];
        topology.router(shaped.router).run(|| link.attach(link::index(&shaped.device)?, LINK))?;
        let (peer, device) = topology.across(shaped);
        peer.run(|| link.attach_peer(link::index(device)?, LINK))?;
        topology.shaped[at].programs.link = Some(link);
    }
    Ok(())
}

/// What a trace's queue holds. A time is taken at the trace's mean rate.
fn occupancy(direction: &PathDirection, mtu: u16) -> Occupancy {
    match direction.queue {
        Queue::Packets(packets) => Occupancy { bytes: None, packets: Some(packets) },
        Queue::Bytes(bytes) => Occupancy { bytes: Some(bytes), packets: None },
        Queue::Time(span) => {
            let mean = direction.trace.as_ref().map_or(0.0, |trace| {
                let period_s = f64::from(trace.opportunities_ms.last().copied().unwrap_or(1)) / 1e3;
                trace.opportunities_ms.len() as f64 * 1500.0 / period_s
            });
            let bytes = (mean * span.as_secs_f64()) as u64;
            Occupancy { bytes: Some(Bytes::new(bytes.max(u64::from(mtu) + 14))), packets: None }
        }
    }
}

/// The device that a device's frames arrive at.
pub(super) type Across<'a> = (&'a NetNs, &'a str);

impl Shaped {
    /// Puts its programs in place.
    pub(super) fn program(&mut self, router: &NetNs, experiment: &Experiment) -> Result<(), HostError> {
        let direction = super::path::direction(experiment, self.way);
        self.programs = router.run(|| Programs::attach(link::index(&self.device)?, self.what, direction))?;
        Ok(())
    }
}
