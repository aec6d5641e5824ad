//! `thalweg watch`: where reports come from, and where they go.

mod bins;
mod exporter;
mod source;
mod terminal;
mod traffic;

pub(crate) use bins::{Kept, Record, is_record};
pub(crate) use exporter::Exporter;
pub(crate) use source::{Live, Replay, Source};
pub(crate) use terminal::show;
pub(crate) use traffic::Traffic;
