//! What `thalweg tune attach` and `thalweg tune canary` report.

use schemars::JsonSchema;
use serde::Serialize;

/// The document of `thalweg tune attach --json` and `thalweg tune attached --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TuneAttached {
    /// `thalweg.tune-attached/1`.
    pub schema: &'static str,
    /// The attached programs: after `attach` the one that was attached.
    pub programs: Vec<AttachedProgram>,
}

/// A program that sets what connections begin with, and what it counted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttachedProgram {
    /// Its name.
    pub name: String,
    /// Part of the connections that it sets, in percent.
    #[schemars(range(max = 100))]
    pub share_percent: u8,
    /// The local port of the connections it looks at; `None` for all.
    pub port: Option<u16>,
    /// Where these lead: an address and the bits of its prefix; `None` for everywhere.
    pub destination: Option<String>,
    /// What it sets.
    pub set: AttachedSettings,
    /// The bytes whose acknowledgement is timed, from the first on.
    pub timed_bytes: u64,
    /// Connections without the settings.
    pub without: ShareCounters,
    /// Connections with them.
    pub with: ShareCounters,
}

/// What a program sets; `None` is left as it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttachedSettings {
    /// Initial congestion window, in segments.
    pub initial_window: Option<u32>,
    /// Largest congestion window, in segments.
    pub cwnd_clamp: Option<u32>,
    /// Least retransmission timeout.
    pub rto_min_ms: Option<f64>,
    /// Longest delay of an acknowledgement.
    pub delack_max_ms: Option<f64>,
    /// Congestion control.
    pub congestion: Option<String>,
}

/// Connections of one share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ShareCounters {
    /// Connections that opened.
    pub opened: u64,
    /// Of those, the ones that closed; the next three counts are theirs.
    pub closed: u64,
    /// Bytes that were acknowledged.
    pub bytes: u64,
    /// Segments sent with data.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Connections whose timed bytes were acknowledged.
    pub first_bytes: u64,
    /// Time from the handshake until they were, on average; `None` without such a connection.
    pub first_bytes_mean_ms: Option<f64>,
    /// Of these connections, the ones that had sent something again by then.
    pub first_bytes_resent: u64,
    /// Settings that the kernel refused.
    pub refused: u64,
}

/// The document of `thalweg tune detach --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneDetached {
    /// `thalweg.tune-detached/1`.
    pub schema: &'static str,
    /// The program that was detached.
    pub name: String,
}

/// The document of `thalweg tune congestion load`, `unload` and `list --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TuneCongestion {
    /// `thalweg.tune-congestion/1`.
    pub schema: &'static str,
    /// The congestion controls that this host's kernel has now.
    pub available: Vec<CongestionControl>,
}

/// A congestion control of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CongestionControl {
    /// Its name, as `TCP_CONGESTION` takes it.
    pub name: String,
    /// It is of this program, under the pin that was named.
    pub loaded_by_thalweg: bool,
}

/// The document of `thalweg tune canary --json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TuneCanary {
    /// `thalweg.tune-canary/1`.
    pub schema: &'static str,
    /// The attached program.
    pub name: String,
    /// What the settings do.
    #[schemars(extend("enum" = ["gain", "harm", "undecided"]))]
    pub outcome: &'static str,
    /// The share of connections that has the settings now, in percent.
    #[schemars(range(max = 100))]
    pub share_percent: u8,
    /// Steps that were measured.
    pub steps: usize,
    /// The probability of a wrong outcome that was allowed.
    #[schemars(range(max = 1))]
    pub error: f64,
    /// Effect on the time until the first bytes were acknowledged, in seconds; `None` with too few connections.
    pub first_bytes_s: Option<CanaryEffect>,
    /// Effect on the part of connections that had sent something again by then; `None` with too few connections.
    pub resent_part: Option<CanaryEffect>,
}

/// By how much the settings change a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CanaryEffect {
    /// The figure without the settings, over all steps.
    pub without: f64,
    /// By how much it is larger with them.
    #[schemars(extend("minimum" = null))]
    pub difference: f64,
    /// The lower end of the confidence interval of the difference.
    #[schemars(extend("minimum" = null))]
    pub low: f64,
    /// Its upper end.
    #[schemars(extend("minimum" = null))]
    pub high: f64,
    /// Connections without the settings.
    pub connections_without: u64,
    /// Connections with them.
    pub connections_with: u64,
}
