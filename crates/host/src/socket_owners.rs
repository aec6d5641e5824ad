//! Which process holds a socket, by the links in `/proc/PID/fd`.
//!
//! Source: proc_pid_fd(5): a socket's link reads `socket:[INODE]`.

use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat_raw};
use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use thalweg_model::SocketProcess;

#[derive(Debug)]
struct Known {
    process: Arc<SocketProcess>,
    /// The sockets among its descriptors.
    sockets: HashMap<u32, u32>,
}

/// Who holds which socket, as far as this process may see it.
///
/// A search reads the links of descriptors that are not known to be sockets which are still there, so its cost follows what is new.
#[derive(Debug, Default)]
pub struct SocketOwners {
    owners: HashMap<u32, Arc<SocketProcess>>,
    known: HashMap<u32, Known>,
}

impl SocketOwners {
    /// The process that holds the socket with this inode; of several that share it, the one that was met first.
    pub fn of(&self, inode: u32) -> Option<&Arc<SocketProcess>> {
        self.owners.get(&inode)
    }

    /// Forgets a socket that is gone.
    pub fn forget(&mut self, inode: u32) {
        self.owners.remove(&inode);
    }

    /// Searches the processes for those that hold `wanted`, first those that held sockets before, and ends when all are found.
    pub fn find(&mut self, mut wanted: HashSet<u32>) {
        let Self { owners, known, .. } = self;
        known.retain(|_, process| {
            process.sockets.retain(|_, inode| owners.contains_key(inode));
            !process.sockets.is_empty()
        });
        let mut pids: Vec<u32> = listed("/proc");
        pids.sort_by_key(|pid| !known.contains_key(pid));
        for pid in pids {
            if wanted.is_empty() {
                break;
            }
            self.search(pid, &mut wanted);
        }
    }

    fn search(&mut self, pid: u32, wanted: &mut HashSet<u32>) {
        let folder = format!("/proc/{pid}/fd");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(opened) = openat(CWD, &folder, flags, Mode::empty()) else { return };
        for fd in listed(&folder) {
            let sockets = self.known.get(&pid).map(|known| &known.sockets);
            if sockets.and_then(|sockets| sockets.get(&fd)).is_some_and(|inode| self.owners.contains_key(inode)) {
                continue;
            }
            let Some(inode) = socket_inode(opened.as_fd(), fd).filter(|inode| wanted.remove(inode)) else { continue };
            let known = self
                .known
                .entry(pid)
                .or_insert_with(|| Known { process: Arc::new(described(pid)), sockets: HashMap::new() });
            known.sockets.insert(fd, inode);
            self.owners.insert(inode, Arc::clone(&known.process));
        }
    }
}

/// Whether this process sees the descriptors of other users' processes, which takes CAP_SYS_PTRACE.
pub fn sees_all_users() -> bool {
    // The first process is another user's, unless this one is root, who lacks the capability in some containers.
    std::fs::read_dir("/proc/1/fd").is_ok()
}

/// The numbers that name entries of a folder; none where it cannot be read.
fn listed(folder: &str) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn socket_inode(folder: BorrowedFd<'_>, fd: u32) -> Option<u32> {
    let mut name = [0u8; 11];
    let mut at = name.len() - 1;
    let mut rest = fd;
    loop {
        at -= 1;
        name[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let name = std::ffi::CStr::from_bytes_until_nul(&name[at..]).ok()?;
    let mut buffer = [MaybeUninit::uninit(); 32];
    let (link, _) = readlinkat_raw(folder, name, &mut buffer).ok()?;
    let digits = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn described(pid: u32) -> SocketProcess {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let cgroup = read("cgroup").lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned();
    SocketProcess { pid, name: read("comm").trim_end().to_owned(), cgroup }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;

    fn inode(socket: &impl AsFd) -> u32 {
        let path = format!("/proc/self/fd/{}", socket.as_fd().as_raw_fd());
        std::fs::metadata(path).expect("a socket").ino() as u32
    }

    #[test]
    fn new_sockets_are_found_and_closed_ones_forgotten() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let at = listener.local_addr().expect("an address");
        let first = TcpStream::connect(at).expect("a connection");
        let mut owners = SocketOwners::default();
        let one = inode(&first);
        owners.find(HashSet::from([one, u32::MAX]));
        let found = owners.of(one).expect("the test's own").as_ref().clone();
        assert_eq!(found.pid, std::process::id());
        let comm = std::fs::read_to_string("/proc/self/comm").expect("a name");
        assert_eq!(found.name, comm.trim_end());
        assert!(owners.of(u32::MAX).is_none(), "no such socket");
        // The number of the descriptor is used again by another socket.
        drop(first);
        owners.forget(one);
        let second = TcpStream::connect(at).expect("a connection");
        let two = inode(&second);
        owners.find(HashSet::from([two]));
        assert_eq!(owners.of(two).map(|process| process.pid), Some(std::process::id()));
        assert!(owners.of(one).is_none() && owners.known.values().all(|known| !known.sockets.is_empty()));
    }
}
