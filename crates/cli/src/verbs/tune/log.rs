//! `thalweg tune log`: what was applied, and what became of it.

use super::failure::failure;
use crate::args::tune::TuneLogArgs;
use crate::failure::Failure;
use crate::output::Output;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg_apply::{Store, TuneLog};

pub(crate) fn run(args: &TuneLogArgs, output: &Output) -> Result<ExitCode, Failure> {
    let all = Store::new(&args.journals.state).all().map_err(failure)?;
    if output.json {
        output.json_result(&TuneLog { schema: "thalweg.tune-log/1", applications: all })?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        output.note("nothing was applied");
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut lines = Vec::new();
    for journal in &all {
        lines.push(format!(
            "{}  {}  {}  {}",
            journal.id,
            ago(now.saturating_sub(journal.at_s)),
            journal.state.name(),
            journal.purpose
        ));
        for entry in &journal.entries {
            lines.push(format!("  {}: {}", entry.target, entry.target.difference(&entry.before, &entry.after)));
        }
        lines.extend(journal.persisted.iter().map(|file| format!("  persisted in {file}")));
        lines.extend(journal.notes.iter().map(|note| format!("  note: {note}")));
    }
    output.result(&lines.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// How long ago, in the largest unit of which there are two.
fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7_200 => format!("{} min ago", seconds / 60),
        7_200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}
