//! The server's end of a test of topics.

use super::exchange::Exchange;
use crate::control::ANSWER;
use crate::error::AgentError;
use crate::message::{ClientMessage, MessageError, START_NS_MAX, ServerMessage, TopicsPlan};
use crate::session::Session;
use crate::train::served::send_times;
use std::time::{Duration, Instant};
use thalweg_host::socket::Tcp;
use thalweg_model::Way;

/// After the client has said that it is over, messages on their way are waited for at most so long.
const LAST: Duration = Duration::from_secs(2);

/// Publishes and receives as planned, and says what it saw.
pub(crate) fn served(session: &mut Session<'_>, plan: &TopicsPlan, tcps: Vec<Tcp>) -> Result<(), AgentError> {
    let mut exchange = Exchange::new(plan, tcps, session.clock, Way::Down)?;
    session.control.send(&ServerMessage::Ready)?;
    let start_ns = loop {
        match session.control.client_message(ANSWER, "its test should start")? {
            ClientMessage::Clock { sent_ns } => session.answer_clock(sent_ns)?,
            ClientMessage::Start { at_ns } => break at_ns,
            _ => return Err(session.control.unexpected()),
        }
    };
    if start_ns.abs_diff(session.clock.now_ns()) > START_NS_MAX {
        return Err(session.control.protocol(MessageError::Value("at_ns")));
    }
    exchange.start(start_ns, &session.control.tcp)?;
    let (mut heard, mut ended) = (Instant::now(), None::<Instant>);
    while !ended.is_some_and(|at| exchange.is_over() || at.elapsed() >= LAST) {
        exchange.turn()?;
        session.control.look()?;
        while let Some(line) = session.control.poll()? {
            heard = Instant::now();
            match ClientMessage::read(&line).map_err(|source| session.control.protocol(source))? {
                ClientMessage::Clock { sent_ns } => session.answer_clock(sent_ns)?,
                ClientMessage::End => ended = Some(heard),
                _ => return Err(session.control.unexpected()),
            }
        }
        if heard.elapsed() >= ANSWER {
            return Err(session.control.silent("topics are exchanged", ANSWER));
        }
    }
    for (place, link) in (0..).zip(&exchange.links) {
        if let Some(arrivals) = link.arrivals() {
            send_times(&session.control, place, arrivals)?;
        }
        if let Some(figures) = link.figures()? {
            session.control.send(&ServerMessage::TopicEnd(figures))?;
        }
    }
    session.control.send(&ServerMessage::End)
}
