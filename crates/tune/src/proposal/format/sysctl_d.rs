//! A file of `/etc/sysctl.d`. Source: sysctl.d(5).

use super::{header, sysctls};
use std::fmt::Write;
use thalweg_model::{PlannedChange, TunePlan};

/// A file cannot say "raise only if lower": what is here was lower when the plan was made.
pub(super) fn write(plan: &TunePlan, changes: &[&PlannedChange]) -> String {
    let mut text = header(plan);
    for (name, change) in sysctls(changes) {
        let was = change.from.as_ref().map(|from| format!(" It was {from}.")).unwrap_or_default();
        let _ = write!(text, "\n# {}{was}\n{name} = {}\n", change.why, change.to);
    }
    text
}
