//! Comma-separated values.
//!
//! Source: RFC 4180, with line feeds alone, as every reader takes them and most writers on Linux end lines.

use super::{Column, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};

const BUFFER_BYTES: usize = 1 << 18;

pub(super) struct Writer {
    file: BufWriter<File>,
    line: String,
}

impl Writer {
    pub(super) fn new(file: File, columns: &[Column]) -> io::Result<Self> {
        let mut writer = Self { file: BufWriter::with_capacity(BUFFER_BYTES, file), line: String::new() };
        let names: Vec<Value<'_>> = columns.iter().map(|column| Value::Text(&column.name)).collect();
        writer.row(&names)?;
        Ok(writer)
    }

    pub(super) fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        self.line.clear();
        for (place, value) in values.iter().enumerate() {
            if place > 0 {
                self.line.push(',');
            }
            match value {
                Value::Missing => {}
                Value::Text(text) => quote(text, &mut self.line),
                Value::Count(count) => self.line.push_str(&count.to_string()),
                Value::Number(number) => self.line.push_str(&number.to_string()),
                Value::Flag(flag) => self.line.push_str(if *flag { "true" } else { "false" }),
            }
        }
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Quotes a text where it has to be; an empty one, too, as without quotes it would be a missing one.
fn quote(text: &str, line: &mut String) {
    if !text.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return line.push_str(text);
    }
    line.push('"');
    line.push_str(&text.replace('"', "\"\""));
    line.push('"');
}
