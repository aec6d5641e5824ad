//! What a flow says while it goes on.

use thalweg_lab::RunEvent;

/// Receives what a flow says while it goes on.
pub trait Observer: Send {
    /// A note that the user should read, one sentence.
    fn note(&mut self, text: &str);

    /// `runs` runs of the lab begin, under a title.
    fn begin(&mut self, title: &str, runs: usize);

    /// One of these runs came further, or ended. Called from several threads, one at a time.
    fn event(&mut self, event: RunEvent);

    /// They are over, or have failed.
    fn end(&mut self);
}

/// Ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn note(&mut self, _: &str) {}
    fn begin(&mut self, _: &str, _: usize) {}
    fn event(&mut self, _: RunEvent) {}
    fn end(&mut self) {}
}
