//! What could be set besides the planned remedies, for a search that tries every option on the real path.
//!
//! A [`Family`] holds options of one kind, the smallest first. A search takes at most one option of each family.

mod exchanges;
mod pacing;

use crate::buffers::window_part;
use crate::catalogue::sysctl as entry;
use crate::facts::{CONGESTION_CONTROL, Facts, route, socket, sysctl};
use crate::{human_time, remedy, round_up};
use thalweg_model::{Applicability, Change, Code, Remedy, Setting, Side};
use thalweg_units::{Bytes, Rate};

/// What the program does, as far as it decides which settings can matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Data goes both ways, so both hosts send.
    pub both_ways: bool,
    /// How long its connections live.
    pub connections: Connections,
    /// Packets are lost or overtake each other on this path.
    pub losses: bool,
    /// The path marks packets instead of dropping them.
    pub marks: bool,
    /// Payload that is sent at once: a response, a burst.
    pub object: Option<Bytes>,
    /// Rate of a policer on the path, as payload.
    pub policed: Option<Rate>,
    /// The queue in front of the path, where this program fills it.
    pub full_queue: Option<FullQueue>,
    /// What the path's queue holds, where that is known.
    pub queue: Option<Bytes>,
    /// Connections that send at the same time; 0 counts as one.
    pub senders: u64,
    /// Whether its acknowledgements have room.
    pub acknowledgements: Acknowledgements,
}

/// Whether acknowledgements have room in their direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Acknowledgements {
    /// They have.
    #[default]
    Free,
    /// They use up its rate, which so bounds the direction of the data.
    Crowded,
}

/// A queue that a program fills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FullQueue {
    /// The rate that it is emptied at, as payload.
    pub rate: Rate,
    /// What that costs: losses at its end, or the time that packets wait in it.
    pub cause: Code,
}

impl Work {
    /// What each connection has in flight where all of them together fill the path, in bytes.
    fn share(&self, facts: &Facts<'_>) -> Option<f64> {
        facts.bdp().map(|bdp| bdp.get() as f64 / self.senders.max(1) as f64)
    }
}

/// How long a program's connections live.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connections {
    /// For one transfer.
    #[default]
    Once,
    /// Each exchange opens one.
    PerExchange,
    /// They pause and go on.
    Kept,
}

/// Options of one kind, the smallest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// At least one; each has changes.
    pub options: Vec<Remedy>,
}

/// Sizes of a buffer, as multiples of what the path needs. BBR keeps two bandwidth-delay products in flight, and data received out of
/// order occupies the buffer, too.
const SIZES: [f64; 5] = [1.0, 1.25, 1.6, 2.0, 4.0];
/// Sizes where the path's rate is not known, as multiples of the present limit.
const STEPS: [u64; 3] = [2, 4, 16];
/// Segments of a first flight at most where the path's queue is not known: what is larger meets it as a burst of more than 145 KB.
const FIRST_FLIGHT_MOST: u64 = 100;
/// Segments that a first flight may need beyond the object: protocol headers, segments that are not full.
const FIRST_FLIGHT_SPARE: [u64; 3] = [0, 1, 4];
/// A window that Linux offers at first: what the default of `tcp_rmem`, 131,072 bytes, allows.
const FIRST_WINDOW: u64 = 64_000;

const RMEM: &str = "net.ipv4.tcp_rmem";
const WMEM: &str = "net.ipv4.tcp_wmem";

/// Every family that can matter to a direction: `facts` are its, `given` is what the hosts are set to on purpose, and `planned` is what
/// the diagnosis proposes.
pub fn families(facts: &Facts<'_>, work: &Work, given: &[(Side, Setting, String)], planned: &[Remedy]) -> Vec<Family> {
    let mut all: Vec<Vec<Remedy>> = vec![
        receive_buffer(facts, work, given),
        send_buffer(facts, work, given),
        congestion_control(facts, work),
        first_flight(facts, work),
        idle_restart(facts, work),
        exchanges::least_timeout(facts, work),
        exchanges::acknowledge_at_once(facts, work),
        exchanges::no_delay(facts, work),
        exchanges::fast_open(facts, work),
        pacing::pacing(facts, work, given),
        marking(facts, work),
        timestamps(facts, work),
    ];
    // A setting answers the cause that was diagnosed, not the one it mends most often.
    for one in all.iter_mut().flatten() {
        if let Some(plan) = planned.iter().find(|plan| sets_the_same(one, plan)) {
            one.code = plan.code;
        }
    }
    for plan in planned.iter().filter(|plan| !plan.changes.is_empty()) {
        let sets = |one: &Remedy| one.changes.iter().any(|change| change.is_of_same(&plan.changes[0]));
        match all.iter_mut().find(|family| family.iter().any(sets)) {
            Some(family) if family.iter().any(|one| sets_the_same(one, plan)) => {}
            Some(family) => family.push(plan.clone()),
            None => all.push(vec![plan.clone()]),
        }
    }
    for default in defaults(facts, given, planned) {
        let covered = |one: &Remedy| one.changes.iter().any(|change| change.is_of_same(&default.changes[0]));
        if !all.iter().flatten().any(covered) {
            all.push(vec![default]);
        }
    }
    let on_kernel = |family: Vec<Remedy>| Family {
        options: family.into_iter().filter_map(|one| crate::on_kernel(one, facts.kernel)).collect(),
    };
    all.into_iter().map(on_kernel).filter(|family| !family.options.is_empty()).collect()
}

/// Whether two remedies set the same things to the same values, whatever these were set to before.
fn sets_the_same(a: &Remedy, b: &Remedy) -> bool {
    let in_b = |one: &Change| b.changes.iter().any(|other| one.is_of_same(other) && one.to == other.to);
    a.changes.len() == b.changes.len() && a.changes.iter().all(in_b)
}

fn option(code: Code, reason: String, changes: Vec<Change>, wont_help: &str) -> Option<Remedy> {
    // A program's socket options are of its own connections.
    let is_own = changes.iter().all(|change| matches!(change.setting, Setting::Socket(_)));
    let applicability = if is_own { Applicability::Safe } else { Applicability::NeedsThought };
    (!changes.is_empty()).then(|| remedy(code, reason, changes, applicability, wont_help))
}

/// What the scenario gives a host of this name, taken away.
fn freed(side: Side, name: &Setting, given: &[(Side, Setting, String)]) -> Option<Change> {
    let (_, setting, value) = given.iter().find(|(on, setting, _)| *on == side && setting == name)?;
    Some(Change { side, setting: setting.clone(), from: Some(value.clone()), to: "auto".to_owned() })
}

/// The sizes to try for a buffer's limit of `now`, for a path that needs `needed`.
fn sizes(needed: Option<f64>, now: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = match needed {
        Some(needed) => SIZES.iter().map(|times| round_up((needed * times) as u64).get()).collect(),
        None => STEPS.iter().map(|times| now * times).collect(),
    };
    sizes.iter_mut().for_each(|size| *size = (*size).min(crate::buffers::MOST));
    sizes.dedup();
    sizes.retain(|size| *size > now);
    sizes
}

fn receive_buffer(facts: &Facts<'_>, work: &Work, given: &[(Side, Setting, String)]) -> Vec<Remedy> {
    let side = facts.receiver();
    let (part, by) = window_part(facts);
    let mut also: Vec<Change> =
        ["rcvbuf", "window_clamp"].iter().filter_map(|name| freed(side, &socket(name), given)).collect();
    if facts.sysctl(side, "net.ipv4.tcp_moderate_rcvbuf").is_some_and(|value| value == "0") {
        also.extend(facts.set(side, sysctl("net.ipv4.tcp_moderate_rcvbuf"), "1"));
    }
    let needed = work.share(facts).map(|share| share / part);
    let words = "Connections whose program sets SO_RCVBUF itself (that ends auto-tuning), and those already open.";
    buffer(facts, (side, RMEM, Code::ReceiveWindow), needed, also, |size| {
        (format!("Let the receive buffer grow to {size}: {by}."), words)
    })
}

fn send_buffer(facts: &Facts<'_>, work: &Work, given: &[(Side, Setting, String)]) -> Vec<Remedy> {
    let side = facts.sender();
    let also: Vec<Change> =
        ["sndbuf", "notsent_lowat"].iter().filter_map(|name| freed(side, &socket(name), given)).collect();
    let needed = work.share(facts).map(|share| share * 2.0);
    let words = "Connections whose program sets SO_SNDBUF itself (that ends auto-tuning), and those already open.";
    buffer(facts, (side, WMEM, Code::SendBuffer), needed, also, |size| {
        (format!("Let the send buffer grow to {size}: what is not acknowledged stays in it."), words)
    })
}

/// Options for a buffer: its program's own limits off, and the system's limit raised to each size.
fn buffer(
    facts: &Facts<'_>,
    (side, name, code): (Side, &str, Code),
    needed: Option<f64>,
    also: Vec<Change>,
    words: impl Fn(Bytes) -> (String, &'static str),
) -> Vec<Remedy> {
    let mut options = Vec::new();
    let limits = facts.sysctl(side, name).map_or("", String::as_str);
    if !also.is_empty() {
        let reason = "Let the program leave the size of its buffers to the kernel.".to_owned();
        options.extend(option(code, reason, also.clone(), "The other programs of the host."));
    }
    let [least, usual, most] = limits.split_whitespace().collect::<Vec<_>>()[..] else { return options };
    let Ok(now) = most.parse::<u64>() else { return options };
    for size in sizes(needed, now) {
        let mut changes = also.clone();
        changes.extend(facts.set(side, sysctl(name), format!("{least} {usual} {size}")));
        let (reason, wont_help) = words(Bytes::new(size));
        options.extend(option(code, reason, changes, wont_help));
    }
    options.iter_mut().for_each(|one| one.applicability = Applicability::Safe);
    options
}

fn congestion_control(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    let side = facts.sender();
    let mut options: Vec<Remedy> =
        crate::congestion::bbr(work.full_queue.map_or(Code::RandomLoss, |queue| queue.cause), facts)
            .into_iter()
            .collect();
    let chosen = facts.congestion_control(side).cloned();
    if chosen.as_ref().is_some_and(|chosen| chosen != "cubic") {
        let change = Change { side, setting: sysctl(CONGESTION_CONTROL), from: chosen, to: "cubic".to_owned() };
        let reason = "Send with CUBIC: it fills a path without losses and resends less than BBR.".to_owned();
        options.extend(option(Code::CongestionLoss, reason, vec![change], "Paths that lose packets at random."));
    }
    if work.both_ways {
        let both = options.iter().filter_map(|one| {
            let mut both = one.clone();
            both.changes.extend(facts.set(side.other(), sysctl(CONGESTION_CONTROL), one.changes.first()?.to.clone()));
            Some(both)
        });
        let both: Vec<Remedy> = both.collect();
        options.extend(both);
    }
    options
}

fn first_flight(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    let Some(object) = work.object.filter(|_| work.connections != Connections::Kept) else { return Vec::new() };
    let (side, segment) = (facts.sender(), facts.segment());
    let whole = object.get().div_ceil(segment);
    let mut sizes: Vec<u64> = FIRST_FLIGHT_SPARE.iter().map(|spare| whole + spare).collect();
    // A queue that is known tells which burst it holds.
    let held = work.queue.map_or(0, |queue| queue.get() / segment * 9 / 10);
    let most = held.max(FIRST_FLIGHT_MOST);
    if whole > FIRST_FLIGHT_MOST {
        sizes.retain(|size| *size <= most);
        let fixed = [20, 40, 64, FIRST_FLIGHT_MOST, 2 * FIRST_FLIGHT_MOST, most];
        sizes.extend(fixed.into_iter().filter(|size| *size < whole && *size <= most));
        sizes.sort_unstable();
        sizes.dedup();
    }
    let now = facts.value(side, &route("initcwnd")).and_then(|text| text.parse::<u64>().ok()).unwrap_or(10);
    let mut options = Vec::new();
    for size in sizes.into_iter().filter(|size| *size > now) {
        let mut changes: Vec<Change> = facts.set(side, route("initcwnd"), size.to_string()).into_iter().collect();
        if size * segment > FIRST_WINDOW {
            changes.extend(first_window(facts, size * segment));
        }
        let trip = human_time(facts.rtt);
        let reason = format!(
            "Begin with {size} segments: an object of {object} is {whole} segments, and each doubling of the first flight saves a round trip of \
             {trip}."
        );
        let wont_help = "Long transfers, which soon grow their window anyway, and lines whose queue does not hold the first flight.";
        options.extend(option(Code::InitialWindow, reason, changes, wont_help));
    }
    options
}

/// The receiver's first window, for a first flight of this many bytes.
fn first_window(facts: &Facts<'_>, bytes: u64) -> Option<Change> {
    let side = facts.receiver();
    let limits = facts.sysctl(side, RMEM)?;
    let [least, usual, most] = limits.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let (usual, most) = (usual.parse::<u64>().ok()?, most.parse::<u64>().ok()?);
    // Half of the buffer is offered at first. Source: Linux 6.6, `TCP_DEFAULT_SCALING_RATIO`, include/net/tcp.h.
    let wanted = (bytes * 2).next_multiple_of(1 << 16).max(usual);
    facts.set(side, sysctl(RMEM), format!("{least} {wanted} {}", most.max(wanted)))
}

fn idle_restart(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if work.connections != Connections::Kept {
        return Vec::new();
    }
    let mut options = crate::idle_restart::plan(facts);
    if work.both_ways {
        let change = facts.set(facts.receiver(), sysctl("net.ipv4.tcp_slow_start_after_idle"), "0");
        let both = options.first().cloned().zip(change).map(|(mut both, change)| {
            both.changes.push(change);
            both
        });
        options.extend(both);
    }
    options
}

fn marking(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if !work.marks {
        return Vec::new();
    }
    let changes =
        [Side::Client, Side::Server].into_iter().filter_map(|side| facts.set(side, sysctl("net.ipv4.tcp_ecn"), "1"));
    let reason = "Let routers mark packets instead of dropping them (RFC 3168).".to_owned();
    option(Code::CongestionLoss, reason, changes.collect(), "Queues that do not mark.").into_iter().collect()
}

/// Shorter acknowledgements: the option takes 12 of the 66 bytes that one has on Ethernet (RFC 7323 §3.2).
fn timestamps(facts: &Facts<'_>, work: &Work) -> Vec<Remedy> {
    if work.acknowledgements == Acknowledgements::Free {
        return Vec::new();
    }
    let change = facts.set(facts.receiver(), sysctl("net.ipv4.tcp_timestamps"), "0");
    let reason = "Acknowledge without timestamps: acknowledgements use up the rate of their direction, and each is 12 bytes shorter.";
    let wont_help = "Paths that carry more than 2 GB within the life of a packet: without timestamps an old segment may be taken for a new one \
                     (RFC 7323 §5), and round trips are measured less often.";
    option(Code::Bufferbloat, reason.to_owned(), change.into_iter().collect(), wont_help).into_iter().collect()
}

/// Each setting that is given on purpose, at the kernel's default.
fn defaults(facts: &Facts<'_>, given: &[(Side, Setting, String)], planned: &[Remedy]) -> Vec<Remedy> {
    /// What a program is written with, and what costs no time.
    const KEPT: [&str; 6] = ["user_timeout", "fastopen", "nodelay", "congestion", "quickack", "features"];
    let one = |(side, setting, value): &(Side, Setting, String)| {
        let (side, from) = (*side, Some(value.clone()));
        let (name, to) = match setting {
            Setting::Sysctl(name) => (name, entry(name)?.default_on(facts.kernel)?.to_owned()),
            Setting::Route(name) | Setting::Socket(name) if KEPT.contains(&name.as_str()) => return None,
            Setting::Route(name) | Setting::Socket(name) => (name, "auto".to_owned()),
        };
        if to == *value {
            return None;
        }
        let reason = if to == "auto" {
            format!("Leave {name} to the kernel; it is set to {value}.")
        } else {
            format!("Set {name} back to Linux's default, {to}; it is {value}.")
        };
        let code = match setting {
            Setting::Sysctl(name) => {
                let answers = &entry(name)?.verdicts;
                let diagnosed = planned.iter().map(|plan| plan.code).find(|code| answers.contains(code));
                diagnosed.or(answers.first().copied())
            }
            Setting::Route(name) if name == "cwnd" => Some(Code::CongestionWindowClamp),
            Setting::Route(name) if name == "rto_min" => Some(Code::RetransmissionTimeout),
            Setting::Route(name) if name == "initcwnd" || name == "ssthresh" => Some(Code::InitialWindow),
            _ => None,
        };
        let changes = vec![Change { side, setting: setting.clone(), from, to }];
        option(code.unwrap_or(Code::Unknown), reason, changes, "What it was set for.")
    };
    given.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
