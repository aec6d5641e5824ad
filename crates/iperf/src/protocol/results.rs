//! What each end found: the last document on the control channel.

use super::lenient::{flag, real, unsigned};
use super::{MAX_STREAMS, ProtocolError};
use serde_json::{Map, Value, json};

/// Longest output of a server that is kept, in bytes.
const MAX_OUTPUT: usize = 256 << 10;

/// One stream, as one end saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StreamResult {
    /// Its number: 1 for the first, then 3, 4, … (`iperf_add_stream`, src/iperf_api.c).
    pub id: u32,
    /// Bytes that this end sent or received, without those of `omit`.
    pub bytes: u64,
    /// Segments sent again; `None` for a receiver, and where the kernel does not say.
    pub retransmits: Option<u64>,
    /// UDP, at the receiver: RFC 3550's jitter in seconds.
    pub jitter_s: f64,
    /// UDP, at the receiver: datagrams that did not come, those of `omit` included.
    pub lost: u64,
    /// Of these, those of `omit`.
    pub omitted_lost: u64,
    /// UDP: datagrams sent, or the largest number received; those of `omit` included.
    pub packets: u64,
    /// Of these, those of `omit`.
    pub omitted_packets: u64,
    /// Seconds from the start to the end.
    pub seconds: f64,
}

/// What a server prints of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Text.
    Text(String),
    /// A JSON document.
    Json(Value),
}

/// One end's results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Results {
    /// Time on a processor in percent of the test's: all, in the program, in the kernel.
    pub cpu_percent: [f64; 3],
    /// Whether retransmissions of what this end sent are known.
    pub has_retransmits: bool,
    /// The congestion control that its streams had.
    pub congestion: Option<String>,
    /// The streams.
    pub streams: Vec<StreamResult>,
    /// What the server prints, if it was asked for.
    pub output: Option<ServerOutput>,
}

/// The number of the stream at this place, from 0.
pub const fn stream_id(place: u32) -> u32 {
    if place == 0 { 1 } else { place + 2 }
}

impl Results {
    /// Reads the other end's document.
    ///
    /// # Errors
    /// The value that is missing: iperf3 sends each of them.
    pub fn read(document: &Map<String, Value>) -> Result<Self, ProtocolError> {
        let cpu = ["cpu_util_total", "cpu_util_user", "cpu_util_system"]
            .map(|key| document.get(key).and_then(real).unwrap_or(0.0).clamp(0.0, 1e6));
        let listed = document.get("streams").and_then(Value::as_array).ok_or(ProtocolError::Value("streams"))?;
        if listed.len() > 2 * MAX_STREAMS as usize {
            return Err(ProtocolError::Value("streams"));
        }
        let has_retransmits = document.get("sender_has_retransmits").and_then(real).is_some_and(|value| value > 0.0);
        let text = |key: &str, most: usize| {
            let text = document.get(key)?.as_str()?;
            Some(text.chars().filter(|letter| !letter.is_control() || *letter == '\n').take(most).collect::<String>())
        };
        let output = match document.get("server_output_json") {
            Some(found) => Some(ServerOutput::Json(found.clone())),
            None => text("server_output_text", MAX_OUTPUT).map(ServerOutput::Text),
        };
        Ok(Self {
            cpu_percent: cpu,
            has_retransmits,
            congestion: text("congestion_used", 16),
            streams: listed.iter().map(stream).collect::<Result<_, _>>()?,
            output,
        })
    }

    /// The document for the other end.
    pub fn document(&self) -> Value {
        let streams: Vec<Value> = self.streams.iter().map(StreamResult::document).collect();
        let mut found = json!({
            "cpu_util_total": self.cpu_percent[0],
            "cpu_util_user": self.cpu_percent[1],
            "cpu_util_system": self.cpu_percent[2],
            "sender_has_retransmits": if self.has_retransmits { 1 } else { -1 },
            "streams": streams,
        });
        if let Some(name) = &self.congestion {
            found["congestion_used"] = json!(name);
        }
        match &self.output {
            None => {}
            Some(ServerOutput::Text(text)) => found["server_output_text"] = json!(text),
            Some(ServerOutput::Json(document)) => found["server_output_json"] = document.clone(),
        }
        found
    }

    /// The stream of this number.
    pub fn stream(&self, id: u32) -> Option<&StreamResult> {
        self.streams.iter().find(|stream| stream.id == id)
    }
}

impl StreamResult {
    fn document(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.map_or(json!(-1), |count| json!(count)),
            "jitter": self.jitter_s,
            "errors": self.lost,
            "omitted_errors": self.omitted_lost,
            "packets": self.packets,
            "omitted_packets": self.omitted_packets,
            "start_time": 0,
            "end_time": self.seconds,
        })
    }
}

fn stream(value: &Value) -> Result<StreamResult, ProtocolError> {
    let number = |key: &str| value.get(key).and_then(unsigned);
    let id = number("id").and_then(|id| u32::try_from(id).ok()).ok_or(ProtocolError::Value("id"))?;
    let seconds = |key: &str| value.get(key).and_then(real).unwrap_or(0.0);
    Ok(StreamResult {
        id,
        bytes: number("bytes").ok_or(ProtocolError::Value("bytes"))?,
        // A receiver says -1, which is no count; and `true` is none either.
        retransmits: value.get("retransmits").filter(|value| !value.is_boolean() || !flag(value)).and_then(unsigned),
        jitter_s: seconds("jitter").clamp(0.0, 1e6),
        // Lost datagrams that came late make iperf3's count negative for a moment.
        lost: number("errors").unwrap_or(0),
        omitted_lost: number("omitted_errors").unwrap_or(0),
        packets: number("packets").unwrap_or(0),
        omitted_packets: number("omitted_packets").unwrap_or(0),
        seconds: (seconds("end_time") - seconds("start_time")).clamp(0.0, 1e6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_server_of_3_1_is_understood() {
        let document = json!({
            "cpu_util_total": 3.5, "cpu_util_user": 1, "cpu_util_system": "2.5", "sender_has_retransmits": -1,
            "streams": [{"id": 1, "bytes": 1000, "retransmits": -1, "jitter": 0.001, "errors": -2, "packets": 10}]
        });
        let found = Results::read(document.as_object().expect("an object")).expect("read");
        let one = StreamResult { id: 1, bytes: 1_000, jitter_s: 0.001, packets: 10, ..StreamResult::default() };
        assert_eq!((found.streams, found.has_retransmits, found.cpu_percent), (vec![one], false, [3.5, 1.0, 2.5]));
    }

    #[test]
    fn streams_are_numbered_as_iperf3_does() {
        assert_eq!([0, 1, 2, 7].map(stream_id), [1, 3, 4, 9]);
    }

    #[test]
    fn what_is_missing_or_too_much_is_refused() {
        let many: Vec<Value> = (0..257).map(|id| json!({"id": id, "bytes": 0})).collect();
        for document in [json!({}), json!({"streams": [{"id": 1}]}), json!({"streams": [{}]}), json!({"streams": many})]
        {
            assert!(Results::read(document.as_object().expect("an object")).is_err(), "{document}");
        }
    }

    proptest! {
        #[test]
        fn what_is_sent_reads_back(
            streams in prop::collection::vec((any::<[u64; 5]>(), prop::option::of(any::<u64>()), 0.0..1e5f64, 0.0..1e5f64), 0..20),
            text in prop::option::of("[ -~]{0,200}"),
        ) {
            let streams = streams.into_iter().zip(0..).map(|((n, retransmits, jitter_s, seconds), place)| StreamResult {
                id: stream_id(place), bytes: n[0], retransmits, jitter_s, lost: n[1], omitted_lost: n[2], packets: n[3],
                omitted_packets: n[4], seconds,
            }).collect();
            let sent = Results {
                cpu_percent: [3.0, 1.0, 2.0],
                has_retransmits: true,
                congestion: Some("cubic".to_owned()),
                streams,
                output: text.map(ServerOutput::Text),
            };
            let text = sent.document().to_string();
            let document: Value = serde_json::from_str(&text).expect("JSON");
            prop_assert_eq!(Results::read(document.as_object().expect("an object")), Ok(sent));
        }
    }
}
