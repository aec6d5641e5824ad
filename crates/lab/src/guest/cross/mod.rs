//! Cross traffic: background flows between hosts of their own.

mod stream;
mod udp;

use super::act::Actor;
use super::hosts::HostId;
use thalweg_model::{Cross, CrossTraffic};

/// The actor of one kind of cross traffic between these hosts, server and client; `port` is its own.
pub(super) fn actor(spec: &Cross, hosts: (HostId, HostId), port: u16) -> Box<dyn Actor> {
    match spec.traffic {
        CrossTraffic::Stream { .. } => Box::new(stream::CrossStreams::new(spec.clone(), hosts, port)),
        CrossTraffic::Udp { rate, size } => Box::new(udp::CrossPackets::new(spec, rate, size, hosts, port)),
    }
}
