//! Progress bars on stderr.

use crate::failure::Failure;
use crate::output::Output;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use thalweg_infer::CaptureDiagnosis;
use thalweg_pipeline::Observer;
use thalweg_pipeline::diagnose::Sink;

const STEPS: u64 = 10_000;

/// Shows a flow's notes and the progress of its runs on stderr.
#[derive(Debug)]
pub(crate) struct Console<'a> {
    output: &'a Output,
    runs: Option<Runs>,
}

impl<'a> Console<'a> {
    pub(crate) const fn new(output: &'a Output) -> Self {
        Self { output, runs: None }
    }
}

impl Observer for Console<'_> {
    fn note(&mut self, text: &str) {
        self.output.note(text);
    }

    fn begin(&mut self, title: &str, runs: usize) {
        self.runs = Some(Runs::new(self.output, title, runs));
    }

    fn event(&mut self, event: thalweg_lab::RunEvent) {
        if let Some(runs) = &mut self.runs {
            runs.event(event);
        }
    }

    fn end(&mut self) {
        if let Some(runs) = self.runs.take() {
            runs.finish();
        }
    }
}

/// Shows on a bar how much of the captures is read.
pub(crate) struct Reading {
    pub(crate) bar: ProgressBar,
}

impl Observer for Reading {
    fn note(&mut self, _: &str) {}

    fn begin(&mut self, _: &str, _: usize) {}

    fn event(&mut self, _: thalweg_lab::RunEvent) {}

    fn end(&mut self) {}

    fn read(&mut self, part: f64) {
        set(&self.bar, part);
    }

    fn diagnosed(&mut self, captures: usize, of: usize) {
        if of > 1 {
            self.bar.set_message(format!("diagnosed {captures} of {of}"));
        }
    }
}

/// Takes the bar away while a sink prints.
pub(crate) struct WithoutBar<'a> {
    bar: ProgressBar,
    sink: Box<dyn Sink + 'a>,
}

impl<'a> WithoutBar<'a> {
    pub(crate) fn new(bar: ProgressBar, sink: Box<dyn Sink + 'a>) -> Self {
        Self { bar, sink }
    }
}

impl Sink for WithoutBar<'_> {
    fn capture(&mut self, path: &Path, found: &CaptureDiagnosis) -> Result<(), Failure> {
        let Self { bar, sink } = self;
        bar.suspend(|| sink.capture(path, found))
    }

    fn failed(&mut self, path: &Path, failure: &Failure) -> Result<(), Failure> {
        let Self { bar, sink } = self;
        bar.suspend(|| sink.failed(path, failure))
    }

    fn finish(self: Box<Self>) -> Result<(), Failure> {
        let Self { bar, sink } = *self;
        bar.suspend(|| sink.finish())
    }
}

/// A bar over several runs, each with its own part done.
#[derive(Debug)]
struct Runs {
    bar: ProgressBar,
    title: String,
    count: usize,
    finished: usize,
    began: Instant,
    /// How far each run that goes on has come.
    parts: BTreeMap<usize, f64>,
}

impl Runs {
    /// A bar over `count` runs.
    fn new(output: &Output, title: &str, count: usize) -> Self {
        let bar = bar(output, title);
        if count > 1 {
            // The bar's own estimate follows its latest speed, which leaps from run to run.
            bar.set_style(style("{msg} {bar:30} {percent:>3}%  {elapsed}{prefix}"));
        }
        let (title, began) = (title.to_owned(), Instant::now());
        Self { bar, title, count, finished: 0, began, parts: BTreeMap::new() }
    }

    /// Takes note of what happened.
    fn event(&mut self, event: thalweg_lab::RunEvent) {
        match event {
            thalweg_lab::RunEvent::Progress { run, progress } => {
                self.parts.insert(run, progress.done);
            }
            thalweg_lab::RunEvent::Finished { run } => {
                self.parts.remove(&run);
                self.finished += 1;
                if self.count > 1 {
                    self.bar.set_message(format!("{} {} of {}", self.title, self.finished, self.count));
                    let left = left(self.began.elapsed(), self.finished, self.count);
                    self.bar.set_prefix(format!(", {} left", HumanDuration(left)));
                }
            }
        }
        let done = (self.finished as f64 + self.parts.values().sum::<f64>()) / self.count.max(1) as f64;
        self.bar.set_position((done * STEPS as f64) as u64);
    }

    /// Takes the bar away.
    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar from 0 to [`STEPS`], hidden where progress is not wanted.
pub(crate) fn bar(output: &Output, title: &str) -> ProgressBar {
    let target = if output.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = style("{msg} {bar:30} {percent:>3}%  {elapsed}, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(STEPS), target).with_style(style).with_message(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A line on stderr that changes.
pub(crate) fn line(output: &Output, text: &str) -> ProgressBar {
    let target = if output.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    ProgressBar::with_draw_target(None, target).with_style(style("{msg}")).with_message(text.to_owned())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("invariant: the template is valid")
}

/// How long the rest will take, where each run takes what those took that are over.
fn left(elapsed: Duration, finished: usize, count: usize) -> Duration {
    let each = elapsed.as_secs_f64() / finished.max(1) as f64;
    Duration::from_secs_f64(each * count.saturating_sub(finished) as f64)
}

/// Sets a bar to a part between 0 and 1.
pub(crate) fn set(bar: &ProgressBar, part: f64) {
    bar.set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_each_as_what_is_over() {
        let (second, nothing) = (Duration::from_secs(1), Duration::ZERO);
        assert_eq!(left(second * 10, 5, 20), second * 30);
        assert_eq!(left(second * 10, 20, 20), nothing);
    }
}
