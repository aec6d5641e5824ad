//! What the catalogue knows of one name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use thalweg_model::Code;
use thalweg_model::since::{self, Release};

/// Where a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file below /proc/sys.
    Sysctl,
    /// A metric of a route.
    Route,
    /// An option of a socket.
    Socket,
    /// A queueing discipline.
    Qdisc,
    /// A device's own setting.
    Nic,
    /// A parameter of a kernel module.
    Module,
    /// What a BPF program can set.
    Bpf,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Sysctl, Self::Route, Self::Socket, Self::Qdisc, Self::Nic, Self::Module, Self::Bpf];

    /// Its name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sysctl => "sysctl",
            Self::Route => "route",
            Self::Socket => "socket",
            Self::Qdisc => "qdisc",
            Self::Nic => "nic",
            Self::Module => "module",
            Self::Bpf => "bpf",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// 0 or 1; older kernels take any number for 1.
    Flag,
    /// A number.
    Integer,
    /// A sum of bits.
    Bits,
    /// Two numbers.
    Pair,
    /// Three numbers.
    Triple,
    /// One word.
    Word,
    /// Several words.
    Words,
    /// Numbers and ranges with commas.
    List,
    /// Processors, as hexadecimal bits.
    Mask,
    /// A time with its unit.
    Time,
    /// Any text.
    Text,
    /// Parameters of its own.
    Tree,
}

/// Whom a sysctl is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Each network namespace has its own.
    #[default]
    Namespace,
    /// One for the host.
    Host,
    /// A figure to be read; it cannot be set.
    ReadOnly,
}

/// The document of `thalweg tune list --json`, and of `thalweg explain SETTING --json`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SettingsReport<'a> {
    /// `thalweg.settings/1`.
    pub schema: &'static str,
    /// The release of the kernel that it is for, such as `6.12`; `None` for all, or where it is not known.
    pub kernel: Option<String>,
    /// The settings.
    pub settings: Vec<&'a Entry>,
    /// What a name is that is no setting of a mainline kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl<'a> SettingsReport<'a> {
    /// These settings.
    pub fn new(kernel: Option<Release>, settings: Vec<&'a Entry>) -> Self {
        Self { schema: "thalweg.settings/1", kernel: kernel.map(show), settings, text: None }
    }
}

/// A setting that a mainline kernel has.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Entry {
    /// Where it is made.
    pub kind: Kind,
    /// Its whole name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// Unit of its numbers.
    pub unit: Option<String>,
    /// What its value looks like.
    pub shape: Shape,
    /// Least and greatest number that the kernel takes, where they are known.
    pub range: Option<[i64; 2]>,
    /// The bits a sum may hold.
    pub bits: Option<u64>,
    /// Its numbers are not to fall from one to the next; the kernel does not check.
    pub ordered: bool,
    /// What each release made the default, by the first such release; (0, 0) is from the beginning.
    #[serde(serialize_with = "by_release")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub defaults: BTreeMap<Release, String>,
    /// What the default depends on.
    pub varies: Option<String>,
    /// Whom it is for; sysctls alone differ.
    pub scope: Scope,
    /// It was one for the host before this release.
    #[serde(serialize_with = "release")]
    #[schemars(with = "Option<String>")]
    pub host_before: Option<Release>,
    /// The first release that has it; `None` where that is before 4.4.
    #[serde(serialize_with = "release")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Release>,
    /// From which release it does nothing, and why.
    #[serde(serialize_with = "release_and_why")]
    #[schemars(with = "Option<NoEffect>")]
    pub no_effect: Option<(Release, String)>,
    /// What the kernel has to be built with, or to have loaded.
    pub optional: Option<String>,
    /// Its name in scenarios, where they have it.
    pub scenario: Option<String>,
    /// Functions of the kernel that read it.
    pub read_by: String,
    /// What it costs.
    pub cost: Option<String>,
    /// Verdicts it answers.
    pub verdicts: Vec<Code>,
    /// Where all this is from.
    pub source: String,
}

impl Entry {
    /// The default on that kernel, or the newest one; `None` where there is none that holds for every host, or no such setting.
    pub fn default_on(&self, kernel: Option<Release>) -> Option<&str> {
        let latest = kernel.unwrap_or((u32::MAX, 0));
        self.defaults.range(..=latest).next_back().map(|(_, value)| value.as_str()).filter(|_| self.is_on(kernel))
    }

    /// Whether that kernel has it; where the kernel is not known, whether any has.
    pub fn is_on(&self, kernel: Option<Release>) -> bool {
        self.since.zip(kernel).is_none_or(|(since, kernel)| since <= kernel)
    }

    /// Why it does nothing on that kernel.
    pub fn without_effect(&self, kernel: Option<Release>) -> Option<&str> {
        let (from, why) = self.no_effect.as_ref()?;
        kernel.is_none_or(|kernel| kernel >= *from).then_some(why)
    }

    /// The last part of its name.
    pub fn short_name(&self) -> &str {
        if self.kind == Kind::Sysctl { self.name.rsplit('.').next().unwrap_or(&self.name) } else { &self.name }
    }
}

/// A name that only a vendor's kernel has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// The name.
    pub name: String,
    /// Whose kernels have it.
    pub of: String,
    /// What it does there.
    pub about: String,
    /// What does the same in mainline.
    pub instead: String,
}

/// A name that mainline had once, or whose file is left without its function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The name.
    pub name: String,
    /// The first release that had it, where that is after 4.4.
    #[serde(default)]
    pub since: Option<String>,
    /// The first release that has it no more.
    pub until: String,
    /// The file is still there.
    #[serde(default)]
    pub still_there: bool,
    /// Why it went.
    pub why: String,
    /// What does the same.
    pub instead: String,
}

impl Removed {
    /// The first release that has it no more.
    pub fn gone(&self) -> Release {
        since::release(&self.until).unwrap_or_default()
    }
}

/// Sysctls that are not TCP's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outside {
    /// How their names begin.
    pub begin: Vec<String>,
    /// Whose they are.
    pub of: String,
}

/// A release as people write it.
pub(super) fn show((major, minor): Release) -> String {
    format!("{major}.{minor}")
}

fn by_release<S: serde::Serializer>(map: &BTreeMap<Release, String>, serializer: S) -> Result<S::Ok, S::Error> {
    let first = |release: &Release| if *release == (0, 0) { "first".to_owned() } else { show(*release) };
    serializer.collect_map(map.iter().map(|(release, value)| (first(release), value)))
}

fn release<S: serde::Serializer>(release: &Option<Release>, serializer: S) -> Result<S::Ok, S::Error> {
    release.map(show).serialize(serializer)
}

/// That a setting does nothing any more, as JSON.
#[derive(Serialize, JsonSchema)]
struct NoEffect {
    /// From which release.
    from: String,
    /// Why.
    why: String,
}

fn release_and_why<S: serde::Serializer>(given: &Option<(Release, String)>, serializer: S) -> Result<S::Ok, S::Error> {
    given.as_ref().map(|(from, why)| NoEffect { from: show(*from), why: why.clone() }).serialize(serializer)
}
