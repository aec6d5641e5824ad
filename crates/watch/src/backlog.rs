//! What waits to be sent, its course, and when the memory behind it runs out.

use std::collections::{HashMap, VecDeque};
use thalweg_model::{Backlog, GrowingProgram, SocketProcess, SocketRow, TcpMemoryUse};
use thalweg_units::figures;

/// Refreshes over which growth is measured.
const REFRESHES: usize = 10;
/// A warning is given this long before, in seconds: what a person needs to act.
const AHEAD_S: f64 = 60.0;
/// Programs whose memory is looked at: those with the largest send queues.
const PROGRAMS: usize = 8;
/// A program is behind when its sockets take this long to drain, in seconds: ten times the delay that a send buffer of a bandwidth–delay
/// product has at 100 ms.
const BEHIND_S: f64 = 1.0;

/// How the backlog of a host went lately.
#[derive(Debug, Default)]
pub(crate) struct BacklogCourse {
    queued: Course,
    memory: Course,
    programs: HashMap<u32, Course>,
}

impl BacklogCourse {
    /// The backlog at a moment.
    pub(crate) fn next(&mut self, at_s: f64, queued_bytes: u64, memory: Option<TcpMemoryUse>) -> Backlog {
        self.queued.push(at_s, queued_bytes);
        let mut warnings = Vec::new();
        if let Some(memory) = memory {
            self.memory.push(at_s, memory.used_bytes);
            warnings.extend(pressure(memory, self.memory.growth()));
        }
        Backlog {
            queued_bytes,
            growth_bytes_per_s: self.queued.growth().unwrap_or(0.0),
            tcp_memory: memory,
            growing: Vec::new(),
            warnings,
        }
    }

    /// The programs behind slow send queues whose memory is used up within a minute at its growth.
    pub(crate) fn programs(
        &mut self,
        at_s: f64,
        sockets: &[SocketRow],
        memory: impl Fn(&SocketProcess) -> Option<(u64, u64)>,
    ) -> Vec<GrowingProgram> {
        let mut behind: HashMap<u32, (&SocketProcess, u64)> = HashMap::new();
        for row in sockets.iter().filter(|row| row.send.queued_bytes > 0) {
            let is_behind = row.send.queued_s.is_none_or(|seconds| seconds >= BEHIND_S) || is_full(row);
            if let Some(process) = row.process.as_ref().filter(|_| is_behind) {
                behind.entry(process.pid).or_insert((process, 0)).1 += row.send.queued_bytes;
            }
        }
        let mut behind: Vec<(&SocketProcess, u64)> = behind.into_values().collect();
        behind.sort_unstable_by_key(|(process, queued)| (std::cmp::Reverse(*queued), process.pid));
        behind.truncate(PROGRAMS);
        self.programs.retain(|pid, _| behind.iter().any(|(process, _)| process.pid == *pid));
        let mut growing = Vec::new();
        for (process, queued_bytes) in behind {
            let Some((resident_bytes, available_bytes)) = memory(process) else { continue };
            let course = self.programs.entry(process.pid).or_default();
            course.push(at_s, resident_bytes);
            let Some(growth) = course.growth().filter(|growth| *growth > 0.0) else { continue };
            let full_in_s = available_bytes as f64 / growth;
            if full_in_s <= AHEAD_S {
                growing.push(GrowingProgram {
                    pid: process.pid,
                    name: process.name.clone(),
                    queued_bytes,
                    resident_bytes,
                    growth_bytes_per_s: growth,
                    available_bytes,
                    full_in_s,
                });
            }
        }
        growing
    }
}

/// A send buffer is full when less than a third is free: then the kernel does not wake the program (`sk_stream_is_writeable`).
fn is_full(row: &SocketRow) -> bool {
    row.send.buffer_bytes > 0 && row.send.buffered_bytes as f64 * 3.0 >= row.send.buffer_bytes as f64 * 2.0
}

/// The sentence about a program that grows.
pub(crate) fn sentence(program: &GrowingProgram) -> String {
    format!(
        "{} ({}) grows by {}/s while {} wait in its send queues: the {} of memory left are used up in {}",
        program.name,
        program.pid,
        figures::bytes(program.growth_bytes_per_s),
        figures::bytes(program.queued_bytes as f64),
        figures::bytes(program.available_bytes as f64),
        figures::elapsed(program.full_in_s),
    )
}

fn pressure(memory: TcpMemoryUse, growth: Option<f64>) -> Option<String> {
    let (used, at) = (memory.used_bytes, memory.pressure_bytes);
    let of = || format!("{} of {}", figures::bytes(used as f64), figures::bytes(at as f64));
    if used >= at {
        return Some(format!("TCP takes {}: the kernel shrinks buffers (net.ipv4.tcp_mem)", of()));
    }
    let seconds = (at - used) as f64 / growth.filter(|growth| *growth > 0.0)?;
    (seconds <= AHEAD_S).then(|| {
        let at = figures::elapsed(seconds);
        format!("TCP takes {} and grows: the kernel shrinks buffers in {at} (net.ipv4.tcp_mem)", of())
    })
}

/// An amount at the last refreshes.
#[derive(Debug, Default)]
struct Course(VecDeque<(f64, u64)>);

impl Course {
    fn push(&mut self, at_s: f64, bytes: u64) {
        if self.0.len() == REFRESHES {
            self.0.pop_front();
        }
        self.0.push_back((at_s, bytes));
    }

    /// By how much it grows, in bytes per second; `None` before there are three.
    fn growth(&self) -> Option<f64> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        (self.0.len() >= 3 && last.0 > first.0).then(|| (last.1 as f64 - first.1 as f64) / (last.0 - first.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_is_announced_a_minute_ahead() {
        let mut course = BacklogCourse::default();
        let mut warned = Vec::new();
        for second in 0..100u64 {
            // A gigabyte fills at ten megabytes a second.
            let memory = TcpMemoryUse {
                used_bytes: second * 10_000_000,
                pressure_bytes: 1_000_000_000,
                limit_bytes: 2_000_000_000,
            };
            let backlog = course.next(second as f64, second, Some(memory));
            warned.extend((!backlog.warnings.is_empty()).then_some(second));
        }
        assert_eq!(warned.first(), Some(&40), "sixty seconds before the hundredth");
        let at = TcpMemoryUse { used_bytes: 8, pressure_bytes: 8, limit_bytes: 9 };
        assert!(course.next(100.0, 0, Some(at)).warnings[0].contains("shrinks buffers (net.ipv4.tcp_mem)"));
        assert!(course.next(101.0, 0, None).warnings.is_empty(), "another namespace's");
    }
}
