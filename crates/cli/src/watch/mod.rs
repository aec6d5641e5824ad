//! `thalweg watch`: where reports come from, and where they go.

mod exporter;
mod source;
mod terminal;

pub(crate) use exporter::Exporter;
pub(crate) use source::{Live, Replay, Source};
pub(crate) use terminal::show;
