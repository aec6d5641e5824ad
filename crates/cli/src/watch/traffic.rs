//! An interface's packets, counted as the kernel stamps them.

use crate::failure::Failure;
use crate::live::refused;
use anyhow::anyhow;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_host::capture::Capture;
use thalweg_model::BurstsReport;
use thalweg_units::Timestamp;
use thalweg_watch::{Bursts, BusyBin, Port};

/// Packets the ring holds. It is emptied each [`LOOK_EVERY`]: three million packets a second find room.
const RING: usize = 1 << 16;
/// To be woken by each packet would cost more than to count it.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// One byte of each packet is kept: its length and time are all that counts. Source: linux/filter.h, `BPF_RET | BPF_K`.
const KEEP_ONE_BYTE: [(u16, u8, u8, u32); 1] = [(6, 0, 0, 1)];

/// A running capture, and its bins.
#[derive(Debug)]
pub(crate) struct Traffic {
    capture: Capture,
    bursts: Bursts,
}

impl Traffic {
    /// Begins to count.
    pub(crate) fn start(interface: &str, port: Option<Port>) -> Result<Self, Failure> {
        let device = thalweg_host::link::index(interface).map_err(|error| {
            Failure::user(anyhow!("there is no interface {interface}: {}", error.source)).hint("ip link lists them")
        })?;
        let capture = Capture::start_network_layer(device, RING, Some(&KEEP_ONE_BYTE)).map_err(refused)?;
        Ok(Self { capture, bursts: Bursts::new(interface, now(), port) })
    }

    /// Counts until then; `false` if a signal came first.
    pub(crate) fn gather(&mut self, until: Instant, stop: &AtomicBool) -> Result<bool, Failure> {
        loop {
            let Self { capture, bursts } = self;
            let counted: Result<(), Infallible> = capture.drain(|packet| {
                bursts.packet(packet.at, u64::from(packet.original_len), packet.outgoing);
                Ok(())
            });
            let Ok(()) = counted;
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(true);
            }
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Keeps bins for [`Self::busy_bins`].
    pub(crate) fn keep_bins(&mut self) {
        self.bursts.keep_bins();
    }

    /// The bins that are over since the last call.
    pub(crate) fn busy_bins(&mut self) -> Vec<BusyBin> {
        self.bursts.busy_bins()
    }

    /// What was counted since the last report.
    pub(crate) fn report(&mut self) -> Result<BurstsReport, Failure> {
        let missed = self.capture.dropped().map_err(Failure::host)?;
        Ok(self.bursts.report(now(), u64::from(missed)))
    }
}

/// The clock that the kernel stamps packets by.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
