//! What a host's kernel has counted so far, over all of its connections.

use std::collections::BTreeMap;
use std::fs;
use thalweg_host::HostError;
use thalweg_host::netns::NetNs;
use thalweg_model::{Metric, Metrics};

/// What is reported of them: how TCP found losses and repaired them, what it found out to have been needless, and what a receiver dropped of
/// data that had come. A diagnosis from packets is held against these.
const REPORTED: [&str; 35] = [
    "Tcp.RetransSegs",
    "TcpExt.TCPFastRetrans",
    "TcpExt.TCPSlowStartRetrans",
    "TcpExt.TCPTimeouts",
    "TcpExt.TCPLossProbes",
    "TcpExt.TCPLossProbeRecovery",
    "TcpExt.TCPLostRetransmit",
    "TcpExt.TCPSynRetrans",
    "TcpExt.TCPRetransFail",
    "TcpExt.TCPAbortOnTimeout",
    "TcpExt.TCPSackRecovery",
    "TcpExt.TCPRenoRecovery",
    "TcpExt.TCPSpuriousRTOs",
    "TcpExt.TCPSpuriousRtxHostQueues",
    "TcpExt.TCPDSACKUndo",
    "TcpExt.TCPFullUndo",
    "TcpExt.TCPPartialUndo",
    "TcpExt.TCPLossUndo",
    "TcpExt.TCPDSACKRecv",
    "TcpExt.TCPDSACKOfoRecv",
    "TcpExt.TCPDSACKRecvSegs",
    "TcpExt.TCPDSACKOldSent",
    "TcpExt.TCPDSACKOfoSent",
    "TcpExt.TCPSACKReorder",
    "TcpExt.TCPTSReorder",
    "TcpExt.TCPRenoReorder",
    "TcpExt.TCPOFOQueue",
    "TcpExt.TCPOFODrop",
    "TcpExt.TCPRcvCollapsed",
    "TcpExt.TCPRcvQDrop",
    "TcpExt.PruneCalled",
    "TcpExt.OfoPruned",
    "TcpExt.RcvPruned",
    "TcpExt.TCPSACKReneging",
    "TcpExt.TCPKeepAlive",
];

/// Counters of a namespace: those of /proc/net/snmp and /proc/net/netstat, named as in `TcpExt.TCPTimeouts`.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads them.
    pub(super) fn of(ns: &NetNs) -> Result<Self, HostError> {
        let mut counters = BTreeMap::new();
        for file in ["snmp", "netstat"] {
            add(&read(ns, file)?, &mut counters);
        }
        Ok(Self(counters))
    }

    /// The counter of that name; zero where this kernel does not have it.
    pub(super) fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Those of loss and repair that are not zero, by their names in the kernel.
    pub(super) fn of_repair(&self) -> Metrics {
        let counted = REPORTED.into_iter().filter(|name| self.get(name) > 0);
        let short = |name: &'static str| name.split_once('.').map_or(name, |(_, short)| short);
        counted.map(|name| (short(name).to_owned(), Metric::Count(self.get(name)))).collect()
    }

    /// How much a counter grew since `before`.
    pub(super) fn since(&self, before: &Self, name: &str) -> u64 {
        self.get(name).saturating_sub(before.get(name))
    }
}

/// A file of /proc/net as it is in `ns`.
pub(super) fn read(ns: &NetNs, file: &str) -> Result<String, HostError> {
    let path = format!("/proc/thread-self/net/{file}");
    ns.run(|| fs::read_to_string(&path).map_err(|source| HostError { act: format!("read {path}"), source }))
}

/// Adds what a file holds: for each protocol a line of names, then one of values.
fn add(text: &str, counters: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let mut names = names.split_whitespace();
        let Some(protocol) = names.next() else { continue };
        let protocol = protocol.trim_end_matches(':');
        for (name, value) in names.zip(values.split_whitespace().skip(1)) {
            // MaxConn is -1.
            counters.insert(format!("{protocol}.{name}"), value.parse().unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_in_two_lines() {
        let mut counters = BTreeMap::new();
        add("Tcp: MaxConn RetransSegs\nTcp: -1 17\nUdp: InDatagrams\nUdp: 3\n", &mut counters);
        let counters = Counters(counters);
        assert_eq!(["Tcp.MaxConn", "Tcp.RetransSegs", "Udp.InDatagrams"].map(|name| counters.get(name)), [0, 17, 3]);
    }
}
