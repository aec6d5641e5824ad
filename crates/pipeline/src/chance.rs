//! What a seed decides.

use thalweg_model::{Discipline, Experiment, Loss, Path, PathDirection};

/// Whether another seed gives another run.
pub(crate) fn meets_chance(experiment: &Experiment) -> bool {
    let random = |loss: &Loss| matches!(loss, Loss::Random(_) | Loss::GilbertElliott { .. });
    let direction = |path: &PathDirection| {
        path.jitter.is_some()
            || random(&path.loss)
            || path.duplicate.is_some()
            || path.corrupt.is_some()
            || path.reorder.is_some()
            || matches!(path.discipline, Discipline::Red { .. } | Discipline::Pie { .. })
            || path.steps.iter().any(|step| step.loss.as_ref().is_some_and(random))
    };
    let Path { down, up, .. } = &experiment.path;
    direction(down) || direction(up)
}
