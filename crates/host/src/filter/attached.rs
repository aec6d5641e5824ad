//! Programs on a device for as long as a process lives. The kernel keeps a filter whose process was killed, so each has the process's identity in
//! its name: the next process takes off those whose process is gone.

use super::{
    Direction, TCA_BPF_NAME, TCA_KIND, TCA_OPTIONS, all_protocols, attach_as, detach_all, header, hook, inner,
};
use crate::bpf::Program;
use crate::error::HostError;
use crate::netlink::{Message, Netlink, attributes, u32_at};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

/// Programs on a device, which leave it with this.
#[derive(Debug)]
pub struct Attached {
    index: u32,
    directions: Vec<Direction>,
    priority: u16,
    /// The hook was not there before.
    is_own_hook: bool,
}

impl Attached {
    /// Runs each program for the packets of a device of the current namespace that go its way, unless a filter of lower
    /// priority drops them; the device becomes able to filter. It must be dropped in that namespace.
    ///
    /// # Errors
    /// Whatever the kernel refuses; then nothing is left.
    pub fn new(index: u32, programs: &[(Direction, &Program)]) -> Result<Self, HostError> {
        // Of a process's own, so that two may look at one device.
        let priority = (std::process::id() % u32::from(u16::MAX)) as u16 + 1;
        let is_own_hook = hook(&Netlink::open()?, index)?;
        let name = Owner::this(is_own_hook).map_or_else(|| "thalweg".to_owned(), |owner| owner.to_string());
        let mut attached = Self { index, directions: Vec::new(), priority, is_own_hook };
        for (direction, program) in programs {
            attach_as(&name, index, *direction, priority, program)?;
            attached.directions.push(*direction);
        }
        Ok(attached)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // A device that is gone has no filters either.
        let Ok(netlink) = Netlink::open() else { return };
        for direction in &self.directions {
            remove(&netlink, header(self.index, 0, direction.parent(), all_protocols(self.priority)));
        }
        if self.is_own_hook && filters(self.index).is_some_and(|filters| filters.is_empty()) {
            let _ = detach_all(self.index);
        }
    }
}

/// Takes the filters off a device of the current namespace whose process was killed, and the hook if the process had added it and no filter is left.
/// Processes of other PID namespaces cannot be looked up: their filters stay.
pub fn remove_stale(index: u32) {
    let (Ok(netlink), Some(all)) = (Netlink::open(), filters(index)) else { return };
    let mut had_own_hook = false;
    for (header, name) in all {
        let Some(owner) = name.parse::<Owner>().ok().filter(Owner::is_gone) else { continue };
        remove(&netlink, header);
        had_own_hook |= owner.has_own_hook;
    }
    if had_own_hook && filters(index).is_some_and(|filters| filters.is_empty()) {
        let _ = detach_all(index);
    }
}

fn remove(netlink: &Netlink, header: [u8; 20]) {
    let mut message = Message::new(libc::RTM_DELTFILTER, 0);
    message.raw(&header);
    let _ = netlink.request(&mut message, "take a filter off");
}

/// The filters of a device of the current namespace, by what names each of them to the kernel, with the names of their programs; `None` where the
/// kernel does not say.
fn filters(index: u32) -> Option<Vec<([u8; 20], String)>> {
    let mut found = Vec::new();
    for direction in [Direction::Ingress, Direction::Egress] {
        let mut message = Message::new(libc::RTM_GETTFILTER, libc::NLM_F_DUMP);
        message.raw(&header(index, 0, direction.parent(), 0));
        for answer in Netlink::open().ok()?.request(&mut message, "read the filters").ok()? {
            let Some(head) = answer.first_chunk::<20>() else { continue };
            let attributes = attributes(&answer[20..]);
            let is_program = attributes.iter().any(|(kind, value)| *kind == TCA_KIND && value.starts_with(b"bpf\0"));
            let name =
                inner(&attributes, &[TCA_OPTIONS]).into_iter().find(|(kind, _)| is_program && *kind == TCA_BPF_NAME);
            let name = name.map_or_else(String::new, |(_, value)| {
                String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
            });
            found.push((header(index, u32_at(head, 8), u32_at(head, 12), u32_at(head, 16)), name));
        }
    }
    Some(found)
}

/// Whose a filter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    pid: u32,
    /// When the process was started, in clock ticks since the host was (`/proc/PID/stat`): numbers of processes come again.
    started: u64,
    /// The inode of its PID namespace.
    pid_namespace: u64,
    /// It has added the hook.
    has_own_hook: bool,
}

impl Owner {
    fn this(has_own_hook: bool) -> Option<Self> {
        let pid = std::process::id();
        Some(Self { pid, started: started(pid)?, pid_namespace: pid_namespace()?, has_own_hook })
    }

    /// Whether that is certain.
    fn is_gone(&self) -> bool {
        pid_namespace() == Some(self.pid_namespace) && started(self.pid) != Some(self.started)
    }
}

const OWN_HOOK: &str = "clsact";

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hook = if self.has_own_hook { OWN_HOOK } else { "-" };
        write!(f, "thalweg {} {} {} {hook}", self.pid, self.started, self.pid_namespace)
    }
}

impl FromStr for Owner {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let words: Vec<&str> = name.split(' ').collect();
        let ["thalweg", pid, started, pid_namespace, hook] = words[..] else { return Err(()) };
        let number = |word: &str| word.parse::<u64>().map_err(drop);
        Ok(Self {
            pid: pid.parse().map_err(drop)?,
            started: number(started)?,
            pid_namespace: number(pid_namespace)?,
            has_own_hook: hook == OWN_HOOK,
        })
    }
}

/// When a process was started; `None` where there is none of that number. Source: proc_pid_stat(5), field 22, the twentieth after the name.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

fn pid_namespace() -> Option<u64> {
    Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_gone_or_another_of_its_number_owns_nothing() {
        let own = Owner::this(true).expect("this process");
        assert_eq!(own.to_string().parse(), Ok(own));
        assert!(!own.is_gone());
        assert!(Owner { started: own.started + 1, ..own }.is_gone(), "another process had its number");
        assert!(Owner { pid: 1 << 30, ..own }.is_gone());
        assert!(!Owner { pid: 1 << 30, pid_namespace: 1, ..own }.is_gone(), "of another namespace");
        for name in ["thalweg", "", "thalweg 1 2 3", "thalweg x 2 3 -", "other 1 2 3 -"] {
            assert_eq!(name.parse::<Owner>(), Err(()));
        }
    }
}
