//! Causes outside of the data phase, and the headline: what costs most of a connection's whole life.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{MIN_GAIN, occurrences, sights};
use crate::diagnosis::gain::weight_of_time;
use crate::diagnosis::no_cause;
use crate::tcp::connection::Connection;
use crate::tcp::handshake::Syn;
use thalweg_model::{
    Cause, Code, Failure, Finding, FullAcceptQueue, LargePackets, LastSilence, Life, LostRequest, Opening, ProgramWait,
    ResetSeen, SentAgain, Side, Sights, Silence, Verdict, Way,
};

/// A cause in the life of a connection.
struct LifeCause {
    cause: Cause,
    /// What it took of the life, and what of that its absence would save.
    took_s: f64,
    saved_s: f64,
}

impl LifeCause {
    fn verdict(self, total_s: f64) -> Verdict {
        let weight = Some(weight_of_time(share(self.saved_s, total_s)));
        // What the time would be instead is not known.
        Verdict { weight, ..Verdict::new(self.cause, share(self.took_s, total_s), None) }
    }
}

/// Puts what costs most of the life first; `verdict` and `findings` are those of the data phase. The share of the life that the first one
/// took goes to `life`.
pub(crate) fn judge(
    facts: &Facts<'_>,
    life: &mut Life,
    verdict: Verdict,
    findings: Vec<Finding>,
) -> (Verdict, Vec<Finding>) {
    let (connection, total_s) = (facts.connection, life.phases.total_s());
    let is_black_hole = verdict.code() == Code::PathMtuBlackHole;
    // Such a path loses every long packet: that names the cause of the silence.
    if is_black_hole && life.failure == Some(Failure::VanishedPeer) {
        life.failure = None;
    }
    let (verdict, mut findings) = without_turns(facts, life, verdict, findings);
    let data_s = cost_s(facts, &verdict, life.phases.transfer_s);
    let hidden_s = hidden_s(&verdict);
    let mut causes = causes(connection, life, facts.rtt_min_s, hidden_s);
    // What is sent again into a black hole, or to a peer that is gone, is no lost request.
    let in_vain = is_black_hole || life.failure == Some(Failure::VanishedPeer);
    causes.retain(|one| !in_vain || one.cause.code() != Code::RequestLost);
    // The messages that open a window above TCP look like requests.
    let opens_window = matches!(&verdict.cause, Cause::ApplicationWindow(window) if !window.are_requests);
    causes.retain(|one| !opens_window || !matches!(one.cause, Cause::WaitingForServer(_) | Cause::WaitingForClient(_)));
    causes.sort_by(|a, b| b.took_s.total_cmp(&a.took_s));
    let failed = life.failure.map(|failure| failed(failure, connection, life));
    let is_first = failed.is_some() || causes.first().is_some_and(|one| is_headline(one, life, &verdict, data_s));
    if !is_first {
        // Where nothing was delivered there is no data phase: all of the transfer is the verdict's.
        let phase_s = if facts.phase_s > 0.0 { facts.phase_s } else { life.phases.transfer_s + life.phases.request_s };
        let took_s = if hidden_s > 0.0 { hidden_s } else { phase_s * verdict.share };
        life.verdict_share = share(took_s, total_s);
        findings.extend(told(causes, total_s));
        return (verdict, findings);
    }
    let first = failed.unwrap_or_else(|| causes.remove(0));
    life.verdict_share = share(first.took_s, total_s);
    let first = first.verdict(total_s);
    causes.retain(|one| one.cause.code() != first.code());
    // The program's pauses in the data phase are the same time again.
    let is_same = |code: Code| matches!(code, Code::Application | Code::NothingToGain | Code::Unknown);
    findings.retain(|finding| !is_same(finding.code()));
    if !is_same(verdict.code()) {
        findings.insert(0, Finding { verdict, depends_on: None });
    }
    findings.splice(0..0, told(causes, total_s));
    (first, findings)
}

/// The verdict and the findings, if a connection of one request, and of a TLS handshake before it, is not held by its program: what that waits for
/// are the turns of the exchange, each a round trip, and between them it has nothing to send.
fn without_turns(
    facts: &Facts<'_>,
    life: &Life,
    verdict: Verdict,
    mut findings: Vec<Finding>,
) -> (Verdict, Vec<Finding>) {
    /// A response, and the server's two flights of a TLS 1.2 handshake (RFC 5246 §7.3).
    const TURNS: f64 = 3.0;
    let phases = &life.phases;
    let elsewhere_s = (facts.phase_s - phases.transfer_s).max(0.0) + TURNS * facts.rtt_min_s;
    let paused_s = (verdict.share * facts.phase_s - elsewhere_s).max(0.0);
    let is_turns = verdict.code() == Code::Application
        && facts.connection.observers.requests.count <= 1
        && weight_of_time(share(paused_s, phases.total_s())) < MIN_GAIN;
    if !is_turns {
        return (verdict, findings);
    }
    let is_cause = |finding: &Finding| finding.verdict.weight.is_some_and(|weight| weight >= MIN_GAIN);
    let first = findings.iter().position(is_cause).map(|at| findings.remove(at).verdict);
    let turns_s = Some(verdict.share * facts.phase_s);
    (first.unwrap_or_else(|| no_cause::nothing_to_gain(facts, turns_s)), findings)
}

/// Causes whose absence would change as much as a repetition does.
fn told(causes: Vec<LifeCause>, total_s: f64) -> Vec<Finding> {
    let findings = causes.into_iter().map(|one| Finding { verdict: one.verdict(total_s), depends_on: None });
    findings.filter(|finding| finding.verdict.weight.is_some_and(|weight| weight >= MIN_GAIN)).collect()
}

fn share(seconds: f64, total_s: f64) -> f64 {
    if total_s > 0.0 { (seconds / total_s).min(1.0) } else { 0.0 }
}

/// Seconds of the life that the verdict of the data phase accounts for; of the program's pauses only what lies within a transfer: between two
/// transfers the exchange tells who waited.
fn cost_s(facts: &Facts<'_>, verdict: &Verdict, transfer_s: f64) -> f64 {
    let charged = verdict.share * facts.phase_s;
    match verdict.code() {
        Code::Application => charged.min(transfer_s),
        Code::NothingToGain | Code::Unknown => 0.0,
        _ => {
            let saved = verdict.gain.or(verdict.weight).map_or(0.0, |gain| facts.phase_s * (1.0 - 1.0 / gain.max(1.0)));
            charged.max(saved)
        }
    }
}

/// Seconds in which, as the verdict says, packets were on their way that never came, or what was written waited for an acknowledgement: no wait
/// for a program.
fn hidden_s(verdict: &Verdict) -> f64 {
    match verdict.cause {
        Cause::PathMtuBlackHole(LargePackets::Arrivals { silence_s, .. } | LargePackets::Missing { silence_s, .. }) => {
            silence_s
        }
        Cause::DelayedAck(ref writes) => writes.waited_s,
        _ => 0.0,
    }
}

/// Whether the cause takes more of the life than each other phase, and more than what limits the data.
fn is_headline(one: &LifeCause, life: &Life, verdict: &Verdict, data_s: f64) -> bool {
    let (phases, code) = (&life.phases, one.cause.code());
    // Pauses of the client bring these about, and cost more than they last.
    let of_pauses = matches!(verdict.code(), Code::IdleRestart | Code::DelayedAck);
    if code == Code::WaitingForClient && of_pauses {
        return false;
    }
    // What would change less than a repetition does is no headline.
    if weight_of_time(share(one.saved_s, phases.total_s())) < MIN_GAIN {
        return false;
    }
    let necessary_s = phases.connecting_s.max(phases.request_s);
    let is_lookup = matches!(one.cause, Cause::Connecting(Opening::Lookup { .. }));
    let own = matches!(code, Code::Connecting | Code::RequestLost) && !is_lookup;
    one.took_s > data_s && (own || one.took_s > necessary_s)
}

/// The causes in the life; of `hidden_s` seconds it is known that no program was waited for.
fn causes(connection: &Connection, life: &Life, rtt_s: f64, hidden_s: f64) -> Vec<LifeCause> {
    let (phases, resent) = (&life.phases, &life.resent);
    // Of one direction alone the capture does not tell what answered.
    if connection.sides.iter().any(|side| side.packets == 0) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    let challenged = connection.observers.phases.end.challenged;
    if !connection.observers.phases.is_opening() && (resent.syn > 0 || resent.syn_ack > 0 || challenged > 0) {
        let took_s = phases.connecting_s;
        let [syn, syn_ack] = connection.opening.syn.each_ref().map(sent_again);
        let left_out = connection.opening.request_left_out().filter(|_| syn_ack.is_none() && challenged == 0);
        let late = Opening::Late { seconds: took_s, challenged: challenged.into(), syn, syn_ack, left_out };
        causes.push(LifeCause { cause: Cause::Connecting(late), took_s, saved_s: took_s - rtt_s });
    }
    let again = connection.lookup.as_ref().map_or(0, |lookup| lookup.again.into());
    let lookup = Opening::Lookup { seconds: phases.lookup_s, again };
    // A resolver is asked over a round trip, too.
    let saved_s = phases.lookup_s - rtt_s;
    causes.push(LifeCause { cause: Cause::Connecting(lookup), took_s: phases.lookup_s, saved_s });
    let seconds = phases.accept_queue_s;
    let queue = FullAcceptQueue { seconds, syn_acks_again: resent.syn_ack.into(), data_again: resent.data_up };
    causes.push(LifeCause { cause: Cause::AcceptQueue(queue), took_s: seconds, saved_s: seconds });
    let again = connection.observers.phases.requests_resent();
    if again > 0 {
        let seconds = connection.observers.phases.lost_requests();
        let cause = Cause::RequestLost(LostRequest { seconds, again });
        causes.push(LifeCause { cause, took_s: seconds, saved_s: seconds - rtt_s });
    }
    let answered = connection.observers.phases.answered().into();
    let wait = |cause: fn(ProgramWait) -> Cause, waited_s: f64, tls_s: f64, to_end: bool| {
        let seconds = (waited_s + tls_s - hidden_s).max(0.0);
        LifeCause { cause: cause(ProgramWait { seconds, answered, tls_s, to_end }), took_s: seconds, saved_s: seconds }
    };
    let seen = &connection.observers.phases;
    causes.push(wait(Cause::WaitingForServer, phases.waiting_server_s, seen.tls_wait(1), seen.waits_to_end()));
    causes.push(wait(Cause::WaitingForClient, seen.before_requests(), seen.tls_wait(0), false));
    causes.retain(|one| one.took_s > 0.0 && one.saved_s > 0.0);
    causes
}

fn sent_again(one: &Syn) -> Option<SentAgain> {
    (one.count > 1).then(|| SentAgain {
        times: u64::from(one.count) - 1,
        first_s: one.first_at as f64 / 1e9,
        last_s: one.last_at as f64 / 1e9,
    })
}

/// The cause of a connection that failed.
fn failed(failure: Failure, connection: &Connection, life: &Life) -> LifeCause {
    let [syn, syn_ack] = &connection.opening.syn;
    let first = (connection.first_packet, 0);
    let unanswered = |one: &Syn| {
        let seconds = one.last_at.saturating_sub(one.first_at) as f64 / 1e9;
        (occurrences(u64::from(one.count.saturating_sub(1)), &[first]), seconds)
    };
    let opening = match failure {
        Failure::Refused => Opening::Refused(sights(&[first])),
        Failure::NoAnswer if syn_ack.seen => {
            let (again, seconds) = unanswered(syn_ack);
            Opening::Unconfirmed { again, seconds }
        }
        Failure::NoAnswer => {
            let (again, seconds) = unanswered(syn);
            Opening::Unanswered { again, seconds }
        }
        Failure::ForeignReset => return reset(true, connection, life),
        Failure::Reset => return reset(false, connection, life),
        Failure::VanishedPeer => return vanished(connection, life),
    };
    let took_s = life.phases.total_s();
    LifeCause { cause: Cause::Connecting(opening), took_s, saved_s: took_s }
}

fn reset(foreign: bool, connection: &Connection, life: &Life) -> LifeCause {
    let closed = connection.observers.phases.end.reset.is_some_and(|reset| reset.closed);
    let (direction, idle_s, at_s, packet) =
        life.reset.map_or((Way::Down, 0.0, 0.0, 0), |reset| (reset.direction, reset.idle_s, reset.at_s, reset.packet));
    let cause = Cause::Reset(ResetSeen {
        by: if direction == Way::Up { Side::Client } else { Side::Server },
        foreign,
        asked: connection.observers.phases.is_asked(),
        at_s,
        idle_s,
        closed,
        sights: Sights { packets: vec![packet], time_s: Some(at_s) },
    });
    // What the reset cost, the capture does not show: what passed before it is not its doing.
    LifeCause { cause, took_s: 0.0, saved_s: 0.0 }
}

fn vanished(connection: &Connection, life: &Life) -> LifeCause {
    let total_s = connection.ended.seconds_since(connection.started);
    let silence =
        life.silence.unwrap_or(Silence { side: Side::Server, since_s: 0.0, asked_s: 0.0, unanswered: 0, packet: 0 });
    let seconds = (total_s - silence.asked_s).max(0.0);
    let cause = Cause::VanishedPeer(LastSilence {
        side: silence.side,
        since_s: silence.since_s,
        idle_s: silence.asked_s - silence.since_s,
        seconds,
        unanswered: silence.unanswered.into(),
        sights: Sights { packets: vec![silence.packet], time_s: None },
    });
    LifeCause { cause, took_s: seconds, saved_s: seconds }
}
