//! Memory: what TCP's queues take of this host's, what a process has, and what is left.
//!
//! Source: tcp(7), `tcp_mem`; `tcp_enter_memory_pressure`, net/ipv4/tcp.c; proc_meminfo(5); Documentation/admin-guide/cgroup-v2.rst.

use std::fs::read_to_string;
use thalweg_model::TcpMemoryUse;

/// What all TCP sockets take; `None` in a network namespace without `tcp_mem`, which the first one alone has.
pub fn of_tcp() -> Option<TcpMemoryUse> {
    let sockstat = read_to_string("/proc/net/sockstat").ok()?;
    let limits = read_to_string("/proc/sys/net/ipv4/tcp_mem").ok()?;
    tcp(&sockstat, &limits, rustix::param::page_size() as u64)
}

/// Memory that a process has, in bytes; `None` if it is gone.
pub fn resident(pid: u32) -> Option<u64> {
    let statm = read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// What is left for a process of this control group, in bytes: the host's, or what the group or one that holds it has left if that is less.
pub fn available(cgroup: &str) -> Option<u64> {
    let meminfo = read_to_string("/proc/meminfo").ok()?;
    let words = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let host = words.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
    let left = |group: &str| {
        let number = |file: &str| read_to_string(format!("/sys/fs/cgroup{group}/{file}")).ok()?.trim().parse().ok();
        Some(u64::saturating_sub(number("memory.max")?, number("memory.current")?))
    };
    let groups = std::iter::successors(Some(cgroup), |group| group.rsplit_once('/').map(|(above, _)| above));
    groups.filter_map(left).chain([host]).min()
}

fn tcp(sockstat: &str, limits: &str, page: u64) -> Option<TcpMemoryUse> {
    let words = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?.split_whitespace();
    let used: u64 = words.skip_while(|word| *word != "mem").nth(1)?.parse().ok()?;
    let mut limits = limits.split_whitespace().skip(1).map_while(|word| word.parse::<u64>().ok());
    let bytes = |pages: u64| pages.saturating_mul(page);
    Some(TcpMemoryUse {
        used_bytes: bytes(used),
        pressure_bytes: bytes(limits.next()?),
        limit_bytes: bytes(limits.next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_bytes() {
        let sockstat = "sockets: used 9\nTCP: inuse 3 orphan 0 tw 1 alloc 4 mem 7\nUDP: inuse 1 mem 2\n";
        let memory = tcp(sockstat, "190\t254\t380\n", 4_096).map(|m| (m.used_bytes, m.pressure_bytes, m.limit_bytes));
        assert_eq!(memory, Some((28_672, 254 * 4_096, 380 * 4_096)));
        assert_eq!(tcp("TCP: inuse 3\n", "1 2 3", 4_096), None);
        assert_eq!(tcp(sockstat, "1 2", 4_096), None);
    }

    #[test]
    fn this_process_has_memory_and_the_host_has_some_left() {
        assert!(resident(std::process::id()).is_some_and(|bytes| bytes > 1 << 16));
        assert!(available("").is_some_and(|bytes| bytes > 1 << 20));
    }
}
