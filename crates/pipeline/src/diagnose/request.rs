//! What is to be done with captures.

use super::remedies::Remedies;
use std::path::PathBuf;
use thalweg_infer::{CaptureDiagnosis, Retain};
use thalweg_wire::filter::Filter;

/// What is to be done with captures.
#[derive(Debug, Clone, Default)]
pub struct DiagnoseRequest {
    /// The files, in order, as [`super::capture_files`] finds them; `-` is stdin.
    pub paths: Vec<PathBuf>,
    /// Processors to use; 0 is all.
    pub jobs: usize,
    /// Which packets are looked at; `None` for all.
    pub filter: Option<Filter>,
    /// Which flows of a capture are reported.
    pub retain: Retain,
    /// Only this flow is reported and drawn, of each capture that has it.
    pub flow: Option<u64>,
    /// What is drawn.
    pub plots: Plots,
    /// How remedies are planned.
    pub remedies: Remedies,
    /// For how many flows of each capture remedies are planned, the costliest first.
    pub planned: usize,
    /// The process ends with this work: the last capture's memory need not be freed, which for ten thousands of flows takes time that is noticed.
    pub ends_process: bool,
}

/// Of which flows the series are recorded that plots draw. A file is read twice for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plots {
    /// Of how many captures, from the first on.
    pub captures: usize,
    /// Of how many flows of each of them, the costliest first.
    pub flows: usize,
}

impl DiagnoseRequest {
    /// Processors to use.
    pub(super) fn jobs(&self) -> usize {
        if self.jobs > 0 { self.jobs } else { std::thread::available_parallelism().map_or(1, usize::from) }
    }

    /// Plans the remedies of a capture's flows.
    pub fn plan(&self, found: &mut CaptureDiagnosis) {
        for (place, flow) in found.report.flows.iter_mut().enumerate() {
            if place < self.planned || self.flow == Some(flow.id) {
                self.remedies.plan(flow);
            }
        }
    }
}
