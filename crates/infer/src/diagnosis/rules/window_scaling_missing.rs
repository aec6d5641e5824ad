//! A handshake without window scaling.

use crate::diagnosis::facts::Facts;
use crate::diagnosis::finding::Judged;
use crate::diagnosis::rules::receive_window;
use thalweg_model::Cause;

pub(super) fn judge(facts: &Facts<'_>) -> Option<Judged> {
    if !receive_window::lacks_scaling(facts) {
        return None;
    }
    receive_window::judge_window(facts, Cause::WindowScalingMissing)
}
