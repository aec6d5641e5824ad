//! The documents `--json` prints; their schemas are checked in under `docs/schema`.

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use std::io::{self, Write};
use thalweg_model::CaptureReport;

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
        let mut serializer = Serializer::with_formatter(&mut self.out, Indented::from(2));
        capture.serialize(&mut serializer).map_err(io::Error::from)
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

/// Indents by two columns for each level, as [`serde_json`] does, but from any level on, and each line in one write.
struct Indented {
    level: usize,
    is_empty: bool,
}

impl Indented {
    const fn from(level: usize) -> Self {
        Self { level, is_empty: true }
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level += 1;
        self.is_empty = true;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.level -= 1;
        if !self.is_empty {
            self.line(out, b"\n")?;
        }
        out.write_all(bracket)
    }

    /// Ends a line, and writes the next one's indentation.
    fn line<W: ?Sized + Write>(&self, out: &mut W, end: &[u8]) -> io::Result<()> {
        /// More columns than reports are deep.
        const DEEP: usize = 48;
        let mut line = [b' '; 2 + DEEP];
        line[..end.len()].copy_from_slice(end);
        let columns = 2 * self.level;
        out.write_all(&line[..end.len() + columns.min(DEEP)])?;
        (DEEP..columns).try_for_each(|_| out.write_all(b" "))
    }

    fn next<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.line(out, if first { b"\n" } else { b",\n" })
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.next(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.is_empty = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

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
            let whole = thalweg_model::DiagnoseReport { schema: "thalweg.diagnose/1".to_owned(), captures };
            assert_eq!(String::from_utf8(out).expect("text"), to_string(&whole).expect("JSON"));
        }
    }

    #[test]
    fn lines_are_indented_as_in_the_whole_document() {
        let some = json!({"a": [], "b": {}, "c": [1, [2.5, null], {"d": "e\nf"}], "g": {"h": true}});
        let deep = (0..40).fold(some.clone(), |deep, n| if n % 2 == 0 { json!([deep, n]) } else { json!({"i": deep}) });
        for value in [some, deep] {
            let mut out = Vec::new();
            value.serialize(&mut Serializer::with_formatter(&mut out, Indented::from(0))).expect("a vector");
            assert_eq!(String::from_utf8(out).expect("text") + "\n", to_string(&value).expect("JSON"));
        }
    }

    #[test]
    fn the_same_document_gives_the_same_bytes() {
        let document = BTreeMap::from([("b", 0.1 + 0.2), ("a", 452e6), ("c", f64::NAN)]);
        let text = to_string(&document).expect("text keys");
        assert_eq!(text, "{\n  \"a\": 452000000.0,\n  \"b\": 0.30000000000000004,\n  \"c\": null\n}\n");
    }
}
