//! Messages at fixed periods between two hosts, as the lab's workload `topics`: the client's end.

mod exchange;
mod link;
pub(crate) mod served;

use crate::client::{Client, HEARTBEAT, ServerAddress};
use crate::clock::ClockLine;
use crate::error::AgentError;
use crate::message::{ClientMessage, Purpose, ServerMessage, TopicEnd, TopicPlan, TopicsPlan};
use exchange::Exchange;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use thalweg_host::HostError;
use thalweg_host::reach::ANSWER_TIME;
use thalweg_host::socket::Tcp;
use thalweg_model::{Percentiles, TopicConnection, TopicReport, TopicsClock, TopicsReport, Way};
use thalweg_units::Span;

/// After the last was published, messages on their way are waited for at most so long.
const DRAIN_NS: u64 = 5_000_000_000;
/// From the message that says when the test starts until it does, with the round trip twice: the server hears of it before.
const LEAD_NS: u64 = 50_000_000;

/// When each message of a topic was whole.
type Times = Vec<Option<u64>>;

/// What a client of topics does.
#[derive(Debug, Clone)]
pub struct TopicsOptions {
    /// The server.
    pub server: ServerAddress,
    /// The topics.
    pub topics: Vec<NamedTopic>,
    /// For how long messages are published.
    pub span: Span,
    /// The publishers' congestion control; `None` is each host's own.
    pub congestion: Option<String>,
    /// What of the scenario was left out.
    pub notes: Vec<String>,
}

/// A topic by its name.
#[derive(Debug, Clone)]
pub struct NamedTopic {
    /// Its name.
    pub name: String,
    /// What is published.
    pub plan: TopicPlan,
    /// How late a message may be; `None` is its period.
    pub deadline: Option<Span>,
}

/// Publishes and receives messages, and reports how late they were.
///
/// # Errors
/// [`AgentError`] when the server refuses, and when a connection breaks.
pub fn topics(
    options: &TopicsOptions,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(f64),
) -> Result<TopicsReport, AgentError> {
    let topics = options.topics.iter().map(|topic| topic.plan).collect();
    let plan = TopicsPlan { topics, span: options.span, seed: 1, congestion: options.congestion.clone() };
    plan.check().map_err(AgentError::Plan)?;
    let mut client = Client::connect(&options.server, stop)?;
    let before = client.ask_clock()?;
    client.control.send(&ClientMessage::Topics(plan.clone()))?;
    client.control.ready("it prepares the topics")?;
    let mut exchange = Exchange::new(&plan, connect(&client, &plan)?, client.clock, Way::Up)?;
    client.control.ready("the topics' connections come")?;
    let start_ns = client.clock.now_ns() + LEAD_NS + 2 * before.rtt_ns;
    let server_start_ns = start_ns.wrapping_add_signed(before.offset_ns);
    client.control.send(&ClientMessage::Start { at_ns: server_start_ns })?;
    exchange.start(start_ns, &client.control.tcp)?;
    let end_ns = start_ns + options.span.as_nanos();
    let (mut asked, mut cut) = (Instant::now(), None);
    loop {
        exchange.turn()?;
        // A second signal ends the test without its results.
        if stop.swap(false, Ordering::Relaxed) {
            cut = Some(Span::from_nanos(client.clock.now_ns().saturating_sub(start_ns)));
            break;
        }
        client.control.look()?;
        while let Some(line) = client.control.poll()? {
            if !matches!(client.control.read_server(&line)?, ServerMessage::Clock { .. }) {
                return Err(client.control.unexpected());
            }
        }
        if asked.elapsed() >= HEARTBEAT {
            asked = Instant::now();
            client.control.send(&ClientMessage::Clock { sent_ns: client.clock.now_ns() })?;
        }
        let now = client.clock.now_ns();
        progress(now.saturating_sub(start_ns) as f64 / options.span.as_nanos() as f64);
        if now >= end_ns && (exchange.is_over() || now >= end_ns + DRAIN_NS) {
            break;
        }
    }
    let (times, mut ends) = results(&mut client, &plan)?;
    for (place, link) in exchange.links.iter().enumerate() {
        if let Some(figures) = link.figures()? {
            ends[place] = figures;
        }
    }
    let clock = ClockLine { before, after: client.ask_clock()? };
    let report = |(place, topic): (usize, &NamedTopic)| {
        // What is due is due by the publisher's clock.
        let arrivals = exchange.links[place].arrivals().unwrap_or(&times[place]);
        let latencies = arrivals.iter().enumerate().filter_map(|(number, arrived)| {
            let due = topic.plan.phase.as_nanos() + topic.plan.period.as_nanos() * number as u64;
            let (due, arrived) = match topic.plan.way {
                Way::Up => ((start_ns + due) as f64, clock.to_client((*arrived)?)),
                Way::Down => (clock.to_client(server_start_ns.wrapping_add(due)), (*arrived)? as f64),
            };
            Some(((arrived - due) / 1e6).max(0.0))
        });
        let published = ends[place].published.min(cut.map_or(u64::MAX, |cut| judged(topic, cut)));
        topic_report(topic, latencies.take(published as usize).collect(), published, &ends[place])
    };
    let stopped = cut.map(|cut| {
        format!(
            "stopped after {:.1} s of {}; messages that still had time are not counted",
            cut.as_secs_f64(),
            options.span
        )
    });
    Ok(TopicsReport {
        schema: "thalweg.load-topics/1",
        peer: client.peer.to_string(),
        duration_s: cut.unwrap_or(options.span).as_secs_f64(),
        clock: TopicsClock {
            rtt_ms: clock.rtt_ns() as f64 / 1e6,
            uncertainty_ms: clock.rtt_ns() as f64 / 2e6,
            drift_ppm: clock.drift_ppm(),
        },
        topics: options.topics.iter().enumerate().map(report).collect(),
        notes: options.notes.iter().cloned().chain(stopped).collect(),
    })
}

/// Connects each topic.
fn connect(client: &Client, plan: &TopicsPlan) -> Result<Vec<Tcp>, AgentError> {
    let one = |topic: u16| {
        let failed = |source| HostError { act: format!("connect a topic to {}", client.peer), source };
        let mut tcp = TcpStream::connect_timeout(&client.peer, ANSWER_TIME).map_err(failed)?;
        let cookie = Purpose::Topic { session: client.session, topic }.cookie();
        tcp.write_all(&cookie).and_then(|()| tcp.set_nonblocking(true)).map_err(failed)?;
        Ok(Tcp::from(tcp))
    };
    (0..).zip(&plan.topics).map(|(topic, _)| one(topic)).collect()
}

/// Ends the test; the server's times of arrivals, and what it says of the connections it publishes on.
fn results(client: &mut Client, plan: &TopicsPlan) -> Result<(Vec<Times>, Vec<TopicEnd>), AgentError> {
    client.control.send(&ClientMessage::End)?;
    let mut times: Vec<Times> = plan.topics.iter().map(|topic| vec![None; plan.messages(topic) as usize]).collect();
    let mut ends = vec![TopicEnd::default(); plan.topics.len()];
    loop {
        match client.control.server_message("the results should come")? {
            ServerMessage::Clock { .. } => {}
            ServerMessage::Times { of, first, ns } => {
                let place = times.get_mut(of as usize).map(|times| times.iter_mut().skip(first as usize));
                place.into_iter().flatten().zip(ns).for_each(|(place, ns)| *place = ns);
            }
            ServerMessage::TopicEnd(end) => {
                if let Some(place) = ends.get_mut(end.topic as usize) {
                    *place = end;
                }
            }
            ServerMessage::End => return Ok((times, ends)),
            _ => return Err(client.control.unexpected()),
        }
    }
}

/// Messages whose time was over when the test was stopped.
fn judged(topic: &NamedTopic, cut: Span) -> u64 {
    let deadline = topic.deadline.unwrap_or(topic.plan.period);
    let first = topic.plan.phase + deadline;
    if cut < first { 0 } else { cut.saturating_sub(first).as_nanos() / topic.plan.period.as_nanos().max(1) + 1 }
}

fn topic_report(topic: &NamedTopic, mut latencies_ms: Vec<f64>, published: u64, end: &TopicEnd) -> TopicReport {
    latencies_ms.sort_by(f64::total_cmp);
    let deadline = topic.deadline.unwrap_or(topic.plan.period);
    let millis = |us: u64| us as f64 / 1e3;
    TopicReport {
        name: topic.name.clone(),
        way: topic.plan.way,
        period: topic.plan.period,
        deadline,
        messages: published,
        lost: published.saturating_sub(latencies_ms.len() as u64),
        late: latencies_ms.iter().filter(|latency| **latency > deadline.as_millis_f64()).count() as u64,
        latency_ms: percentiles(&latencies_ms),
        connection: TopicConnection {
            congestion: end.congestion.clone(),
            retransmits: end.retransmits,
            timeouts: end.timeouts,
            rto_ms: millis(end.rto_us),
            rtt_ms: millis(end.rtt_us),
            min_rtt_ms: millis(end.min_rtt_us),
            cwnd_packets: end.cwnd_packets,
            backlog_max_bytes: end.backlog_max_bytes,
        },
    }
}

/// By nearest rank.
fn percentiles(sorted: &[f64]) -> Option<Percentiles> {
    let at = |part: f64| sorted[((part * sorted.len() as f64).ceil() as usize).max(1) - 1];
    let max = *sorted.last()?;
    let (p50, p90, p99, p999) = (at(0.5), at(0.9), at(0.99), at(0.999));
    Some(Percentiles { count: sorted.len() as u64, p50, p90, p99, p999, max })
}
