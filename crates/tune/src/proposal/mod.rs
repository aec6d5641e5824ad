//! The smallest set of changes for a purpose or from a diagnosis, with its arithmetic. Pure: it reads no host and changes none.

mod diagnosis;
mod draft;
pub mod format;
mod purpose;

pub use diagnosis::{DiagnosisError, from_diagnosis};
pub use purpose::{Purpose, for_purpose};

use thalweg_units::{Bytes, Rate, Span};

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
    /// The route's destination: `default`, or an address or prefix.
    pub to: String,
}

#[cfg(test)]
mod tests;
