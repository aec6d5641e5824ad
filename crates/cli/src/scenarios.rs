//! The built-in scenarios, and finding the one that is meant.

use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use thalweg_model::{ListedScenario, Scenario, ScenarioList};

/// Largest file a scenario may name: a trace of a million opportunities has 8 MB.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// A built-in scenario: its name and its text.
type BuiltIn = (&'static str, &'static str);

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))),*]
    };
}

/// The built-in scenarios by what they are about.
const THEMES: [(&str, &[BuiltIn]); 5] = [
    (
        "The first picture of a live stream",
        built_in!["first-frame", "last-mile", "crr-loss", "crr-netem", "send-buffer", "fast-open", "edge-first-frame"],
    ),
    (
        "A download that is stuck",
        built_in!["slow-download", "same-buffer", "no-window-scaling", "ranges", "get-window", "small-send-buffer"],
    ),
    ("A long line", built_in!["tcp-vs-udp", "long-fat", "long-line", "fixed-buffers", "backlog"]),
    (
        "Messages within a vehicle",
        built_in![
            "window-over-rtt",
            "two-into-one-port",
            "udp-buffer",
            "rto-min",
            "tail-loss",
            "dup-ack-threshold",
            "loss-episodes",
            "topics-meet",
            "six-boards",
            "car-plan",
            "idle-restart",
        ],
    ),
    ("The lab itself, against arithmetic", built_in!["calibration"]),
];

/// A workload where none will run.
const ANY_WORKLOAD: &str = "\n[workload]\nkind = \"stream\"\nseconds = \"1s\"\n";

/// Widest line of the list.
const LINE_CHARS: usize = 100;

/// All built-in scenarios.
fn built_in() -> impl Iterator<Item = &'static BuiltIn> {
    THEMES.iter().flat_map(|(_, scenarios)| scenarios.iter())
}

/// Keeps the arms that are wanted; all where none is named.
pub(crate) fn keep(scenario: &mut Scenario, names: &[String]) -> Result<(), Failure> {
    if !names.is_empty()
        && let Err(unknown) = scenario.keep(names)
    {
        let known: Vec<&str> = scenario.arms.iter().map(|arm| arm.name.as_str()).collect();
        return Err(Failure::user(anyhow!("'{}' has no arm named '{unknown}'", scenario.name))
            .hint(format!("its arms are: {}", known.join(" · "))));
    }
    Ok(())
}

/// A value that an option lays over a scenario.
pub(crate) struct Typed {
    /// The option as it was typed, which errors name.
    pub(crate) option: String,
    /// The key, dotted.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: String,
}

/// Finds a scenario by its built-in name or its file, and lays `set` over it.
pub(crate) fn find(name: &str, set: &[(String, String)]) -> Result<Scenario, Failure> {
    find_with(name, &typed(set))
}

fn typed(set: &[(String, String)]) -> Vec<Typed> {
    let one = |(key, value): &(String, String)| Typed {
        option: format!("--set {key}={value}"),
        key: key.clone(),
        value: value.clone(),
    };
    set.iter().map(one).collect()
}

/// Finds a scenario whose hosts alone count, so that its file needs no workload.
pub(crate) fn find_hosts(name: &str, set: &[(String, String)]) -> Result<Scenario, Failure> {
    let is_workload = |line: &str| line.trim_start().trim_start_matches('[').starts_with("workload");
    find_text(
        name,
        &typed(set),
        |text| if text.lines().any(is_workload) { String::new() } else { ANY_WORKLOAD.to_owned() },
    )
}

/// Finds a scenario by its built-in name or its file, and lays what was `typed` over it.
pub(crate) fn find_with(name: &str, typed: &[Typed]) -> Result<Scenario, Failure> {
    find_text(name, typed, |_| String::new())
}

/// Finds a scenario, to whose text what `more` gives for it is added.
fn find_text(name: &str, typed: &[Typed], more: impl Fn(&str) -> String) -> Result<Scenario, Failure> {
    if let Some((name, text)) = built_in().find(|(built_in, _)| *built_in == name) {
        // A built-in scenario names files, if any, from where the user is.
        return parse(&format!("{name}.toml"), text, typed, Path::new(""));
    }
    let is_path = !name.ends_with(".toml") && (name.contains('/') || Path::new(name).extension().is_some());
    if is_path && !Path::new(name).exists() {
        return Err(Failure::user(anyhow!("there is no file '{name}'"))
            .hint("is the name right? thalweg lab list shows the built-in scenarios"));
    }
    if !name.ends_with(".toml") && !Path::new(name).exists() {
        let known = built_in().map(|(name, _)| *name).collect::<Vec<_>>();
        return Err(Failure::user(anyhow!("no built-in scenario is named '{name}', and there is no such file")).hint(
            match thalweg_config::nearest(name, known.iter().copied()) {
                Some(nearest) => format!("did you mean '{nearest}'? A file's name ends in .toml"),
                None => format!("built in are {}; a file's name ends in .toml", known.join(", ")),
            },
        ));
    }
    let bytes = std::fs::read(name)
        .map_err(|error| Failure::user(anyhow!("cannot read the scenario file '{name}': {error}")))?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Failure::user(anyhow!("'{name}' is no scenario file: it is not text"))
            .hint(format!("if it is a capture, thalweg diagnose {name} says why it is slow")));
    };
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    parse(name, &format!("{text}{}", more(&text)), typed, folder)
}

/// A scenario with this `[path]`, and what was `typed` laid over it; what it transfers does not matter.
pub(crate) fn of_path(path: &str, typed: &[Typed]) -> Result<Scenario, Failure> {
    let text = format!("name = \"path\"\n{path}{ANY_WORKLOAD}");
    parse("path", &text, typed, Path::new(""))
}

/// Reads a scenario whose files are in `folder`. An error in a value that was typed names the option that it came by.
fn parse(name: &str, text: &str, typed: &[Typed], folder: &Path) -> Result<Scenario, Failure> {
    let set: Vec<(String, String)> = typed.iter().map(|one| (one.key.clone(), one.value.clone())).collect();
    thalweg_config::parse_scenario(name, text, &set, &|file| read_near(folder, file)).map_err(|mut error| {
        let is_from = |one: &&Typed| error.place == format!("--set {}={}", one.key, one.value);
        if let Some(one) = typed.iter().find(is_from) {
            error.place.clone_from(&one.option);
        }
        Failure::user(error)
    })
}

/// Reads a file that a scenario in `folder` names: a trace, a delay table.
fn read_near(folder: &Path, file: &str) -> io::Result<String> {
    let path = folder.join(file);
    if fs::metadata(&path)?.len() > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    fs::read_to_string(path)
}

/// `thalweg lab list`.
pub(crate) fn list(output: &Output) -> Result<ExitCode, Failure> {
    let mut list = Vec::new();
    for (at, (theme, scenarios)) in THEMES.iter().enumerate() {
        if !output.json {
            let gap = if at == 0 { "" } else { "\n" };
            output.result(&format!("{gap}{theme}"))?;
        }
        for (name, _) in *scenarios {
            let scenario = find(name, &[])?;
            let arms: Vec<&str> = scenario.arms.iter().map(|arm| arm.name.as_str()).collect();
            if output.json {
                list.push(ListedScenario {
                    name: (*name).to_owned(),
                    theme: (*theme).to_owned(),
                    about: scenario.about.clone(),
                    arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
                });
            } else {
                output.result(&format!("  {name:<18} {}", scenario.about))?;
                output.result(&format!("  {:<18} {}", "", some_of(&arms)))?;
            }
        }
    }
    if output.json {
        output.json_result(&ScenarioList { schema: "thalweg.scenarios/1", scenarios: list })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// As many arms as a line has room for, and how many there are if there are more.
fn some_of(arms: &[&str]) -> String {
    let mut line = format!("arms: {}", arms.first().copied().unwrap_or_default());
    for arm in arms.iter().skip(1) {
        let longer = format!("{line} · {arm}");
        if longer.chars().count() > LINE_CHARS - 32 {
            return format!("{line} … {} in all", arms.len());
        }
        line = longer;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_is_valid_and_named_as_its_file() {
        for (name, _) in built_in() {
            assert_eq!(find(name, &[]).map(|scenario| scenario.name).expect(name), *name);
        }
    }

    #[test]
    fn every_scenario_file_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            assert!(built_in().any(|(built_in, _)| Some(*built_in) == name.strip_suffix(".toml")), "{name}");
        }
    }
}
