//! Lab kernels: finding those that are installed, and building new ones.
//!
//! A lab kernel is user-mode Linux with virtual time: an ordinary program. Each lives in a folder of its own,
//! `$XDG_CACHE_HOME/thalweg/kernels/<release>-<hash>/`, with its `.config` and a `kernel.json` that says what it was
//! built from. The hash covers configuration, patch and source, so an installed kernel is never changed, only joined
//! by another.

mod build;
mod cache;
mod error;
mod process;
mod recipe;
mod release;
pub mod self_test;
mod source;
#[cfg(test)]
mod tests;
mod tools;

pub use build::{BuildRequest, Phase, Progress, build};
pub use error::KernelError;
pub use recipe::DEFAULT_HZ;

use cache::{Cache, Installed, Record};
use release::Release;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The versions the lab knows how to get, as Debian packages them; the first is the default.
pub const KNOWN: [&str; 2] = ["6.12", "6.1"];

/// A lab kernel that can be booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The kernel's release without the lab's suffix: `6.12.117`.
    pub release: String,
    /// Release and hash: tells apart two kernels of one release. For a given binary, the hash is the binary's own.
    pub id: String,
    /// The program that boots it.
    pub path: PathBuf,
}

/// An installed kernel, and whether this program would build the same one today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The kernel.
    pub kernel: Kernel,
    /// Its timer frequency.
    pub hz: u32,
    /// Whether it was built with today's configuration and patch. Other kernels may lack what a run needs; a version or
    /// a release never names them, and their folders can be deleted.
    pub current: bool,
}

/// Lists the installed kernels, newest release first. Folders that hold no whole kernel are left out.
///
/// # Errors
/// When the cache folder exists and cannot be read, or this user has no cache folder.
pub fn list() -> Result<Vec<Listed>, KernelError> {
    let listed = |one: Installed| {
        let Record { hz, recipe, .. } = one.record;
        Listed { kernel: one.kernel, hz, current: recipe == recipe::hash(hz) }
    };
    Ok(Cache::of_user()?.installed()?.into_iter().map(listed).collect())
}

/// Finds the kernel that `wanted` names: a version (`6.12`), a release (`6.12.117`), the id of an installed kernel, or
/// the path of a kernel binary (anything with a `/`).
///
/// A version or a release means a kernel of today's configuration at [`DEFAULT_HZ`], one from Debian's source before
/// one from a given tree; any other is named by its id.
///
/// # Errors
/// When there is none: the text lists those that are known and installed, and the hint says how to build it.
pub fn find(wanted: &str) -> Result<Kernel, KernelError> {
    if wanted.contains('/') {
        return of_binary(Path::new(wanted));
    }
    choose(wanted, Cache::of_user()?.installed()?, &recipe::hash(DEFAULT_HZ))
}

fn choose(wanted: &str, installed: Vec<Installed>, recipe: &str) -> Result<Kernel, KernelError> {
    let ids = || installed.iter().map(|one| one.kernel.id.clone()).collect();
    if let Some(exact) = installed.iter().find(|one| one.kernel.id == wanted) {
        return Ok(exact.kernel.clone());
    }
    let known = || KNOWN.map(str::to_owned).to_vec();
    let Some(release) = Release::parse(wanted) else {
        return Err(KernelError::Unknown { wanted: wanted.to_owned(), known: known(), installed: ids() });
    };
    let named = || installed.iter().filter(|one| release.covers(&one.release));
    let best = named()
        .filter(|one| one.record.recipe == recipe)
        .max_by_key(|one| (one.record.source.packaged, one.release.clone(), one.record.built_unix_s));
    if let Some(best) = best {
        return Ok(best.kernel.clone());
    }
    let version = KNOWN.into_iter().find(|known| Release::parse(known).is_some_and(|known| known.covers(&release)));
    match version {
        Some(version) => Err(KernelError::NotInstalled {
            wanted: wanted.to_owned(),
            version: version.to_owned(),
            outdated: named().map(|one| one.kernel.id.clone()).collect(),
            installed: ids(),
        }),
        None => Err(KernelError::Unknown { wanted: wanted.to_owned(), known: known(), installed: ids() }),
    }
}

/// Asks a binary for its release, as only a user-mode kernel answers.
fn of_binary(path: &Path) -> Result<Kernel, KernelError> {
    let not = |cause: String| KernelError::NotAKernel { path: path.to_owned(), cause };
    let path = path.canonicalize().map_err(|error| not(error.to_string()))?;
    if !path.is_file() {
        return Err(not("it is not a file".to_owned()));
    }
    let mut command = Command::new(&path);
    command.arg("--version");
    let never = AtomicBool::new(false);
    let run = process::run(command, &never, Some(Duration::from_secs(10)), |_| ()).map_err(|error| match error {
        process::RunError::Start(error) => not(error.to_string()),
        _ => not("it does not answer --version within 10 seconds".to_owned()),
    })?;
    let answer = run.tail.first().map_or("", String::as_str).trim();
    let release = answer.split('-').next().unwrap_or_default().to_owned();
    if !run.success || Release::parse(&release).is_none() {
        return Err(not("its answer to --version is not a kernel release".to_owned()));
    }
    let hash = source::hash_file(&path, &never, |_| ())?;
    Ok(Kernel { id: format!("{release}-{}", recipe::short(&hash)), release, path })
}
