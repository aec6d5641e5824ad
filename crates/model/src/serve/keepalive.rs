//! TCP keepalive of viewers' connections.

use serde::Deserialize;
use thalweg_units::Span;

/// Probes of a silent connection (`SO_KEEPALIVE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
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
