//! The built-in scenarios, and finding the one that is meant.

use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use model::Scenario;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Largest file a scenario may name: a trace of a million opportunities has 8 MB.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Names and texts.
const BUILT_IN: [(&str, &str); 5] = [
    ("slow-download", include_str!("../../../scenarios/slow-download.toml")),
    ("first-frame", include_str!("../../../scenarios/first-frame.toml")),
    ("crr-loss", include_str!("../../../scenarios/crr-loss.toml")),
    ("long-fat", include_str!("../../../scenarios/long-fat.toml")),
    ("calibration", include_str!("../../../scenarios/calibration.toml")),
];

/// Finds a scenario by its built-in name or its file, and lays `set` over it.
pub(crate) fn find(name: &str, set: &[(String, String)]) -> Result<Scenario, Failure> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
        // A built-in scenario names files, if any, from where the user is.
        return Scenario::parse(&format!("{name}.toml"), text, set, &|file| read_near(Path::new(""), file))
            .map_err(Failure::user);
    }
    if !name.ends_with(".toml") && !Path::new(name).exists() {
        let known = BUILT_IN.map(|(name, _)| name).join(", ");
        return Err(Failure::user(anyhow!("no built-in scenario is named '{name}', and there is no such file"))
            .hint(format!("built in are {known}; a file's name ends in .toml")));
    }
    let bytes = std::fs::read(name)
        .map_err(|error| Failure::user(anyhow!("cannot read the scenario file '{name}': {error}")))?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Failure::user(anyhow!("'{name}' is no scenario file: it is not text"))
            .hint(format!("if it is a capture, thalweg diagnose {name} says why it is slow")));
    };
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    Scenario::parse(name, &text, set, &|file| read_near(folder, file)).map_err(Failure::user)
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
    let scenarios = BUILT_IN.iter().map(|(name, _)| find(name, &[])).collect::<Result<Vec<_>, _>>()?;
    if output.json {
        let list: Vec<_> = scenarios
            .iter()
            .map(|scenario| {
                let arms: Vec<&str> = scenario.arms.iter().map(|arm| arm.name.as_str()).collect();
                serde_json::json!({"name": scenario.name, "about": scenario.about, "arms": arms})
            })
            .collect();
        output.json_result(&serde_json::json!({"schema": "thalweg.scenarios/1", "scenarios": list}))?;
    } else {
        for scenario in &scenarios {
            output.result(&format!("{:<15} {}", scenario.name, scenario.about));
            let arms: Vec<&str> = scenario.arms.iter().map(|arm| arm.name.as_str()).collect();
            output.result(&format!("{:<15} arms: {}", "", arms.join(" · ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_scenario_is_valid_and_named_as_its_file() {
        for (name, _) in BUILT_IN {
            assert_eq!(find(name, &[]).map(|scenario| scenario.name).expect(name), name);
        }
    }

    #[test]
    fn every_scenario_file_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let name = entry.expect("an entry").file_name();
            let name = name.to_string_lossy();
            assert!(BUILT_IN.iter().any(|(built_in, _)| Some(*built_in) == name.strip_suffix(".toml")), "{name}");
        }
    }
}
