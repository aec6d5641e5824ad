//! Queueing disciplines: netem and tbf.
//!
//! Source: linux/pkt_sched.h; net/sched/sch_netem.c, sch_tbf.c.

use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at, u64_at};
use units::{Bytes, Rate, Ratio, Span};

const TC_H_ROOT: u32 = 0xffff_ffff;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
const NETEM_QOPT_LEN: usize = 24;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// A loss model of netem.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NetemLoss {
    /// None.
    None,
    /// Each packet with this probability.
    Random(Ratio),
    /// Gilbert–Elliott: good to bad, bad to good, passes in bad, passes in good.
    GilbertElliott([Ratio; 4]),
}

/// A netem discipline.
#[derive(Debug, Clone, PartialEq)]
pub struct Netem {
    /// Mean delay.
    pub delay: Span,
    /// Deviation of the delay.
    pub jitter: Span,
    /// Shape of the deviation, scaled by 8192 per unit of it; empty is uniform.
    pub distribution: Vec<i16>,
    /// Loss.
    pub loss: NetemLoss,
    /// Serialization rate.
    pub rate: Option<Rate>,
    /// Packets held at most, those on their way included.
    pub limit: u32,
    /// Seed of its random numbers, from kernel 6.6 on; older kernels take theirs from the kernel's generator.
    pub seed: u64,
}

/// A token-bucket filter with a byte queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tbf {
    /// Rate.
    pub rate: Rate,
    /// Bucket.
    pub burst: Bytes,
    /// Bytes that may wait.
    pub limit: Bytes,
}

impl Netem {
    /// Makes this the root discipline of a device of the current namespace.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn attach(&self, index: u32) -> Result<(), HostError> {
        let random = match self.loss {
            NetemLoss::Random(ratio) => probability(ratio.get()),
            _ => 0,
        };
        let mut message = new_qdisc(index, "netem");
        message.nest(TCA_OPTIONS, |options| {
            let mut qopt = [0u8; NETEM_QOPT_LEN];
            qopt[4..8].copy_from_slice(&self.limit.to_ne_bytes());
            qopt[8..12].copy_from_slice(&random.to_ne_bytes());
            options.raw(&qopt);
            options.attribute(TCA_NETEM_LATENCY64, &self.delay.as_nanos().to_ne_bytes());
            options.attribute(TCA_NETEM_JITTER64, &self.jitter.as_nanos().to_ne_bytes());
            options.attribute(TCA_NETEM_PRNG_SEED, &self.seed.to_ne_bytes());
            if !self.distribution.is_empty() {
                let table: Vec<u8> = self.distribution.iter().flat_map(|value| value.to_ne_bytes()).collect();
                options.attribute(TCA_NETEM_DELAY_DIST, &table);
            }
            if let NetemLoss::GilbertElliott([p, r, h, k]) = self.loss {
                options.nest(TCA_NETEM_LOSS, |loss| {
                    let parts = [p.get(), r.get(), h.get(), 1.0 - k.get()].map(|part| probability(part).to_ne_bytes());
                    loss.attribute(NETEM_LOSS_GE, &parts.concat());
                });
            }
            if let Some(rate) = self.rate {
                let bytes = rate.bytes_per_second();
                let narrow = u32::try_from(bytes).unwrap_or(u32::MAX);
                let mut value = [0u8; 16];
                value[..4].copy_from_slice(&narrow.to_ne_bytes());
                options.attribute(TCA_NETEM_RATE, &value).attribute(TCA_NETEM_RATE64, &bytes.to_ne_bytes());
            }
        });
        Netlink::open()?.request(&mut message, &format!("attach netem to device {index}")).map(drop)
    }
}

impl Tbf {
    /// Makes this the root discipline of a device of the current namespace.
    ///
    /// # Errors
    /// Whatever the kernel refuses.
    pub fn attach(&self, index: u32) -> Result<(), HostError> {
        let bytes = self.rate.bytes_per_second();
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let mut message = new_qdisc(index, "tbf");
        message.nest(TCA_OPTIONS, |options| {
            let mut qopt = [0u8; 36];
            qopt[1] = TC_LINKLAYER_ETHERNET;
            qopt[8..12].copy_from_slice(&narrow(bytes).to_ne_bytes());
            qopt[24..28].copy_from_slice(&narrow(self.limit.get()).to_ne_bytes());
            options.attribute(TCA_TBF_PARMS, &qopt);
            options.attribute(TCA_TBF_RATE64, &bytes.to_ne_bytes());
            options.number(TCA_TBF_BURST, narrow(self.burst.get()));
        });
        Netlink::open()?.request(&mut message, &format!("attach tbf to device {index}")).map(drop)
    }
}

/// Describes the root discipline of a device of the current namespace as the kernel reports it, in `tc`'s words.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn describe(index: u32) -> Result<String, HostError> {
    let mut message = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP);
    message.raw(&[0; 20]);
    let answers = Netlink::open()?.request(&mut message, &format!("read the disciplines of device {index}"))?;
    let mut text = String::from("none");
    for answer in answers.iter().filter(|answer| u32_at(answer, 4) == index && u32_at(answer, 12) == TC_H_ROOT) {
        let found = attributes(answer.get(20..).unwrap_or_default());
        let value = |wanted: u16| found.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
        let kind = String::from_utf8_lossy(value(TCA_KIND).unwrap_or_default()).trim_end_matches('\0').to_owned();
        let options = value(TCA_OPTIONS).unwrap_or_default();
        text = match kind.as_str() {
            "netem" => describe_netem(options),
            "tbf" => describe_tbf(options),
            other => other.to_owned(),
        };
    }
    Ok(text)
}

fn describe_netem(options: &[u8]) -> String {
    let inner = attributes(options.get(NETEM_QOPT_LEN..).unwrap_or_default());
    let number = |wanted: u16| inner.iter().find(|(kind, _)| *kind == wanted).map_or(0, |(_, value)| u64_at(value, 0));
    let mut text = format!("netem limit {}", u32_at(options, 4));
    let (delay, jitter) = (number(TCA_NETEM_LATENCY64), number(TCA_NETEM_JITTER64));
    if delay + jitter > 0 {
        text += &format!(" delay {}", Span::from_nanos(delay));
    }
    if jitter > 0 {
        text += &format!(" {}", Span::from_nanos(jitter));
    }
    let part = |value: u32| format!("{:.4}%", f64::from(value) / f64::from(u32::MAX) * 100.0);
    if u32_at(options, 8) > 0 {
        text += &format!(" loss {}", part(u32_at(options, 8)));
    }
    if let Some((_, loss)) = inner.iter().find(|(kind, _)| *kind == TCA_NETEM_LOSS) {
        for (_, model) in attributes(loss).iter().filter(|(kind, _)| *kind == NETEM_LOSS_GE) {
            let parts = [0, 4, 8, 12].map(|at| part(u32_at(model, at)));
            text += &format!(" loss gemodel p {} r {} h {} 1-k {}", parts[0], parts[1], parts[2], parts[3]);
        }
    }
    let narrow = inner.iter().find(|(kind, _)| *kind == TCA_NETEM_RATE).map_or(0, |(_, value)| u32_at(value, 0));
    let rate = number(TCA_NETEM_RATE64).max(u64::from(narrow));
    if rate > 0 {
        text += &format!(" rate {}", Rate::from_bits_per_second(rate * 8));
    }
    text
}

fn describe_tbf(options: &[u8]) -> String {
    let inner = attributes(options);
    let value =
        |wanted: u16| inner.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value).unwrap_or_default();
    let parms = value(TCA_TBF_PARMS);
    let rate = u64_at(value(TCA_TBF_RATE64), 0).max(u64::from(u32_at(parms, 8)));
    format!("tbf rate {} limit {}", Rate::from_bits_per_second(rate * 8), Bytes::new(u64::from(u32_at(parms, 24))))
}

fn new_qdisc(index: u32, kind: &str) -> Message {
    let mut message = Message::new(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    let mut header = [0u8; 20];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
    message.raw(&header).text(TCA_KIND, kind);
    message
}

/// Scales a probability to netem's 32 bits.
fn probability(part: f64) -> u32 {
    (part * f64::from(u32::MAX)).round() as u32
}
