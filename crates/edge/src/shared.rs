//! What the threads of a server share.

use crate::connection_limits::ConnectionLimits;
use crate::hooks::Hooks;
use crate::hub::Hub;
use crate::log::Log;
use crate::viewer_registry::ViewerRegistry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What the threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// Streams.
    pub hub: Arc<Hub>,
    /// Viewers.
    pub viewers: Arc<ViewerRegistry>,
    /// Connections.
    pub connections: Arc<ConnectionLimits>,
    /// Applications that are asked and notified.
    pub hooks: Arc<Hooks>,
    /// The log.
    pub log: Arc<Log>,
    /// The server ends: nothing new is taken.
    pub is_draining: AtomicBool,
    /// What each worker counts, by number.
    pub loads: Vec<Load>,
}

/// A worker's figures, written by it alone.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Load {
    /// Connections at present.
    pub connections: AtomicU64,
    /// Viewers that have a slot at present.
    pub viewers: AtomicU64,
    /// Connections taken since the start.
    pub accepted: AtomicU64,
    /// Connections that found no room.
    pub refused: AtomicU64,
    /// Requests read.
    pub requests: AtomicU64,
    /// Bytes of bodies sent.
    pub bytes: AtomicU64,
    /// Connections cut off for being slow or silent.
    pub timeouts: AtomicU64,
    /// Time not spent waiting, microseconds.
    pub busy_us: AtomicU64,
}
