//! What `diagnose` writes: each output receives the diagnoses of captures as they come.

pub(crate) mod annotated_copy;
mod failures;
mod json;
mod page;
mod terminal;

use crate::args::DiagnoseArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::WithoutBar;
use crate::tables::fleet::Fleet;
use annotated_copy::AnnotatedCopy;
use failures::Failures;
use indicatif::ProgressBar;
use json::Json;
use page::Pages;
use terminal::Terminal;
use thalweg_pipeline::diagnose::{DiagnoseRequest, Sink};

pub(crate) use page::PLOTS_MAX;
pub(crate) use terminal::INTERVALS_MAX;

/// The outputs that were asked for. Those that print take the bar away first.
pub(crate) fn all<'a>(
    args: &'a DiagnoseArgs,
    output: &'a Output,
    request: &'a DiagnoseRequest,
    bar: &ProgressBar,
) -> Result<Vec<Box<dyn Sink + 'a>>, Failure> {
    let printing = |sink: Box<dyn Sink + 'a>| -> Box<dyn Sink + 'a> { Box::new(WithoutBar::new(bar.clone(), sink)) };
    let mut sinks: Vec<Box<dyn Sink + 'a>> = vec![printing(Box::new(Failures::new(output)))];
    if let Some(folder) = &args.parquet {
        sinks.push(Box::new(Fleet::create(folder, output)?));
    }
    if let Some(copy) = &args.pcapng {
        sinks.push(printing(Box::new(AnnotatedCopy::new(copy, request, output))));
    }
    let writes_files = args.html.is_some() || args.parquet.is_some() || args.pcapng.is_some();
    if output.json {
        let every = args.intervals.map(|every| every.to_duration());
        sinks.push(printing(Box::new(Json::new(every))));
    } else if !(output.quiet && writes_files) {
        sinks.push(printing(Box::new(Terminal::new(args, request, output))));
    }
    if let Some(page) = &args.html {
        sinks.push(printing(Box::new(Pages::new(page, request, output))));
    }
    Ok(sinks)
}
