//! Cross traffic: background flows between hosts of their own.

mod stream;
mod udp;

use crate::guest::hosts::HostId;
use crate::guest::workload::RunningWorkload;
use thalweg_model::{Cross, CrossTraffic};

/// One kind of cross traffic between these hosts, server and client; `port` is its own.
pub(super) fn running(spec: &Cross, hosts: (HostId, HostId), port: u16) -> Box<dyn RunningWorkload> {
    match spec.traffic {
        CrossTraffic::Stream { .. } => Box::new(stream::CrossStreams::new(spec.clone(), hosts, port)),
        CrossTraffic::Udp { rate, size } => Box::new(udp::CrossPackets::new(spec, rate, size, hosts, port)),
    }
}
