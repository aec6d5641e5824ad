//! `thalweg watch`: where reports come from, and where they go.

mod bins;
mod exporter;
mod exports;
mod otlp;
mod resent;
mod source;
mod terminal;
mod traffic;

pub(crate) use bins::{Kept, Record, is_record};
pub(crate) use exporter::Exporter;
pub(crate) use exports::Exports;
pub(crate) use otlp::{OtlpExporter, Settings as OtlpSettings};
pub(crate) use source::{Live, Replay, Source};
pub(crate) use terminal::show;
pub(crate) use traffic::Traffic;
