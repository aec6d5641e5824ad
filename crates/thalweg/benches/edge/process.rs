//! What a server's processes cost: processor time and memory, by what `/proc` says. Source: proc(5).

use std::fs;
use std::path::Path;

/// A process and all that it has started.
#[derive(Debug, Clone)]
pub(crate) struct Family(Vec<u32>);

impl Family {
    pub(crate) fn of(pid: u32) -> Self {
        let mut all = vec![pid];
        let mut at = 0;
        while let Some(&pid) = all.get(at) {
            for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
            at += 1;
        }
        Self(all)
    }

    /// Processor time of all threads so far, in seconds.
    pub(crate) fn cpu_s(&self) -> f64 {
        let tasks =
            self.0.iter().flat_map(|pid| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten());
        let ns = tasks.filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        ns.sum::<u64>() as f64 / 1e9
    }

    /// Memory of their own that is no file's, in bytes: `Anonymous` of `smaps_rollup`.
    pub(crate) fn anonymous(&self) -> f64 {
        let all = self.0.iter().filter_map(|pid| field(format!("/proc/{pid}/smaps_rollup"), "Anonymous:"));
        all.sum::<u64>() as f64 * 1_024.0
    }
}

/// Memory that the kernel counts for TCP sockets' queues, in bytes, those of clients on this host included.
pub(crate) fn tcp_queues() -> f64 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    let mut words = line.split(' ').skip_while(|word| *word != "mem");
    words.nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) as f64 * 4_096.0
}

/// Memory of the kernel's own objects that cannot be reclaimed, in bytes: sockets above all.
pub(crate) fn kernel() -> f64 {
    field("/proc/meminfo", "SUnreclaim:").unwrap_or(0) as f64 * 1_024.0
}

fn field(path: impl AsRef<Path>, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}
