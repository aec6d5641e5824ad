//! The server's end of a test of topics.

use super::exchange::Exchange;
use crate::clock::Clock;
use crate::control::{ANSWER, Control};
use crate::error::AgentError;
use crate::message::{ClientMessage, MessageError, START_NS_MAX, ServerMessage, TopicsPlan};
use crate::train::served::send_times;
use std::time::{Duration, Instant};
use thalweg_host::socket::Tcp;
use thalweg_model::Way;

/// After the client has said that it is over, messages on their way are waited for at most so long.
const LAST: Duration = Duration::from_secs(2);

/// Publishes and receives as planned, and says what it saw.
pub(crate) fn served(control: &mut Control, clock: Clock, plan: &TopicsPlan, tcps: Vec<Tcp>) -> Result<(), AgentError> {
    let mut exchange = Exchange::new(plan, tcps, clock, Way::Down)?;
    control.send(&ServerMessage::Ready)?;
    let start_ns = loop {
        match control.client_message(ANSWER, "its test should start")? {
            ClientMessage::Clock { sent_ns } => control.answer_clock(clock, sent_ns)?,
            ClientMessage::Start { at_ns } => break at_ns,
            _ => return Err(control.unexpected()),
        }
    };
    if start_ns.abs_diff(clock.now_ns()) > START_NS_MAX {
        return Err(control.protocol(MessageError::Value("at_ns")));
    }
    exchange.start(start_ns, &control.tcp)?;
    let (mut heard, mut ended) = (Instant::now(), None::<Instant>);
    while !ended.is_some_and(|at| exchange.is_over() || at.elapsed() >= LAST) {
        exchange.turn()?;
        control.look()?;
        while let Some(line) = control.poll()? {
            heard = Instant::now();
            match ClientMessage::read(&line).map_err(|source| control.protocol(source))? {
                ClientMessage::Clock { sent_ns } => control.answer_clock(clock, sent_ns)?,
                ClientMessage::End => ended = Some(heard),
                _ => return Err(control.unexpected()),
            }
        }
        if heard.elapsed() >= ANSWER {
            return Err(control.silent("topics are exchanged", ANSWER));
        }
    }
    for (place, link) in (0..).zip(&exchange.links) {
        if let Some(arrivals) = link.arrivals() {
            send_times(control, place, arrivals)?;
        }
        if let Some(figures) = link.figures()? {
            control.send(&ServerMessage::TopicEnd(figures))?;
        }
    }
    control.send(&ServerMessage::End)
}
