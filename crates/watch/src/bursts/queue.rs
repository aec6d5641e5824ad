//! What waits at a port, and when its buffer overflowed.

use thalweg_model::{PortBursts, PortOverflow};
use thalweg_units::{Bytes, Rate};

const NS_PER_S: f64 = 1e9;
/// Overflows that are remembered, the latest.
const EPISODES_MAX: usize = 256;
/// Overflows of an interval that are told one by one.
const OVERFLOWS_MAX: usize = 200;

/// A port of a switch, or of anything else with one rate and one buffer.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    /// What it sends at.
    pub rate: Rate,
    /// What it holds.
    pub buffer: Bytes,
}

/// A time in which the port's buffer overflowed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Episode {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) excess: f64,
}

/// What waits at a port.
#[derive(Debug)]
pub(super) struct Queue {
    port: Port,
    at_ns: u64,
    bytes: f64,
    most: f64,
    is_over: bool,
    overflows: u64,
    excess: f64,
    /// In order, the latest last.
    episodes: Vec<Episode>,
    /// Of those, the ones that the last report did not have.
    fresh: usize,
}

impl Queue {
    pub(super) const fn new(port: Port) -> Self {
        Self {
            port,
            at_ns: 0,
            bytes: 0.0,
            most: 0.0,
            is_over: false,
            overflows: 0,
            excess: 0.0,
            episodes: Vec::new(),
            fresh: 0,
        }
    }

    /// Takes in what arrives; whether it does not fit.
    pub(super) fn arrive(&mut self, at_ns: u64, bytes: u64) -> bool {
        let passed_s = at_ns.saturating_sub(self.at_ns) as f64 / NS_PER_S;
        self.at_ns = self.at_ns.max(at_ns);
        self.bytes = (self.bytes - passed_s * self.port.rate.bits_per_second() as f64 / 8.0).max(0.0);
        if self.bytes == 0.0 {
            self.is_over = false;
        }
        self.bytes += bytes as f64;
        let buffer = self.port.buffer.get() as f64;
        let is_too_much = self.bytes > buffer;
        if is_too_much {
            self.overflow(at_ns, self.bytes - buffer);
            self.bytes = buffer;
        }
        self.most = self.most.max(self.bytes);
        is_too_much
    }

    fn overflow(&mut self, at_ns: u64, excess: f64) {
        self.excess += excess;
        if !self.is_over {
            self.overflows += 1;
            self.is_over = true;
            if self.episodes.len() == EPISODES_MAX {
                self.episodes.remove(0);
            }
            self.episodes.push(Episode { from_ns: at_ns, until_ns: at_ns, excess: 0.0 });
            self.fresh += 1;
        }
        if let Some(episode) = self.episodes.last_mut() {
            episode.until_ns = episode.until_ns.max(at_ns);
            episode.excess += excess;
        }
    }

    /// The latest overflows, of earlier intervals too, in order.
    pub(super) fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// The overflows that began since the last call.
    pub(super) fn overflows(&mut self) -> Vec<PortOverflow> {
        let fresh = std::mem::take(&mut self.fresh).min(self.episodes.len());
        let fresh = &self.episodes[self.episodes.len() - fresh..];
        let one = |episode: &Episode| PortOverflow {
            at_s: episode.from_ns as f64 / NS_PER_S,
            duration_ms: episode.until_ns.saturating_sub(episode.from_ns) as f64 / 1e6,
            excess_bytes: episode.excess as u64,
        };
        fresh.iter().take(OVERFLOWS_MAX).map(one).collect()
    }

    pub(super) fn report(&mut self) -> PortBursts {
        let report = PortBursts {
            rate_bps: self.port.rate.bits_per_second() as f64,
            buffer_bytes: self.port.buffer.get(),
            queue_max_bytes: self.most as u64,
            overflows: self.overflows,
            excess_bytes: self.excess as u64,
        };
        (self.most, self.overflows, self.excess) = (0.0, 0, 0.0);
        report
    }
}
