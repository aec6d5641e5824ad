//! eBPF programs that emulate what no discipline of the kernel does: a policer, a list of losses, a black hole, correlated delay.

use super::disciplines::correlated;
use thalweg_host::HostError;
use thalweg_host::bpf::{BlackHole, CorrelatedDelay, DropSegments, Serializer, Variation};
use thalweg_host::filter::{self, Direction, Police};
use thalweg_model::{Counted, Distribution, Loss, PathDirection};
use thalweg_path::distribution;
use thalweg_units::{Seed, Span};

/// The order in which a packet meets them.
const POLICER: u16 = 1;
const LIST: u16 = 2;
const HOLE: u16 = 3;
const DELAY: u16 = 4;

/// The programs of one device.
#[derive(Debug, Default)]
pub(super) struct BpfPrograms {
    policer: bool,
    list: Option<DropSegments>,
    link: Option<Serializer>,
    delay: Option<CorrelatedDelay>,
}

impl BpfPrograms {
    /// Puts a policer where one is asked for, before a bottleneck; `index` is the device's in the current namespace.
    pub(super) fn before_bottleneck(index: u32, direction: &PathDirection) -> Result<Self, HostError> {
        if let Some(policer) = direction.policer {
            let police = Police { rate: policer.rate, burst: policer.burst };
            filter::police(index, Direction::Egress, POLICER, &police)?;
        }
        Ok(Self { policer: direction.policer.is_some(), ..Self::default() })
    }

    /// Puts what drops by number or length where it is asked for, before a propagation, and a delay that is correlated;
    /// `below_netem` is whether netem is there for the rest.
    pub(super) fn before_propagation(
        index: u32,
        direction: &PathDirection,
        below_netem: bool,
        seed: Seed,
    ) -> Result<Self, HostError> {
        let mut programs = Self::default();
        if let Loss::List { of, numbers } = &direction.loss {
            let counted = match of {
                Counted::Segments => thalweg_host::bpf::Counted::DataSegments,
                Counted::Packets => thalweg_host::bpf::Counted::Packets,
            };
            let numbers: Vec<u32> = numbers.iter().filter_map(|number| u32::try_from(*number).ok()).collect();
            let list = DropSegments::load(counted, &numbers)?;
            filter::attach(index, Direction::Egress, LIST, list.program())?;
            programs.list = Some(list);
        }
        if let Some(longest) = direction.black_hole {
            filter::attach(index, Direction::Egress, HOLE, BlackHole::load(longest)?.program())?;
        }
        if let Some(jitter) = correlated(direction) {
            let variation = Variation {
                normal: &distribution::table(&Distribution::Normal),
                deviations: &distribution::deviations(
                    jitter,
                    (0..CorrelatedDelay::DEVIATIONS).map(CorrelatedDelay::score),
                ),
                correlation: jitter.correlation,
                in_order: !jitter.reorder,
            };
            let delay = CorrelatedDelay::load(direction.delay, &variation, seed)?;
            delay.attach(index, DELAY, below_netem)?;
            programs.delay = Some(delay);
        }
        Ok(programs)
    }

    /// Where a program delays, it does so by `delay` from now on.
    pub(super) fn set_delay(&self, delay: Span) -> Result<(), HostError> {
        self.delay.iter().try_for_each(|program| program.set_base(delay))
    }

    /// Notes a link that queues here.
    pub(super) fn set_link(&mut self, link: Serializer) {
        self.link = Some(link);
    }

    /// Packets they dropped, by metric name.
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
