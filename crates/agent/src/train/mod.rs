//! Trains of UDP packets: the client's end, and how long the trains are.

pub(crate) mod datagrams;
mod figures;
pub(crate) mod served;

use crate::client::{Client, ServerAddress};
use crate::control::ANSWER;
use crate::error::AgentError;
use crate::message::{ClientMessage, ServerMessage, TrainEnd, TrainPlan, greeting};
use datagrams::Datagrams;
use figures::{Frame, Observed};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use thalweg_host::poll::wait_readable;
use thalweg_host::socket::DatagramSocket;
use thalweg_model::{UdpTrainReport, Way};

/// After a train's end was heard of, what is on its way is waited for until none has come for so long.
const QUIET: Duration = Duration::from_millis(200);
/// How often a receiver looks whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// How often a client greets until the server is ready.
const GREETING_AGAIN: Duration = Duration::from_millis(100);
/// Packets of the first train.
const FIRST_PACKETS: u32 = 16;
/// Trains grow until one of them loses this many packets: then a full buffer was seen that often.
const LOST_PACKETS: usize = 20;
/// Or until one takes so long to arrive.
const LONG_TRAIN: Duration = Duration::from_millis(500);
/// The measured trains are sent at this multiple of the rate that the growing ones found: fast enough to fill the buffer, and slow enough that few packets
/// are lost, and that none waits in the sender's own card.
const PACE: f64 = 2.0;
/// They have this multiple of the packets of the last growing one: at twice the bottleneck's rate, half of what is sent stays in the buffer.
const MEASURED_TIMES: u32 = 3;
/// And take this at least, so that an interrupt that is 50 µs late shifts the rate by half a percent.
const MEASURED_TIME: Duration = Duration::from_millis(10);

/// What a client of trains does.
#[derive(Debug, Clone)]
pub struct TrainOptions {
    /// The server.
    pub server: ServerAddress,
    /// Who sends.
    pub way: Way,
    /// UDP payload of each packet, in bytes.
    pub size_bytes: u32,
    /// From one packet to the next; zero sends them at once.
    pub interval: Duration,
    /// Packets of the longest train.
    pub packets_max: u32,
    /// Trains that are measured, once the growing ones have found the length.
    pub trains: u32,
    /// Bytes a frame costs on the wire besides its Ethernet header.
    pub overhead_bytes: u32,
}

/// Sends or receives trains, longer ones until packets are lost, and reports the bottleneck's rate and buffer.
///
/// # Errors
/// [`AgentError`] when the server refuses, and when packets do not pass.
pub fn udp_train(
    options: &TrainOptions,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn FnMut(u32),
) -> Result<UdpTrainReport, AgentError> {
    let plan = |number, packets| TrainPlan {
        number,
        way: options.way,
        packets,
        size_bytes: options.size_bytes,
        interval_ns: options.interval.as_nanos() as u64,
    };
    plan(0, options.packets_max).check().map_err(AgentError::Plan)?;
    let mut client = TrainClient::new(Client::connect(&options.server, stop)?)?;
    let frame = Frame {
        payload_bytes: options.size_bytes,
        is_v6: client.client.peer.is_ipv6(),
        overhead_bytes: options.overhead_bytes,
    };
    // The first packets find sleeping processors, and a kernel that does not note times yet.
    client.run(&plan(0, FIRST_PACKETS.min(options.packets_max)))?;
    let (mut packets, mut number) = (FIRST_PACKETS.min(options.packets_max), 1);
    let mut growing = Vec::new();
    loop {
        let observed = client.run(&plan(number, packets))?;
        number += 1;
        progress(number);
        let is_last =
            observed.lost() >= LOST_PACKETS || observed.took() >= LONG_TRAIN || packets == options.packets_max;
        growing.push(observed);
        if is_last {
            break;
        }
        packets = packets.saturating_mul(2).min(options.packets_max);
    }
    let mut measured = Vec::new();
    let paced = growing.last().and_then(|last| paced(options, frame, last));
    while measured.len() < options.trains as usize {
        let plan = plan(number, packets);
        let plan = paced.map_or(plan, |(packets, interval_ns)| TrainPlan { packets, interval_ns, ..plan });
        measured.push(client.run(&plan)?);
        number += 1;
        progress(number);
    }
    Ok(figures::report(client.client.peer, options.way, frame, &growing, &measured))
}

/// Packets of a measured train and the time between two, by what the last growing one found; `None` if they are as that one.
fn paced(options: &TrainOptions, frame: Frame, last: &Observed) -> Option<(u32, u64)> {
    let interval_ns = last.interval_ns(frame, PACE).filter(|_| options.interval.is_zero())?;
    let in_time = (MEASURED_TIME.as_nanos() as u64).div_ceil(interval_ns.max(1));
    let packets = last.packets().saturating_mul(MEASURED_TIMES).max(u32::try_from(in_time).unwrap_or(u32::MAX));
    Some((packets.min(options.packets_max), interval_ns))
}

/// A session with a UDP socket.
struct TrainClient {
    client: Client,
    datagrams: Datagrams,
}

impl TrainClient {
    /// Opens the UDP socket, and greets until the server knows where its packets come from.
    fn new(mut client: Client) -> Result<Self, AgentError> {
        let socket = DatagramSocket::connected(client.peer)?;
        let datagrams = Datagrams::new(socket, client.peer, client.session)?;
        client.control.send(&ClientMessage::Datagrams)?;
        let deadline = Instant::now() + ANSWER;
        loop {
            datagrams.greet(&greeting(client.session))?;
            let again = Instant::now() + GREETING_AGAIN;
            while Instant::now() < again {
                wait_readable([client.control.as_fd()], Some(again.saturating_duration_since(Instant::now())))?;
                if let Some(line) = client.control.poll()? {
                    return match client.control.read_server(&line)? {
                        ServerMessage::Ready => Ok(Self { client, datagrams }),
                        _ => Err(client.control.unexpected()),
                    };
                }
            }
            client.control.look()?;
            if Instant::now() >= deadline {
                return Err(client.control.silent("a UDP packet should come", ANSWER));
            }
        }
    }

    /// Runs one train.
    fn run(&mut self, plan: &TrainPlan) -> Result<Observed, AgentError> {
        let mut receiving = self.datagrams.expect(plan)?;
        self.client.control.send(&ClientMessage::Train(*plan))?;
        self.client.control.ready("it prepares a train")?;
        let own = match plan.way {
            Way::Up => {
                let (sent, blocked) = self.datagrams.send(self.client.clock, plan)?;
                self.client.control.send(&ClientMessage::Sent)?;
                Some((sent, blocked))
            }
            Way::Down => None,
        };
        let mut theirs = vec![None; plan.packets as usize];
        let mut end: Option<(TrainEnd, Instant)> = None;
        let deadline = Instant::now() + 2 * ANSWER + Duration::from_nanos(plan.interval_ns * u64::from(plan.packets));
        let control = &mut self.client.control;
        loop {
            wait_readable([self.datagrams.as_fd(), control.as_fd()], Some(LOOK))?;
            self.datagrams.receive(&mut receiving)?;
            control.look()?;
            while end.is_none()
                && let Some(line) = control.poll()?
            {
                match control.read_server(&line)? {
                    ServerMessage::Times { of, first, ns } if of == plan.number => {
                        let place = theirs.iter_mut().skip(first as usize);
                        place.zip(ns).for_each(|(place, ns)| *place = ns);
                    }
                    ServerMessage::TrainEnd(found) => end = Some((found, Instant::now())),
                    _ => return Err(control.unexpected()),
                }
            }
            if Instant::now() >= deadline {
                return Err(control.silent("a train is on its way", 2 * ANSWER));
            }
            let Some((end, at)) = end else { continue };
            if let Some((sent, blocked)) = own {
                let end = TrainEnd { blocked, ..end };
                return Observed::new(sent, theirs, end).ok_or_else(|| control.unexpected());
            }
            if receiving.is_complete() || at.max(receiving.last).elapsed() >= QUIET {
                let dropped = self.datagrams.dropped(&receiving)?;
                let end = TrainEnd { duplicates: receiving.duplicates, dropped, blocked: end.blocked };
                let sent: Option<Vec<u64>> = theirs.into_iter().collect();
                let observed = sent.and_then(|sent| Observed::new(sent, receiving.ns, end));
                return observed.ok_or_else(|| control.unexpected());
            }
        }
    }
}
