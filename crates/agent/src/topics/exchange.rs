//! The connections of a test's topics at one end, in one event loop.

use super::link::Link;
use crate::clock::Clock;
use crate::control::SIGNAL_LOOK;
use crate::error::AgentError;
use crate::message::TopicsPlan;
use std::os::fd::AsFd;
use std::time::Duration;
use thalweg_host::poll::{Poller, Ready, wait_readable, wake_on_time};
use thalweg_host::socket::Tcp;
use thalweg_model::Way;

/// Token of the control connection; links count from 0.
const CONTROL: u64 = u64::MAX;

/// All links of this end.
pub(super) struct Exchange {
    pub(super) links: Vec<Link>,
    poller: Poller,
    clock: Clock,
    /// When the test starts, by this end's clock.
    start_ns: u64,
    ready: Vec<Ready>,
}

impl Exchange {
    /// Over connections in the order of the plan's topics; this end publishes those of the direction `sends`.
    pub(super) fn new(plan: &TopicsPlan, tcps: Vec<Tcp>, clock: Clock, sends: Way) -> Result<Self, AgentError> {
        let poller = Poller::new()?;
        let mut links = Vec::new();
        for ((place, topic), tcp) in (0..).zip(&plan.topics).zip(tcps) {
            poller.add_edges(&tcp, u64::from(place))?;
            links.push(Link::new(tcp, (place, *topic), plan, topic.way == sends)?);
        }
        Ok(Self { links, poller, clock, start_ns: u64::MAX, ready: Vec::new() })
    }

    /// Publishes from `start_ns` on, and wakes for messages on `control`.
    pub(super) fn start(&mut self, start_ns: u64, control: impl AsFd) -> Result<(), AgentError> {
        wake_on_time();
        self.poller.add_readable(control, CONTROL)?;
        self.start_ns = start_ns;
        Ok(())
    }

    /// Publishes what is due, and waits until something is to be done, for a signal's time at most.
    pub(super) fn turn(&mut self) -> Result<(), AgentError> {
        let mut next = u64::MAX;
        for link in &mut self.links {
            while let Some(due) = link.next_due_ns() {
                let due = self.start_ns.saturating_add(due);
                if due > self.clock.now_ns() {
                    next = next.min(due);
                    break;
                }
                link.publish(self.clock)?;
            }
        }
        let left = Duration::from_nanos(next.saturating_sub(self.clock.now_ns()));
        self.ready.clear();
        // epoll's own timeout is in milliseconds.
        wait_readable([self.poller.as_fd()], Some(left.min(SIGNAL_LOOK)))?;
        self.poller.wait(Some(Duration::ZERO), &mut self.ready)?;
        for event in &self.ready {
            if let Some(link) = self.links.get_mut(event.token as usize) {
                link.advance(self.clock)?;
            }
        }
        Ok(())
    }

    /// Whether nothing is to be done any more at this end.
    pub(super) fn is_over(&self) -> bool {
        self.links.iter().all(Link::is_over)
    }
}
