//! Text: each capture as it comes, or one connection.

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::Sink;
use thalweg_report::terminal;

/// Prints captures.
pub(super) struct Terminal<'a> {
    args: &'a DiagnoseArgs,
    output: &'a Output,
    printed: bool,
}

impl<'a> Terminal<'a> {
    pub(super) const fn new(args: &'a DiagnoseArgs, output: &'a Output) -> Self {
        Self { args, output, printed: false }
    }
}

impl Sink for Terminal<'_> {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let (width, color) = (self.output.width, self.output.color);
        let text = match found.report.flows.first().filter(|_| self.args.flow.is_some()) {
            Some(flow) => terminal::diagnose_flow(&found.report, flow, found.series_of(0), width, color),
            None => terminal::diagnose_capture(&found.report, found.connections, self.args.top, width, color),
        };
        let text = if self.printed { format!("\n{text}") } else { text };
        self.printed = true;
        self.output.result(&text)
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}
