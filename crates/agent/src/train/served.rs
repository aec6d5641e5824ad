//! The server's end of a train.

use super::datagrams::Datagrams;
use super::{LOOK, QUIET};
use crate::clock::Clock;
use crate::control::{ANSWER, Control};
use crate::error::AgentError;
use crate::message::{ClientMessage, ServerMessage, TIMES_MAX, TrainEnd, TrainPlan};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use thalweg_host::poll::wait_readable;
use thalweg_model::Way;

/// Sends or receives a train, and says what it saw.
pub(crate) fn served(
    control: &mut Control,
    datagrams: &mut Datagrams,
    clock: Clock,
    plan: &TrainPlan,
) -> Result<(), AgentError> {
    let (times, end) = match plan.way {
        Way::Up => receive(control, datagrams, plan)?,
        Way::Down => {
            control.send(&ServerMessage::Ready)?;
            let (sent, blocked) = datagrams.send(clock, plan)?;
            (sent.into_iter().map(Some).collect(), TrainEnd { blocked, ..TrainEnd::default() })
        }
    };
    send_times(control, plan.number, &times)?;
    control.send(&ServerMessage::TrainEnd(end))
}

/// Says when things were.
pub(crate) fn send_times(control: &Control, of: u32, times: &[Option<u64>]) -> Result<(), AgentError> {
    for (number, part) in (0..).zip(times.chunks(TIMES_MAX)) {
        let first = number * TIMES_MAX as u32;
        control.send(&ServerMessage::Times { of, first, ns: part.to_vec() })?;
    }
    Ok(())
}

fn receive(
    control: &mut Control,
    datagrams: &Datagrams,
    plan: &TrainPlan,
) -> Result<(Vec<Option<u64>>, TrainEnd), AgentError> {
    let mut receiving = datagrams.expect(plan)?;
    control.send(&ServerMessage::Ready)?;
    let deadline = Instant::now() + ANSWER + Duration::from_nanos(plan.interval_ns * u64::from(plan.packets));
    let mut all_sent: Option<Instant> = None;
    loop {
        wait_readable([datagrams.as_fd(), control.as_fd()], Some(LOOK))?;
        datagrams.receive(&mut receiving)?;
        control.look()?;
        if let Some(line) = control.poll()? {
            match ClientMessage::read(&line).map_err(|source| control.protocol(source))? {
                ClientMessage::Sent => all_sent = Some(Instant::now()),
                _ => return Err(control.unexpected()),
            }
        }
        if all_sent.is_some_and(|at| receiving.is_complete() || at.max(receiving.last).elapsed() >= QUIET) {
            let (duplicates, dropped) = (receiving.duplicates, datagrams.dropped(&receiving)?);
            return Ok((receiving.ns, TrainEnd { duplicates, dropped, blocked: 0 }));
        }
        if Instant::now() >= deadline {
            return Err(control.silent("it sends a train", ANSWER));
        }
    }
}
