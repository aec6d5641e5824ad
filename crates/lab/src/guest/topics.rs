//! `topics`: messages published at fixed periods, each subscriber on a connection of its own to the publisher.

mod link;
mod outlier;

use super::act::{Actor, Findings};
use super::clock::{minus, plus};
use super::counters::Counters;
use super::figures::{percentiles, sender_metrics};
use super::hosts::{HostId, Topology};
use super::stage::{Event, Key, Stage};
use crate::quantiles::median;
use link::{Link, Message};
use outlier::{Delivery, Outliers, Seen};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Metric, Metrics, Size, SocketSettings, Topic, Topics};
use thalweg_units::{Seed, Span};

/// Apart from every other use of the run's seed.
const SIZES_SALT: u64 = 0x746f_7069_6373;

/// All topics of a `topics`.
pub(super) struct Publications {
    spec: Topics,
    port: u16,
    seed: Seed,
    listeners: Vec<Key>,
    links: Vec<Link>,
    /// Where a subscriber's socket is, by its own address: how an accepted one finds its link.
    by_address: HashMap<SocketAddrV4, usize>,
    by_key: HashMap<Key, usize>,
    /// When the first messages may be published: once every subscriber is connected.
    began: Option<Span>,
    /// Messages of each topic so far.
    published: Vec<u64>,
    /// What the publishers' kernels had counted when last looked.
    counters: BTreeMap<HostId, Counters>,
}

impl Publications {
    pub(super) fn new(spec: Topics, port: u16, seed: Seed) -> Self {
        let published = vec![0; spec.topics.len()];
        Self {
            spec,
            port,
            seed: seed.derive(SIZES_SALT ^ u64::from(port)),
            listeners: Vec::new(),
            links: Vec::new(),
            by_address: HashMap::new(),
            by_key: HashMap::new(),
            began: None,
            published,
            counters: BTreeMap::new(),
        }
    }

    /// When a topic's next message is published; `None` once all are.
    fn next(&self, topic: usize) -> Option<Span> {
        let of = &self.spec.topics[topic];
        let after = Span::from_nanos(of.phase.as_nanos() + of.period.as_nanos() * self.published[topic]);
        self.began.filter(|_| after < self.spec.seconds).map(|began| plus(began, after))
    }

    /// Begins to publish once every link is there.
    fn joined(&mut self, stage: &mut Stage) -> Result<(), HostError> {
        if self.began.is_some() || !self.links.iter().all(Link::is_joined) {
            return Ok(());
        }
        self.began = Some(stage.now());
        for link in &self.links {
            let counters = Counters::of(&stage.topology.host(link.host).ns)?;
            self.counters.insert(link.host, counters);
        }
        for topic in 0..self.published.len() {
            self.ask(stage, topic);
        }
        Ok(())
    }

    fn ask(&self, stage: &mut Stage, topic: usize) {
        if let Some(at) = self.next(topic) {
            stage.wake_at(at, topic as u64);
        }
    }

    /// What a link's connection has gone through so far.
    fn see(&mut self, stage: &Stage, at: usize) -> Result<Seen, HostError> {
        let link = &mut self.links[at];
        let info = TcpInfo::of(stage.tcp(link.publisher()))?;
        let retransmits = info.get("tcpi_total_retrans");
        // The namespace's counters say more, and cost more: they are read where there is something new to them.
        if link.retransmits != retransmits {
            link.retransmits = retransmits;
            self.counters.insert(link.host, Counters::of(&stage.topology.host(link.host).ns)?);
        }
        let counter = |name: &str| self.counters.get(&link.host).map_or(0, |counters| counters.get(name));
        let own = info.fields().find(|(name, _)| *name == "tcpi_total_rto").map(|(_, count)| count);
        Ok(Seen {
            retransmits,
            timeouts: own.unwrap_or_else(|| counter("TcpExt.TCPTimeouts")),
            probes: counter("TcpExt.TCPLossProbes"),
        })
    }

    fn publish(&mut self, stage: &mut Stage, topic: usize) -> Result<(), HostError> {
        let Some(at) = self.next(topic) else { return Ok(()) };
        let number = self.published[topic];
        let bytes = draw(&self.spec.topics[topic].size, self.seed.derive(topic as u64).derive(number));
        self.published[topic] += 1;
        for link in 0..self.links.len() {
            if self.links[link].topic == topic {
                let seen = self.see(stage, link)?;
                self.links[link].publish(stage, bytes, at, seen)?;
            }
        }
        self.ask(stage, topic);
        Ok(())
    }

    /// Reads what came at a link's subscriber.
    fn receive(&mut self, stage: &Stage, at: usize) -> Result<(), HostError> {
        if !self.links[at].receive(stage)? {
            return Ok(());
        }
        let (now, seen) = (stage.now(), self.see(stage, at)?);
        while let Some(Message { published, before, .. }) = self.links[at].take() {
            let latency_ms = minus(now, published).as_millis_f64();
            self.links[at].deliveries.push(Delivery { latency_ms, behind: seen.since(before) });
        }
        Ok(())
    }

    /// The figures of one topic, and what of them adds up over topics.
    fn topic(&self, at: usize, sums: &mut Sums) -> Metrics {
        let topic: &Topic = &self.spec.topics[at];
        let links = || self.links.iter().filter(|link| link.topic == at);
        let deliveries: Vec<Delivery> = links().flat_map(|link| link.deliveries.iter().copied()).collect();
        let latencies: Vec<f64> = deliveries.iter().map(|delivery| delivery.latency_ms).collect();
        let outliers = Outliers::of(&deliveries, median(&latencies), topic.deadline);
        let backlog = links().map(|link| link.backlog_max).max().unwrap_or(0);
        sums.latencies_ms.extend(&latencies);
        sums.outliers.add(&outliers);
        sums.backlog_max = sums.backlog_max.max(backlog);
        let mut metrics = figures(latencies, &outliers, backlog);
        metrics.insert("bytes".to_owned(), Metric::Count(links().map(|link| link.received).sum()));
        metrics
    }
}

/// What adds up over topics.
#[derive(Debug, Default)]
struct Sums {
    latencies_ms: Vec<f64>,
    outliers: Outliers,
    backlog_max: u64,
}

fn figures(latencies_ms: Vec<f64>, outliers: &Outliers, backlog: u64) -> Metrics {
    let mut metrics = Metrics::new();
    let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
    put("messages", Metric::Count(latencies_ms.len() as u64));
    put("latency_ms", percentiles(latencies_ms));
    put("backlog_max_bytes", Metric::Count(backlog));
    outliers.report(&mut metrics);
    metrics
}

impl Actor for Publications {
    fn begin(&mut self, stage: &mut Stage) -> Result<(), HostError> {
        let mut publishers: Vec<HostId> = self.spec.topics.iter().map(|topic| Topology::id(topic.publisher)).collect();
        publishers.sort_unstable();
        publishers.dedup();
        for host in publishers {
            self.listeners.push(stage.listen(host, self.port)?);
        }
        for (number, topic) in self.spec.topics.iter().enumerate() {
            let publisher = Topology::id(topic.publisher);
            for subscriber in topic.subscribers.iter().copied().map(Topology::id) {
                // With a cookie the SYN would wait for data, and a subscriber sends none.
                let settings = SocketSettings { fastopen: None, ..stage.settings_with(subscriber, None) };
                let key = stage.connect_with(subscriber, publisher, self.port, &settings)?;
                stage.tcp(key).set_priority(topic.priority)?;
                self.by_address.insert(stage.local(key)?, self.links.len());
                self.by_key.insert(key, self.links.len());
                self.links.push(Link::new(number, publisher, key));
            }
        }
        Ok(())
    }

    fn handle(&mut self, stage: &mut Stage, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token } => self.publish(stage, token as usize),
            Event::Ready { key, .. } if self.listeners.contains(&key) => {
                while let Some(publisher) = stage.accept(key)? {
                    let Some(&at) = self.by_address.get(&stage.peer(publisher)?) else { continue };
                    stage.tcp(publisher).set_priority(self.spec.topics[self.links[at].topic].priority)?;
                    stage.watch(publisher, false, false)?;
                    self.by_key.insert(publisher, at);
                    self.links[at].accepted(publisher);
                }
                self.joined(stage)
            }
            Event::Ready { key, readable, writable } => {
                let Some(&at) = self.by_key.get(&key) else { return Ok(()) };
                let link = &mut self.links[at];
                if key == link.subscriber && !link.connected {
                    link.connect(stage)?;
                    self.joined(stage)
                } else if key == link.subscriber && readable {
                    self.receive(stage, at)
                } else if key != link.subscriber && writable {
                    link.send(stage)
                } else {
                    Ok(())
                }
            }
            Event::Call => Ok(()),
        }
    }

    fn done(&self, now: Span) -> f64 {
        self.began.map_or(0.0, |began| minus(now, began).as_secs_f64() / self.spec.seconds.as_secs_f64().max(1e-9))
    }

    fn is_over(&self) -> bool {
        self.began.is_some()
            && (0..self.published.len()).all(|topic| self.next(topic).is_none())
            && self.links.iter().all(Link::is_idle)
    }

    fn report(&mut self, stage: &mut Stage) -> Result<Findings, HostError> {
        let mut sums = Sums::default();
        let mut topics = Metrics::new();
        for (at, topic) in self.spec.topics.iter().enumerate() {
            topics.insert(topic.name.clone(), Metric::Group(self.topic(at, &mut sums)));
        }
        let mut metrics = figures(sums.latencies_ms, &sums.outliers, sums.backlog_max);
        metrics.insert("topics".to_owned(), Metric::Group(topics));
        let infos = self.links.iter().map(|link| TcpInfo::of(stage.tcp(link.publisher())));
        sender_metrics(&infos.collect::<Result<Vec<_>, _>>()?, &mut metrics);
        Ok(Findings { metrics, ..Findings::default() })
    }
}

/// A message's size, by a seed of its own.
fn draw(size: &Size, seed: Seed) -> u64 {
    // The 53 bits a double holds: 0 to just below 1.
    let unit = (seed.get() >> 11) as f64 / (1u64 << 53) as f64;
    match size {
        Size::Fixed { bytes } => bytes.get(),
        Size::Uniform { min, max } => {
            let range = (max.get() - min.get()) as f64 + 1.0;
            (min.get() + (unit * range) as u64).min(max.get())
        }
        Size::Mixture { usual, rare, part } => if unit < part.get() { rare } else { usual }.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Bytes;

    #[test]
    fn sizes_are_as_asked_for() {
        let drawn = |size: &Size| (0..10_000).map(|n| draw(size, Seed::new(7).derive(3).derive(n))).collect::<Vec<_>>();
        let uniform = drawn(&Size::Uniform { min: Bytes::new(10), max: Bytes::new(12) });
        for size in 10..=12 {
            let share = uniform.iter().filter(|drawn| **drawn == size).count();
            assert!((3100..3570).contains(&share), "{share} of {size}");
        }
        assert!(uniform.iter().all(|size| (10..=12).contains(size)));
        let part = "10%".parse().expect("a ratio");
        let mixture = drawn(&Size::Mixture { usual: Bytes::new(1), rare: Bytes::new(50), part });
        let rare = mixture.iter().filter(|size| **size == 50).count();
        assert!((900..1100).contains(&rare), "{rare}");
    }
}
