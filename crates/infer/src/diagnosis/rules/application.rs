//! The sending program had nothing to send.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN};
use crate::diagnosis::rules::send_buffer;
use crate::estimate::partition::is_paced;
use crate::observe::connection_phases::Phase;
use thalweg_model::{Cause, Pauses, PausesSeen, Vantage, WaitedFor, WriteTimer};

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().application;
    if share <= 0.0 || facts.lacks_packets() {
        return None;
    }
    let weight = facts.weight_of_pauses();
    // Nothing depends on it and nothing brings it about: it is reported for its weight, or not at all.
    if weight < MIN_GAIN {
        return None;
    }
    // The same pauses, of a buffer.
    if send_buffer::emptied(facts).is_some() {
        return None;
    }
    let idle_s = facts.split.application.seconds;
    let pauses = Pauses {
        idle_s,
        // What is charged after the last delivery, to the end of the connection, is not in the data phase.
        of_s: facts.phase_s.max(idle_s / share),
        bursts: Some(facts.sender.totals.bursts),
        waited: waited(facts),
        timer: timer(facts),
        seen: seen(facts),
    };
    let gain = facts.gain_without(facts.split.application, 0.0);
    Some(Judged::new(Cause::Application(pauses), share, weight, facts.shows_capacity().then_some(gain)))
}

/// How it shows that the pauses are the program's.
fn seen(facts: &Facts<'_>) -> PausesSeen {
    if facts.vantage == Vantage::Sender {
        PausesSeen::Sender
    } else if facts.blurred {
        // Where delays vary, so does when acknowledgements reach a far sender.
        PausesSeen::Silence
    } else if facts.sender.remote.triggers.are_the_programs() && !is_paced(facts.sender) {
        // What is paced does not leave with acknowledgements either, whoever wrote it.
        PausesSeen::Timestamps
    } else if facts.sender.is_set_off_by_a_timer() {
        PausesSeen::Timer
    } else {
        PausesSeen::Silence
    }
}

/// The timer by which the program writes. At another tap it does not show when all data is acknowledged.
fn timer(facts: &Facts<'_>) -> Option<WriteTimer> {
    let observers = &facts.sender.observers;
    let shows = facts.vantage == Vantage::Sender && observers.stop_and_wait.goes_on_by_itself();
    let found = observers.write_timer.found().filter(|_| shows)?;
    Some(WriteTimer { period_s: found.period as f64 / 1e9, bytes: found.amount })
}

/// Whom the connection waited for, where that is most of its life.
fn waited(facts: &Facts<'_>) -> Option<WaitedFor> {
    let phases = &facts.connection.observers.phases;
    let [server, client] = [Phase::Server, Phase::Client].map(|phase| phases.seconds(phase));
    let half = facts.connection.ended.seconds_since(facts.connection.started) / 2.0;
    if server > half {
        Some(WaitedFor::Server { seconds: server })
    } else if client > half {
        Some(WaitedFor::Client { seconds: client })
    } else {
        None
    }
}
