//! What is wrong with a host's settings, or easily overlooked; and what differs from the kernel's defaults.

mod buffers;
mod connections;
mod names;
mod routes;
mod sockets;

use crate::buffer_numbers::mended;
use crate::catalogue::{Entry, Known, Scope, known, same_value, sysctl};
use crate::state::{HostState, Sysctl};
use std::collections::HashSet;
use thalweg_model::since::Release;
use thalweg_model::{TuneDifference, TuneFinding, TuneRead, TuneShow, Weight};

/// Findings' codes, with what each is about; the schema lists the same.
pub const CODES: [(&str, &str); 41] = [
    ("accept-overflow-reset", "a full accept queue answers with RST"),
    ("attribute-not-locked", "a route's attribute that the kernel ignores because it is not locked"),
    ("auto-tuning-off", "receive buffers do not grow"),
    ("bbr-unpaced", "BBR without anything that paces it"),
    ("buffer-cannot-grow", "buffers have no room to grow"),
    ("buffer-floor", "what each socket may keep under memory pressure is large"),
    ("buffer-memory", "buffers of all connections, at their limit, exceed TCP's memory"),
    ("buffer-start", "each connection's buffer begins large"),
    ("client-ports", "few ports for outgoing connections"),
    ("congestion-unavailable", "the congestion control is not loaded"),
    ("core-max-binds", "net.core's limit binds SO_RCVBUF or SO_SNDBUF below auto-tuning"),
    ("falling-numbers", "a limit is less than the one before it"),
    ("fastopen-client-only", "Fast Open is on for outgoing connections alone"),
    ("few-retries", "connections give up early"),
    ("initial-window-burst", "connections begin with a burst beyond the device's queue"),
    ("initial-window-bypassed", "an initial window is set on a route that other destinations do not take"),
    ("kernel-mixture", "no mainline kernel has all of these names"),
    ("loss-recovery-off", "SACK, tail loss probe or RACK is off"),
    ("mistyped-setting", "a name with a letter wrong"),
    ("not-for-tcp", "a setting that TCP does not read"),
    ("not-in-this-kernel", "a setting that came later"),
    ("out-of-range", "a value that the kernel refuses"),
    ("pacing-below-window", "pacing slower than the window"),
    ("receive-window-limits", "a connection waited for its peer's window"),
    ("removed-setting", "a setting that mainline has no more"),
    ("route-shadowed", "attributes on a route that is not taken"),
    ("rto-below-delayed-ack", "a shortest timeout below the peer's delayed acknowledgement"),
    ("send-buffer-limits", "a connection waited for its send buffer"),
    ("set-twice", "a name with two values"),
    ("syn-backlog-unused", "a longer SYN backlog than is used"),
    ("tcp-memory-beyond-host", "TCP may take most of the host's memory"),
    ("timestamps-off", "TCP timestamps are off"),
    ("time-wait-cut", "TIME_WAIT ends early"),
    ("time-wait-not-reused", "tcp_tw_reuse cannot work"),
    ("time-wait-not-shorter", "tcp_fin_timeout is not TIME_WAIT"),
    ("unknown-setting", "no kernel is known that has it"),
    ("unsent-data", "much data may wait unsent"),
    ("vendor-name", "a vendor's name"),
    ("window-below-initial", "a route bounds windows below ten segments"),
    ("window-scaling-off", "no window passes 65,535 bytes"),
    ("without-effect", "a setting that is there and does nothing"),
];

/// What the rules look at.
struct Look<'a> {
    state: &'a HostState,
    kernel: Option<Release>,
    /// Connections that the host is to hold, where that is given.
    connections: Option<u64>,
}

impl Look<'_> {
    fn sysctl(&self, name: &str) -> Option<&Sysctl> {
        self.state.sysctl(name)
    }

    /// The numbers of a TCP or core sysctl.
    fn numbers(&self, name: &str) -> Option<Vec<u64>> {
        let line = self.sysctl(name)?;
        let numbers = sysctl(name)?.numbers(&line.value)?;
        numbers.into_iter().map(|number| number.try_into().ok()).collect()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.numbers(name)?.first().copied()
    }

    /// Whether a sysctl is at the default of this kernel, or of any where the kernel is not known.
    fn is_default(&self, entry: &Entry, value: &str) -> bool {
        match self.kernel {
            Some(kernel) => entry.default_on(Some(kernel)).is_some_and(|default| same_value(entry, default, value)),
            None => entry.defaults.values().any(|default| same_value(entry, default, value)),
        }
    }

    /// The one line that mends all that is wrong with the numbers of a sysctl: the kernel's default of those that do harm.
    fn mended(&self, name: &str) -> Option<String> {
        let entry = sysctl(name)?;
        let whole = || entry.default_on(self.kernel).map(str::to_owned);
        let buffers = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].contains(&name);
        let numbers = buffers.then(|| mended(entry, &self.sysctl(name)?.value, self.kernel)).flatten();
        let value = numbers.map(|[least, start, most]| format!("{least} {start} {most}")).or_else(whole);
        Some(value.map_or_else(|| "leave it out".to_owned(), |value| format!("{name} = {value}")))
    }

    /// A finding about a sysctl that was read.
    fn find(
        &self,
        code: &'static str,
        weight: Weight,
        name: &str,
        says: String,
        why: String,
        set: Option<String>,
    ) -> TuneFinding {
        let (value, line) = self.sysctl(name).map(|line| (line.value.clone(), line.line)).unwrap_or_default();
        TuneFinding { code, weight, setting: name.to_owned(), value, line, says, why, set }
    }
}

/// Looks at a host's settings. `connections` is how many the host is to hold at a time, where that is known.
pub fn show(state: &HostState, source: String, connections: Option<u64>) -> TuneShow {
    let look = Look { state, kernel: state.kernel, connections };
    let mut findings = names::findings(&look);
    findings.extend(buffers::findings(&look));
    findings.extend(connections::findings(&look));
    findings.extend(routes::findings(&look));
    findings.extend(sockets::findings(&look));
    findings.sort_by(|one, other| (one.weight, one.line, one.code).cmp(&(other.weight, other.line, other.code)));
    let ours = |line: &&Sysctl| matches!(known(&line.name), Known::Setting(_));
    let sysctls = state.sysctls.iter().filter(ours).count();
    TuneShow {
        schema: "thalweg.tune-show/1",
        source,
        kernel: state.kernel.map(|(major, minor)| format!("{major}.{minor}")),
        read: TuneRead {
            sysctls,
            other_sysctls: state.sysctls.len() - sysctls,
            routes: state.routes.len(),
            sockets: state.sockets.len(),
        },
        differences: differences(&look, &findings),
        findings,
    }
}

/// What is not at its default and was not said already.
fn differences(look: &Look<'_>, findings: &[TuneFinding]) -> Vec<TuneDifference> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for line in look.state.sysctls.iter().rev() {
        let Known::Setting(entry) = known(&line.name) else { continue };
        let told = findings.iter().any(|finding| finding.setting == line.name && finding.weight == Weight::Trap);
        if seen.contains(&line.name) || told || entry.scope == Scope::ReadOnly || entry.defaults.is_empty() {
            continue;
        }
        seen.insert(&line.name);
        if !entry.is_on(look.kernel) || look.is_default(entry, &line.value) {
            continue;
        }
        let defaults: Vec<&str> = match look.kernel {
            Some(_) => entry.default_on(look.kernel).into_iter().collect(),
            None => entry.defaults.values().map(String::as_str).collect(),
        };
        let mut default = defaults
            .iter()
            .map(|value| if value.is_empty() { "empty" } else { value })
            .collect::<Vec<_>>()
            .join(" or ");
        if let Some(varies) = &entry.varies {
            default = format!("{default} ({varies})");
        }
        let (setting, value, about) = (line.name.clone(), line.value.clone(), entry.about.clone());
        found.push(TuneDifference { setting, value, default, about });
    }
    found.reverse();
    found
}

/// A number of bytes as people say it, in binary units to a tenth.
pub(crate) fn bytes(number: u64) -> String {
    let (scale, unit) = match number {
        0..10_240 => return format!("{} bytes", grouped(number)),
        10_240..1_048_576 => (1u64 << 10, "KiB"),
        1_048_576..1_073_741_824 => (1 << 20, "MiB"),
        _ => (1 << 30, "GiB"),
    };
    let text = format!("{:.1}", number as f64 / scale as f64);
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// A number with commas between its thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
