//! `thalweg tune list`: the catalogue as a table.

use super::running;
use crate::args::tune::TuneListArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::process::ExitCode;
use thalweg_model::since::Release;
use thalweg_tune::catalogue::{Entry, SettingsReport, catalogue};

pub(crate) fn run(args: &TuneListArgs, output: &Output) -> Result<ExitCode, Failure> {
    let kernel = if args.all { None } else { args.kernel.or_else(running) };
    let found: Vec<&Entry> = catalogue().entries.iter().filter(|entry| wanted(entry, args, kernel)).collect();
    if found.is_empty() {
        return Err(Failure::user(anyhow!("no setting is like that")).hint("`thalweg tune list --all` lists every one"));
    }
    if output.json {
        output.json_result(&SettingsReport::new(kernel, found))?;
        return Ok(ExitCode::SUCCESS);
    }
    let wide = found.iter().map(|entry| entry.name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    let mut last = None;
    for entry in found {
        if last != Some(entry.kind) {
            lines.extend(last.map(|_| String::new()));
            lines.push(format!("{}:", entry.kind));
            last = Some(entry.kind);
        }
        let default = entry.default_on(kernel).map(str::to_owned).or_else(|| entry.varies.clone()).unwrap_or_default();
        let default = if default.is_empty() { "-".to_owned() } else { default };
        lines.push(format!("  {:<wide$}  {default}", entry.name));
        lines.push(format!("  {:<wide$}  {}", "", entry.about));
    }
    output.result(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn wanted(entry: &Entry, args: &TuneListArgs, kernel: Option<Release>) -> bool {
    let holds = |word: &String| {
        let word = word.to_lowercase();
        entry.name.to_lowercase().contains(&word) || entry.about.to_lowercase().contains(&word)
    };
    entry.is_on(kernel)
        && args.kind.is_none_or(|kind| kind == entry.kind)
        && args.verdict.is_none_or(|code| entry.verdicts.contains(&code))
        && (args.words.is_empty() || args.words.iter().any(holds))
}
