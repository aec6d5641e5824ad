//! UDP packets at a constant rate.

use crate::guest::clock::plus;
use crate::guest::event_loop::{Event, EventLoop};
use crate::guest::hosts::HostId;
use crate::guest::workload::{Findings, RunningWorkload};
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::socket::Udp;
use thalweg_model::{Cross, Metric, Metrics, Way};
use thalweg_units::{Bytes, Rate, Span};

/// Packets that are closer than this are sent several at a time: each wake-up is a round of system calls.
const WAKE_EVERY: Span = Span::from_micros(50);
/// How often what has come is taken; nobody waits for it, so that it needs no wake-up for each packet.
const TAKE_EVERY: Span = Span::from_millis(10);
/// Room for everything that comes meanwhile, so that only the path loses any.
const SOCKET_BYTES: u32 = 256 << 20;
const SEND: u64 = 0;
const TAKE: u64 = 1;
const END: u64 = 2;

/// Flows of UDP packets that go on until they are told to end. Their packets take turns, evenly spaced over all flows.
pub(super) struct CrossPackets {
    rate: Rate,
    size: Bytes,
    end: Option<Span>,
    from: HostId,
    to: HostId,
    port: u16,
    began: Span,
    /// Packets that were due so far, of all flows.
    due: u64,
    flows: Vec<Flow>,
    count: u32,
    /// When the first and the last packet came, by the clock of the day.
    arrived: Option<(u64, u64)>,
    packets: u64,
    ended: bool,
}

/// One flow.
struct Flow {
    sender: Udp,
    receiver: Udp,
    sent: u64,
    came: Came,
}

/// Which packets of a flow came.
#[derive(Debug, Default)]
struct Came {
    seen: Vec<u64>,
    distinct: u64,
    /// One more than the highest number.
    beyond: u64,
}

impl CrossPackets {
    pub(super) fn new(spec: &Cross, rate: Rate, size: Bytes, (server, client): (HostId, HostId), port: u16) -> Self {
        let (from, to) = match spec.direction {
            Way::Down => (server, client),
            Way::Up => (client, server),
        };
        Self {
            rate,
            size,
            end: spec.end,
            from,
            to,
            port,
            began: Span::ZERO,
            due: 0,
            flows: Vec::new(),
            count: spec.flows,
            arrived: None,
            packets: 0,
            ended: false,
        }
    }

    /// When a packet is due.
    fn time_of(&self, packet: u64) -> Span {
        let bits = u128::from(packet) * u128::from(self.size.get()) * 8 * 1_000_000_000;
        let of_all = u128::from(self.rate.bits_per_second()) * u128::from(self.count);
        plus(self.began, Span::from_nanos((bits / of_all.max(1)) as u64))
    }

    /// Sends what is due, and asks for the time_of of what comes next.
    fn send(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        let now = event_loop.now();
        while self.time_of(self.due) <= now {
            let flow = (self.due % u64::from(self.count)) as usize;
            self.due += 1;
            let Some(flow) = self.flows.get_mut(flow) else { break };
            flow.sent += u64::from(flow.sender.send(flow.sent, now, self.size.get() as usize)?);
        }
        event_loop.wake_at(self.time_of(self.due).max(plus(now, WAKE_EVERY)), SEND);
        Ok(())
    }

    /// Takes what has come.
    fn take(&mut self) -> Result<(), HostError> {
        for flow in &mut self.flows {
            flow.receiver.receive(|packet| {
                flow.came.note(packet.number);
                let at = packet.received.as_nanos();
                let (first, last) = self.arrived.unwrap_or((at, at));
                self.arrived = Some((first.min(at), last.max(at)));
                self.packets += 1;
            })?;
        }
        Ok(())
    }
}

impl RunningWorkload for CrossPackets {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        let (from, to) = (event_loop.topology.host(self.from), event_loop.topology.host(self.to));
        for _ in 0..self.count {
            // The first flow has the workload's own port; the others any that are free.
            let port = if self.flows.is_empty() { self.port } else { 0 };
            let receiver = to.ns.run(|| Udp::bind(port))?;
            let address = SocketAddrV4::new(to.address, receiver.port()?);
            let sender = from.ns.run(|| Udp::connect(address))?;
            receiver.set_buffers(SOCKET_BYTES)?;
            sender.set_buffers(SOCKET_BYTES)?;
            self.flows.push(Flow { sender, receiver, sent: 0, came: Came::default() });
        }
        self.began = event_loop.now();
        if let Some(end) = self.end {
            event_loop.wake_at(end, END);
        }
        event_loop.wake_at(plus(self.began, TAKE_EVERY), TAKE);
        self.send(event_loop)
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token: TAKE } => {
                // After the end, too: what was still on its way comes then.
                self.take()?;
                event_loop.wake_at(plus(event_loop.now(), TAKE_EVERY), TAKE);
                Ok(())
            }
            Event::Timer { token: END } => {
                self.ended = true;
                Ok(())
            }
            Event::Timer { .. } if !self.ended => self.send(event_loop),
            _ => Ok(()),
        }
    }

    fn done(&self, _: Span) -> f64 {
        0.0
    }

    fn is_over(&self) -> bool {
        self.ended
    }

    fn report(&mut self, _: &mut EventLoop) -> Result<Findings, HostError> {
        self.take()?;
        let sum = |of: &dyn Fn(&Flow) -> u64| self.flows.iter().map(of).sum::<u64>();
        let (sent, received) = (sum(&|flow| flow.sent), sum(&|flow| flow.came.distinct));
        // What is still on its way is not lost: a packet is only by one of its flow that was sent later and came.
        let (lost, known) = (sum(&|flow| flow.came.beyond - flow.came.distinct), sum(&|flow| flow.came.beyond));
        let mut metrics = Metrics::from([
            ("sent_packets".to_owned(), Metric::Count(sent)),
            ("received_packets".to_owned(), Metric::Count(received)),
            ("lost_packets".to_owned(), Metric::Count(lost)),
            ("loss".to_owned(), Metric::One(if known > 0 { lost as f64 / known as f64 } else { 0.0 })),
        ]);
        let between = self.arrived.map_or(Span::ZERO, |(first, last)| Span::from_nanos(last - first));
        if between > Span::ZERO {
            let bits = (self.packets - 1) as f64 * self.size.get() as f64 * 8.0;
            metrics.insert("goodput_bps".to_owned(), Metric::One(bits / between.as_secs_f64()));
        }
        Ok(Findings { metrics, ..Findings::default() })
    }
}

impl Came {
    fn note(&mut self, number: u64) {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        self.distinct += u64::from(self.seen[word] & bit == 0);
        self.seen[word] |= bit;
        self.beyond = self.beyond.max(number + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_twice_counts_once_and_what_is_on_its_way_is_not_lost() {
        let mut came = Came::default();
        [0, 1, 1, 70, 3].into_iter().for_each(|number| came.note(number));
        assert_eq!((came.distinct, came.beyond), (4, 71));
    }

    #[test]
    fn packets_of_all_flows_are_evenly_spaced() {
        let (rate, size) = (Rate::from_bits_per_second(1_000_000), Bytes::new(1250));
        let spec = Cross {
            flows: 2,
            direction: Way::Up,
            start: Span::ZERO,
            end: None,
            traffic: thalweg_model::CrossTraffic::Udp { rate, size },
        };
        let flows = CrossPackets::new(&spec, rate, size, (3, 4), 5201);
        assert_eq!((flows.from, flows.to), (4, 3));
        assert_eq!([0, 1, 2].map(|packet| flows.time_of(packet)), [0, 5, 10].map(Span::from_millis));
    }
}
