//! Whether a new kernel boots, keeps virtual time, and repeats itself.

use super::error::KernelError;
use super::process::{self, RunError};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// What the guest does, as the first process of the kernel under test: sleeps [`SLEEP`], writes to the run's folder how
/// long that took by the guest's clock and a random number, and halts.
pub fn guest() -> ! {
    let folder = std::env::var_os("THALWEG_OUT").unwrap_or_default();
    // Whatever fails, the host sees that there is no result, and shows the console.
    if thalweg_host::guest::mount_all(Path::new(&folder)).is_ok() {
        let start = Instant::now();
        std::thread::sleep(SLEEP);
        let slept_ns = start.elapsed().as_nanos();
        let random = fs::read_to_string("/proc/sys/kernel/random/uuid").unwrap_or_default();
        let _ = fs::write(Path::new("/run/out").join(RESULT), format!("{slept_ns} {}\n", random.trim()));
    }
    thalweg_host::guest::halt()
}

/// Boots `kernel` twice with one seed, and checks that each slept in virtual time and that both gave the same result.
///
/// `folder` is where it may put its files, with room for the guest's memory.
pub(crate) fn check(
    kernel: &Path,
    release: &str,
    init: &Path,
    folder: &Path,
    interrupt: &AtomicBool,
) -> Result<(), KernelError> {
    let fail = |cause: String, tail: Vec<String>| KernelError::SelfTest { release: release.to_owned(), cause, tail };
    let init = init.canonicalize().map_err(KernelError::io(format!("find the program {}", init.display())))?;
    let first = boot(kernel, &init, folder, interrupt, &fail)?;
    let slept_ns: u128 = first.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default();
    if !(SLEEP.as_nanos()..SLEEP.as_nanos() + Duration::from_millis(100).as_nanos()).contains(&slept_ns) {
        return Err(fail(format!("a sleep of {SLEEP:?} took {slept_ns} ns by its own clock"), Vec::new()));
    }
    let second = boot(kernel, &init, folder, interrupt, &fail)?;
    if first != second {
        return Err(fail(
            format!("two runs with one seed differ: '{}' and '{}'", first.trim(), second.trim()),
            Vec::new(),
        ));
    }
    Ok(())
}

fn boot(
    kernel: &Path,
    init: &Path,
    folder: &Path,
    interrupt: &AtomicBool,
    fail: &dyn Fn(String, Vec<String>) -> KernelError,
) -> Result<String, KernelError> {
    let out = folder.join("self-test");
    let act = || KernelError::io(format!("prepare {}", out.display()));
    if out.exists() {
        fs::remove_dir_all(&out).map_err(act())?;
    }
    fs::create_dir(&out).map_err(act())?;
    // A link, since the kernel splits its command line at spaces and this program's path may have some.
    let link = out.join("init");
    symlink(init, &link).map_err(act())?;

    let mut command = Command::new(kernel);
    command
        .env("TMPDIR", folder)
        .args(["mem=64M", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
        .args(["con0=null,fd:1", "con=null", "ssl=null", "quiet", "time-travel=inf-cpu"])
        .args(["time-travel-start=1700000000", "random_seed=1", "THALWEG_GUEST=self-test"])
        .arg(format!("THALWEG_OUT={}", out.display()))
        .arg(format!("init={}", link.display()));
    let run = process::run(command, interrupt, Some(LIMIT), |_| ());
    let (cause, tail) = match run {
        Ok(run) => match fs::read_to_string(out.join(RESULT)) {
            Ok(result) if result.ends_with('\n') => return Ok(result),
            _ => (format!("it ended without a result ({})", run.ending), run.tail),
        },
        Err(RunError::TimedOut(tail)) => (format!("it did not halt within {LIMIT:?} and was killed"), tail),
        Err(RunError::Interrupted) => return Err(KernelError::Interrupted),
        Err(RunError::Start(error)) => (format!("it cannot be started: {error}"), Vec::new()),
    };
    Err(fail(cause, tail))
}

/// Long enough that no host waits it out by mistake.
const SLEEP: Duration = Duration::from_secs(1000);
/// Booting and halting take 0.1 s; a machine with every processor taken still manages in this time.
const LIMIT: Duration = Duration::from_secs(30);
const RESULT: &str = "result";
