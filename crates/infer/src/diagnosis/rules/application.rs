//! The sending program had nothing to send.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::{Judged, MIN_GAIN, Rule, fact};
use crate::diagnosis::words;
use crate::observe::connection_phases::Phase;
use thalweg_model::{Code, Evidence};

pub(crate) const RULE: Rule = Rule { code: Code::Application, judge };

fn judge(facts: &Facts<'_>) -> Option<Judged> {
    let share = facts.limits().application;
    if share <= 0.0 {
        return None;
    }
    let weight = facts.weight_of_pauses();
    // Nothing depends on it and nothing brings it about: it is reported for its weight, or not at all.
    if weight < MIN_GAIN {
        return None;
    }
    let gain = facts.gain_without(facts.split.application, 0.0);
    let claim = format!(
        "The sending program had nothing to send for {} of the time; the connection would have taken more.",
        words::percent(share)
    );
    let charged = facts.split.application.seconds;
    let mut evidence = vec![fact(format!(
        "{} of {} the sender was idle although its windows were open, in {} of data",
        words::time(charged),
        // What is charged after the last delivery, to the end of the connection, is not in the data phase.
        words::time(facts.phase_s.max(charged / share)),
        words::count(facts.sender.totals.bursts, "burst")
    ))];
    evidence.extend(waited(facts));
    // Where delays vary, so does when acknowledgements reach a far sender.
    if facts.sender.remote.triggers.are_the_programs() && !facts.blurred {
        evidence.push(fact(
            "its packets' timestamps tell that most of the data left when nothing had just been heard: the program wrote it then"
                .to_owned(),
        ));
    } else if facts.vantage != thalweg_model::Vantage::Sender {
        evidence.push(fact(
            "from this vantage a full send buffer looks the same, and so does a sender whose packets are lost before they get here; capture at the sender".to_owned(),
        ));
    }
    let gain = facts.shows_capacity().then_some(gain);
    Some(Judged { share, weight, gain, claim, evidence, depends_on: None })
}

/// Whom the connection waited for, where that is most of its life.
fn waited(facts: &Facts<'_>) -> Option<Evidence> {
    let phases = &facts.connection.phases;
    let [server, client] = [Phase::Server, Phase::Client].map(|phase| phases.seconds(phase));
    let half = facts.connection.ended.seconds_since(facts.connection.started) / 2.0;
    let text = if server > half {
        format!(
            "waiting for the server: for {} a request was acknowledged and no response had come",
            words::time(server)
        )
    } else if client > half {
        format!("waiting for the client: for {} no request was outstanding", words::time(client))
    } else {
        return None;
    };
    Some(fact(text))
}
