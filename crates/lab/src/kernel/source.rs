//! Kernel source: where it is, what tells it apart, and a working copy of the part that is needed.

use super::error::KernelError;
use super::process::{self, RunError};
use super::recipe::hex;
use super::release::Release;
use sha2::{Digest, Sha256};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel source to build from. It is only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Whether it is Debian's package.
    pub(crate) packaged: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Tar,
    Tree,
}

impl Source {
    /// The source of a Debian package.
    pub(crate) fn packaged(version: &str) -> Result<Self, KernelError> {
        let path = PathBuf::from(format!("/usr/src/linux-source-{version}.tar.xz"));
        if !path.is_file() {
            return Err(KernelError::NoSource { version: version.to_owned(), path });
        }
        Ok(Self { path, packaged: true, kind: Kind::Tar })
    }

    /// A source that was given: a tree, or a tar file of one.
    pub(crate) fn given(path: &Path) -> Result<Self, KernelError> {
        let bad = |cause: String| KernelError::BadSource { path: path.to_owned(), cause };
        let path = path.canonicalize().map_err(|error| bad(error.to_string()))?;
        if path.is_dir() {
            release_of_tree(&path).map_err(bad)?;
            return Ok(Self { path, packaged: false, kind: Kind::Tree });
        }
        Ok(Self { path, packaged: false, kind: Kind::Tar })
    }

    /// Whether unpacking it takes xz.
    pub(crate) fn wants_xz(&self) -> bool {
        self.kind == Kind::Tar && self.path.extension().is_some_and(|end| end == "xz" || end == "txz")
    }

    /// What tells this source from any other: the hash of a tar file's bytes; of a tree, the hash of its Makefile and
    /// of the names, sizes and times of the files that would be copied. `progress` gets a fraction.
    pub(crate) fn hash(&self, interrupt: &AtomicBool, progress: impl FnMut(f64)) -> Result<String, KernelError> {
        if self.kind == Kind::Tar {
            return hash_file(&self.path, interrupt, progress);
        }
        let mut digest = Sha256::new();
        digest.update(fs::read(self.path.join("Makefile")).unwrap_or_default());
        self.walk(interrupt, |name, file| {
            digest.update(name.as_os_str().as_encoded_bytes());
            digest.update([0]);
            for number in [i64::try_from(file.len()).unwrap_or(i64::MAX), file.mtime(), file.mtime_nsec()] {
                digest.update(number.to_le_bytes());
            }
            Ok(())
        })?;
        Ok(hex(&digest.finalize()))
    }

    /// Puts a working copy into `target`, an empty folder, and returns its release. Leaves out what no lab kernel is
    /// made from, two thirds of the bytes. `progress` gets the number of files so far.
    pub(crate) fn copy_to(
        &self,
        target: &Path,
        interrupt: &AtomicBool,
        mut progress: impl FnMut(u64),
    ) -> Result<String, KernelError> {
        match self.kind {
            Kind::Tar => self.unpack(target, interrupt, progress)?,
            Kind::Tree => {
                let mut count = 0;
                self.walk(interrupt, |name, file| {
                    count += 1;
                    progress(count);
                    copy_one(&self.path.join(name), &target.join(name), file)
                        .map_err(KernelError::io(format!("copy {}", self.path.join(name).display())))
                })?;
            }
        }
        release_of_tree(target).map_err(|cause| KernelError::BadSource { path: self.path.clone(), cause })
    }

    fn unpack(&self, target: &Path, interrupt: &AtomicBool, mut progress: impl FnMut(u64)) -> Result<(), KernelError> {
        let mut tar = Command::new("tar");
        tar.env("LC_ALL", "C")
            .args(["--extract", "--strip-components=1", "--no-same-owner", "--checkpoint=1000"])
            .args(["--checkpoint-action=echo=@%u", "--wildcards", "--wildcards-match-slash"])
            .args(UNNEEDED_PATTERNS.iter().map(|pattern| format!("--exclude={pattern}")))
            .arg("--file")
            .arg(&self.path)
            .arg("--directory")
            .arg(target);
        // Checkpoints count records of 10 KiB, of which a kernel's source has some 150,000.
        let run = process::run(tar, interrupt, None, |line| {
            if let Some(records) = line.rsplit('@').next().and_then(|number| number.parse().ok()) {
                progress(records);
            }
        });
        let cause = match run {
            Ok(run) if run.success => return Ok(()),
            Ok(run) => {
                let words: Vec<_> = run.tail.iter().filter(|line| !line.contains('@')).cloned().collect();
                if words.iter().any(|line| line.contains("No space left")) {
                    return Err(KernelError::Step {
                        act: format!("unpack {}", self.path.display()),
                        cause: "the disk is full".to_owned(),
                        tail: Vec::new(),
                        hint: "free some space, or set XDG_CACHE_HOME to a folder on a larger disk".to_owned(),
                    });
                }
                format!("tar says: {}", words.first().map_or(run.ending.as_str(), String::as_str))
            }
            Err(RunError::Interrupted) => return Err(KernelError::Interrupted),
            Err(RunError::Start(error)) => return Err(KernelError::io("start tar")(error)),
            Err(RunError::TimedOut(_)) => "tar hangs".to_owned(),
        };
        Err(KernelError::BadSource { path: self.path.clone(), cause })
    }

    /// Visits every file and link of a tree that is needed, in the order of their names.
    fn walk(
        &self,
        interrupt: &AtomicBool,
        mut visit: impl FnMut(&Path, &Metadata) -> Result<(), KernelError>,
    ) -> Result<(), KernelError> {
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            if interrupt.load(Ordering::Relaxed) {
                return Err(KernelError::Interrupted);
            }
            let whole = self.path.join(&folder);
            let act = || KernelError::io(format!("read {}", whole.display()));
            let mut names = Vec::new();
            for entry in fs::read_dir(&whole).map_err(act())? {
                names.push(folder.join(entry.map_err(act())?.file_name()));
            }
            names.sort_unstable();
            for name in names.into_iter().filter(|name| is_needed(name)) {
                let file = self.path.join(&name).symlink_metadata().map_err(act())?;
                if file.is_dir() {
                    folders.push(name);
                } else if file.is_file() || file.is_symlink() {
                    visit(&name, &file)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a file's SHA-256, in hexadecimal; `progress` gets the fraction that is read.
pub(crate) fn hash_file(
    path: &Path,
    interrupt: &AtomicBool,
    mut progress: impl FnMut(f64),
) -> Result<String, KernelError> {
    let act = || KernelError::io(format!("read {}", path.display()));
    let mut file = File::open(path).map_err(act())?;
    let length = file.metadata().map_err(act())?.len().max(1);
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0_u64;
    loop {
        if interrupt.load(Ordering::Relaxed) {
            return Err(KernelError::Interrupted);
        }
        let count = file.read(&mut buffer).map_err(act())?;
        if count == 0 {
            return Ok(hex(&digest.finalize()));
        }
        digest.update(&buffer[..count]);
        done += count as u64;
        progress(done as f64 / length as f64);
    }
}

fn release_of_tree(tree: &Path) -> Result<String, String> {
    if !tree.join("arch/um/Kconfig").is_file() {
        return Err("it holds no arch/um/Kconfig, so it is not a Linux source tree".to_owned());
    }
    let makefile = fs::read_to_string(tree.join("Makefile")).map_err(|error| format!("its Makefile: {error}"))?;
    Release::of_makefile(&makefile).ok_or_else(|| "its Makefile sets no VERSION, PATCHLEVEL and SUBLEVEL".to_owned())
}

/// Copies a file or a link, with its permissions; shares the blocks where the file system can.
fn copy_one(from: &Path, to: &Path, file: &Metadata) -> std::io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if file.is_symlink() { symlink(fs::read_link(from)?, to) } else { fs::copy(from, to).map(|_| ()) }
}

/// Whether a file or folder of a tree takes part in a build: not history, nor what an earlier build left, nor the
/// bulk that [`UNNEEDED_PATTERNS`] leaves out of a tar file.
pub(crate) fn is_needed(name: &Path) -> bool {
    let end = name.extension().and_then(|end| end.to_str()).unwrap_or_default();
    let first = name.components().next().map(|part| part.as_os_str().to_owned()).unwrap_or_default();
    let built = matches!(end, "o" | "a" | "ko" | "cmd" | "order" | "dtb" | "dtbo") && first != "tools";
    let under = |folder: &str| name.starts_with(folder) && name != Path::new(folder);
    let bulk = UNNEEDED_CODE.iter().any(|folder| under(folder)) && matches!(end, "c" | "h" | "S");
    let foreign = name.strip_prefix("arch").is_ok_and(|rest| {
        let architecture = rest.components().next().map(|part| part.as_os_str().to_owned()).unwrap_or_default();
        rest.components().count() > 1
            && !matches!(architecture.to_str(), Some("um" | "x86"))
            && !end.is_empty()
            && !kconfig(name)
    });
    first != ".git" && !built && !bulk && !foreign && !matches!(end, "rst" | "yaml" | "dts" | "dtsi")
}

fn kconfig(name: &Path) -> bool {
    name.file_name().is_some_and(|name| name.to_string_lossy().starts_with("Kconfig"))
}

/// Folders whose code no lab kernel is made from. Their Kconfig files stay: other Kconfig files include them.
const UNNEEDED_CODE: [&str; 9] = [
    "drivers/gpu",
    "drivers/media",
    "drivers/net/ethernet",
    "drivers/net/wireless",
    "drivers/scsi",
    "drivers/staging",
    "sound",
    "tools/testing",
    "tools/perf",
];

/// The same for tar, whose patterns match the whole path with its leading folder.
const UNNEEDED_PATTERNS: [&str; 14] = [
    "*/drivers/gpu/*.[ch]",
    "*/drivers/media/*.[ch]",
    "*/drivers/net/ethernet/*.[ch]",
    "*/drivers/net/wireless/*.[ch]",
    "*/drivers/scsi/*.[ch]",
    "*/drivers/staging/*.[ch]",
    "*/sound/*.[ch]",
    "*/tools/testing/*",
    "*/tools/perf/*",
    "*/arch/[!ux]*/*.[chS]",
    "*.dts",
    "*.dtsi",
    "*.rst",
    "*.yaml",
];
