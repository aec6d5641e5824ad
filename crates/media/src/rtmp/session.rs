//! A publisher's connection, as the server has it.

use super::aggregate::Aggregate;
use super::chunk::{ChunkError, ChunkReader};
use super::command::{Command, body, object, status};
use super::cut::ChunkWriter;
use super::handshake::{Handshake, HandshakeError};
use super::message::{Message, MessageKind};
use crate::amf::{self, AmfError, Value};
use crate::{Tag, TagKind};

/// The server's side of an RTMP connection. It takes bytes and gives events, and bytes to be sent.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    /// Until it is over.
    handshake: Option<Handshake>,
    reader: ChunkReader,
    writer: ChunkWriter,
    output: Vec<u8>,
    app: String,
    app_query: String,
    /// `connect` was answered.
    is_connected: bool,
    streams_made: u32,
    publishing: Publishing,
    aggregate: Option<Aggregate>,
    /// Bytes that came, and how many of them the other side knows of. Both wrap, as the message does.
    received: u32,
    acknowledged: u32,
    /// So often does the other side want to hear of them, in bytes.
    window: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Publishing {
    No,
    /// In this message stream, and the caller has yet to say whether it may.
    Asked(u32),
    Yes(u32),
}

/// What a connection may take of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest message, in bytes. Twice that is the most that messages which are not whole may hold.
    pub message_bytes: usize,
    /// What may wait to be sent, in bytes: a publisher that asks much and reads nothing is cut off.
    pub output_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message_bytes: 8 << 20, output_bytes: 64 << 10 }
    }
}

/// What happened on a connection.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The other side wants to publish. Nothing more is read until [`Session::accept`] or [`Session::refuse`] says whether it may.
    Publish {
        /// The application: the URL's path but its last part, without slashes around it.
        app: String,
        /// The stream: the last part of the path; empty where an encoder has none.
        name: String,
        /// What is behind the question mark of the stream's name, else of the application's; empty without one.
        query: String,
    },
    /// The other side was refused: what it wants to publish can be no stream.
    Refused(Refusal),
    /// A tag of the stream that is being published. `@setDataFrame` is taken off its front.
    Tag(Tag),
    /// The stream that was accepted has ended. The connection may publish another.
    Unpublish,
    /// The answer to [`Session::ping`], with the timestamp that was sent.
    Pong(u32),
}

/// Why somebody may not publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody else publishes under this name.
    Busy,
    /// The key is wrong or missing.
    Denied,
    /// The application that decides who may publish refuses this stream.
    Forbidden,
    /// The application that decides who may publish gives no usable answer: none in time, or an error.
    Unanswered,
    /// The application's name or the stream's is not valid.
    Name,
    /// The connection publishes another stream.
    Second,
    /// The server has as many streams as it may have.
    Full,
    /// The server does not take this stream for another reason.
    Rejected,
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It is none of RTMP.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Its chunks make no sense, or are too many.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A command makes no sense.
    #[error("a command is not understood: {0}")]
    Command(AmfError),
    /// It asks much and reads nothing.
    #[error("more than {0} bytes of answers are not read")]
    Deaf(usize),
    /// Publishing before `connect`, or in a message stream that was never made.
    #[error("'{0}' comes before what it needs")]
    Order(&'static str),
}

impl Refusal {
    /// The status code of NetStream.
    const fn code(self) -> &'static str {
        match self {
            Self::Busy | Self::Second => "NetStream.Publish.BadName",
            Self::Denied | Self::Forbidden => "NetStream.Publish.Denied",
            Self::Unanswered | Self::Name | Self::Full | Self::Rejected => "NetStream.Publish.Rejected",
        }
    }

    /// What it says.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Busy => "Somebody else publishes under this name.",
            Self::Denied => "The publishing key is wrong or missing.",
            Self::Forbidden => {
                "The application that decides who may publish (webhooks.on_publish) refuses this stream."
            }
            Self::Unanswered => {
                "The application that decides who may publish (webhooks.on_publish) gives no usable answer."
            }
            Self::Name => {
                "The application's name or the stream's is empty, too long, or has a character that is not allowed."
            }
            Self::Second => {
                "This connection publishes a stream already: publish each stream over a connection of its own."
            }
            Self::Full => "The server has as many streams as limits.streams allows.",
            Self::Rejected => "The server does not take this stream.",
        }
    }
}

/// The acknowledgement window announced to both sides (§5.4.4), in bytes: the value of Flash Media Server and its followers.
const WINDOW: u32 = 2_500_000;
/// The size of chunks that we send, in bytes.
const CHUNK_SIZE: u32 = 4096;
/// Most message streams that a connection may make: encoders make one.
const STREAMS_MAX: u32 = 64;
/// Longest name of an application or a stream, in bytes, query included.
const NAME_MAX: usize = 2048;

/// Chunk streams of ours: protocol control (§5.4), commands, and a message stream's status.
const CONTROL: u8 = 2;
const COMMAND: u8 = 3;
const STATUS: u8 = 5;

/// User control events (§6.2).
const STREAM_BEGIN: u16 = 0;
const PING_REQUEST: u16 = 6;
const PING_RESPONSE: u16 = 7;

impl Session {
    /// Waits for a publisher. `random` goes into the handshake.
    pub fn new(random: [u8; 1536], limits: Limits) -> Self {
        Self {
            limits,
            handshake: Some(Handshake::new(random)),
            reader: ChunkReader::new(limits.message_bytes),
            writer: ChunkWriter::default(),
            output: Vec::new(),
            app: String::new(),
            app_query: String::new(),
            is_connected: false,
            streams_made: 0,
            publishing: Publishing::No,
            aggregate: None,
            received: 0,
            acknowledged: 0,
            window: WINDOW,
        }
    }

    /// Takes bytes off the head of `input` until something happens; `None` when it needs more of them, or an answer to
    /// [`Event::Publish`]: see [`Session::is_waiting`]. What is left in `input` has to be given again.
    ///
    /// # Errors
    /// [`SessionError`]: send what [`Session::output`] holds, and close.
    pub fn handle(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SessionError> {
        if self.is_waiting() {
            return Ok(None);
        }
        if let Some(tag) = self.aggregate.as_mut().and_then(Iterator::next) {
            return Ok(Some(Event::Tag(tag)));
        }
        self.aggregate = None;
        let before = input.len();
        let result = self.advance(input);
        self.received = self.received.wrapping_add((before - input.len()) as u32);
        self.acknowledge();
        if self.output.len() > self.limits.output_bytes {
            return Err(SessionError::Deaf(self.limits.output_bytes));
        }
        result
    }

    /// Whether [`Event::Publish`] was not answered yet. Nothing is read meanwhile, so the caller need not read its socket.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.publishing, Publishing::Asked(_))
    }

    /// Lets the other side publish what it asked for.
    pub fn accept(&mut self) {
        if let Publishing::Asked(stream) = self.publishing {
            self.publishing = Publishing::Yes(stream);
            self.control(MessageKind::UserControl, &[&STREAM_BEGIN.to_be_bytes()[..], &stream.to_be_bytes()].concat());
            self.on_status(stream, "status", "NetStream.Publish.Start", "Publishing.");
        }
    }

    /// Sends the other side the reason why it may not publish. Most encoders close then; others may try another name.
    pub fn refuse(&mut self, refusal: Refusal) {
        if let Publishing::Asked(stream) = self.publishing {
            self.publishing = Publishing::No;
            self.on_status(stream, "error", refusal.code(), refusal.reason());
        }
    }

    /// Says why the server ends the connection, where the other side can understand it. Nothing of the stream is taken any more.
    pub fn close(&mut self, reason: &str) {
        match std::mem::replace(&mut self.publishing, Publishing::No) {
            Publishing::Asked(stream) | Publishing::Yes(stream) => {
                self.on_status(stream, "error", "NetStream.Publish.Rejected", reason);
            }
            Publishing::No if self.is_connected => self.on_status(0, "error", "NetConnection.Connect.Closed", reason),
            Publishing::No => {}
        }
        self.aggregate = None;
    }

    /// Asks whether the other side is there; it answers with the same timestamp, see [`Event::Pong`].
    pub fn ping(&mut self, timestamp_ms: u32) {
        if self.handshake.is_none() {
            let body = [&PING_REQUEST.to_be_bytes()[..], &timestamp_ms.to_be_bytes()].concat();
            self.control(MessageKind::UserControl, &body);
        }
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// `n` bytes of [`Session::output`] were sent.
    pub fn sent(&mut self, n: usize) {
        self.output.drain(..n.min(self.output.len()));
        if self.output.is_empty() {
            self.output = Vec::new();
        }
    }

    fn advance(&mut self, input: &mut &[u8]) -> Result<Option<Event>, SessionError> {
        if let Some(handshake) = &mut self.handshake {
            if !handshake.handle(input, &mut self.output)? {
                return Ok(None);
            }
            self.handshake = None;
        }
        while let Some(message) = self.reader.read(input)? {
            let event = self.message(message)?;
            // Answers that are not read are bounded here too: one piece of input may hold many questions.
            if event.is_some() || self.output.len() > self.limits.output_bytes {
                return Ok(event);
            }
        }
        Ok(None)
    }

    fn message(&mut self, message: Message) -> Result<Option<Event>, SessionError> {
        let number = message.payload.first_chunk().map(|&four| u32::from_be_bytes(four));
        match message.kind {
            MessageKind::SetChunkSize => {
                if let Some(size) = number {
                    self.reader.set_chunk_size(size)?;
                }
            }
            MessageKind::Abort => {
                if let Some(chunk_stream) = number {
                    self.reader.abort(chunk_stream);
                }
            }
            MessageKind::WindowAcknowledgementSize => {
                if let Some(window) = number.filter(|&window| window > 0) {
                    self.window = window;
                }
            }
            MessageKind::UserControl => return Ok(self.user_control(&message.payload)),
            MessageKind::Command | MessageKind::CommandAmf3 => {
                let command = Command::parse(&message).map_err(SessionError::Command)?;
                return self.command(&command, message.stream_id);
            }
            MessageKind::Audio => return Ok(self.tag(TagKind::Audio, message)),
            MessageKind::Video => return Ok(self.tag(TagKind::Video, message)),
            MessageKind::Data | MessageKind::DataAmf3 => return Ok(self.data(message)),
            MessageKind::Aggregate => {
                if self.publishing == Publishing::Yes(message.stream_id) {
                    self.aggregate = Some(Aggregate::new(message.timestamp_ms, message.payload));
                    return Ok(self.aggregate.as_mut().and_then(Iterator::next).map(Event::Tag));
                }
            }
            // What we send is short: nobody waits for its acknowledgement.
            MessageKind::Acknowledgement | MessageKind::SetPeerBandwidth | MessageKind::Other(_) => {}
        }
        Ok(None)
    }

    fn tag(&self, kind: TagKind, message: Message) -> Option<Event> {
        let Message { timestamp_ms, payload, stream_id, .. } = message;
        let wanted = self.publishing == Publishing::Yes(stream_id) && !payload.is_empty();
        wanted.then_some(Event::Tag(Tag { kind, timestamp_ms, payload }))
    }

    fn data(&self, message: Message) -> Option<Event> {
        /// Strings that only RTMP has; what is kept is what an FLV file has.
        const SET: &[u8] = b"\x02\0\x0d@setDataFrame";
        const CLEAR: &[u8] = b"\x02\0\x0f@clearDataFrame";
        let values = body(&message);
        if values.starts_with(CLEAR) {
            return None;
        }
        let payload = values.strip_prefix(SET).unwrap_or(values).to_vec();
        self.tag(TagKind::Script, Message { payload, ..message })
    }

    fn user_control(&mut self, payload: &[u8]) -> Option<Event> {
        let (&kind, rest) = payload.split_first_chunk()?;
        let &four = rest.first_chunk()?;
        match u16::from_be_bytes(kind) {
            PING_REQUEST => {
                self.control(MessageKind::UserControl, &[&PING_RESPONSE.to_be_bytes()[..], &four].concat());
                None
            }
            PING_RESPONSE => Some(Event::Pong(u32::from_be_bytes(four))),
            _ => None,
        }
    }

    fn command(&mut self, command: &Command, stream_id: u32) -> Result<Option<Event>, SessionError> {
        match command.name.as_str() {
            "connect" => self.connect(command),
            "createStream" => {
                if self.streams_made == STREAMS_MAX {
                    self.answer("_error", command, status("error", "NetConnection.Call.Failed", "Too many streams."));
                } else {
                    self.streams_made += 1;
                    self.answer("_result", command, Value::Number(self.streams_made.into()));
                }
            }
            // Said before `createStream` by encoders that want to take a name over; the answer is not looked at.
            "releaseStream" | "FCPublish" | "FCUnpublish" => self.answer("_result", command, Value::Undefined),
            "publish" => return self.publish(command, stream_id),
            "closeStream" => return Ok(self.end(stream_id)),
            "deleteStream" => return Ok(command.number(0).and_then(|stream| self.end(stream as u32))),
            "play" | "play2" => {
                let text = "This server's RTMP is for publishers: play over HTTP.";
                self.on_status(stream_id, "error", "NetStream.Play.Failed", text);
            }
            "_result" | "_error" | "onStatus" => {}
            _ => {
                let text = "This call is not known here.";
                self.answer("_error", command, status("error", "NetConnection.Call.Failed", text));
            }
        }
        Ok(None)
    }

    fn connect(&mut self, command: &Command) {
        let asked = command.values.first();
        let member = |name| asked.and_then(|object| object.get(name));
        let app = member("app").and_then(Value::as_str).unwrap_or_default();
        if app.len() > NAME_MAX {
            let text = "The application's name is too long.";
            return self.answer("_error", command, status("error", "NetConnection.Connect.Rejected", text));
        }
        let (app, query) = parts(app);
        self.app = app;
        self.app_query = query;
        self.is_connected = true;
        let encoding = member("objectEncoding").and_then(Value::as_number).unwrap_or(0.0);
        self.control(MessageKind::WindowAcknowledgementSize, &WINDOW.to_be_bytes());
        // 2: dynamic, as the other side sees fit.
        self.control(MessageKind::SetPeerBandwidth, &[&WINDOW.to_be_bytes()[..], &[2]].concat());
        self.control(MessageKind::SetChunkSize, &CHUNK_SIZE.to_be_bytes());
        self.writer.set_chunk_size(CHUNK_SIZE);
        // Encoders look at the version to tell what a server can do; this one is what they know.
        let properties = object(&[("fmsVer", "FMS/3,0,1,123".into()), ("capabilities", Value::Number(31.0))]);
        let Value::Object(mut information) = status("status", "NetConnection.Connect.Success", "Connected.") else {
            return;
        };
        information.push(("objectEncoding".to_owned(), Value::Number(encoding)));
        let values = ["_result".into(), Value::Number(command.transaction), properties, Value::Object(information)];
        self.send(COMMAND, 0, &values);
    }

    fn publish(&mut self, command: &Command, stream_id: u32) -> Result<Option<Event>, SessionError> {
        if stream_id == 0 || stream_id > self.streams_made {
            return Err(SessionError::Order("publish"));
        }
        let name = command.text(0).unwrap_or_default();
        let refusal = match self.publishing {
            Publishing::No if name.len() + self.app.len() > NAME_MAX => Some(Refusal::Name),
            Publishing::No => None,
            _ => Some(Refusal::Second),
        };
        if let Some(refusal) = refusal {
            self.on_status(stream_id, "error", refusal.code(), refusal.reason());
            return Ok(Some(Event::Refused(refusal)));
        }
        let (mut name, query) = parts(name);
        let mut app = self.app.clone();
        // Encoders differ in where they divide a path: the last part is the name.
        if let Some((more, last)) = name.rsplit_once('/') {
            app = if app.is_empty() { more.to_owned() } else { format!("{app}/{more}") };
            name = last.to_owned();
        }
        let query = if query.is_empty() { self.app_query.clone() } else { query };
        self.publishing = Publishing::Asked(stream_id);
        Ok(Some(Event::Publish { app, name, query }))
    }

    fn end(&mut self, stream_id: u32) -> Option<Event> {
        if self.publishing != Publishing::Yes(stream_id) {
            return None;
        }
        self.publishing = Publishing::No;
        self.on_status(stream_id, "status", "NetStream.Unpublish.Success", "Published no more.");
        Some(Event::Unpublish)
    }

    /// Answers `command`, if it wants an answer.
    fn answer(&mut self, name: &str, command: &Command, value: Value) {
        if command.transaction != 0.0 {
            self.send(COMMAND, 0, &[name.into(), Value::Number(command.transaction), Value::Null, value]);
        }
    }

    fn on_status(&mut self, stream_id: u32, level: &str, code: &str, description: &str) {
        let values = ["onStatus".into(), Value::Number(0.0), Value::Null, status(level, code, description)];
        self.send(STATUS, stream_id, &values);
    }

    fn send(&mut self, chunk_stream: u8, stream_id: u32, values: &[Value]) {
        let mut payload = Vec::new();
        amf::encode(values, &mut payload);
        self.writer.write(chunk_stream, MessageKind::Command, 0, stream_id, &payload, &mut self.output);
    }

    fn control(&mut self, kind: MessageKind, payload: &[u8]) {
        self.writer.write(CONTROL, kind, 0, 0, payload, &mut self.output);
    }

    fn acknowledge(&mut self) {
        if self.handshake.is_none() && self.received.wrapping_sub(self.acknowledged) >= self.window {
            self.acknowledged = self.received;
            self.control(MessageKind::Acknowledgement, &self.received.to_be_bytes());
        }
    }
}

/// A path without slashes around it, and its query.
fn parts(path: &str) -> (String, String) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (path.trim_matches('/').to_owned(), query.to_owned())
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
