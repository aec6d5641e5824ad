//! A publisher's side of an RTMP connection.

use super::chunk::{ChunkError, ChunkReader};
use super::command::{Command, object};
use super::cut::ChunkWriter;
use super::handshake::HandshakeError;
use super::message::{Message, MessageKind};
use crate::Tag;
use crate::amf::{self, AmfError, Value};

/// Connects, asks to publish, and sends tags. It takes bytes and gives events, and bytes to be sent.
#[derive(Debug)]
pub struct Publisher {
    app: String,
    name: String,
    /// What has come of S0, S1 and S2, until they are whole.
    handshake: Option<Vec<u8>>,
    reader: ChunkReader,
    writer: ChunkWriter,
    output: Vec<u8>,
    stream: Option<u32>,
    published: bool,
}

/// What a server said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublisherEvent {
    /// Tags may be sent.
    Published,
    /// It refuses, or ends the stream.
    Refused {
        /// As `NetStream.Publish.BadName`.
        code: String,
        /// In words.
        description: String,
    },
}

/// Why a connection has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublisherError {
    /// It is none of RTMP.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// Its chunks make no sense.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// A command makes no sense.
    #[error("a command is not understood: {0}")]
    Command(#[from] AmfError),
}

/// The size of chunks that are sent, in bytes.
const CHUNK_SIZE: u32 = 64 << 10;
/// Servers say little: their longest message is an answer to `connect`.
const MESSAGE_MAX: usize = 64 << 10;
const PACKET: usize = 1536;

/// The calls' numbers, which answers repeat.
const CONNECT: f64 = 1.0;
const RELEASE_STREAM: f64 = 2.0;
const FC_PUBLISH: f64 = 3.0;
const CREATE_STREAM: f64 = 4.0;
const PUBLISH: f64 = 5.0;
const FC_UNPUBLISH: f64 = 6.0;
const DELETE_STREAM: f64 = 7.0;

impl Publisher {
    /// Begins a connection that publishes `name`, with its query, in `app`. `random` goes into the handshake.
    pub fn new(random: [u8; 1536], app: &str, name: &str) -> Self {
        let mut output = vec![3];
        output.extend([0; 8]);
        output.extend(&random[8..]);
        Self {
            app: app.to_owned(),
            name: name.to_owned(),
            handshake: Some(Vec::new()),
            reader: ChunkReader::new(MESSAGE_MAX),
            writer: ChunkWriter::default(),
            output,
            stream: None,
            published: false,
        }
    }

    /// Takes bytes off the head of `input` until something happens; `None` when all of them were taken.
    ///
    /// # Errors
    /// [`PublisherError`]: close.
    pub fn handle(&mut self, input: &mut &[u8]) -> Result<Option<PublisherEvent>, PublisherError> {
        if let Some(held) = &mut self.handshake {
            let n = input.len().min(1 + 2 * PACKET - held.len());
            held.extend_from_slice(&input[..n]);
            *input = &input[n..];
            if let Some(&version) = held.first()
                && version != 3
            {
                return Err(HandshakeError::Version(version).into());
            }
            if held.len() < 1 + 2 * PACKET {
                return Ok(None);
            }
            // C2 repeats S1.
            self.output.extend_from_slice(&held[1..=PACKET]);
            self.handshake = None;
            self.connect();
        }
        while let Some(message) = self.reader.read(input)? {
            if let Some(event) = self.message(&message)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Appends a tag to what is to be sent. A script tag is sent as `@setDataFrame`.
    pub fn tag(&mut self, tag: &Tag) {
        let Some(stream) = self.stream.filter(|_| self.published) else { return };
        let (id, kind) = match tag.kind {
            crate::TagKind::Audio => (4, MessageKind::Audio),
            crate::TagKind::Video => (6, MessageKind::Video),
            crate::TagKind::Script => {
                let mut payload = Vec::new();
                amf::encode(&["@setDataFrame".into()], &mut payload);
                payload.extend_from_slice(&tag.payload);
                self.writer.write(4, MessageKind::Data, tag.timestamp_ms, stream, &payload, &mut self.output);
                return;
            }
        };
        self.writer.write(id, kind, tag.timestamp_ms, stream, &tag.payload, &mut self.output);
    }

    /// Ends the stream.
    pub fn end(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.published = false;
            self.call(&["FCUnpublish".into(), FC_UNPUBLISH.into(), Value::Null, self.name.as_str().into()]);
            self.call(&["deleteStream".into(), DELETE_STREAM.into(), Value::Null, f64::from(stream).into()]);
        }
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// `n` bytes of [`Publisher::output`] were sent.
    pub fn sent(&mut self, n: usize) {
        self.output.drain(..n.min(self.output.len()));
    }

    fn connect(&mut self) {
        self.writer.write(2, MessageKind::SetChunkSize, 0, 0, &CHUNK_SIZE.to_be_bytes(), &mut self.output);
        self.writer.set_chunk_size(CHUNK_SIZE);
        let properties = object(&[
            ("app", self.app.as_str().into()),
            ("type", "nonprivate".into()),
            ("flashVer", "FMLE/3.0 (compatible; thalweg)".into()),
        ]);
        self.call(&["connect".into(), CONNECT.into(), properties]);
    }

    fn message(&mut self, message: &Message) -> Result<Option<PublisherEvent>, PublisherError> {
        match message.kind {
            MessageKind::SetChunkSize => {
                if let Some(&size) = message.payload.first_chunk() {
                    self.reader.set_chunk_size(u32::from_be_bytes(size))?;
                }
                Ok(None)
            }
            MessageKind::Command | MessageKind::CommandAmf3 => Ok(self.command(&Command::parse(message)?)),
            MessageKind::UserControl => {
                if let Some(time) = message.payload.strip_prefix(&[0, 6]) {
                    let answer = [&[0, 7], time].concat();
                    self.writer.write(2, MessageKind::UserControl, 0, 0, &answer, &mut self.output);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn command(&mut self, command: &Command) -> Option<PublisherEvent> {
        match command.name.as_str() {
            "_result" if command.transaction == CONNECT => {
                let name = Value::from(self.name.as_str());
                self.call(&["releaseStream".into(), RELEASE_STREAM.into(), Value::Null, name.clone()]);
                self.call(&["FCPublish".into(), FC_PUBLISH.into(), Value::Null, name]);
                self.call(&["createStream".into(), CREATE_STREAM.into(), Value::Null]);
                None
            }
            "_result" if command.transaction == CREATE_STREAM => {
                let stream = command.number(0).unwrap_or(1.0) as u32;
                self.stream = Some(stream);
                let values = ["publish".into(), PUBLISH.into(), Value::Null, self.name.as_str().into(), "live".into()];
                let mut payload = Vec::new();
                amf::encode(&values, &mut payload);
                self.writer.write(4, MessageKind::Command, 0, stream, &payload, &mut self.output);
                None
            }
            "onStatus" | "_error" => {
                let text = |name| {
                    let found = command.values.get(1)?.get(name)?.as_str()?;
                    Some(found.to_owned())
                };
                if text("code").as_deref() == Some("NetStream.Publish.Start") {
                    self.published = true;
                    return Some(PublisherEvent::Published);
                }
                let refused = command.name == "_error" || text("level").as_deref() == Some("error");
                refused.then(|| PublisherEvent::Refused {
                    code: text("code").unwrap_or_default(),
                    description: text("description").unwrap_or_default(),
                })
            }
            _ => None,
        }
    }

    fn call(&mut self, values: &[Value]) {
        let mut payload = Vec::new();
        amf::encode(values, &mut payload);
        self.writer.write(3, MessageKind::Command, 0, 0, &payload, &mut self.output);
    }
}
