//! The documents `--json` prints; their schemas are checked in under `docs/schema`.

use model::CaptureReport;
use serde::Serialize;
use std::io::{self, Write};

/// Why a document could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the report as JSON: {0}")]
pub struct JsonError(#[from] serde_json::Error);

/// Writes `document` as indented JSON with one newline at the end.
///
/// The same document gives the same bytes: fields keep the order of their type, maps are ordered by key, and a number
/// is written with the fewest digits that read back as itself. JSON has no infinity and no NaN; they become `null`.
///
/// # Errors
/// [`JsonError`] when a map of the document has keys that are not text; the model's types have none.
pub fn to_string(document: &impl Serialize) -> Result<String, JsonError> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

/// A `thalweg.diagnose/1` document, written capture by capture: the bytes of [`to_string`], never all in memory.
#[derive(Debug)]
pub struct DiagnoseDocument<W> {
    out: W,
    begun: bool,
}

impl<W: Write> DiagnoseDocument<W> {
    /// Begins it.
    ///
    /// # Errors
    /// Those of the writer; hand in one that gathers what it is given.
    pub fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\n  \"schema\": \"thalweg.diagnose/1\",\n  \"captures\": [")?;
        Ok(Self { out, begun: false })
    }

    /// Adds a capture.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn add(&mut self, capture: &CaptureReport) -> io::Result<()> {
        self.out.write_all(if self.begun { b",\n    " } else { b"\n    " })?;
        self.begun = true;
        serde_json::to_writer_pretty(Indented(&mut self.out), capture).map_err(io::Error::from)
    }

    /// Ends it.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.write_all(if self.begun { b"\n  ]\n}\n" } else { b"]\n}\n" })?;
        self.out.flush()
    }
}

/// Moves lines to the right by four columns; texts in JSON hold no line ends of their own.
struct Indented<W>(W);

impl<W: Write> Write for Indented<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if n > 0 {
                self.0.write_all(b"\n    ")?;
            }
            self.0.write_all(line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_written_one_by_one_give_the_same_bytes() {
        let one = CaptureReport {
            file: "a\nb.pcap".to_owned(),
            packets: 1,
            bytes: 60,
            truncated: false,
            notes: vec!["cut".to_owned()],
            flows: Vec::new(),
        };
        for captures in [Vec::new(), vec![one.clone()], vec![one.clone(), one]] {
            let mut out = Vec::new();
            let mut document = DiagnoseDocument::begin(&mut out).expect("a vector");
            captures.iter().for_each(|capture| document.add(capture).expect("a vector"));
            document.finish().expect("a vector");
            let whole = model::DiagnoseReport { schema: "thalweg.diagnose/1".to_owned(), captures };
            assert_eq!(String::from_utf8(out).expect("text"), to_string(&whole).expect("JSON"));
        }
    }
    use std::collections::BTreeMap;

    #[test]
    fn the_same_document_gives_the_same_bytes() {
        let document = BTreeMap::from([("b", 0.1 + 0.2), ("a", 452e6), ("c", f64::NAN)]);
        let text = to_string(&document).expect("text keys");
        assert_eq!(text, "{\n  \"a\": 452000000.0,\n  \"b\": 0.30000000000000004,\n  \"c\": null\n}\n");
    }
}
