//! Any text as a scenario, its second half as every file it names: refused with a place, or made of arms that are named apart.
#![no_main]

use libfuzzer_sys::fuzz_target;

/// What parts the scenario from the files it names.
const FILES: &str = "\n#files\n";

fuzz_target!(|data: &str| {
    let (text, files) = data.split_once(FILES).unwrap_or((data, ""));
    match thalweg_config::parse_scenario("fuzz.toml", text, &[], &|_| Ok(files.to_owned())) {
        Ok(scenario) => {
            assert!(!scenario.arms.is_empty());
            let names: std::collections::HashSet<_> = scenario.arms.iter().map(|arm| &arm.name).collect();
            assert_eq!(names.len(), scenario.arms.len());
        }
        Err(error) => assert!(!error.problem.is_empty() && !error.place.is_empty()),
    }
});
