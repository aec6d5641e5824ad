//! TCP keepalive of viewers' connections.

use super::{at_least, set};
use crate::document::{DocumentError, Section};
use thalweg_units::Span;

/// Probes of a silent connection (`SO_KEEPALIVE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first one, in whole seconds (`TCP_KEEPIDLE`).
    pub idle: Span,
    /// Between them, in whole seconds (`TCP_KEEPINTVL`).
    pub interval: Span,
    /// How many without an answer break it (`TCP_KEEPCNT`).
    pub count: u32,
}

impl Default for KeepAlive {
    /// The shipped values: a peer that is unreachable for a minute has gone.
    fn default() -> Self {
        Self { idle: Span::from_millis(30_000), interval: Span::from_millis(10_000), count: 3 }
    }
}

impl KeepAlive {
    /// Changes what a table `keepalive` gives.
    pub(super) fn read(&mut self, section: &Section<'_>) -> Result<(), DocumentError> {
        let Some(table) = section.section("keepalive")? else { return Ok(()) };
        for (key, time) in [("idle", &mut self.idle), ("interval", &mut self.interval)] {
            set(time, table.quantity(key)?);
            // Source: include/net/tcp.h, MAX_TCP_KEEPIDLE and MAX_TCP_KEEPINTVL.
            if !(1.0..=32_767.0).contains(&time.as_secs_f64()) {
                return Err(table.error_at(key, format!("{key} is not between 1s and 32767s")));
            }
        }
        set(&mut self.count, at_least(&table, "count", 1)?);
        if self.count > 127 {
            return Err(table.error_at("count", "count is more than 127"));
        }
        table.finish()
    }
}
