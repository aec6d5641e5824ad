//! A search on a fitted path that leaves other flows their part of it.

use crate::failure::Failure;
use crate::fit::Fit;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{WORTH, congestion_control};
use crate::rival::rival;
use crate::search::{Tried, search};
use thalweg_model::{Flow, Rejected, Rival, Scenario};

/// What a search found that may be proposed.
pub(super) struct Considered {
    pub(super) winner: Option<Tried>,
    /// What its congestion control does to a CUBIC flow.
    pub(super) rival: Option<Rival>,
    /// What was not accepted.
    pub(super) rejected: Vec<Rejected>,
    /// All candidates, those of an earlier search that were not accepted last.
    pub(super) tried: Vec<Tried>,
}

/// Searches, without each congestion control that takes more from a CUBIC flow than another CUBIC flow does.
///
/// The search begins again without it: in the first one such candidates may have left no place for the others.
pub(super) fn considerate(
    lab: &LabRuns<'_>,
    (fitted, scenario): (&Fit, &Scenario),
    flow: &Flow,
    own_path: bool,
    observer: &mut dyn Observer,
) -> Result<Considered, Failure> {
    let mut refused: Vec<String> = Vec::new();
    let mut rejected = Vec::new();
    let mut earlier: Vec<Tried> = Vec::new();
    loop {
        let mut tried = search(lab, fitted, scenario, flow, &refused, observer)?;
        let winner = tried.iter().find(|one| came_far(one)).cloned();
        tried.append(&mut earlier);
        let chosen = winner.as_ref().and_then(|winner| congestion_control(&winner.candidate.changes));
        let (Some(best), Some(chosen)) = (&winner, chosen.map(str::to_owned)) else {
            return Ok(Considered { winner, rival: None, rejected, tried });
        };
        let rival = rival(lab, &scenario.arms[0].experiment, fitted.parameters.direction, &chosen, own_path, observer)?;
        if own_path || rival.accepted {
            return Ok(Considered { winner, rival: Some(rival), rejected, tried });
        }
        rejected.push(Rejected {
            set: best.candidate.clone(),
            congestion: chosen.clone(),
            rival,
            apply: thalweg_tune::between(&best.candidate.changes, &flow.client, &flow.server),
        });
        refused.push(chosen);
        earlier = tried;
        earlier.retain(|one| congestion_control(&one.candidate.changes).is_some());
    }
}

/// Whether a candidate was better to the last, in every corner, too.
fn came_far(tried: &Tried) -> bool {
    let candidate = &tried.candidate;
    candidate.ratios.len() == 2
        && candidate.ratios.iter().all(|ratio| *ratio >= WORTH)
        && candidate.corners.iter().all(|corner| corner.ratio >= 1.0)
}
