//! What the first process of a lab kernel has to do: mounts, and the halt at the end.

use crate::error::{HostError, wrap};
use rustix::mount::MountFlags;
use std::ffi::CString;
use std::fs;
use std::path::Path;

/// Mounts a file system.
///
/// # Errors
/// When the kernel refuses.
pub fn mount(source: &str, target: &str, kind: &str, options: &str) -> Result<(), HostError> {
    let act = || format!("mount {kind} on {target}");
    let data = CString::new(options).map_err(Into::into);
    let data = wrap(data, act)?;
    wrap(
        rustix::mount::mount(source, target, kind, MountFlags::empty(), Some(data.as_c_str())).map_err(Into::into),
        act,
    )
}

/// Mounts /proc, /sys, and memory file systems on /tmp and /run; gives the run's folder, on the host, as /run/out.
///
/// # Errors
/// When the kernel refuses.
pub fn mount_all(out: &Path) -> Result<(), HostError> {
    mount("proc", "/proc", "proc", "")?;
    mount("sysfs", "/sys", "sysfs", "")?;
    mount("tmpfs", "/tmp", "tmpfs", "")?;
    mount("tmpfs", "/run", "tmpfs", "")?;
    wrap(fs::create_dir("/run/out"), || "make /run/out".to_owned())?;
    mount("none", "/run/out", "hostfs", &out.to_string_lossy())
}

/// Mounts what users' programs expect below /dev: null, zero, the random numbers, and shared memory.
///
/// # Errors
/// When the kernel refuses.
pub fn mount_devices() -> Result<(), HostError> {
    mount("dev", "/dev", "devtmpfs", "")?;
    wrap(fs::create_dir("/dev/shm"), || "make /dev/shm".to_owned())?;
    mount("tmpfs", "/dev/shm", "tmpfs", "")
}

/// Waits until timers go off when they are due. Until the first tick after boot, 4 ms at 250 Hz, the kernel rounds each up to
/// that tick, those of netem and fq as well, and shows it by the clock's resolution.
pub fn wait_for_fine_timers() {
    for _ in 0..100 {
        let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
        if resolution.tv_sec == 0 && resolution.tv_nsec <= 1 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// Whether this is the first process of a lab kernel, by its number and the kernel's release.
///
/// Everything else in this module changes or stops the machine it runs on, so nobody calls it before this says yes.
pub fn is_first_process_of_a_lab_kernel() -> bool {
    let release = rustix::system::uname();
    rustix::process::getpid().is_init() && release.release().to_bytes().ends_with(LOCAL_VERSION)
}

/// Stops this machine, if it is a lab kernel; anywhere else only this process ends.
pub fn halt() -> ! {
    if is_first_process_of_a_lab_kernel() {
        rustix::fs::sync();
        // A failure leaves nothing else to do: the exit of the first process panics the kernel, which its keeper notices.
        let _ = rustix::system::reboot(rustix::system::RebootCommand::Halt);
    }
    std::process::exit(1)
}

/// What `CONFIG_LOCALVERSION` in kernel/lab.config appends to a lab kernel's release.
const LOCAL_VERSION: &[u8] = b"-thalweg";
