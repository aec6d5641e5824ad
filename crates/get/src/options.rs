//! What a download is to do.

use crate::checksum::Checksum;
use crate::proxy::ProxySettings;
use hyper::header::{HeaderName, HeaderValue};
use std::path::PathBuf;
use std::time::Duration;
use thalweg_units::Rate;
use url::Url;

/// What a download is to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// What to fetch.
    pub url: Url,
    /// Where to store it.
    pub output: Output,
    /// Replace a file that is there.
    pub force: bool,
    /// The largest number of ranges.
    pub max_ranges: usize,
    /// The most to receive in a second.
    pub limit: Option<Rate>,
    /// What the object should be.
    pub checksum: Option<Checksum>,
    /// Failures in a row after which it gives up.
    pub retries: u32,
    /// How long a connection may be silent.
    pub stall: Duration,
    /// Authorities to trust besides those of the host.
    pub ca: Option<PathBuf>,
    /// Header fields for the URL's own server.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// No HTTP/2.
    pub http1: bool,
    /// The environment's proxies.
    pub proxies: ProxySettings,
}

/// Where an object is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// In a folder, under the name that the server or the URL gives.
    Folder(PathBuf),
    /// In this file; /dev/null measures only, and another device or FIFO takes the bytes in order.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// How far a download has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Bytes stored.
    pub done: u64,
    /// Bytes in all, if known.
    pub total: Option<u64>,
    /// Ranges at this time.
    pub ranges: usize,
    /// Payload bits per second over the last seconds.
    pub goodput_bps: f64,
}

/// Receives notes and progress.
pub trait Observer {
    /// Something that the user may want to know.
    fn note(&mut self, text: &str);
    /// How far it has come, about every tenth of a second.
    fn progress(&mut self, progress: &Progress);
}
