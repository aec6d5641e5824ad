//! The plots of a run's arms.

use thalweg_model::LabReport;
use thalweg_pipeline::{ArmFindings, PLOTS_MAX};
use thalweg_report::html::ArmPlots;

/// The plots of the first arms that have some.
pub(crate) fn of_arms(report: &LabReport, findings: Vec<Option<ArmFindings>>) -> Vec<ArmPlots> {
    report
        .arms
        .iter()
        .zip(findings)
        .take(PLOTS_MAX)
        .filter_map(|(arm, found)| found.map(|found| ArmPlots::of_flow(arm.name.clone(), &found.flow, found.series)))
        .collect()
}
