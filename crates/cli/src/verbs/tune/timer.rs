//! A timer that does not die with the process that applied: a transient unit of systemd, or a process of its own.

use super::failure::failure;
use crate::args::tune::{Timer, TuneIdArgs};
use crate::failure::Failure;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_apply::{Journal, Store, Unwatched};

/// Is there where systemd runs the host. Source: sd_booted(3).
const BOOTED: &str = "/run/systemd/system";
/// The unit that undoes, at boot, what nobody confirmed.
const BOOT_UNIT: &str = "/etc/systemd/system/thalweg-tune-rollback.service";
/// How often the process that waits looks whether somebody confirmed.
const LOOK: Duration = Duration::from_millis(200);

/// Whether systemd is to wait.
pub(super) fn is_systemd(timer: Timer) -> bool {
    match timer {
        Timer::Auto => Path::new(BOOTED).is_dir(),
        Timer::Systemd => true,
        Timer::Process => false,
    }
}

/// Arms the timer of a journal.
pub(super) fn arm(journal: &Journal, store: &Store, systemd: bool) -> io::Result<()> {
    let program = std::env::current_exe()?;
    if systemd { by_systemd(journal, store, &program) } else { by_process(journal, store, &program) }
}

/// Ends the timer of a journal that was confirmed or undone; where it is a process, that sees it by itself.
pub(super) fn disarm(journal: &Journal) {
    if Path::new(BOOTED).is_dir() && journal.deadline_s.is_some() {
        let _ = Command::new("systemctl")
            .args(["stop", "--quiet", &format!("{}.timer", unit(journal))])
            .stderr(Stdio::null())
            .status();
    }
}

/// What the timer is, for a note.
pub(super) const fn named(systemd: bool) -> &'static str {
    if systemd {
        "systemd's timer undoes it then, and a unit undoes it at the next boot"
    } else {
        "a process of its own undoes it then; a reboot ends sysctls and routes that are not persistent"
    }
}

fn unit(journal: &Journal) -> String {
    format!("thalweg-tune-{}", journal.id)
}

fn by_systemd(journal: &Journal, store: &Store, program: &Path) -> io::Result<()> {
    boot_unit(store, program)?;
    let seconds = journal.deadline_s.unwrap_or_default().saturating_sub(journal.at_s);
    let output = Command::new("systemd-run")
        .args([format!("--on-active={seconds}s"), format!("--unit={}", unit(journal)), "--collect".to_owned()])
        .args(["--timer-property=AccuracySec=100ms", "--quiet"])
        .arg(program)
        .args(["tune", "rollback", &journal.id, "--unless-confirmed", "--state"])
        .arg(store.folder())
        .output()?;
    succeeded("systemd-run", &output)
}

/// Writes and enables the unit that undoes at boot; one that is there already is left.
fn boot_unit(store: &Store, program: &Path) -> io::Result<()> {
    let text = format!(
        "[Unit]\nDescription=Undo settings that nobody confirmed\nConditionPathExists={0}/pending\nAfter=network.target systemd-sysctl.service\n\n\
         [Service]\nType=oneshot\nExecStart={1} tune rollback --unless-confirmed --state {0}\n\n[Install]\nWantedBy=multi-user.target\n",
        store.folder().display(),
        program.display()
    );
    if std::fs::read_to_string(BOOT_UNIT).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::write(BOOT_UNIT, text)?;
    let output = Command::new("systemctl").args(["enable", "--quiet", "thalweg-tune-rollback.service"]).output()?;
    succeeded("systemctl enable", &output)
}

fn succeeded(what: &str, output: &std::process::Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

fn by_process(journal: &Journal, store: &Store, program: &Path) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(["tune", "watch", &journal.id, "--state"]).arg(absolute(store.folder())?);
    // Its own folder and descriptors, so that it holds neither a mount nor a terminal.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

fn absolute(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

/// Waits until the deadline, and undoes what nobody confirmed.
pub(super) fn watch(args: &TuneIdArgs) -> Result<ExitCode, Failure> {
    // A session of its own: a terminal that is closed does not end it.
    let _ = rustix::process::setsid();
    let store = Store::new(&args.journals.state);
    let journal = store.journal(args.id.as_deref()).map_err(failure)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let left = Duration::from_secs(journal.deadline_s.unwrap_or(now).saturating_sub(now));
    let end = Instant::now() + left;
    while Instant::now() < end {
        if store.journal(Some(&journal.id)).is_ok_and(|journal| !journal.state.is_open()) {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
    }
    let locked = store.lock(true).map_err(failure)?;
    thalweg_apply::rollback(Some(&journal.id), true, &locked, &mut Unwatched).map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}
