//! From a cause to what mends it: the planner. Pure: it reads no host and changes none.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]

mod buffer_numbers;
mod buffers;
pub mod canary;
pub mod catalogue;
mod commands;
mod congestion;
mod delayed_ack;
mod facts;
mod idle_restart;
mod initial_window;
mod middlebox;
pub mod options;
mod path_mtu;
mod policer;
pub mod proposal;
mod reordering;
mod route_clamp;
mod route_command;
pub mod show;
pub mod state;
mod timeout;
mod window_scaling;

pub use commands::{apply, between, undo, undo_between};
pub use facts::{AckTiming, Facts};

use thalweg_model::since::{self, Release};
use thalweg_model::{Applicability, Cause, Change, Code, Flow, Kernels, Opening, Remedy, Side};
use thalweg_units::{Bytes, Span};

/// Plans what mends `code`: each remedy is a way of its own, the best first.
///
/// One without changes says that no setting of these hosts mends it, and what does. Empty where there is nothing to mend.
pub fn plan(code: Code, facts: &Facts<'_>) -> Vec<Remedy> {
    let remedies = match code {
        Code::ReceiveWindow => buffers::receive(facts),
        Code::ReceiveBufferOverrun => buffers::overrun(facts),
        Code::SendBuffer => buffers::send(facts),
        Code::WindowScalingMissing => window_scaling::plan(facts),
        Code::WindowScaleIgnored => middlebox::window_scale(facts),
        Code::SackNotTranslated => middlebox::sack(facts),
        Code::InitialWindow => initial_window::plan(facts),
        Code::RandomLoss | Code::CongestionLoss | Code::Bufferbloat => congestion::plan(code, facts),
        Code::Policer => policer::plan(facts),
        Code::RetransmissionTimeout => timeout::plan(facts),
        Code::CongestionWindowClamp => route_clamp::plan(facts),
        Code::IdleRestart => idle_restart::plan(facts),
        Code::DelayedAck => delayed_ack::plan(facts),
        Code::PathMtuBlackHole => path_mtu::plan(facts),
        Code::Reordering => reordering::plan(facts),
        Code::Reader => vec![advice(code, READER)],
        Code::ReceiverDrops => vec![advice(code, RECEIVER_DROPS)],
        Code::PathRate => vec![advice(code, PATH_RATE)],
        Code::PacingRate => vec![unpaced(facts)],
        Code::ApplicationWindow => vec![advice(code, APPLICATION_WINDOW)],
        Code::Application => vec![advice(code, APPLICATION)],
        Code::Connecting => vec![advice(code, CONNECTING)],
        Code::AcceptQueue => vec![advice(code, ACCEPT_QUEUE)],
        Code::RequestLost => vec![advice(code, REQUEST_LOST)],
        Code::WaitingForServer => vec![advice(code, WAITING_FOR_SERVER)],
        Code::WaitingForClient => vec![advice(code, WAITING_FOR_CLIENT)],
        // What to look for stands in the claim: it depends on who failed, and how.
        Code::Reset | Code::VanishedPeer | Code::NothingToGain | Code::Unknown => Vec::new(),
    };
    remedies.into_iter().filter_map(|remedy| on_kernel(remedy, facts.kernel)).collect()
}

/// Plans for a connection's verdict, and for what else settings mend, with the commands that set it.
///
/// `here` is the side beside which was measured: what is to be done on the other side says so.
pub fn for_flow(flow: &Flow, facts: &Facts<'_>, here: Option<Side>) -> Vec<Remedy> {
    // What failed outside of the data phase costs more than any setting for it saves.
    if flow.life.is_some_and(|life| life.failure.is_some()) {
        return Vec::new();
    }
    let own = by_cause(&flow.verdict.cause, here);
    let mut remedies = own.map_or_else(|| plan(flow.verdict.code(), facts), |advice| vec![advice]);
    // The time went elsewhere than into the data: what a setting saves of that is little beside it.
    let findings = if flow.verdict.code().is_of_life() { &[][..] } else { &flow.findings };
    for finding in findings {
        // A symptom goes with its cause; a queue that is too long does not go with the path's rate.
        let own = finding.depends_on.is_none() || finding.code() == Code::Bufferbloat;
        if own && finding.verdict.gain.is_none_or(|gain| gain >= WORTH) {
            remedies.extend(plan(finding.code(), facts).into_iter().filter(|remedy| !remedy.changes.is_empty()));
        }
    }
    let mut known: Vec<Vec<Change>> = Vec::new();
    remedies.retain(|remedy| {
        let new = remedy.changes.is_empty() || !known.contains(&remedy.changes);
        known.push(remedy.changes.clone());
        new
    });
    for remedy in &mut remedies {
        remedy.commands = commands::between(&remedy.changes, &flow.client, &flow.server);
        if here.is_some_and(|here| remedy.changes.iter().any(|change| change.side != here)) {
            remedy.applicability = Applicability::OtherSide;
        }
    }
    remedies
}

/// The advice on a cause whose figures, or the side beside which was measured, tell more than its code.
fn by_cause(cause: &Cause, here: Option<Side>) -> Option<Remedy> {
    match cause {
        Cause::Connecting(Opening::Lookup { .. }) => Some(advice(Code::Connecting, LOOKUP)),
        Cause::Connecting(Opening::Late { challenged: 1.., .. }) => Some(advice(Code::Connecting, CHALLENGED)),
        // Beside the server the capture would have an answer.
        Cause::WaitingForServer(_) if here != Some(Side::Server) => {
            Some(noted(advice(Code::WaitingForServer, WAITING_FOR_SERVER), &[OR_ANSWER_LOST]))
        }
        _ => None,
    }
}

/// What a kernel can have of a remedy: `None` where a setting of it came later, its first kernel noted where the host's is not known.
fn on_kernel(mut remedy: Remedy, kernel: Option<Release>) -> Option<Remedy> {
    let first = remedy.changes.iter().filter_map(|change| since::first_kernel(&change.setting, &change.to)).max();
    match (first, kernel) {
        (Some(first), Some(kernel)) if kernel < first => return None,
        (Some((major, minor)), None) => {
            remedy.kernels = Some(Kernels { from: Some(format!("{major}.{minor}")), before: None });
        }
        _ => {}
    }
    Some(remedy)
}

fn remedy(code: Code, reason: String, changes: Vec<Change>, applicability: Applicability, wont_help: &str) -> Remedy {
    Remedy {
        code,
        reason,
        changes,
        commands: Vec::new(),
        kernels: None,
        applicability,
        wont_help: wont_help.to_owned(),
        notes: Vec::new(),
    }
}

/// The same remedy with what else to know of it.
fn noted(mut remedy: Remedy, notes: &[&str]) -> Remedy {
    remedy.notes.extend(notes.iter().map(|note| (*note).to_owned()));
    remedy
}

/// What there is to do where no setting of the hosts mends it.
fn advice(code: Code, text: &str) -> Remedy {
    remedy(code, text.to_owned(), Vec::new(), Applicability::Safe, "")
}

/// The rate that the sending program paces at, lifted.
fn unpaced(facts: &Facts<'_>) -> Remedy {
    let side = facts.sender();
    let setting = facts::socket("max_pacing_rate");
    let from = facts.value(side, &setting).cloned();
    let lifted = Change { side, setting, from, to: "auto".to_owned() };
    let reason = "Take off or raise the rate that the sending program sets by SO_MAX_PACING_RATE; ss -ti shows it as pacing_rate.";
    let wont_help =
        "A rate that the fq discipline of the sender's interface has as maxrate (tc qdisc show): raise that.";
    // Whoever set it may have had the path's other users in mind.
    remedy(Code::PacingRate, reason.to_owned(), vec![lifted], Applicability::NeedsThought, wont_help)
}

/// The next whole MiB: buffer limits are set in round figures.
fn round_up(bytes: u64) -> Bytes {
    Bytes::new(bytes.max(1).next_multiple_of(1 << 20))
}

fn human_time(span: Span) -> String {
    match span.as_millis_f64() {
        ms if ms < 0.9995 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 999.95 => format!("{ms:.1} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

fn human(bytes: Bytes) -> String {
    let bytes = bytes.get() as f64;
    if bytes < 1e5 { format!("{:.1} kB", bytes / 1e3) } else { format!("{:.1} MB", bytes / 1e6) }
}

/// A gain below this is not worth a change; as the rules of `infer` have it.
const WORTH: f64 = 1.05;

const READER: &str = "There is nothing to set: a larger buffer only delays the moment it is full. The receiving program has to \
                      read sooner and more at once, in a thread that does nothing else, or be sent less.";
const RECEIVER_DROPS: &str = "There is nothing to set in TCP: the receiving host itself drops the packets. `nstat -az TcpInCsumErrors \
                              TcpExtTCPBacklogDrop TcpExtTCPRcvQDrop` and the counters of its firewall (`nft list ruleset`, `iptables -nvxL`) \
                              tell where.";
const PATH_RATE: &str = "There is nothing to set: the path's rate is used up. A path with a higher rate, or less data, makes it \
                         faster; pacing or a queue with AQM makes its queue shorter, not its rate higher.";
const APPLICATION_WINDOW: &str = "There is nothing to set in TCP. Where a window of the protocol above it is full, raise that to what the path holds \
                                  and more in the receiving program: HTTP/2 SETTINGS_INITIAL_WINDOW_SIZE and WINDOW_UPDATE of the connection, \
                                  SSH's channel window. Where pieces are requested, ask for larger ones, or for the next before the last has \
                                  arrived.";
const APPLICATION: &str = "There is nothing to set in TCP: the connection would have taken more. The sending program has to \
                           write sooner and larger pieces, or be asked for the next one before the last one is there.";

const CONNECTING: &str = "There is nothing to set for the transfer: find where SYNs are lost. A host that refuses them shows it in \
                          ListenDrops and ListenOverflows (nstat on the server), a firewall or load balancer in its own counters. A client \
                          that keeps its connection open, or connects before it needs to, does not wait.";
const LOOKUP: &str = "There is nothing to set for the transfer: look at the client's resolvers, their order and their distance (resolvectl status, \
                      or /etc/resolv.conf). A first one that does not answer costs a timeout in each lookup; a cache on the host answers most of them.";
const CHALLENGED: &str = "The server still has a connection of the same addresses and ports, which the client has forgotten (RFC 5961 §4): ports are used \
                          again too soon, by the client or by a NAT in front of it. A wider net.ipv4.ip_local_port_range there, or a server that \
                          closes connections before the NAT forgets them (TCP keep-alives), gives each connection ports of its own.";
const ACCEPT_QUEUE: &str = "Raise the backlog that the server's program gives listen(), and net.core.somaxconn, which bounds it; or let \
                            the program accept sooner. ListenOverflows (nstat) on the server counts what did not fit.";
const REQUEST_LOST: &str = "There is nothing to set for the transfer: find where packets from the client are lost. A request of one packet \
                            has no packet behind it that tells of its loss, so a timer has to run out: 200 ms or more for each loss.";
const WAITING_FOR_SERVER: &str = "There is nothing to set in TCP: the network had delivered the request. Look at the server's program, what \
                                  it waits for (database, disk, another server), and its queue of requests.";
const OR_ANSWER_LOST: &str = "Or its answer was lost before the tap: where the wait is a second, or 0.2 s doubled several times, capture at the server.";
const WAITING_FOR_CLIENT: &str = "There is nothing to set in TCP: the server had answered all that it was asked. A client that asks sooner, \
                                  or for several things at once, does not wait.";

#[cfg(test)]
mod tests;
