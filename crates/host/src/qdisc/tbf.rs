//! tbf: a token bucket before a queue.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_tbf.c.

use super::{TICK_NANOS, bytes, narrow, value, wide};
use crate::netlink::{Message, u32_at};
use thalweg_units::{Bytes, Rate};

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// A token-bucket filter with a byte queue, unless [`super::attach_child`] gives it another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Rate.
    pub rate: Rate,
    /// Bucket. A longer packet is dropped.
    pub burst: Bytes,
    /// Bytes that may wait.
    pub limit: Bytes,
    /// Bytes each packet takes beyond its Ethernet frame without checksum: 24 for all a frame occupies on a wire.
    pub overhead: u16,
}

impl Default for Tbf {
    /// 1 Gb/s, a bucket of two full frames, a queue of 1 MB.
    fn default() -> Self {
        Self {
            rate: Rate::from_bits_per_second(1_000_000_000),
            burst: Bytes::new(3028),
            limit: Bytes::new(1_000_000),
            overhead: 0,
        }
    }
}

impl Tbf {
    pub(super) fn options(&self, options: &mut Message) {
        let rate = self.rate.bytes_per_second();
        let mut qopt = [0u8; 36];
        qopt[1] = TC_LINKLAYER_ETHERNET;
        qopt[2..4].copy_from_slice(&self.overhead.to_ne_bytes());
        qopt[8..12].copy_from_slice(&narrow(rate).to_ne_bytes());
        qopt[24..28].copy_from_slice(&narrow(self.limit.get()).to_ne_bytes());
        options.attribute(TCA_TBF_PARMS, &qopt);
        options.attribute(TCA_TBF_RATE64, &rate.to_ne_bytes());
        options.number(TCA_TBF_BURST, narrow(self.burst.get()));
    }
}

pub(super) fn describe(found: &[(u16, &[u8])]) -> String {
    let parms = value(found, TCA_TBF_PARMS);
    let rate = wide(found, TCA_TBF_RATE64).max(u64::from(u32_at(parms, 8)));
    let overhead = u32_at(parms, 0) >> 16;
    // The kernel gives the bucket as the time that it takes to fill, in whole ticks.
    let bucket = f64::from(u32_at(parms, 28)) * TICK_NANOS * rate as f64 / 1e9 - f64::from(overhead);
    let mut text = format!(
        "tbf rate {} burst {} limit {}",
        Rate::from_bits_per_second(rate * 8),
        Bytes::new(bucket.round().max(0.0) as u64),
        bytes(u32_at(parms, 24))
    );
    if overhead > 0 {
        text += &format!(" overhead {overhead}");
    }
    text
}
