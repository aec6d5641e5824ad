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

    /// This part of the bytes of all captures is read, from 0 to 1; a file that is read twice counts once.
    fn read(&mut self, _part: f64) {}

    /// So many captures `of` all are diagnosed.
    fn diagnosed(&mut self, _captures: usize, _of: usize) {}
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
