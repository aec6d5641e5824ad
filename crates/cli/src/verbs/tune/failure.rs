//! Errors of changes to this host, by the party that can mend them.

use crate::failure::Failure;
use thalweg_apply::ApplyError;

/// Gives an error the party that can mend it.
pub(super) fn failure(error: ApplyError) -> Failure {
    let (hint, user) = (error.hint(), error.is_users_mistake());
    if user { Failure::user(error) } else { Failure::host(error) }.hint(hint)
}
