//! Child processes that never outlive their parent, and users' programs in a host's namespace.

use crate::error::{HostError, wrap};
use crate::netns::NetNs;
use crate::user_namespace::keep_network_capabilities;
use rustix::process::{Pid, PidfdFlags, Signal};
use rustix::thread::{CpuSet, LinkNameSpaceType};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Starts `command` as the leader of a process group of its own, to be killed by the kernel when the calling thread ends,
/// however it ends; on one processor only, where one is given.
///
/// # Errors
/// When the program cannot be started.
pub fn spawn_tied(command: &mut Command, cpu: Option<usize>) -> Result<Child, HostError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let parent = rustix::process::getpid();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe system calls are made.
    unsafe {
        command.pre_exec(move || {
            if let Some(cpu) = cpu {
                let mut set = CpuSet::new();
                set.set(cpu);
                rustix::thread::sched_setaffinity(None, &set)?;
            }
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the line above: then nobody would send the signal.
            if rustix::process::getppid() != Some(parent) {
                rustix::process::kill_process(rustix::process::getpid(), Signal::KILL)?;
            }
            Ok(())
        });
    }
    wrap(command.spawn(), || format!("start {program}"))
}

/// A user's program, running in the network namespace of a host as the leader of a process group of its own.
///
/// Its descriptor becomes readable when it ends. It is killed, with its group, when this is dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    descriptor: OwnedFd,
}

impl Program {
    /// Starts `command` in `ns`, with nothing to read and its output in the two files. It may do there what a network administrator may.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(command: &mut Command, ns: &NetNs, stdout: File, stderr: File) -> Result<Self, HostError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let act = || format!("start {name}");
        let inside = wrap(ns.as_fd().try_clone_to_owned(), act)?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // SAFETY: between fork and exec only async-signal-safe system calls are made.
        unsafe {
            command.pre_exec(move || {
                rustix::thread::move_into_link_name_space(inside.as_fd(), Some(LinkNameSpaceType::Network))?;
                // Root keeps them by itself.
                if rustix::process::geteuid().is_root() { Ok(()) } else { keep_network_capabilities() }
            });
        }
        let mut child = spawn_tied(command, None)?;
        let pid = Pid::from_raw(child.id() as i32).expect("invariant: a child has a number");
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self { child, descriptor }),
            Err(error) => {
                kill_group(&mut child);
                wrap(Err(error.into()), act)
            }
        }
    }

    /// How it ended, once it has. What it started itself may still run.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, HostError> {
        let id = self.child.id();
        wrap(self.child.try_wait(), || format!("wait for process {id}"))
    }

    /// Sends a signal to it and everything of its group.
    pub fn signal(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Already gone is as good.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Kills it and everything of its group; returns how it ended.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn kill(&mut self) -> Result<ExitStatus, HostError> {
        self.signal(Signal::KILL);
        let id = self.child.id();
        wrap(self.child.wait(), || format!("wait for process {id}"))
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        kill_group(&mut self.child);
    }
}

/// Kills a child's whole process group and waits for the child.
pub fn kill_group(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id() as i32) {
        // Already gone is as good.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// The processors this thread may run on, beginning with the one it runs on now.
pub fn processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    let mut found: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
    let here = rustix::thread::sched_getcpu();
    if let Some(at) = found.iter().position(|cpu| *cpu == here) {
        found.rotate_left(at);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespaces::inside;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use std::io::{Read, Seek};
    use std::os::unix::process::ExitStatusExt;

    fn start(script: &str, ns: &NetNs) -> (Program, [File; 2]) {
        let files = [0, 1].map(|_| tempfile::tempfile().expect("a file"));
        let [out, err] = files.each_ref().map(|file| file.try_clone().expect("a file"));
        let program = Program::start(Command::new("/bin/sh").args(["-c", script]), ns, out, err).expect("started");
        (program, files)
    }

    /// Waits for the descriptor as an event loop does.
    fn end(program: &mut Program) -> ExitStatus {
        let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
        let count = poll(&mut [PollFd::new(&program.as_fd(), PollFlags::IN)], Some(&limit)).expect("polled");
        assert_eq!(count, 1, "it did not end");
        program.ended().expect("told").expect("ended")
    }

    fn text(file: &mut File) -> String {
        let mut text = String::new();
        file.rewind().expect("back");
        file.read_to_string(&mut text).expect("read");
        text
    }

    #[test]
    fn a_program_runs_in_its_namespace_and_tells_how_it_ended() {
        inside("process::tests::a_program_runs_in_its_namespace_and_tells_how_it_ended", || {
            let there = NetNs::create("there").expect("a namespace");
            let (mut program, [mut out, mut err]) =
                start("readlink /proc/self/ns/net; echo oops >&2; cat; exit 7", &there);
            assert_eq!(end(&mut program).code(), Some(7));
            let own = std::fs::read_link("/proc/self/ns/net").expect("a namespace").display().to_string();
            let said = text(&mut out);
            assert!(said.starts_with("net:[") && said.trim() != own, "{said}");
            assert_eq!(text(&mut err), "oops\n");

            let (mut program, _) = start("sleep 900 & sleep 901", &there);
            assert_eq!(program.ended().expect("told"), None);
            assert_eq!(program.kill().expect("told").signal(), Some(9));

            let (mut program, _) = start("kill -TERM $$", &there);
            assert_eq!(end(&mut program).signal(), Some(15));
            let files = [0, 1].map(|_| tempfile::tempfile().expect("a file"));
            let [out, err] = files;
            let missing = Program::start(&mut Command::new("/no/such/program"), &there, out, err).expect_err("no file");
            assert!(missing.to_string().starts_with("cannot start /no/such/program: No such file"), "{missing}");
        });
    }
}
