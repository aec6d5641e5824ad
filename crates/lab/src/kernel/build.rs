//! Building a lab kernel, from a source to an installed, tested program.

use super::cache::{BINARY, CONFIG, Cache, Lock, RECORD, Record, SCHEMA, SourceRecord, Workshop};
use super::error::KernelError;
use super::process::{self, Run, RunError};
use super::source::Source;
use super::{KNOWN, Kernel, recipe, self_test, tools};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The version, one of [`KNOWN`], whose Debian source package is used. Without effect when `source` is set.
    pub version: String,
    /// A source tree, or a tar file of one, to use instead. It is only read.
    pub source: Option<PathBuf>,
    /// How many compilers run at once.
    pub jobs: usize,
    /// The timer frequency.
    pub hz: u32,
    /// The program that the self-test boots as the guest's first process: it must call [`self_test::guest`] when the
    /// environment says `THALWEG_GUEST=self-test`.
    pub init: PathBuf,
    /// Set it, from a signal handler say, to end the build and remove all of it.
    pub interrupt: Arc<AtomicBool>,
}

impl Default for BuildRequest {
    /// The default version at [`recipe::DEFAULT_HZ`], with all processors, tested with this very program.
    fn default() -> Self {
        Self {
            version: KNOWN[0].to_owned(),
            source: None,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            hz: recipe::DEFAULT_HZ,
            init: PathBuf::from("/proc/self/exe"),
            interrupt: Arc::default(),
        }
    }
}

/// A stage of a build, in the order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Reading the source to tell it from others.
    Identify,
    /// Waiting for another builder; left out when there is none.
    Wait,
    /// Unpacking or copying the source.
    Unpack,
    /// Applying the lab's patch.
    Patch,
    /// Configuring.
    Configure,
    /// Compiling.
    Compile,
    /// Booting the new kernel.
    SelfTest,
    /// Moving it into place.
    Install,
}

impl Phase {
    /// What is being done, as a person would say it: `compiling`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Identify => "reading the source",
            Self::Wait => "waiting for another build to end",
            Self::Unpack => "unpacking",
            Self::Patch => "patching",
            Self::Configure => "configuring",
            Self::Compile => "compiling",
            Self::SelfTest => "booting the new kernel",
            Self::Install => "installing",
        }
    }
}

/// How far a build is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The stage.
    pub phase: Phase,
    /// The part of the stage that is done, 0 to 1, where it can be told. For compiling, an estimate.
    pub fraction: Option<f64>,
    /// What it is about: a file, a release.
    pub detail: String,
}

/// Builds, tests and installs a kernel, or returns the one that is already installed from the same source,
/// configuration and patch. Takes two to three minutes on two processors and [`NEEDED_BYTES`] of disk space.
///
/// An interrupted or failed build installs nothing; what a killed one leaves on the disk, the next one removes. Of two
/// builders one waits, then finds the other's result. Without the source, an installed kernel of the version does.
///
/// # Errors
/// When something is missing (program, package, disk space), a step fails, an option of the fragment is lost, or the
/// new kernel fails its self-test.
pub fn build(request: &BuildRequest, progress: &mut dyn FnMut(Progress)) -> Result<Kernel, KernelError> {
    build_in(&Cache::of_user()?, request, progress)
}

pub(crate) fn build_in(
    cache: &Cache,
    request: &BuildRequest,
    progress: &mut dyn FnMut(Progress),
) -> Result<Kernel, KernelError> {
    let source = match locate(request) {
        Err(missing @ KernelError::NoSource { .. }) => {
            let installed = super::choose(&request.version, cache.installed()?, &recipe::hash(request.hz));
            return installed.map_err(|_| missing);
        }
        other => other?,
    };
    if !recipe::HZ_RANGE.contains(&request.hz) {
        return Err(KernelError::BadHz { hz: request.hz });
    }
    if cache.root.to_str().is_none_or(|path| path.contains(|c: char| c == ':' || c.is_whitespace())) {
        return Err(KernelError::BadPath { path: cache.root.clone() });
    }
    let detail = source.path.display().to_string();
    let source_hash = source.hash(&request.interrupt, |fraction| {
        progress(Progress { phase: Phase::Identify, fraction: Some(fraction), detail: detail.clone() });
    })?;
    let recipe = recipe::hash(request.hz);
    let hash = recipe::hex(&Sha256::digest(format!("{recipe}\n{source_hash}")));
    let installed = || {
        let ours = |id: &str| id.ends_with(&format!("-{}", recipe::short(&hash)));
        Ok(cache.installed()?.into_iter().find(|one| ours(&one.kernel.id)).map(|one| one.kernel))
    };
    if let Some(kernel) = installed()? {
        return Ok(kernel);
    }
    tools::check_programs(source.wants_xz())?;
    let lock = cache.lock(&request.interrupt, || {
        progress(Progress { phase: Phase::Wait, fraction: None, detail: cache.root.display().to_string() });
    })?;
    if let Some(kernel) = installed()? {
        return Ok(kernel);
    }
    cache.sweep(&lock)?;
    tools::check_space(&cache.root, NEEDED_BYTES)?;
    let bench = Bench { request, workshop: cache.workshop(&lock)?, progress };
    let record = |release: String| Record {
        schema: SCHEMA.to_owned(),
        release,
        hz: request.hz,
        recipe,
        source: SourceRecord { packaged: source.packaged, path: source.path.clone(), hash: source_hash },
        built_unix_s: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs()),
    };
    bench.make(&source, record, cache, &lock, recipe::short(&hash))
}

fn locate(request: &BuildRequest) -> Result<Source, KernelError> {
    match &request.source {
        Some(path) => Source::given(path),
        None if KNOWN.contains(&request.version.as_str()) => Source::packaged(&request.version),
        None => Err(KernelError::Unknown {
            wanted: request.version.clone(),
            known: KNOWN.map(str::to_owned).to_vec(),
            installed: super::list().unwrap_or_default().into_iter().map(|one| one.kernel.id).collect(),
        }),
    }
}

/// A build under way.
struct Bench<'a> {
    request: &'a BuildRequest,
    workshop: Workshop,
    progress: &'a mut dyn FnMut(Progress),
}

impl Bench<'_> {
    fn make(
        mut self,
        source: &Source,
        record: impl FnOnce(String) -> Record,
        cache: &Cache,
        lock: &Lock,
        hash: &str,
    ) -> Result<Kernel, KernelError> {
        let [tree, objects, finished] = ["source", "objects", "finished"].map(|name| self.workshop.path.join(name));
        for folder in [&tree, &objects, &finished] {
            fs::create_dir(folder).map_err(KernelError::io(format!("make the folder {}", folder.display())))?;
        }
        let release = self.unpack(source, &tree)?;
        self.patch(&tree, &release)?;
        self.configure(&tree, &objects, &release)?;
        self.compile(&tree, &objects, &release)?;

        let binary = finished.join(BINARY);
        let copied = fs::copy(objects.join("linux"), &binary)
            .and_then(|_| fs::copy(objects.join(".config"), finished.join(CONFIG)));
        copied.map_err(KernelError::io(format!("copy the new kernel to {}", finished.display())))?;
        self.say(Phase::SelfTest, None, &release);
        self_test::check(&binary, &release, &self.request.init, &self.workshop.path, &self.request.interrupt)?;

        self.say(Phase::Install, None, &release);
        let path = finished.join(RECORD);
        let record = record(release);
        let text = serde_json::to_vec_pretty(&record).expect("invariant: a record has only text keys");
        fs::write(&path, text).map_err(KernelError::io(format!("write {}", path.display())))?;
        Ok(cache.place(lock, &finished, &format!("{}-{hash}", record.release))?.kernel)
    }

    fn say(&mut self, phase: Phase, fraction: Option<f64>, detail: &str) {
        (self.progress)(Progress { phase, fraction, detail: detail.to_owned() });
    }

    fn unpack(&mut self, source: &Source, tree: &Path) -> Result<String, KernelError> {
        let detail = source.path.display().to_string();
        self.say(Phase::Unpack, None, &detail);
        let request = self.request;
        source.copy_to(tree, &request.interrupt, |count| {
            let fraction = (count as f64 / UNPACK_STEPS).min(0.99);
            self.say(Phase::Unpack, Some(fraction), &detail);
        })
    }

    fn patch(&mut self, tree: &Path, release: &str) -> Result<(), KernelError> {
        self.say(Phase::Patch, None, release);
        let file = self.workshop.path.join("lab.patch");
        fs::write(&file, recipe::PATCH).map_err(KernelError::io(format!("write {}", file.display())))?;
        let patch = |arguments: &[&str]| {
            let mut command = Command::new("patch");
            command.env("LC_ALL", "C").args(["-p1"]).args(arguments).arg("--input").arg(&file).current_dir(tree);
            command
        };
        // A tree that has the patch already, from an earlier build by hand, is as good. Not --batch here: that takes a tree
        // without the patch for one that has it, and "un-reverses".
        if self.run("look for the patch", patch(&["--force", "--reverse", "--dry-run"]), |_, _| ())?.success {
            return Ok(());
        }
        let run = self.run("start patch", patch(&["--batch", "--forward"]), |_, _| ())?;
        step(
            run,
            || format!("apply the lab's patch to Linux {release}"),
            || format!("versions {} are known to work", KNOWN.join(" and ")),
        )
    }

    fn configure(&mut self, tree: &Path, objects: &Path, release: &str) -> Result<(), KernelError> {
        self.say(Phase::Configure, None, release);
        let act = || format!("configure Linux {release}");
        let hint = || {
            "the last words above say what is missing; on Debian the tools are in build-essential bc bison flex"
                .to_owned()
        };
        if tree.join(".config").exists() || tree.join("include/config").exists() {
            // The copy of a tree that was configured in place, which an out-of-tree build refuses.
            let run = self.run("start make", self.make_command(tree, tree, &["mrproper"]), |_, _| ())?;
            step(run, act, hint)?;
        }
        let fragment = recipe::fragment(self.request.hz);
        let file = self.workshop.path.join("lab.config");
        fs::write(&file, &fragment).map_err(KernelError::io(format!("write {}", file.display())))?;
        let setting = format!("KCONFIG_ALLCONFIG={}", file.display());
        let run = self.run("start make", self.make_command(tree, objects, &["allnoconfig", &setting]), |_, _| ())?;
        step(run, act, hint)?;

        let path = objects.join(".config");
        let config = fs::read_to_string(&path).map_err(KernelError::io(format!("read {}", path.display())))?;
        let options = recipe::lost_options(&fragment, &config);
        if options.is_empty() { Ok(()) } else { Err(KernelError::OptionsLost { release: release.to_owned(), options }) }
    }

    fn compile(&mut self, tree: &Path, objects: &Path, release: &str) -> Result<(), KernelError> {
        self.say(Phase::Compile, Some(0.0), release);
        let jobs = format!("-j{}", self.request.jobs.max(1));
        let mut steps = 0.0_f64;
        let run = self.run("start make", self.make_command(tree, objects, &[&jobs, "linux"]), |this, line| {
            // Kbuild prints one line a step: two spaces, an abbreviation in capitals, the file.
            if let Some((_, file)) = line.strip_prefix("  ").and_then(|line| line.trim_start().split_once(' ')) {
                steps += 1.0;
                this(Phase::Compile, Some((steps / COMPILE_STEPS).min(0.99)), file.trim_start());
            }
        })?;
        let full = run.tail.iter().any(|line| line.contains("No space left"));
        step(
            run,
            || format!("compile Linux {release}"),
            || {
                if full {
                    "free some space, or set XDG_CACHE_HOME to a folder on a larger disk".to_owned()
                } else {
                    "where a header is missing, sudo apt-get install build-essential; where a compiler was killed, this host \
                 has too little memory: try --jobs 1"
                    .to_owned()
                }
            },
        )
    }

    /// Prepares make so that neither the caller's environment nor the hour gets into the kernel.
    fn make_command(&self, tree: &Path, objects: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("make");
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("KBUILD_") || text.starts_with("KCONFIG_") || MAKE_VARIABLES.contains(&&*text) {
                command.env_remove(&name);
            }
        }
        command
            .env("LC_ALL", "C")
            .env("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970")
            .env("KBUILD_BUILD_USER", "thalweg")
            .env("KBUILD_BUILD_HOST", "lab")
            .env("KBUILD_BUILD_VERSION", "1")
            .args(["ARCH=um", "LOCALVERSION="])
            .args(arguments)
            .current_dir(tree);
        if objects != tree {
            command.arg(format!("O={}", objects.display()));
        }
        command
    }

    fn run(
        &mut self,
        act: &str,
        command: Command,
        mut on_line: impl FnMut(&mut dyn FnMut(Phase, Option<f64>, &str), &str),
    ) -> Result<Run, KernelError> {
        let request = self.request;
        let run = process::run(command, &request.interrupt, None, |line| {
            on_line(&mut |phase, fraction, detail| self.say(phase, fraction, detail), line);
        });
        run.map_err(|error| match error {
            RunError::Start(error) => KernelError::io(act)(error),
            RunError::Interrupted | RunError::TimedOut(_) => KernelError::Interrupted,
        })
    }
}

fn step(run: Run, act: impl FnOnce() -> String, hint: impl FnOnce() -> String) -> Result<(), KernelError> {
    if run.success {
        return Ok(());
    }
    Err(KernelError::Step { act: act(), cause: run.ending, tail: run.tail, hint: hint() })
}

/// What a build takes at its height: measured with Linux 6.12, 570 MB of source and 120 MB of objects, then doubled.
pub(crate) const NEEDED_BYTES: u64 = 1_400_000_000;
/// Steps of `make linux`: 1,306 for Linux 6.12.117. Only the progress depends on it.
const COMPILE_STEPS: f64 = 1306.0;
/// Records tar reads, or about as many thousand files of a tree.
const UNPACK_STEPS: f64 = 148_000.0;
/// Variables by which a caller's own build would change ours.
const MAKE_VARIABLES: [&str; 17] = [
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "ARCH",
    "SUBARCH",
    "CROSS_COMPILE",
    "CC",
    "LD",
    "HOSTCC",
    "LLVM",
    "CFLAGS",
    "LDFLAGS",
    "KCFLAGS",
    "KCPPFLAGS",
    "HOSTCFLAGS",
    "O",
];
