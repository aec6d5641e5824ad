//! Links that a program of ours emulates: those that replay a trace, and the ports of a switch.

use super::clock;
use super::device::Role;
use super::hosts::Topology;
use std::sync::Arc;
use thalweg_host::bpf::{Buffer, Occupancy, Serializer, Service, Trace};
use thalweg_host::{HostError, link};
use thalweg_model::{Between, Experiment, PathDirection, Queue};
use thalweg_units::Bytes;

/// After all other programs of a device.
const PRIORITY: u16 = 4;

/// Makes links of the devices that replay a trace, and of a switch's ports.
pub(super) fn attach(topology: &mut Topology, experiment: &Experiment) -> Result<(), HostError> {
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
    for device in &topology.devices {
        let direction = experiment.path.direction(device.way);
        let link = match (device.role, switch, &direction.trace) {
            (Role::Port, Some(switch), _) => {
                let service = Service::Rate { rate: switch.rate, overhead: switch.overhead };
                let own = Occupancy { bytes: (!switch.shared).then_some(switch.buffer), packets: None };
                Some(Serializer::load(&service, own, shared.as_ref().map(Arc::clone))?)
            }
            (Role::Bottleneck, _, Some(trace)) => {
                let trace = Trace::new(trace.opportunities_ms.clone()).map_err(|error| HostError {
                    act: "replay the trace".to_owned(),
                    source: std::io::Error::new(std::io::ErrorKind::InvalidInput, error),
                })?;
                Some(Serializer::load(
                    &Service::Trace { trace, begins: clock::monotonic() },
                    occupancy(direction, mtu),
                    None,
                )?)
            }
            _ => None,
        };
        links.push(link);
    }
    for (at, link) in links.into_iter().enumerate() {
        let Some(link) = link else { continue };
        let device = &topology.devices[at];
        topology.router(device.router).run(|| link.attach(link::index(&device.interface)?, PRIORITY))?;
        let (peer, far) = topology.across(device);
        peer.run(|| link.attach_peer(link::index(far)?, PRIORITY))?;
        topology.devices[at].programs.set_link(link);
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
