//! `burst`: how a live stream starts. The server sends the pictures it has cached at once, then goes on at the media's
//! rate.

use super::Findings;
use super::stage::{Event, Key, Stage};
use host::HostError;
use host::tcp_info::TcpInfo;
use model::{Metric, Side};
use std::collections::BTreeMap;
use units::{Bytes, Rate, Span};

/// What an HTTP GET of a player measures.
const REQUEST_BYTES: usize = 200;
const CHUNK_BYTES: usize = 256 * 1024;
/// Frames a second.
const FRAME_EVERY: Span = Span::from_millis(40);
static PAYLOAD: [u8; CHUNK_BYTES] = [0x5a; CHUNK_BYTES];

/// The stream.
pub(super) struct Media<'a> {
    pub(super) buffered: Bytes,
    pub(super) rate: Rate,
    pub(super) total: Bytes,
    pub(super) keyframe: Bytes,
    pub(super) marks: &'a [Bytes],
}

/// The server's side of it.
struct Sending {
    key: Key,
    requested: bool,
    /// Bytes the media has produced and the socket has not taken.
    waiting: u64,
    per_frame: f64,
    fraction: f64,
}

/// Runs one viewer.
pub(super) fn run(stage: &mut Stage, media: &Media<'_>, found: &mut Findings<'_>) -> Result<(), HostError> {
    let listener = stage.listen()?;
    let began = stage.now();
    let client = stage.connect()?;
    let since = |at: Span| Span::from_nanos(at.as_nanos() - began.as_nanos()).as_millis_f64();
    let mut sending: Option<Sending> = None;
    let (mut connected, mut first_byte) = (None, None);
    let mut received = 0u64;
    let mut wanted: Vec<Bytes> = media.marks.iter().copied().chain([media.keyframe, media.total]).collect();
    wanted.sort();
    wanted.dedup();
    let mut reached: Vec<(Bytes, Span)> = Vec::new();

    while received < media.total.get() {
        match stage.next()? {
            Event::Timer => {
                if let Some(sending) = &mut sending {
                    sending.fraction += sending.per_frame;
                    let whole = sending.fraction.floor();
                    sending.fraction -= whole;
                    sending.waiting += whole as u64;
                    sending.push(stage)?;
                }
            }
            Event::Ready { key, .. } if key == listener => {
                if let Some(key) = stage.accept(listener)? {
                    found.note_socket(Side::Server, stage.tcp(key))?;
                    let per_frame = media.rate.bytes_per_second() as f64 * FRAME_EVERY.as_secs_f64();
                    let waiting = media.buffered.get();
                    sending = Some(Sending { key, requested: false, waiting, per_frame, fraction: 0.0 });
                }
            }
            Event::Ready { key, readable, .. } if key == client => {
                if connected.is_none() {
                    stage.tcp(client).connected()?;
                    connected = Some(stage.now());
                    found.note_socket(Side::Client, stage.tcp(client))?;
                    stage.tcp(client).send(&PAYLOAD[..REQUEST_BYTES])?;
                    stage.watch(client, true, false)?;
                } else if readable && let Some(count) = stage.tcp(client).discard(CHUNK_BYTES)? {
                    let now = stage.now();
                    first_byte.get_or_insert(now);
                    received += count as u64;
                    while let Some(mark) = wanted.first().filter(|mark| mark.get() <= received) {
                        reached.push((*mark, now));
                        wanted.remove(0);
                    }
                    stage.done = received as f64 / media.total.get() as f64;
                }
            }
            Event::Ready { readable, .. } => {
                if let Some(sending) = &mut sending {
                    if readable && !sending.requested {
                        stage.tcp(sending.key).discard(REQUEST_BYTES)?;
                        sending.requested = true;
                        let first = Span::from_nanos(stage.now().as_nanos() + FRAME_EVERY.as_nanos());
                        stage.set_timer(first, Some(FRAME_EVERY))?;
                    }
                    sending.push(stage)?;
                }
            }
        }
    }

    let at = |mark: Bytes| reached.iter().find(|(bytes, _)| *bytes == mark).map(|(_, at)| since(*at));
    let ended = at(media.total).unwrap_or_default();
    let metrics = &mut found.metrics;
    let times: BTreeMap<String, Metric> =
        reached.iter().map(|(mark, at)| (mark.get().to_string(), Metric::One(since(*at)))).collect();
    metrics.insert("time_to_bytes_ms".to_owned(), Metric::Group(times));
    for (name, value) in [
        ("connect_ms", connected.map(since)),
        ("first_byte_ms", first_byte.map(since)),
        ("first_keyframe_ms", at(media.keyframe)),
        ("duration_s", Some(ended / 1e3)),
        ("goodput_bps", Some(received as f64 * 8.0 / (ended / 1e3))),
    ] {
        metrics.extend(value.map(|value| (name.to_owned(), Metric::One(value))));
    }
    metrics.insert("bytes".to_owned(), Metric::Count(received));
    if let Some(sending) = &sending {
        super::sender_metrics(&TcpInfo::of(stage.tcp(sending.key))?, metrics);
    }
    Ok(())
}

impl Sending {
    /// Gives the socket what it takes, and waits for room only while there is more.
    fn push(&mut self, stage: &mut Stage) -> Result<(), HostError> {
        if !self.requested {
            return Ok(());
        }
        while self.waiting > 0 {
            let most = self.waiting.min(CHUNK_BYTES as u64) as usize;
            match stage.tcp(self.key).send(&PAYLOAD[..most])? {
                Some(sent) => self.waiting -= sent as u64,
                None => break,
            }
        }
        stage.watch(self.key, false, self.waiting > 0)
    }
}
