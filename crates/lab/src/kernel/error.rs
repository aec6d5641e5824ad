//! Why there is no kernel to boot.

use super::KNOWN;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A program that is not in `PATH`, and the Debian package that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// The program.
    pub tool: &'static str,
    /// The package.
    pub package: &'static str,
}

/// Why a lab kernel could not be found or built. The text ends with a hint where there is something to do.
#[derive(Debug, Error)]
pub enum KernelError {
    /// No folder to keep kernels in.
    #[error(
        "cannot tell where to keep lab kernels: neither XDG_CACHE_HOME nor HOME is an absolute path\n\n\
         hint: set XDG_CACHE_HOME to a folder you can write to"
    )]
    NoCache,
    /// A file operation failed.
    #[error("cannot {act}: {source}{}", io_hint(source))]
    Io {
        /// What was tried, on which object.
        act: String,
        /// What the system said.
        source: io::Error,
    },
    /// A kernel the lab can build, and has not built yet.
    #[error(
        "lab kernel {wanted} is not built yet; {}{}\n\nhint: thalweg lab kernel build {version}",
        listed("installed", installed),
        outdated_note(outdated)
    )]
    NotInstalled {
        /// The name that was asked for.
        wanted: String,
        /// The known version it belongs to.
        version: String,
        /// Kernels of that version which another configuration made.
        outdated: Vec<String>,
        /// Ids of all installed kernels.
        installed: Vec<String>,
    },
    /// A kernel the lab knows nothing of.
    #[error(
        "no lab kernel '{wanted}'; {}; {}\n\nhint: name one of these, give the path of a lab kernel's binary, or build \
         one from a source tree: thalweg lab kernel build --source DIR",
        listed("known", known),
        listed("installed", installed)
    )]
    Unknown {
        /// The name that was asked for.
        wanted: String,
        /// The versions the lab can build by name.
        known: Vec<String>,
        /// Ids of all installed kernels.
        installed: Vec<String>,
    },
    /// A path that names no user-mode kernel.
    #[error(
        "{} is not a lab kernel: {cause}\n\nhint: give the file named 'linux' that thalweg lab kernel build makes",
        path.display()
    )]
    NotAKernel {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// Debian's source package is not there.
    #[error(
        "cannot build lab kernel {version}: its source, {}, is not there\n\n\
         hint: sudo apt-get install linux-source-{version}, or give a source tree with --source DIR",
        path.display()
    )]
    NoSource {
        /// The version asked for.
        version: String,
        /// Where Debian's package puts the source.
        path: PathBuf,
    },
    /// A given source that is no kernel source.
    #[error(
        "cannot build from {}: {cause}\n\nhint: --source takes a Linux source tree or a tar file of one",
        path.display()
    )]
    BadSource {
        /// The path that was given.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A timer frequency out of range.
    #[error("a lab kernel cannot tick at {hz} Hz: the range is 100 to 1000\n\nhint: 250 is what Debian's kernels use")]
    BadHz {
        /// The frequency that was asked for.
        hz: u32,
    },
    /// Build tools that are not installed.
    #[error("cannot build a lab kernel: {} not installed\n\nhint: sudo apt-get install {}", missing_tools(.0), missing_packages(.0))]
    MissingTools(Vec<Missing>),
    /// Too little disk space.
    #[error(
        "cannot build a lab kernel in {}: it takes {} MB and {} MB are free\n\n\
         hint: free some space, or set XDG_CACHE_HOME to a folder on a larger disk",
        path.display(), needed_bytes / 1_000_000, free_bytes / 1_000_000
    )]
    DiskSpace {
        /// The folder of kernels.
        path: PathBuf,
        /// What the build needs at its height.
        needed_bytes: u64,
        /// What this user may still use.
        free_bytes: u64,
    },
    /// A path that make cannot handle.
    #[error(
        "cannot build a lab kernel in {}: the kernel's makefiles cannot work under a path with spaces or colons\n\n\
         hint: set XDG_CACHE_HOME to a folder without them",
        path.display()
    )]
    BadPath {
        /// The folder of kernels.
        path: PathBuf,
    },
    /// A program of the build failed.
    #[error("cannot {act}: {cause}{}\n\nhint: {hint}", tail_of("its last words", tail))]
    Step {
        /// What was being done, to what.
        act: String,
        /// How the program ended.
        cause: String,
        /// The end of what it printed.
        tail: Vec<String>,
        /// What to do.
        hint: String,
    },
    /// Kconfig dropped options the lab depends on.
    #[error(
        "Linux {release} cannot be configured as a lab kernel: it lacks {}\n\n\
         hint: versions {} are known to work",
        options.join(", "), KNOWN.join(" and ")
    )]
    OptionsLost {
        /// The source's release.
        release: String,
        /// The lines of the fragment that did not make it into `.config`.
        options: Vec<String>,
    },
    /// A new kernel that does not work.
    #[error(
        "lab kernel {release} was built and fails its self-test: {cause}{}{}",
        tail_of("its console", tail),
        self_test_hint(cause)
    )]
    SelfTest {
        /// The kernel's release.
        release: String,
        /// What went wrong.
        cause: String,
        /// The end of its console.
        tail: Vec<String>,
    },
    /// The caller asked to stop.
    #[error("interrupted: nothing was installed")]
    Interrupted,
}

impl KernelError {
    /// Whether another word on the command line would mend it (exit code 2), rather than a change to this host (3).
    #[must_use]
    pub const fn is_users_mistake(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::NotAKernel { .. } | Self::BadSource { .. } | Self::BadHz { .. })
    }

    pub(crate) fn io(act: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let act = act.into();
        move |source| Self::Io { act, source }
    }
}

fn listed(title: &str, names: &[String]) -> String {
    if names.is_empty() { format!("{title}: none") } else { format!("{title}: {}", names.join(", ")) }
}

fn outdated_note(ids: &[String]) -> String {
    match ids {
        [] => String::new(),
        ids => format!(" (of that version, but of another configuration or timer frequency: {})", ids.join(", ")),
    }
}

fn missing_tools(missing: &[Missing]) -> String {
    let names: Vec<_> = missing.iter().map(|one| one.tool).collect();
    match names.as_slice() {
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(", ")),
    }
}

fn missing_packages(missing: &[Missing]) -> String {
    let mut names: Vec<_> = missing.iter().map(|one| one.package).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" ")
}

fn tail_of(title: &str, tail: &[String]) -> String {
    if tail.is_empty() { String::new() } else { format!("; {title}:\n  {}", tail.join("\n  ")) }
}

fn self_test_hint(cause: &str) -> &'static str {
    if cause.contains("within") {
        "\n\nhint: where the machine is very busy, try again; where ptrace(2) is forbidden (some containers and \
         sandboxes), user-mode Linux cannot run"
    } else {
        ""
    }
}

fn io_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "\n\nhint: set XDG_CACHE_HOME to a folder you can write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\n\nhint: free some space, or set XDG_CACHE_HOME to a folder on a larger disk"
        }
        _ => "",
    }
}
