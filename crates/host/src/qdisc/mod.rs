//! Queueing disciplines: attaching, changing, describing and reading them.
//!
//! Source: linux/pkt_sched.h, linux/gen_stats.h, linux/rtnetlink.h; net/sched/sch_api.c.

mod cake;
mod codel;
mod fifo;
mod fq;
mod fq_codel;
mod netem;
mod pie;
mod red;
mod statistics;
mod tbf;
#[cfg(test)]
mod tests;

pub use cake::{AckFilter, Cake};
pub use codel::Codel;
pub use fifo::Fifo;
pub use fq::Fq;
pub use fq_codel::FqCodel;
pub use netem::{Netem, NetemLoss};
pub use pie::Pie;
pub use red::Red;
pub use statistics::{Counters, Statistics, statistics};
pub use tbf::Tbf;

use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at, u64_at};
use thalweg_units::{Bytes, Ratio, Span};

const TC_H_ROOT: u32 = 0xffff_ffff;
/// Handle of every root discipline attached here.
const ROOT: u32 = 1 << 16;
/// The one class of a root discipline, under which a child sits.
const CLASS: u32 = ROOT | 1;
/// Handle of every child.
const CHILD: u32 = 2 << 16;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// A tick of the kernel's packet scheduler, as every kernel since 2.6.31 has it.
const TICK_NANOS: f64 = 64.0;

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq)]
pub enum Qdisc {
    /// Delay, jitter, loss, duplication, corruption, reordering, rate.
    Netem(Netem),
    /// A token bucket.
    Tbf(Tbf),
    /// A tail-drop queue.
    Fifo(Fifo),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// Controlled delay for each of many flows.
    FqCodel(FqCodel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
    /// Common applications kept enhanced.
    Cake(Cake),
    /// Fair queueing with packets released at their own times.
    Fq(Fq),
}

/// What a message is to do; some attributes may be given only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Make,
    Change,
}

impl Qdisc {
    /// The kernel's name of it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
            Self::Fifo(Fifo::Packets(_)) => "pfifo",
            Self::Fifo(Fifo::Bytes(_)) => "bfifo",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Cake(_) => "cake",
            Self::Fq(_) => "fq",
        }
    }

    fn options(&self, options: &mut Message, purpose: Purpose) -> Result<(), HostError> {
        match self {
            Self::Netem(netem) => netem.options(options, purpose),
            Self::Tbf(tbf) => tbf.options(options),
            Self::Fifo(fifo) => fifo.options(options),
            Self::Red(red) => return red.options(options),
            Self::Codel(codel) => codel.options(options),
            Self::FqCodel(fq_codel) => fq_codel.options(options, purpose),
            Self::Pie(pie) => pie.options(options),
            Self::Cake(cake) => cake.options(options),
            Self::Fq(fq) => fq.options(options),
        }
        Ok(())
    }
}

/// Makes `qdisc` the root discipline of a device of the current namespace, in place of whatever is there.
///
/// # Errors
/// Whatever the kernel refuses, and parameters that [`Red`] cannot work with.
pub fn attach(index: u32, qdisc: &Qdisc) -> Result<(), HostError> {
    let netlink = Netlink::open()?;
    let mut removal = message(libc::RTM_DELQDISC, 0, index, 0, TC_H_ROOT);
    // Refused where there is only the device's own default, which needs no removal.
    let _ = netlink.request(&mut removal, "remove a discipline");
    request(&netlink, libc::NLM_F_CREATE | libc::NLM_F_EXCL, index, (ROOT, TC_H_ROOT), qdisc, Purpose::Make)
}

/// Puts `qdisc` under the root discipline of a device of the current namespace, where a [`Tbf`], [`Red`] or [`Netem`] is: what waits
/// there then waits in `qdisc`.
///
/// # Errors
/// As for [`attach`], and when the root has no class 1:1.
pub fn attach_child(index: u32, qdisc: &Qdisc) -> Result<(), HostError> {
    let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    request(&Netlink::open()?, flags, index, (CHILD, CLASS), qdisc, Purpose::Make)
}

/// Changes the root discipline of a device of the current namespace, which must be of the same kind. What waits in it stays,
/// except that RED starts with an empty queue. FQ-CoDel keeps its number of flows.
///
/// # Errors
/// As for [`attach`].
pub fn change(index: u32, qdisc: &Qdisc) -> Result<(), HostError> {
    // tbf gives a child that is a fifo its own limit, even bytes for packets: `fifo_set_limit`.
    let answers = read(index)?;
    let child = answers.iter().find(|answer| parent(answer) == CLASS && kind_of(answer).ends_with("fifo"));
    let netlink = Netlink::open()?;
    request(&netlink, libc::NLM_F_REPLACE, index, (ROOT, TC_H_ROOT), qdisc, Purpose::Change)?;
    if let (Qdisc::Tbf(_), Some(child)) = (qdisc, child) {
        let mut message = message(libc::RTM_NEWQDISC, libc::NLM_F_REPLACE, index, u32_at(child, 8), CLASS);
        message.text(TCA_KIND, &kind_of(child)).attribute(TCA_OPTIONS, attribute(child, TCA_OPTIONS));
        netlink.request(&mut message, &format!("change the child on device {index}"))?;
    }
    Ok(())
}

fn request(
    netlink: &Netlink,
    flags: libc::c_int,
    index: u32,
    (handle, parent): (u32, u32),
    qdisc: &Qdisc,
    purpose: Purpose,
) -> Result<(), HostError> {
    let mut message = message(libc::RTM_NEWQDISC, flags, index, handle, parent);
    message.text(TCA_KIND, qdisc.kind());
    let mut fine = Ok(());
    message.nest(TCA_OPTIONS, |options| fine = qdisc.options(options, purpose));
    fine?;
    let verb = if purpose == Purpose::Make { "attach" } else { "change" };
    netlink.request(&mut message, &format!("{verb} {} on device {index}", qdisc.kind())).map(drop)
}

fn message(kind: u16, flags: libc::c_int, index: u32, handle: u32, parent: u32) -> Message {
    let mut message = Message::new(kind, flags);
    // `struct tcmsg`: family, index, handle, parent, info.
    let mut header = [0u8; 20];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&handle.to_ne_bytes());
    header[12..16].copy_from_slice(&parent.to_ne_bytes());
    message.raw(&header);
    message
}

/// Describes the root discipline of a device of the current namespace, and its child after ` | `, as the kernel reports
/// them, in `tc`'s words; `none` where there is none.
///
/// # Errors
/// Whatever the kernel refuses.
pub fn describe(index: u32) -> Result<String, HostError> {
    let answers = read(index)?;
    let text = |answer: &Vec<u8>| {
        let kind = kind_of(answer);
        let options = attribute(answer, TCA_OPTIONS);
        let found = attributes(options);
        match kind.as_str() {
            "netem" => netem::describe(options),
            "tbf" => tbf::describe(&found),
            "pfifo" | "bfifo" => fifo::describe(&kind, options),
            "red" => red::describe(&found),
            "codel" => codel::describe(&found),
            "fq_codel" => fq_codel::describe(&found),
            "pie" => pie::describe(&found),
            "cake" => cake::describe(&found),
            "fq" => fq::describe(&found),
            other => other.to_owned(),
        }
    };
    let Some(root) = answers.iter().find(|answer| parent(answer) == TC_H_ROOT) else { return Ok("none".to_owned()) };
    Ok(match answers.iter().find(|answer| parent(answer) == CLASS) {
        Some(child) => format!("{} | {}", text(root), text(child)),
        None => text(root),
    })
}

/// The disciplines of a device, as `struct tcmsg` and attributes.
fn read(index: u32) -> Result<Vec<Vec<u8>>, HostError> {
    let mut message = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP);
    message.raw(&[0; 20]);
    let mut answers = Netlink::open()?.request(&mut message, &format!("read the disciplines of device {index}"))?;
    answers.retain(|answer| u32_at(answer, 4) == index);
    Ok(answers)
}

fn parent(answer: &[u8]) -> u32 {
    u32_at(answer, 12)
}

fn kind_of(answer: &[u8]) -> String {
    String::from_utf8_lossy(attribute(answer, TCA_KIND)).trim_end_matches('\0').to_owned()
}

/// The value of an attribute after `struct tcmsg`; empty where there is none.
fn attribute(answer: &[u8], wanted: u16) -> &[u8] {
    value(&attributes(answer.get(20..).unwrap_or_default()), wanted)
}

fn value<'a>(found: &[(u16, &'a [u8])], wanted: u16) -> &'a [u8] {
    found.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value).unwrap_or_default()
}

fn number(found: &[(u16, &[u8])], wanted: u16) -> u32 {
    u32_at(value(found, wanted), 0)
}

/// Of 64 bits; zero where there is none.
fn wide(found: &[(u16, &[u8])], wanted: u16) -> u64 {
    u64_at(value(found, wanted), 0)
}

fn micros(micros: u32) -> Span {
    Span::from_micros(u64::from(micros))
}

fn bytes(bytes: u32) -> Bytes {
    Bytes::new(u64::from(bytes))
}

/// Microseconds, the largest the kernel can hold where a span is longer.
fn to_micros(span: Span) -> u32 {
    narrow(span.as_micros())
}

fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Scales a probability to the 32 bits netem uses.
fn probability(part: Ratio) -> u32 {
    (part.get() * f64::from(u32::MAX)).round() as u32
}

/// Prints a probability of 32 bits, to four decimals of a percent.
fn percent(value: u32) -> String {
    let text = format!("{:.4}", f64::from(value) / f64::from(u32::MAX) * 100.0);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}
