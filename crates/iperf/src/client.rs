//! The client of a test.

use crate::control::{ANSWER, Control, random_cookie};
use crate::course::{Course, Frame, description, directions};
use crate::error::IperfError;
use crate::protocol::datagram::{GREETING, is_answer};
use crate::protocol::inbox::MAX_RESULTS;
use crate::protocol::parameters::{Parameters, Transport};
use crate::protocol::results::{Results, stream_id};
use crate::protocol::{Cookie, MAX_UDP_LENGTH, ProtocolError, State};
use crate::stream::{Link, Stream, prepare, settings};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use thalweg_host::HostError;
use thalweg_host::poll::wait_readable;
use thalweg_host::reach::{ANSWER_TIME, ReachError, first_answer};
use thalweg_host::socket::{DatagramSocket, Tcp};
use thalweg_model::{SocketSettings, StreamInterval, StreamLoadReport, StreamTest};

/// Time after which a greeting is sent again, and how often at most. iperf3's server counts a second one as data.
const GREETING_AGAIN: Duration = Duration::from_secs(1);
const GREETINGS_MAX: u32 = 10;

/// What a client does.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The server, as a name or an address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What is asked of it.
    pub parameters: Parameters,
    /// The datagram's length follows from the control connection's segment, so that no packet is fragmented.
    pub own_length: bool,
    /// The time of a row.
    pub interval: Duration,
    /// A file that is sent in place of digits; its end ends the test.
    pub file: Option<PathBuf>,
}

/// Who watches a test.
pub trait ClientObserver {
    /// Data begins to flow to or from this address.
    fn begun(&mut self, peer: SocketAddr, test: &StreamTest);
    /// An interval is over.
    fn rows(&mut self, rows: &[StreamInterval]);
}

/// Runs a test.
///
/// What went wrong while data flowed is in the report, with all that was counted until then.
///
/// # Errors
/// [`IperfError`] when the test did not begin.
pub fn run(
    options: &ClientOptions,
    stop: &Arc<AtomicBool>,
    observer: &mut dyn ClientObserver,
) -> Result<StreamLoadReport, IperfError> {
    let mut parameters = options.parameters.clone();
    Parameters::read(parameters.document().as_object().expect("invariant: parameters are an object"))
        .map_err(IperfError::Parameters)?;
    let file = options
        .file
        .as_ref()
        .map(|path| File::open(path).map_err(|source| IperfError::File { path: path.clone(), source }));
    let file = file.transpose()?;
    let ((tcp, _), peer) = connect(&options.host, options.port, &SocketSettings::default())?;
    if options.own_length {
        parameters.length = tcp.segment_bytes()?.clamp(64, MAX_UDP_LENGTH);
    }
    let mut control = Control::new(tcp, "server", Arc::clone(stop))?;
    let opened = open(&mut control, &mut parameters, peer);
    let streams = opened.inspect_err(|_| drop(control.send_state(State::ClientTerminate)))?;
    observer.begun(peer, &description(&parameters));
    let mut course = Course::start(parameters, streams, false, file, options.interval)?;
    let mut ended = watch(&mut control, &mut course, observer);
    let mut notes = Vec::new();
    if matches!(ended, Err(IperfError::Stopped)) {
        // The end is as any other: both ends' figures are known. A second signal ends the process.
        control.ignore_stop();
        notes.push("ended by a signal".to_owned());
        ended = Ok(());
    }
    course.stop_sending(ended.is_ok());
    let results = ended.and_then(|()| end(&mut control, &mut course, observer));
    let failure = results.as_ref().err().map(ToString::to_string);
    if failure.is_some() {
        let _ = control.send_state(State::ClientTerminate);
        observer.rows(&course.finish(&control));
    }
    let frame = Frame { role: "client", peer: peer.to_string(), notes, failure };
    Ok(course.report(&frame, results.ok().as_ref()))
}

/// Connects with these settings to the first address of a server that answers; gives also when that was begun.
pub(crate) fn connect(
    host: &str,
    port: u16,
    settings: &SocketSettings,
) -> Result<((Tcp, Instant), SocketAddr), ReachError> {
    first_answer(host, port, |address| {
        let begun = Instant::now();
        let tcp = Tcp::connect_stream(address, settings, None, None);
        let connected = tcp.and_then(|tcp| tcp.wait_connected(ANSWER_TIME).map(|()| tcp));
        connected.map(|tcp| (tcp, begun)).map_err(|error| error.source)
    })
}

/// Says what is wanted, and opens the streams.
fn open(control: &mut Control, parameters: &mut Parameters, peer: SocketAddr) -> Result<Vec<Arc<Stream>>, IperfError> {
    let cookie = random_cookie()?;
    control.send_cookie(&cookie)?;
    control.expect(State::ParamExchange, ANSWER, "it should ask for the parameters")?;
    control.send_document(&parameters.document())?;
    control.expect(State::CreateStreams, ANSWER, "reading the parameters")?;
    let mut streams = Vec::new();
    for (place, (way, sends)) in (0..).zip(directions(parameters)) {
        let link = match parameters.transport {
            Transport::Tcp => Link::Tcp(open_tcp(parameters, &cookie, peer, sends)?),
            Transport::Udp => Link::Udp(open_udp(parameters, peer)?),
        };
        streams.push(Arc::new(Stream::new(stream_id(place), way, sends, link)));
    }
    control.expect(State::TestStart, ANSWER, "the streams were opened")?;
    control.expect(State::TestRunning, ANSWER, "the test should begin")?;
    Ok(streams)
}

fn open_tcp(parameters: &Parameters, cookie: &Cookie, peer: SocketAddr, sends: bool) -> Result<Tcp, HostError> {
    let socket = &parameters.socket;
    let segment = socket.segment_bytes.and_then(|bytes| u16::try_from(bytes).ok());
    let tcp = Tcp::connect_stream(peer, &settings(parameters, sends), segment, socket.service)?;
    tcp.wait_connected(ANSWER_TIME)?;
    // The send buffer is empty, and has room for this.
    tcp.send(&cookie.0)?;
    Ok(tcp)
}

fn open_udp(parameters: &Parameters, peer: SocketAddr) -> Result<DatagramSocket, IperfError> {
    let udp = DatagramSocket::connected(peer)?;
    prepare(&udp, parameters, peer)?;
    let mut got = [0; 4];
    for _ in 0..GREETINGS_MAX {
        udp.send(&GREETING)?;
        let again = Instant::now() + GREETING_AGAIN;
        while Instant::now() < again {
            match udp.receive(&mut got)? {
                // Data may overtake the answer.
                Some((length, _)) if length > got.len() || is_answer(&got[..length]) => return Ok(udp),
                Some(_) => {}
                None => {
                    let left = again.saturating_duration_since(Instant::now());
                    wait_readable([udp.as_fd()], Some(left))?;
                }
            }
        }
    }
    let limit = GREETING_AGAIN * GREETINGS_MAX;
    Err(IperfError::Silent { peer: "server", during: "a UDP stream was opened", limit })
}

/// Lets data flow until the end.
fn watch(control: &mut Control, course: &mut Course, observer: &mut dyn ClientObserver) -> Result<(), IperfError> {
    loop {
        let rows = course.tick();
        if !rows.is_empty() {
            observer.rows(&rows);
        }
        let end = course.end();
        let is_sent = course.is_sent() && course.streams.iter().any(|stream| stream.sends);
        if course.is_spent() || is_sent || end.is_some_and(|end| course.now() >= end) {
            return Ok(());
        }
        if let Some(why) = course.failure() {
            // The server may say why it closed the streams.
            control.wait(Duration::from_millis(50))?;
            control.state()?;
            return Err(IperfError::Stream(why));
        }
        let most = course.wait(end);
        // The bytes are counted by the workers, who do not wake this thread.
        let look =
            if course.parameters.budget().is_some() || course.sends_file() { Duration::from_millis(5) } else { most };
        control.wait(most.min(look))?;
        if let Some(state) = control.state()? {
            let source = ProtocolError::Unexpected(state);
            return Err(IperfError::Protocol { peer: "server", source });
        }
    }
}

/// Ends the test, and exchanges what both ends found.
fn end(control: &mut Control, course: &mut Course, observer: &mut dyn ClientObserver) -> Result<Results, IperfError> {
    control.send_state(State::TestEnd)?;
    control.expect(State::ExchangeResults, ANSWER, "the test was ended")?;
    let rows = course.finish(control);
    if !rows.is_empty() {
        observer.rows(&rows);
    }
    control.send_document(&course.results(None).document())?;
    let document = control.document(MAX_RESULTS, "results")?;
    let results = Results::read(&document).map_err(|source| IperfError::Protocol { peer: "server", source })?;
    control.expect(State::DisplayResults, ANSWER, "the results were exchanged")?;
    control.send_state(State::IperfDone)?;
    Ok(results)
}
