//! Many captures, or one with many connections, as a whole: what costs most, on which hosts, and the worst connections of all.

use std::collections::HashMap;
use thalweg_model::{CaptureReport, Code, Flow, Remedy, Setting, Side, Verdict, Way};

/// Connections that are ranked across captures.
const WORST_MAX: usize = 20;
/// Hosts that are counted apart; a scan has more, and what the others cost is small.
const HOSTS_MAX: usize = 1 << 16;
/// Kinds of remedies and of notes that are kept.
const KINDS_MAX: usize = 256;

/// What captures have in common, gathered capture by capture; memory is bounded whatever their number.
#[derive(Debug, Clone, Default)]
pub struct Many {
    /// Captures read.
    pub captures: u64,
    /// Their packets.
    pub packets: u64,
    /// The bytes these had on the wire.
    pub bytes: u64,
    /// TCP connections in all.
    pub connections: u64,
    /// Of them, those that the totals do not count: the least costly of captures with very many.
    pub uncounted: u64,
    /// Connections that are no slower than they could be.
    pub fine: u64,
    /// Captures that cannot be read, and why.
    pub unread: Vec<(String, String)>,
    failures: HashMap<Code, Total>,
    causes: HashMap<Code, Total>,
    hosts: HashMap<String, Host>,
    worst: Vec<Ranked>,
    remedies: Vec<Advice>,
    notes: HashMap<String, u64>,
}

/// What one cause costs.
#[derive(Debug, Clone)]
pub struct Total {
    /// Seconds lost.
    pub lost_s: f64,
    /// Connections that have it.
    pub connections: u64,
    /// Captures that these are in.
    pub captures: u64,
    /// The connection that loses most by it.
    pub worst: Ranked,
    /// Number of the latest capture that was counted.
    latest: u64,
}

/// What one host takes part in, as a client or as a server.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// Seconds that its connections lost.
    pub lost_s: f64,
    /// Its connections.
    pub connections: u64,
    /// Those that failed.
    pub failed: u64,
    /// Data packets that were sent again, of `packets`.
    pub retransmits: u64,
    /// Packets in the direction with most of the data.
    pub packets: u64,
    /// The cause that costs its connections most, and how much.
    pub cause: Option<(Code, f64)>,
}

/// A connection, and the capture it is in.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// The capture.
    pub file: String,
    /// The connection.
    pub flow: Flow,
    /// Seconds that it lost.
    pub lost_s: f64,
}

/// One kind of remedy, with the figures of the connection that loses most.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The remedy, as planned for that connection.
    pub remedy: Remedy,
    /// The connection, as in [`Ranked::name`].
    pub of: String,
    /// How many connections it mends.
    pub connections: u64,
    /// Seconds that these lost.
    pub lost_s: f64,
    most_lost_s: f64,
}

impl Ranked {
    /// What names the connection: `#3 of day/a.pcap`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("#{} of {}", self.flow.id, self.file)
    }
}

impl Many {
    /// Counts a capture of `connections` connections, of which the report may have the costliest only.
    pub fn add(&mut self, capture: &CaptureReport, connections: u64) {
        self.captures += 1;
        self.packets += capture.packets;
        self.bytes += capture.bytes;
        self.connections += connections;
        self.uncounted += connections.saturating_sub(capture.flows.len() as u64);
        for note in &capture.notes {
            if self.notes.len() < KINDS_MAX || self.notes.contains_key(note) {
                *self.notes.entry(note.clone()).or_default() += 1;
            }
        }
        for flow in &capture.flows {
            self.flow(&capture.file, flow);
        }
    }

    /// Takes note of a capture that cannot be read.
    pub fn unread(&mut self, file: &str, why: &str) {
        self.unread.push((file.to_owned(), why.to_owned()));
    }

    fn flow(&mut self, file: &str, flow: &Flow) {
        let (code, lost_s) = (flow.verdict.code(), lost_s(flow));
        let failed = has_failed(flow);
        if !failed && lost_s <= 0.0 {
            self.fine += 1;
        }
        for end in [&flow.client, &flow.server] {
            self.host(end, flow, lost_s, failed);
        }
        if failed || lost_s > 0.0 {
            let ranked = || Ranked { file: file.to_owned(), flow: flow.clone(), lost_s };
            let totals = if failed { &mut self.failures } else { &mut self.causes };
            let total = totals.entry(code).or_insert_with(|| Total {
                lost_s: 0.0,
                connections: 0,
                captures: 0,
                worst: ranked(),
                latest: 0,
            });
            total.lost_s += lost_s;
            total.connections += 1;
            if total.latest != self.captures {
                (total.latest, total.captures) = (self.captures, total.captures + 1);
            }
            if lost_s > total.worst.lost_s {
                total.worst = ranked();
            }
            let place = self.worst.partition_point(|other| other.order() >= (failed, lost_s));
            if place < WORST_MAX {
                self.worst.insert(place, ranked());
                self.worst.truncate(WORST_MAX);
            }
        }
        if !failed && lost_s > 0.0 {
            flow.remedies.iter().for_each(|remedy| self.advise(remedy, file, flow, lost_s));
        }
    }

    fn host(&mut self, end: &str, flow: &Flow, lost_s: f64, failed: bool) {
        let address = end.rsplit_once(':').map_or(end, |(address, _)| address);
        if self.hosts.len() >= HOSTS_MAX && !self.hosts.contains_key(address) {
            return;
        }
        let host = self.hosts.entry(address.to_owned()).or_default();
        host.connections += 1;
        host.failed += u64::from(failed);
        host.lost_s += lost_s;
        host.retransmits += flow.retransmits.total;
        host.packets += if flow.direction == Way::Up { flow.packets_up } else { flow.packets_down };
        if lost_s > 0.0 && host.cause.is_none_or(|(_, most)| lost_s > most) {
            host.cause = Some((flow.verdict.code(), lost_s));
        }
    }

    /// Counts a remedy with those that change the same settings of the same side, or advise the same.
    fn advise(&mut self, remedy: &Remedy, file: &str, flow: &Flow, lost_s: f64) {
        let name = || format!("#{} of {file}", flow.id);
        if let Some(known) = self.remedies.iter_mut().find(|known| is_same(&known.remedy, remedy)) {
            known.connections += 1;
            known.lost_s += lost_s;
            if lost_s > known.most_lost_s {
                (known.remedy, known.of, known.most_lost_s) = (remedy.clone(), name(), lost_s);
            }
        } else if self.remedies.len() < KINDS_MAX {
            let remedy = remedy.clone();
            self.remedies.push(Advice { remedy, of: name(), connections: 1, lost_s, most_lost_s: lost_s });
        }
    }

    /// How connections failed, the most frequent first.
    #[must_use]
    pub fn failures(&self) -> Vec<(Code, &Total)> {
        let mut all: Vec<_> = self.failures.iter().map(|(code, total)| (*code, total)).collect();
        all.sort_by(|a, b| b.1.connections.cmp(&a.1.connections).then(a.0.cmp(&b.0)));
        all
    }

    /// The causes, the costliest first.
    #[must_use]
    pub fn causes(&self) -> Vec<(Code, &Total)> {
        let mut all: Vec<_> = self.causes.iter().map(|(code, total)| (*code, total)).collect();
        all.sort_by(|a, b| b.1.lost_s.total_cmp(&a.1.lost_s).then(a.0.cmp(&b.0)));
        all
    }

    /// The hosts whose connections failed or lost time, those with most of it first.
    #[must_use]
    pub fn hosts(&self) -> Vec<(&str, &Host)> {
        let mut all: Vec<_> = self.hosts.iter().map(|(address, host)| (address.as_str(), host)).collect();
        all.retain(|(_, host)| host.failed > 0 || host.lost_s > 0.0);
        all.sort_by(|a, b| b.1.lost_s.total_cmp(&a.1.lost_s).then(b.1.failed.cmp(&a.1.failed)).then(a.0.cmp(b.0)));
        all
    }

    /// The worst connections of all captures: those that failed first, then those that lost most time.
    #[must_use]
    pub fn worst(&self) -> &[Ranked] {
        &self.worst
    }

    /// Each kind of remedy once, the one that saves most first.
    #[must_use]
    pub fn remedies(&self) -> Vec<&Advice> {
        let mut all: Vec<_> = self.remedies.iter().collect();
        all.sort_by(|a, b| b.lost_s.total_cmp(&a.lost_s));
        all
    }

    /// The captures' notes, each once with the number of captures that have it, the most frequent first.
    #[must_use]
    pub fn notes(&self) -> Vec<(&str, u64)> {
        let mut all: Vec<_> = self.notes.iter().map(|(note, captures)| (note.as_str(), *captures)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all
    }
}

impl Ranked {
    fn order(&self) -> (bool, f64) {
        (has_failed(&self.flow), self.lost_s)
    }
}

fn has_failed(flow: &Flow) -> bool {
    flow.life.is_some_and(|life| life.failure.is_some())
}

/// Whether two remedies are one kind: of one cause, they change the same settings on the same sides, or give the same advice.
fn is_same(a: &Remedy, b: &Remedy) -> bool {
    let settings = |remedy: &Remedy| -> Vec<(Side, Setting)> {
        remedy.changes.iter().map(|change| (change.side, change.setting.clone())).collect()
    };
    a.code == b.code && settings(a) == settings(b) && (!a.changes.is_empty() || a.reason == b.reason)
}

/// Seconds that another setting, another path or a faster server could save, by the gain of the verdict, either way, or by what a cause
/// outside of the data phase took: by this connections are ranked.
///
/// What its program alone could save counts for nothing: no setting or path saves it.
fn lost_s(flow: &Flow) -> f64 {
    let least_s = flow.rtt_min_ms.unwrap_or(0.0) / 1e3;
    let saved_s = |verdict: &Verdict, phase_s: f64| {
        let gain = verdict.gain_of_whole().filter(|_| verdict.code() != Code::Application).unwrap_or(1.0).max(1.0);
        (phase_s * (1.0 - 1.0 / gain)).clamp(0.0, (phase_s - least_s).max(0.0))
    };
    let main = saved_s(&flow.verdict, flow.phase_s);
    let other = flow.other_direction.as_ref().map_or(0.0, |other| {
        let bytes = if other.direction == Way::Up { flow.bytes_up } else { flow.bytes_down };
        let phase_s = if other.goodput_bps > 0.0 { bytes as f64 * 8.0 / other.goodput_bps } else { 0.0 };
        saved_s(&other.verdict, phase_s)
    });
    // Phases of the life are no part of what the data phase could save.
    let life_s = flow.life.map_or(0.0, |life| life.lost_s(flow.verdict.code()));
    main.max(other).max(life_s)
}
