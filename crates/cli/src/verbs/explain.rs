//! `thalweg explain`: what a verdict or a setting means.

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use std::process::ExitCode;
use thalweg_model::{Code, CodeList, CodeMeaning, since};
use thalweg_report::verdicts;
use thalweg_tune::catalogue::{self, Known, SettingsReport};

pub(crate) fn run(args: &ExplainArgs, output: &Output) -> Result<ExitCode, Failure> {
    let Some(wanted) = &args.name else {
        return list(output);
    };
    match Code::ALL.into_iter().find(|code| code.as_str() == wanted) {
        Some(code) => verdict(code, output)?,
        None => setting(wanted, output)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn verdict(code: Code, output: &Output) -> Result<(), Failure> {
    if output.json {
        return output.json_result(&verdicts::document(code));
    }
    output.result(&verdicts::text(code))
}

/// Every setting of that name, or what the name is where it is none.
fn setting(name: &str, output: &Output) -> Result<(), Failure> {
    let entries = catalogue::find(name);
    let whole = if name.contains(['.', '/']) { name.to_owned() } else { format!("net.ipv4.{name}") };
    let known = catalogue::known(&whole);
    let kernel = thalweg_host::sysctl::read("kernel.osrelease").ok().and_then(|text| since::release(&text));
    if entries.is_empty() {
        let Some(text) = catalogue::explain_known(name, known) else { return Err(unknown(name, known)) };
        if output.json {
            return output.json_result(&SettingsReport { text: Some(text), ..SettingsReport::new(kernel, Vec::new()) });
        }
        return output.result(&text);
    }
    if output.json {
        return output.json_result(&SettingsReport::new(kernel, entries));
    }
    let pages: Vec<String> = entries.iter().map(|entry| catalogue::explain(entry, kernel)).collect();
    output.result(&pages.join("\n"))
}

fn unknown(name: &str, known: Known) -> Failure {
    let shown = name.escape_debug();
    let failure = Failure::user(anyhow!("no verdict and no setting has the name '{shown}'"));
    if let Known::Mistyped(entry) = known {
        return failure.hint(format!("did you mean '{}'?", entry.name));
    }
    let entries = &catalogue::catalogue().entries;
    let word = name.to_lowercase();
    let holding: Vec<&str> = entries.iter().map(catalogue::Entry::short_name).filter(|one| holds(one, &word)).collect();
    if let Some(first) = holding.first() {
        return failure.hint(format!("did you mean '{first}'? `thalweg tune list {shown}` lists all with that word"));
    }
    if entries.iter().any(|entry| holds(&entry.about, &word)) {
        return failure.hint(format!("`thalweg tune list {shown}` lists the settings that are about it"));
    }
    let codes = Code::ALL.map(Code::as_str);
    let names = entries.iter().map(catalogue::Entry::short_name);
    // Of a short word nearly every letter would be another.
    let near = thalweg_config::nearest(name, codes.into_iter().chain(names)).filter(|_| name.len() > SHORT_MAX);
    match near {
        Some(nearest) => failure.hint(format!("did you mean '{nearest}'? `thalweg tune list` lists settings")),
        None => failure.hint("`thalweg explain` lists verdicts, and `thalweg tune list` settings"),
    }
}

/// Whether a text has this word, of which there is something.
fn holds(text: &str, word: &str) -> bool {
    !word.is_empty() && text.to_lowercase().contains(word)
}

/// Words of so few letters are near to others by chance: two letters are most of them.
const SHORT_MAX: usize = 4;

/// Every code with the first sentence of its meaning.
fn list(output: &Output) -> Result<ExitCode, Failure> {
    let all = Code::ALL.map(|code| (code, verdicts::meaning(code)));
    if output.json {
        let codes = all.map(|(code, meaning)| CodeMeaning { code, meaning }).into();
        output.json_result(&CodeList { schema: "thalweg.codes/1", codes })?;
    } else {
        let lines = all.map(|(code, meaning)| format!("{code:<24} {meaning}"));
        output.result(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_what_has_the_word() {
        let said = |name: &str| unknown(name, catalogue::known(name)).to_string();
        assert!(said("\u{1b}[31mred").contains("\\u{1b}[31mred"), "{}", said("\u{1b}[31mred"));
        assert!(said("rmem").contains("tune list rmem"), "{}", said("rmem"));
        assert!(said("ecn").contains("tune list ecn"), "{}", said("ecn"));
        assert!(!said("foo").contains("did you mean"), "{}", said("foo"));
    }
}
