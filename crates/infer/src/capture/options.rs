//! What is wanted of a diagnosis.

use crate::flow::retained::Retain;
use crate::flow_table::PlotSelection;
use thalweg_wire::filter::Filter;

/// Connections that are drawn where nobody says which. Bounds work.
const DEFAULT_PLOTS: u64 = 256;

/// What is wanted of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Of which connections the series are recorded that plots draw; each takes up to half a megabyte.
    pub drawn: PlotSelection,
    /// Which packets are looked at; `None` for all.
    pub filter: Option<Filter>,
    /// Which connections are reported.
    pub wanted: Retain,
}

impl Default for Options {
    /// All connections are reported, and the first 256 drawn.
    fn default() -> Self {
        Self { drawn: PlotSelection::First(DEFAULT_PLOTS), filter: None, wanted: Retain::All }
    }
}
