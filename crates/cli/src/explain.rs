//! `thalweg explain`: what a verdict or a setting means.

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::Output;
use ::tune::catalogue::{self, Known};
use anyhow::anyhow;
use model::{Code, since};
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// The section that says what a code stands for.
const MEANING: &str = "What it means";

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
    let text = infer::explain(code);
    if !output.json {
        return output.result(text);
    }
    let mut document = Map::from_iter([("code".to_owned(), json!(code)), ("text".to_owned(), json!(text))]);
    document.extend(sections(text).into_iter().map(|(title, body)| (key(&title), Value::String(body))));
    output.json_result(&document)
}

/// Every setting of that name, or what the name is where it is none.
fn setting(name: &str, output: &Output) -> Result<(), Failure> {
    let entries = catalogue::find(name);
    let whole = if name.contains(['.', '/']) { name.to_owned() } else { format!("net.ipv4.{name}") };
    let known = catalogue::known(&whole);
    if entries.is_empty() {
        let Some(text) = catalogue::explain_known(name, known) else { return Err(unknown(name, known)) };
        if output.json {
            return output.json_result(&json!({"schema": "thalweg.settings/1", "settings": [], "text": text}));
        }
        return output.result(&text);
    }
    if output.json {
        return output.json_result(&json!({"schema": "thalweg.settings/1", "settings": entries}));
    }
    let kernel = host::sysctl::read("kernel.osrelease").ok().and_then(|text| since::release(&text));
    let pages: Vec<String> = entries.iter().map(|entry| catalogue::explain(entry, kernel)).collect();
    output.result(&pages.join("\n"))
}

fn unknown(name: &str, known: Known) -> Failure {
    let failure = Failure::user(anyhow!("no verdict and no setting has the name '{name}'"));
    match known {
        Known::Mistyped(entry) => failure.hint(format!("did you mean '{}'?", entry.name)),
        _ => {
            let codes = Code::ALL.map(Code::as_str);
            let names = catalogue::catalogue().entries.iter().map(catalogue::Entry::short_name);
            match model::nearest(name, codes.into_iter().chain(names)) {
                Some(nearest) => failure.hint(format!("did you mean '{nearest}'? `thalweg tune list` lists settings")),
                None => failure.hint("`thalweg explain` lists verdicts, and `thalweg tune list` settings"),
            }
        }
    }
}

/// Every code with the first sentence of its meaning.
fn list(output: &Output) -> Result<ExitCode, Failure> {
    let all = Code::ALL.map(|code| (code.as_str(), meaning(code)));
    if output.json {
        let codes: Vec<Value> = all.iter().map(|(code, meaning)| json!({"code": code, "meaning": meaning})).collect();
        output.json_result(&json!({"schema": "thalweg.codes/1", "codes": codes}))?;
    } else {
        let lines = all.map(|(code, meaning)| format!("{code:<24} {meaning}"));
        output.result(&lines.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn meaning(code: Code) -> String {
    let sections = sections(infer::explain(code));
    let body = sections.into_iter().find(|(title, _)| title == MEANING).map(|(_, body)| body).unwrap_or_default();
    first_sentence(&body).to_owned()
}

/// Up to the first full stop that ends a sentence: one that a space and a capital letter follow.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let end = ends.into_iter().find(|end| text[*end..].trim_start().starts_with(char::is_uppercase));
    &text[..end.unwrap_or(text.len())]
}

/// The sections of a text: a title at the beginning of a line, and indented lines below it, here joined into one.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = Vec::new();
    // The first line is the code itself.
    for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        match sections.last_mut() {
            Some((_, body)) if line.starts_with(' ') => {
                if !body.is_empty() {
                    body.push(' ');
                }
                body.push_str(line.trim());
            }
            _ => sections.push((line.trim().to_owned(), String::new())),
        }
    }
    sections
}

/// A title as a document's field: `How to confirm` is `how_to_confirm`.
fn key(title: &str) -> String {
    title.to_lowercase().replace(' ', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_what_it_means_in_a_sentence() {
        for code in Code::ALL {
            let sections = sections(infer::explain(code));
            let keys: Vec<String> = sections.iter().map(|(title, _)| key(title)).collect();
            assert_eq!(&keys[..2], ["what_it_means", "why_it_matters"], "{code}");
            assert!(sections.iter().all(|(_, body)| !body.is_empty()), "{code}");
            let meaning = meaning(code);
            assert!(meaning.ends_with('.') && meaning.contains(' ') && meaning != code.as_str(), "{code}: {meaning}");
        }
    }

    #[test]
    fn a_sentence_ends_where_the_next_begins() {
        assert_eq!(first_sentence("Linux 4.13 and later. Others do not."), "Linux 4.13 and later.");
        assert_eq!(first_sentence("As tcp_input.c has it. It waits"), "As tcp_input.c has it.");
        assert_eq!(first_sentence("One."), "One.");
    }
}
