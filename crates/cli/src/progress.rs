//! Progress bars on stderr.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::time::Duration;

const STEPS: u64 = 10_000;

/// A bar over several runs, each with its own part done.
#[derive(Debug)]
pub(crate) struct Runs {
    bar: ProgressBar,
    count: usize,
    parts: BTreeMap<usize, f64>,
}

impl Runs {
    /// A bar over `count` runs.
    pub(crate) fn new(output: &Output, title: &str, count: usize) -> Self {
        Self { bar: bar(output, title), count, parts: BTreeMap::new() }
    }

    /// Takes note of what happened.
    pub(crate) fn event(&mut self, event: lab::RunEvent) {
        match event {
            lab::RunEvent::Progress { run, progress } => {
                self.parts.insert(run, progress.done);
            }
            lab::RunEvent::Finished { run } => {
                self.parts.insert(run, 1.0);
            }
        }
        let done: f64 = self.parts.values().sum::<f64>() / self.count.max(1) as f64;
        self.bar.set_position((done * STEPS as f64) as u64);
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar from 0 to [`STEPS`], hidden where progress is not wanted.
pub(crate) fn bar(output: &Output, title: &str) -> ProgressBar {
    let target = if output.progress { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{msg} {bar:30} {percent:>3}%  {elapsed}, {eta} left")
        .expect("invariant: the template is valid");
    let bar = ProgressBar::with_draw_target(Some(STEPS), target).with_style(style).with_message(title.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Sets a bar to a part between 0 and 1.
pub(crate) fn set(bar: &ProgressBar, part: f64) {
    bar.set_position((part.clamp(0.0, 1.0) * STEPS as f64) as u64);
}
