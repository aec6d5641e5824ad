//! Text: one capture, one connection, or what many captures have in common.

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::diagnose::{DiagnoseRequest, Sink};
use thalweg_report::many::Many;
use thalweg_report::terminal;

/// Connections whose intervals are shown.
pub(crate) const INTERVALS_MAX: usize = 3;

/// Prints captures as they come, or in the end what many have in common.
pub(super) struct Terminal<'a> {
    args: &'a DiagnoseArgs,
    output: &'a Output,
    /// What they have in common, where there are many and not each is wanted.
    many: Option<Many>,
    /// Whether any capture could be read: if none could, all is said on stderr.
    any: bool,
    printed: bool,
}

impl<'a> Terminal<'a> {
    pub(super) fn new(args: &'a DiagnoseArgs, request: &DiagnoseRequest, output: &'a Output) -> Self {
        let are_many = request.paths.len() > 1 && !args.each && args.flow.is_none() && args.intervals.is_none();
        Self { args, output, many: are_many.then(Many::default), any: false, printed: false }
    }

    fn print(&mut self, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let (width, color) = (self.output.width, self.output.color);
        let mut text = match found.report.flows.first().filter(|_| self.args.flow.is_some()) {
            Some(flow) => terminal::diagnose_flow(&found.report, flow, found.series_of(0), width, color),
            None => terminal::diagnose_capture(&found.report, found.connections, self.args.top, width, color),
        };
        if let Some(every) = self.args.intervals {
            for (index, series) in found.series.iter().take(INTERVALS_MAX) {
                let flow = &found.report.flows[*index];
                text.push('\n');
                text.push_str(&terminal::intervals(flow, series, every.to_duration(), width, color));
            }
        }
        let text = if self.printed { format!("\n{text}") } else { text };
        self.printed = true;
        self.output.result(&text)
    }
}

impl Sink for Terminal<'_> {
    fn capture(&mut self, _: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        self.any = true;
        match &mut self.many {
            Some(many) => {
                many.add(&found.report, found.connections);
                Ok(())
            }
            None => self.print(found),
        }
    }

    fn failed(&mut self, path: &Path, failure: &Failure) -> Result<(), Failure> {
        if let Some(many) = &mut self.many {
            many.unread(&path.display().to_string(), &failure.cause());
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let (width, color) = (self.output.width, self.output.color);
        let many = self.many.filter(|_| self.any);
        many.map_or(Ok(()), |many| self.output.result(&terminal::diagnose_many(&many, self.args.top, width, color)))
    }
}
