//! One client's test, in a thread of its own.

use super::ServerObserver;
use super::registry::{Arrived, Registry};
use crate::control::{ANSWER, Control};
use crate::course::{Course, Frame, description, directions};
use crate::error::IperfError;
use crate::protocol::inbox::{MAX_PARAMETERS, MAX_RESULTS};
use crate::protocol::parameters::{Parameters, Transport};
use crate::protocol::results::{Results, stream_id};
use crate::protocol::{Cookie, ProtocolError, State};
use crate::stream::{Link, Stream, prepare, settings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::socket::Tcp;
use thalweg_model::SocketSettings;
use thalweg_units::Bytes;

/// Time past its own in which a test ends: ten messages of four seconds, as iperf3 has it (`create_server_timers`).
const GRACE: Duration = Duration::from_secs(40);
/// Time without data after which a receiver gives up (`DEFAULT_NO_MSG_RCVD_TIMEOUT`).
const SILENCE: Duration = Duration::from_secs(120);
/// Time in which the client says that it is done; it has all results by then.
const DONE: Duration = Duration::from_secs(10);

/// A client that was accepted.
pub(super) struct Client {
    pub(super) cookie: Cookie,
    pub(super) peer: SocketAddr,
    pub(super) control: Control,
    pub(super) arrived: Receiver<Arrived>,
}

/// Serves it until the end; whether there was a test.
pub(super) fn run(mut client: Client, registry: &Registry, interval: Duration, observer: &dyn ServerObserver) -> bool {
    let opened = open(&mut client, registry)
        .and_then(|(opened, notes)| start(&client, opened, interval).map(|course| (course, notes)));
    let (mut course, notes) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            client.control.refuse(&error);
            observer.refused(client.peer, &error);
            return false;
        }
    };
    observer.begun(client.peer, &description(&course.parameters));
    let frame = |failure| Frame { role: "server", peer: client.peer.to_string(), notes: notes.clone(), failure };
    let ended = watch(&mut client.control, &mut course);
    course.stop_sending(false);
    course.finish(&client.control);
    let results = ended.and_then(|()| exchange(&mut client.control, &course, observer, &frame(None)));
    let failure = results.as_ref().err().map(ToString::to_string);
    if let Err(error) = &results {
        client.control.refuse(error);
    }
    observer.ended(&course.report(&frame(failure), results.ok().as_ref()));
    true
}

/// A test that is ready to begin.
struct Opened {
    parameters: Parameters,
    streams: Vec<Arc<Stream>>,
}

/// Takes the parameters and the streams; with notes on what could not be done as asked.
fn open(client: &mut Client, registry: &Registry) -> Result<(Opened, Vec<String>), IperfError> {
    let control = &mut client.control;
    control.send_state(State::ParamExchange)?;
    let document = control.document(MAX_PARAMETERS, "parameters")?;
    let parameters = Parameters::read(&document).map_err(IperfError::Parameters)?;
    let wanted = directions(&parameters);
    match parameters.transport {
        Transport::Tcp => registry.expect_tcp(&client.cookie, wanted.len()),
        Transport::Udp => {
            if !registry.expect_udp(&client.cookie, wanted.len(), ANSWER) {
                return Err(IperfError::Silent {
                    peer: "server",
                    during: "other tests open their streams",
                    limit: ANSWER,
                });
            }
        }
    }
    control.send_state(State::CreateStreams)?;
    let mut arrived = wait_for(wanted.len(), control, &client.arrived)?;
    arrived.sort_unstable_by_key(|(place, _)| *place);
    let (mut notes, mut streams) = (Vec::new(), Vec::new());
    // Streams come in the order in which the client opens them: those that it sends first.
    for (number, ((way, client_sends), (_, link))) in (0..).zip(wanted.into_iter().zip(arrived)) {
        match &link {
            Link::Tcp(tcp) => set(tcp, client.peer, &parameters, !client_sends, &mut notes)?,
            Link::Udp(udp) => prepare(udp, &parameters, client.peer)?,
        }
        streams.push(Arc::new(Stream::new(stream_id(number), way, !client_sends, link)));
    }
    Ok((Opened { parameters, streams }, notes))
}

/// Waits until this many streams have connected.
fn wait_for(count: usize, control: &mut Control, streams: &Receiver<Arrived>) -> Result<Vec<Arrived>, IperfError> {
    let deadline = Instant::now() + ANSWER;
    let mut arrived = Vec::new();
    loop {
        arrived.extend(streams.try_iter());
        if arrived.len() >= count {
            return Ok(arrived);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(IperfError::Silent { peer: "client", during: "the streams should come", limit: ANSWER });
        }
        control.wait(left)?;
        if let Some(state) = control.state()? {
            return Err(IperfError::Protocol { peer: "client", source: ProtocolError::Unexpected(state) });
        }
    }
}

/// Sets what the parameters ask of a connection that was accepted.
fn set(
    tcp: &Tcp,
    peer: SocketAddr,
    parameters: &Parameters,
    sends: bool,
    notes: &mut Vec<String>,
) -> Result<(), HostError> {
    let mut settings = settings(parameters, sends);
    if let Some(name) = settings.congestion.take() {
        let one = SocketSettings { congestion: Some(name.clone()), ..SocketSettings::default() };
        // The client may know one that this host does not: iperf3 goes on, too.
        if tcp.apply(&one).is_err() {
            let note = format!("the congestion control '{name}' is not available here");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    tcp.apply(&settings)?;
    if settings.rcvbuf.is_some() {
        // A buffer that is set after the handshake leaves the window's bound as it was (`tcp_init_buffer_space`, net/ipv4/tcp_input.c).
        let window_clamp = tcp.buffers().ok().map(|(_, receive)| Bytes::new(receive as u64));
        tcp.apply(&SocketSettings { window_clamp, ..SocketSettings::default() })?;
    }
    if let Some(service) = parameters.socket.service {
        tcp.set_service(peer, service)?;
    }
    Ok(())
}

/// Begins.
fn start(client: &Client, opened: Opened, interval: Duration) -> Result<Course, IperfError> {
    client.control.send_state(State::TestStart)?;
    let course = Course::start(opened.parameters, opened.streams, true, None, interval)?;
    client.control.send_state(State::TestRunning)?;
    Ok(course)
}

/// Lets data flow until the client ends it.
fn watch(control: &mut Control, course: &mut Course) -> Result<(), IperfError> {
    let end = course.end().map(|end| end + GRACE);
    loop {
        course.tick();
        match control.state()? {
            Some(State::TestEnd) => return Ok(()),
            Some(state) => {
                return Err(IperfError::Protocol { peer: "client", source: ProtocolError::Unexpected(state) });
            }
            None => {}
        }
        let now = course.now();
        if end.is_some_and(|end| now >= end) {
            return Err(IperfError::Expired);
        }
        if course.last_received().is_some_and(|last| now.saturating_sub(last) >= SILENCE) {
            return Err(IperfError::Silent { peer: "client", during: "data should come", limit: SILENCE });
        }
        if let Some(why) = course.failure() {
            // A client that ends closes its streams as well: its message may be right behind.
            control.wait(Duration::from_millis(200))?;
            if let Some(State::TestEnd) = control.state()? {
                return Ok(());
            }
            return Err(IperfError::Stream(why));
        }
        control.wait(course.wait(end))?;
    }
}

/// Exchanges what both ends found.
fn exchange(
    control: &mut Control,
    course: &Course,
    observer: &dyn ServerObserver,
    frame: &Frame,
) -> Result<Results, IperfError> {
    control.send_state(State::ExchangeResults)?;
    let document = control.document(MAX_RESULTS, "results")?;
    let peer = Results::read(&document).map_err(|source| IperfError::Protocol { peer: "client", source })?;
    let output = course.parameters.wants_output.then(|| observer.output(&course.report(frame, Some(&peer))));
    control.send_document(&course.results(output).document())?;
    control.send_state(State::DisplayResults)?;
    // It may just close.
    let _ = control.expect(State::IperfDone, DONE, "the results were sent");
    Ok(peer)
}
