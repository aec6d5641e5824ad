//! The graph of topics: which wait for which, and how old the first input of a message is when that arrives.

use crate::guest::clock::minus;
use crate::guest::hosts::HostId;
use std::collections::BTreeMap;
use thalweg_model::Topic;
use thalweg_units::Span;

/// Every topic's place in the graph, in their order.
pub(super) struct Graph {
    topics: Vec<Node>,
}

#[derive(Default)]
struct Node {
    inputs: Vec<usize>,
    /// Those that wait for it.
    outputs: Vec<usize>,
    /// Of each of its messages, when the first of what led to it was published.
    origins: Vec<Span>,
    /// Of the messages that it waits for, those at its publisher: counts by topic.
    arrived: BTreeMap<usize, usize>,
    /// Messages that are published, or will be after the computing time.
    triggered: usize,
    /// Its messages at each subscriber.
    delivered: BTreeMap<HostId, usize>,
    ages_ms: Vec<f64>,
}

impl Graph {
    pub(super) fn of(topics: &[Topic]) -> Self {
        let mut nodes: Vec<Node> = topics.iter().map(|_| Node::default()).collect();
        for (at, topic) in topics.iter().enumerate() {
            let inputs = topics.iter().enumerate().filter(|(_, other)| topic.after.contains(&other.name));
            for (input, _) in inputs {
                nodes[at].inputs.push(input);
                nodes[at].arrived.insert(input, 0);
                nodes[input].outputs.push(at);
            }
        }
        Self { topics: nodes }
    }

    /// Whether a topic's messages wait for those of others.
    pub(super) fn waits(&self, topic: usize) -> bool {
        !self.topics[topic].inputs.is_empty()
    }

    /// The next message of a topic is published.
    pub(super) fn publish(&mut self, topic: usize, at: Span) {
        let number = self.topics[topic].origins.len();
        let inputs = self.topics[topic].inputs.iter();
        let first = inputs.filter_map(|input| self.topics[*input].origins.get(number)).min().copied();
        self.topics[topic].origins.push(first.unwrap_or(at));
    }

    /// The next message of a topic is whole at a host. Returns the topics whose next message has all that it waits for.
    pub(super) fn deliver(
        &mut self,
        topic: usize,
        to: HostId,
        now: Span,
        publisher: impl Fn(usize) -> HostId,
    ) -> Vec<usize> {
        let node = &mut self.topics[topic];
        let count = node.delivered.entry(to).or_default();
        if let Some(origin) = node.origins.get(*count).filter(|_| !node.inputs.is_empty()) {
            node.ages_ms.push(minus(now, *origin).as_millis_f64());
        }
        *count += 1;
        let waiting: Vec<usize> = node.outputs.iter().copied().filter(|output| publisher(*output) == to).collect();
        let mut ready = Vec::new();
        for output in waiting {
            let node = &mut self.topics[output];
            node.arrived.entry(topic).and_modify(|count| *count += 1);
            if node.arrived.values().all(|count| *count > node.triggered) {
                node.triggered += 1;
                ready.push(output);
            }
        }
        ready
    }

    /// From the publication of the first of what led to a message until that was whole at a subscriber.
    pub(super) fn ages_ms(&self, topic: usize) -> &[f64] {
        &self.topics[topic].ages_ms
    }

    /// Whether nothing that has all its inputs is still to be published.
    pub(super) fn is_idle(&self) -> bool {
        self.topics.iter().all(|node| node.inputs.is_empty() || node.triggered == node.origins.len())
    }
}
