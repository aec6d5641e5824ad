//! `diagnose --parquet`: the diagnoses of many captures as tables, written as they come.

use super::flow_columns;
use crate::failure::Failure;
use crate::output::Output;
use std::fs;
use std::path::{Path, PathBuf};
use thalweg_infer::CaptureDiagnosis;
use thalweg_model::{CaptureReport, Code, Finding, Flow, Verdict};
use thalweg_pipeline::diagnose::Sink;
use thalweg_report::tables::{Column, Format, Kind, Table, Value};

/// What the tables are called.
const NAMES: [&str; 3] = ["captures", "flows", "findings"];

/// The tables `captures`, `flows` and `findings`, being written.
pub(crate) struct Fleet<'a> {
    folder: &'a Path,
    output: &'a Output,
    captures: Table,
    flows: Table,
    findings: Table,
}

/// The tables' files in `folder`.
pub(crate) fn files(folder: &Path) -> [PathBuf; 3] {
    NAMES.map(|name| folder.join(format!("{name}.{}", Format::Parquet.extension())))
}

impl<'a> Fleet<'a> {
    /// Begins them in `folder`, which is made where it is not there.
    ///
    /// Tables that are there already are those of other captures, and hours of work: they are not replaced.
    pub(crate) fn create(folder: &'a Path, output: &'a Output) -> Result<Self, Failure> {
        if let Some(known) = files(folder).into_iter().find(|path| path.exists()) {
            return Err(Failure::user(anyhow::anyhow!("there is a table already: {}", known.display()))
                .hint("name another folder, or remove the tables first; queries read several folders as one: '*/flows.parquet'"));
        }
        fs::create_dir_all(folder).map_err(|error| {
            Failure::host(anyhow::anyhow!("cannot make the folder '{}': {error}", folder.display()))
        })?;
        let table = |name: &str, own: Vec<Column>| {
            let all: Vec<Column> = std::iter::once(Column::new("file", Kind::Text)).chain(own).collect();
            Table::create(folder, name, Format::Parquet, &all).map_err(Failure::host)
        };
        let columns = |columns: &[(&str, Kind)]| columns.iter().map(|(name, kind)| Column::new(*name, *kind)).collect();
        Ok(Self {
            folder,
            output,
            captures: table(
                NAMES[0],
                columns(&[
                    ("start", Kind::Number),
                    ("packets", Kind::Count),
                    ("bytes", Kind::Count),
                    ("flows", Kind::Count),
                    ("truncated", Kind::Flag),
                    ("notes", Kind::Text),
                ]),
            )?,
            flows: table(NAMES[1], flow_columns::columns("interface"))?,
            findings: table(
                NAMES[2],
                columns(&[
                    ("flow", Kind::Count),
                    ("is_verdict", Kind::Flag),
                    ("code", Kind::Text),
                    ("share", Kind::Number),
                    ("gain", Kind::Number),
                    ("depends_on", Kind::Text),
                    ("claim", Kind::Text),
                    ("evidence", Kind::Text),
                    ("packet", Kind::Count),
                ]),
            )?,
        })
    }

    /// Adds a capture.
    fn add(&mut self, capture: &CaptureReport) -> Result<(), Failure> {
        let file = Value::Text(&capture.file);
        let begin = capture.flows.iter().map(|flow| flow.start).reduce(f64::min);
        let notes = capture.notes.join("; ");
        let row = [
            file,
            begin.into(),
            capture.packets.into(),
            capture.bytes.into(),
            (capture.flows.len() as u64).into(),
            capture.truncated.into(),
            Value::Text(&notes),
        ];
        self.captures.row(&row).map_err(Failure::host)?;
        for flow in &capture.flows {
            let (mut row, claim) = (vec![file], flow.verdict.claim());
            row.extend(flow_columns::values(flow, &claim, begin.unwrap_or(0.0)));
            self.flows.row(&row).map_err(Failure::host)?;
            self.finding(file, flow, true, &flow.verdict, None)?;
            for Finding { verdict, depends_on } in &flow.findings {
                self.finding(file, flow, false, verdict, *depends_on)?;
            }
        }
        Ok(())
    }

    fn finding(
        &mut self,
        file: Value<'_>,
        flow: &Flow,
        is_verdict: bool,
        verdict: &Verdict,
        depends_on: Option<Code>,
    ) -> Result<(), Failure> {
        let (claim, evidence) = (verdict.claim(), verdict.evidence());
        let texts = evidence.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join("; ");
        let values = [
            file,
            flow.id.into(),
            is_verdict.into(),
            verdict.code().as_str().into(),
            verdict.share.into(),
            verdict.gain.into(),
            depends_on.map(Code::as_str).into(),
            Value::Text(&claim),
            Value::Text(&texts),
            evidence.iter().find_map(|one| one.packets.first().copied()).into(),
        ];
        self.findings.row(&values).map_err(Failure::host)
    }
}

impl Sink for Fleet<'_> {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        self.add(&found.report)
    }

    /// Writes the rest and gives the tables their names.
    fn finish(self: Box<Self>) -> Result<(), Failure> {
        for table in [self.captures, self.flows, self.findings] {
            table.finish().map_err(Failure::host)?;
        }
        self.output.note(&format!("tables: {}", self.folder.display()));
        Ok(())
    }
}
