//! What a capture shows of a connection, as the report has it: each part is there where there is something to tell.

use crate::connection::Connection;
use model::Facts;

/// The facts of a connection whose data mostly comes from side `main`.
pub(crate) fn facts(connection: &Connection, main: usize) -> Facts {
    let (opening, signals) = (&connection.opening, &connection.signals);
    Facts {
        tap_duplicates: connection.tap_duplicates,
        ecn: signals.ecn_of(main, opening),
        fast_open: opening.fast_open(),
        multipath: signals.multipath(opening),
        keep_alives: signals.keep_alives(),
    }
}
