//! Programs that end together with this process, and all that they start: each in a process namespace of its own.
//!
//! The first process of a process namespace takes the others with it when it ends. Here it is a copy of this process that
//! dies with the thread that started it, collects what ended, and passes signals on.
//!
//! Source: pid_namespaces(7); `PR_SET_PDEATHSIG` in prctl(2).

use crate::error::{HostError, wrap};
use crate::user_namespace::{Privilege, keep_network_capabilities};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, WaitOptions};
use rustix::thread::UnshareFlags;
use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

/// A file of the host that a program sees with another content.
#[derive(Debug, Clone)]
pub struct ReplacedFile {
    /// Its path; a file that does not exist is left out.
    pub path: &'static str,
    /// What the program reads.
    pub content: String,
}

/// A program, and all that it starts.
#[derive(Debug)]
pub struct Confined {
    child: Child,
}

/// Where the replacements are written; in the program's own mount namespace, so nobody else sees it.
const SCRATCH: &str = "/tmp";

impl Confined {
    /// Starts `command` in the current network namespace, with a process and a mount namespace of its own.
    ///
    /// The calling thread must live for as long as the program shall, and can start no thread afterwards.
    ///
    /// # Errors
    /// When the kernel refuses a namespace, or the program cannot be started.
    pub fn start(command: &mut Command, privilege: Privilege, files: &[ReplacedFile]) -> Result<Self, HostError> {
        let name = command.get_program().to_string_lossy().into_owned();
        let act = || format!("start {name}");
        let files: Vec<Prepared> = files.iter().enumerate().filter_map(|(at, file)| Prepared::new(at, file)).collect();
        let this = rustix::process::pidfd_open(rustix::process::getpid(), PidfdFlags::empty());
        let this = wrap(this.map_err(Into::into), act)?;
        // SAFETY: only processes started from now on are concerned; no memory is unshared.
        wrap(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWPID) }.map_err(Into::into), || {
            "make a process namespace".to_owned()
        })?;
        // SAFETY: between fork and exec only async-signal-safe system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                see_own_files(&files)?;
                if privilege == Privilege::UserNamespace {
                    keep_network_capabilities()?;
                }
                // Last, as a change of credentials clears it.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                divide(&this)
            });
        }
        Ok(Self { child: wrap(command.spawn(), act)? })
    }

    /// The number of the process to signal; it passes on what it gets.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program ends, and ends all that it started. Its exit code, or 128 and the number of the signal that
    /// ended it, as shells have it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn wait(&mut self) -> Result<u8, HostError> {
        let id = self.child.id();
        wrap(self.child.wait(), || format!("wait for process {id}")).map(code)
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process by its number.
pub fn signal(id: u32, signal: Signal) {
    if let Some(process) = Pid::from_raw(id.cast_signed()) {
        // Already gone is as good.
        let _ = rustix::process::kill_process(process, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

/// A replacement with its texts as the kernel takes them.
struct Prepared {
    scratch: CString,
    target: CString,
    content: Vec<u8>,
}

impl Prepared {
    fn new(at: usize, file: &ReplacedFile) -> Option<Self> {
        let scratch = CString::new(format!("{SCRATCH}/{at}")).ok()?;
        Some(Self { scratch, target: CString::new(file.path).ok()?, content: file.content.clone().into_bytes() })
    }
}

/// Gives this process mounts of its own, with its own processes in /proc, and the replaced files.
fn see_own_files(files: &[Prepared]) -> io::Result<()> {
    // SAFETY: no memory is unshared.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    rustix::mount::mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    // A container that hides part of /proc may not mount another: then the program sees the host's.
    let _ = rustix::mount::mount(c"proc", c"/proc", c"proc", quiet, None);
    if files.is_empty() {
        return Ok(());
    }
    rustix::mount::mount(c"tmpfs", SCRATCH, c"tmpfs", quiet, None)?;
    for file in files {
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let made = rustix::fs::open(&file.scratch, flags, Mode::from_raw_mode(0o644))?;
        rustix::io::write(&made, &file.content)?;
        match rustix::mount::mount_bind(&file.scratch, &file.target) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // What is bound stays.
    rustix::mount::unmount(SCRATCH, UnmountFlags::DETACH)?;
    Ok(())
}

/// Divides the process in two: the child returns and becomes the program, this one never returns.
fn divide(starter: &OwnedFd) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // The starter may have died before its death could be signalled.
    if poll(&mut [PollFd::new(starter, PollFlags::IN)], Some(&now))? > 0 {
        return Err(io::ErrorKind::Interrupted.into());
    }
    // SAFETY: the sets outlive the calls, and `sigfillset` initializes the first one. After the fork each side makes only
    // async-signal-safe system calls.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, &mut before);
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::sigprocmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
                Ok(())
            }
            program => {
                // Descriptors of the starter, and the pipe by which it learns whether the program could be started.
                libc::close_range(3, libc::c_uint::MAX, 0);
                collect(program, &all)
            }
        }
    }
}

/// Collects what ends until the program does, and passes on signals that were sent to this process alone.
fn collect(program: libc::pid_t, all: &libc::sigset_t) -> ! {
    loop {
        // SAFETY: `siginfo_t` is plain data for which zeroes are valid; both arguments outlive the call.
        let (number, info) = unsafe {
            let mut info = std::mem::zeroed();
            (libc::sigwaitinfo(all, &mut info), info)
        };
        if number == libc::SIGCHLD {
            while let Ok(Some((ended, status))) = rustix::process::wait(WaitOptions::NOHANG) {
                if ended.as_raw_pid() == program {
                    let by_signal = status.terminating_signal().map(|signal| 128 + signal);
                    let code = status.exit_status().or(by_signal).unwrap_or(255);
                    // SAFETY: it ends the process.
                    unsafe { libc::_exit(code) }
                }
            }
        } else if number > 0 && info.si_code <= 0 {
            // SAFETY: no pointers. A terminal's signals have a code above 0, and reach the program too.
            unsafe { libc::kill(program, number) };
        }
    }
}
