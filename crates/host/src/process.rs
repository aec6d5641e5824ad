//! Child processes that never outlive their parent.

use crate::error::{HostError, wrap};
use rustix::process::{Pid, Signal};
use rustix::thread::CpuSet;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

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
