//! `topics`: messages published at fixed periods, each subscriber on a connection of its own to the publisher.

mod graph;
mod link;
mod outlier;

use crate::guest::clock::{minus, plus};
use crate::guest::counters::Counters;
use crate::guest::event_loop::{Event, EventLoop, Key};
use crate::guest::hosts::{HostId, Topology};
use crate::guest::metrics::{percentiles, sender_metrics};
use crate::guest::workload::{Findings, RunningWorkload};
use crate::quantiles::median;
use graph::Graph;
use link::{Link, Message};
use outlier::{Delivery, Outliers, Seen};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddrV4;
use thalweg_host::HostError;
use thalweg_host::tcp_info::TcpInfo;
use thalweg_model::{Metric, Metrics, SocketSettings, Topic, Topics};
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
    /// Who waits for whom.
    graph: Graph,
    /// What the publishers' kernels had counted when last looked.
    counters: BTreeMap<HostId, Counters>,
}

impl Publications {
    pub(super) fn new(spec: Topics, port: u16, seed: Seed) -> Self {
        let published = vec![0; spec.topics.len()];
        let graph = Graph::of(&spec.topics);
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
            graph,
            counters: BTreeMap::new(),
        }
    }

    /// When the next message of a topic that waits for no other is published; `None` once all are.
    fn next(&self, topic: usize) -> Option<Span> {
        if self.graph.waits(topic) {
            return None;
        }
        let of = &self.spec.topics[topic];
        let after = Span::from_nanos(of.phase.as_nanos() + of.period.as_nanos() * self.published[topic]);
        self.began.filter(|_| after < self.spec.seconds).map(|began| plus(began, after))
    }

    /// Begins to publish once every link is there.
    fn joined(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        if self.began.is_some() || !self.links.iter().all(Link::is_joined) {
            return Ok(());
        }
        self.began = Some(event_loop.now());
        for link in &self.links {
            let counters = Counters::of(&event_loop.topology.host(link.host).ns)?;
            self.counters.insert(link.host, counters);
        }
        for topic in 0..self.published.len() {
            self.ask(event_loop, topic);
        }
        Ok(())
    }

    fn ask(&self, event_loop: &mut EventLoop, topic: usize) {
        if let Some(at) = self.next(topic) {
            event_loop.wake_at(at, topic as u64);
        }
    }

    /// What a link's connection has gone through so far.
    fn see(&mut self, event_loop: &EventLoop, at: usize) -> Result<Seen, HostError> {
        let link = &mut self.links[at];
        let info = TcpInfo::of(event_loop.tcp(link.publisher()))?;
        let retransmits = info.get("tcpi_total_retrans");
        // The namespace's counters say more, and cost more: they are read where there is something new to them.
        if link.retransmits != retransmits {
            link.retransmits = retransmits;
            self.counters.insert(link.host, Counters::of(&event_loop.topology.host(link.host).ns)?);
        }
        let counter = |name: &str| self.counters.get(&link.host).map_or(0, |counters| counters.get(name));
        let own = info.fields().find(|(name, _)| *name == "tcpi_total_rto").map(|(_, count)| count);
        Ok(Seen {
            retransmits,
            timeouts: own.unwrap_or_else(|| counter("TcpExt.TCPTimeouts")),
            probes: counter("TcpExt.TCPLossProbes"),
        })
    }

    fn publish(&mut self, event_loop: &mut EventLoop, topic: usize) -> Result<(), HostError> {
        let due = if self.graph.waits(topic) { Some(event_loop.now()) } else { self.next(topic) };
        let Some(at) = due else { return Ok(()) };
        self.graph.publish(topic, at);
        let number = self.published[topic];
        let bytes = self.spec.topics[topic].size.draw(self.seed.derive(topic as u64).derive(number)).get();
        self.published[topic] += 1;
        for link in 0..self.links.len() {
            if self.links[link].topic == topic {
                let seen = self.see(event_loop, link)?;
                self.links[link].publish(event_loop, bytes, at, seen)?;
            }
        }
        self.ask(event_loop, topic);
        Ok(())
    }

    /// Reads what came at a link's subscriber.
    fn receive(&mut self, event_loop: &mut EventLoop, at: usize) -> Result<(), HostError> {
        if !self.links[at].receive(event_loop)? {
            return Ok(());
        }
        let (now, seen) = (event_loop.now(), self.see(event_loop, at)?);
        while let Some(Message { published, before, .. }) = self.links[at].take() {
            let latency_ms = minus(now, published).as_millis_f64();
            self.links[at].deliveries.push(Delivery { latency_ms, behind: seen.since(before) });
            let (topic, to) = (self.links[at].topic, self.links[at].to);
            let host = |topic: usize| Topology::id(self.spec.topics[topic].publisher);
            for ready in self.graph.deliver(topic, to, now, host) {
                event_loop.wake_at(plus(now, self.spec.topics[ready].compute), ready as u64);
            }
        }
        Ok(())
    }

    /// The metrics of one topic, and what of them adds up over topics.
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
        let mut metrics = topic_metrics(latencies, &outliers, backlog);
        metrics.insert("bytes".to_owned(), Metric::Count(links().map(|link| link.received).sum()));
        if self.graph.waits(at) {
            metrics.insert("since_first_input_ms".to_owned(), percentiles(self.graph.ages_ms(at).to_vec()));
        }
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

fn topic_metrics(latencies_ms: Vec<f64>, outliers: &Outliers, backlog: u64) -> Metrics {
    let mut metrics = Metrics::new();
    let mut put = |name: &str, metric: Metric| metrics.insert(name.to_owned(), metric);
    put("messages", Metric::Count(latencies_ms.len() as u64));
    put("latency_ms", percentiles(latencies_ms));
    put("backlog_max_bytes", Metric::Count(backlog));
    outliers.report(&mut metrics);
    metrics
}

impl RunningWorkload for Publications {
    fn begin(&mut self, event_loop: &mut EventLoop) -> Result<(), HostError> {
        let mut publishers: Vec<HostId> = self.spec.topics.iter().map(|topic| Topology::id(topic.publisher)).collect();
        publishers.sort_unstable();
        publishers.dedup();
        for host in publishers {
            self.listeners.push(event_loop.listen(host, self.port)?);
        }
        for (number, topic) in self.spec.topics.iter().enumerate() {
            let publisher = Topology::id(topic.publisher);
            for subscriber in topic.subscribers.iter().copied().map(Topology::id) {
                // With a cookie the SYN would wait for data, and a subscriber sends none.
                let settings = SocketSettings { fastopen: None, ..event_loop.settings_with(subscriber, None) };
                let key = event_loop.connect_with(subscriber, publisher, self.port, &settings)?;
                event_loop.tcp(key).set_priority(topic.priority)?;
                self.by_address.insert(event_loop.local(key)?, self.links.len());
                self.by_key.insert(key, self.links.len());
                self.links.push(Link::new(number, publisher, subscriber, key));
            }
        }
        Ok(())
    }

    fn handle(&mut self, event_loop: &mut EventLoop, event: Event) -> Result<(), HostError> {
        match event {
            Event::Timer { token } => self.publish(event_loop, token as usize),
            Event::Ready { key, .. } if self.listeners.contains(&key) => {
                while let Some(publisher) = event_loop.accept(key)? {
                    let Some(&at) = self.by_address.get(&event_loop.peer(publisher)?) else { continue };
                    event_loop.tcp(publisher).set_priority(self.spec.topics[self.links[at].topic].priority)?;
                    event_loop.watch(publisher, false, false)?;
                    self.by_key.insert(publisher, at);
                    self.links[at].accepted(publisher);
                }
                self.joined(event_loop)
            }
            Event::Ready { key, readable, writable } => {
                let Some(&at) = self.by_key.get(&key) else { return Ok(()) };
                let link = &mut self.links[at];
                if key == link.subscriber && !link.connected {
                    link.connect(event_loop)?;
                    self.joined(event_loop)
                } else if key == link.subscriber && readable {
                    self.receive(event_loop, at)
                } else if key != link.subscriber && writable {
                    link.send(event_loop)
                } else {
                    Ok(())
                }
            }
            Event::Start => Ok(()),
        }
    }

    fn done(&self, now: Span) -> f64 {
        self.began.map_or(0.0, |began| minus(now, began).as_secs_f64() / self.spec.seconds.as_secs_f64().max(1e-9))
    }

    fn is_over(&self) -> bool {
        self.began.is_some()
            && (0..self.published.len()).all(|topic| self.next(topic).is_none())
            && self.links.iter().all(Link::is_idle)
            && self.graph.is_idle()
    }

    fn report(&mut self, event_loop: &mut EventLoop) -> Result<Findings, HostError> {
        let mut sums = Sums::default();
        let mut topics = Metrics::new();
        for (at, topic) in self.spec.topics.iter().enumerate() {
            topics.insert(topic.name.clone(), Metric::Group(self.topic(at, &mut sums)));
        }
        let mut metrics = topic_metrics(sums.latencies_ms, &sums.outliers, sums.backlog_max);
        metrics.insert("topics".to_owned(), Metric::Group(topics));
        let infos = self.links.iter().map(|link| TcpInfo::of(event_loop.tcp(link.publisher())));
        sender_metrics(&infos.collect::<Result<Vec<_>, _>>()?, &mut metrics);
        Ok(Findings { metrics, ..Findings::default() })
    }
}
