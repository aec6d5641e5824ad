//! `udp-train`: packets at fixed distances, each with its number and the time it was sent. What arrives, and how late, tells
//! the rate at which a queue drains and how much it holds.

use crate::guest::clock::{minus, plus};
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, SERVER};
use crate::guest::metrics::percentiles;
use crate::guest::workload::{Findings, RunningWorkload};
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::socket::Udp;
use thalweg_model::{Metric, Metrics, TrainArrival, TrainQueue, UdpTrain, Way};
use thalweg_units::Span;

/// Room for every packet in the sockets' own buffers, so that only the path loses any.
const SOCKET_BYTES: u32 = 256 << 20;
/// Packets sent without a look at what else has happened.
const BATCH: u64 = 64;
/// After the last packet was sent, what is on its way is waited for until none has come for so long.
const QUIET: Span = Span::from_millis(1_000);
/// Ethernet, IPv4 and UDP headers: a path's rate counts them.
const HEADER_BYTES: u64 = 14 + 20 + 8;
/// A packet that is later than the least late one by more has waited in a queue; the lab's clocks are exact.
const WAITED: Span = Span::from_micros(1);
const SEND: u64 = 0;
const LOOK: u64 = 1;

/// All trains of a `udp-train`.
pub(super) struct Trains {
    spec: UdpTrain,
    clients: Vec<HostId>,
    port: u16,
    began: Span,
    /// The real-time clock at the opening of the event loop: that of the kernel's packet timestamps.
    epoch: Span,
    trains: Vec<Train>,
    sent: u64,
    last_arrival: Span,
    over: bool,
}

/// The packets of one client.
struct Train {
    sender: Udp,
    receiver: Key,
    /// When each was sent, since the start.
    sent: Vec<Span>,
    arrivals: Vec<TrainArrival>,
}

impl Trains {
    pub(super) fn new(spec: UdpTrain, clients: Vec<HostId>, port: u16) -> Self {
        let (began, epoch, last_arrival) = (Span::ZERO, Span::ZERO, Span::ZERO);
        Self { spec, clients, port, began, epoch, trains: Vec::new(), sent: 0, last_arrival, over: false }
    }

    /// Sends what is due; asks for the next moment.
    fn send(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        let (interval, all) = (self.spec.interval.as_nanos(), u64::from(self.spec.packets));
        for _ in 0..BATCH {
            let due = plus(self.began, Span::from_nanos(interval * self.sent));
            let now = event_loop.now();
            if self.sent == all {
                break;
            }
            if due > now {
                event_loop.wake_at(due, SEND);
                return Ok(());
            }
            let stamp = plus(self.epoch, now);
            for train in &mut self.trains {
                train.sent.push(minus(now, self.began));
                train.sender.send(self.sent, stamp, self.spec.size.get() as usize)?;
            }
            self.sent += 1;
        }
        if self.sent == all {
            self.last_arrival = event_loop.now();
            event_loop.wake_at(plus(self.last_arrival, QUIET), LOOK);
        } else {
            event_loop.wake_at(event_loop.now(), SEND);
        }
        Ok(())
    }

    fn receive(&mut self, event_loop: &EventLoop, at: usize) -> Result<(), HostError> {
        let Some(train) = self.trains.get_mut(at) else { return Ok(()) };
        let start = plus(self.epoch, self.began);
        let arrivals = &mut train.arrivals;
        event_loop.udp(train.receiver).receive(|packet| {
            let at = minus(Span::from_nanos(packet.received.as_nanos()), start);
            arrivals.push(TrainArrival { number: packet.number, at });
        })?;
        self.last_arrival = event_loop.now();
        Ok(())
    }
}

impl RunningWorkload for Trains {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        for client in self.clients.clone() {
            let (from, to) = match self.spec.direction {
                Way::Down => (SERVER, client),
                Way::Up => (client, SERVER),
            };
            // A server hears each client on a port of its own, so that each train is told from the others.
            let port = if to == SERVER { self.port + self.trains.len() as u16 } else { self.port };
            let receiver = event_loop.topology.host(to).ns.run(|| Udp::bind(port))?;
            receiver.set_buffers(SOCKET_BYTES)?;
            let address = SocketAddrV4::new(event_loop.topology.host(to).address, port);
            let sender = event_loop.topology.host(from).ns.run(|| Udp::connect(address))?;
            sender.set_buffers(SOCKET_BYTES)?;
            let receiver = event_loop.add_udp(receiver, to)?;
            self.trains.push(Train { sender, receiver, sent: Vec::new(), arrivals: Vec::new() });
        }
        self.began = event_loop.now();
        self.epoch = event_loop.epoch();
        self.send(event_loop)
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token: LOOK } => {
                let quiet = plus(self.last_arrival, QUIET);
                if quiet <= event_loop.now() {
                    self.over = true;
                } else {
                    event_loop.wake_at(quiet, LOOK);
                }
                Ok(())
            }
            Event::Timer { .. } => self.send(event_loop),
            Event::Ready { key, .. } => match self.trains.iter().position(|train| train.receiver == key) {
                Some(at) => self.receive(event_loop, at),
                None => Ok(()),
            },
            Event::Start => Ok(()),
        }
    }

    fn done(&self, _: Span) -> f64 {
        self.sent as f64 / f64::from(self.spec.packets)
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn report(&mut self, _: &mut EventLoop) -> Result<Findings, HostError> {
        let mut metrics = Metrics::new();
        let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
        let arrivals = || self.trains.iter().flat_map(|train| &train.arrivals);
        let (mut distinct, mut reordered, mut delays, mut changes) = (0u64, 0u64, Vec::new(), Vec::new());
        for train in &self.trains {
            let mut delay_of = vec![None; train.sent.len()];
            let mut highest = None;
            for arrival in &train.arrivals {
                let Some(delay) = delay_of.get_mut(arrival.number as usize).filter(|delay| delay.is_none()) else {
                    continue;
                };
                *delay = Some(minus(arrival.at, train.sent[arrival.number as usize]).as_millis_f64());
                distinct += 1;
                reordered += u64::from(highest.is_some_and(|highest| arrival.number < highest));
                highest = highest.max(Some(arrival.number));
            }
            let change = |pair: &[Option<f64>]| Some((pair[1]? - pair[0]?).abs());
            changes.extend(delay_of.windows(2).filter_map(change));
            delays.extend(delay_of.into_iter().flatten());
        }
        let sent = self.sent * self.trains.len() as u64;
        let received = arrivals().count() as u64;
        put("sent_packets", Metric::Count(sent));
        put("received_packets", Metric::Count(distinct));
        put("lost_packets", Metric::Count(sent - distinct));
        put("loss", Metric::One((sent - distinct) as f64 / sent as f64));
        put("duplicate_packets", Metric::Count(received - distinct));
        put("reordered_packets", Metric::Count(reordered));
        put("delay_ms", spread(delays));
        put("ipdv_ms", percentiles(changes));
        let size = self.spec.size.get();
        if let (Some(first), Some(last)) = (arrivals().map(|one| one.at).min(), arrivals().map(|one| one.at).max()) {
            let seconds = minus(last, first).as_secs_f64();
            put("duration_s", Metric::One(last.as_secs_f64()));
            if seconds > 0.0 {
                put("goodput_bps", Metric::One((received - 1) as f64 * size as f64 * 8.0 / seconds));
            }
        }
        if let [train] = self.trains.as_slice() {
            report_queue(train, size + HEADER_BYTES, &mut metrics);
        }
        Ok(Findings { metrics, ..Findings::default() })
    }
}

/// Reports `drain_bps` where packets queued, and `buffer_packets`, `buffer_bytes` where the queue overflowed.
fn report_queue(train: &Train, frame_bytes: u64, metrics: &mut Metrics) {
    let Some(queue) = TrainQueue::of(&train.sent, &train.arrivals, frame_bytes, WAITED) else { return };
    metrics.insert("drain_bps".to_owned(), Metric::One(queue.drain_bps));
    if let Some(held) = queue.held_packets.first() {
        metrics.insert("buffer_packets".to_owned(), Metric::Count(*held));
        metrics.insert("buffer_bytes".to_owned(), Metric::Count(held * frame_bytes));
    }
}

/// Percentiles, and the standard deviation.
fn spread(values: Vec<f64>) -> Metric {
    let (count, mean) = (values.len() as f64, values.iter().sum::<f64>() / values.len() as f64);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let mut metric = percentiles(values);
    if let (Metric::Group(group), true) = (&mut metric, count > 0.0) {
        group.insert("stddev".to_owned(), Metric::One(variance.sqrt()));
    }
    metric
}
