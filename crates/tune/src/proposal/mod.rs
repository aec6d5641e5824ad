//! The smallest set of changes for a purpose or from a diagnosis, with its arithmetic. Pure: it reads no host and changes none.

mod diagnosis;
mod draft;
pub mod format;
mod purpose;

pub use diagnosis::{DiagnosisError, from_diagnosis};
pub use purpose::{Purpose, for_purpose};

use thalweg_units::{Bytes, Rate, Span};
use thiserror::Error;

/// What a host is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// Round-trip time of the longest path that matters.
    pub rtt: Span,
    /// Rate of one connection.
    pub rate: Rate,
    /// Connections at a time.
    pub connections: u64,
    /// Room in the queue of the bottleneck, where it is known; a switch's buffer for `in-vehicle`.
    pub queue: Option<Bytes>,
    /// The route's destination: `default`, `::/0`, or an address and the bits of its prefix.
    pub to: String,
}

/// The host does not have the route that attributes are for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the host has no route to {0} whose link is up")]
pub struct NoRoute(pub String);

#[cfg(test)]
mod tests;
