//! The command line itself: it is consistent, every verb has an example, and its help is as it was reviewed.

use crate::args::Args;
use clap::{CommandFactory, Parser};

fn each(command: &clap::Command, visit: &mut impl FnMut(&clap::Command)) {
    visit(command);
    command.get_subcommands().for_each(|sub| each(sub, visit));
}

#[test]
fn definition_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn every_verb_has_an_example() {
    each(&Args::command(), &mut |command| {
        if !command.has_subcommands() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.contains("Example"), "{} has no example in its help", command.get_name());
        }
    });
}

/// Commands of this program in a line of a help text: what pipes and redirections join, without variables before them and the remark
/// behind them.
fn commands(line: &str) -> Vec<Vec<String>> {
    let line = line.trim().split("  ").next().unwrap_or_default();
    // Every other part is in quotes, and is one word.
    let words = line.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    let words: Vec<String> = words.collect();
    let parts = words.split(|word| ["|", "&&"].contains(&word.as_str()));
    let command = |part: &[String]| -> Vec<String> {
        let own = part.iter().skip_while(|word| *word != "thalweg");
        own.take_while(|word| *word != ">").cloned().collect()
    };
    parts.map(command).filter(|words| !words.is_empty()).collect()
}

/// What the help shows can be typed: every example is parsed, and so is every default, which the parser reads with them.
#[test]
fn every_example_is_a_command() {
    let mut count = 0;
    let mut wrong = Vec::new();
    each(&Args::command(), &mut |command| {
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for words in after.lines().filter(|line| line.starts_with("  ")).flat_map(commands) {
            count += 1;
            // A checksum has 64 digits.
            let words = words.iter().map(|word| word.replace("sha256:HEX", &format!("sha256:{}", "0".repeat(64))));
            wrong.extend(Args::try_parse_from(words).err().map(|error| error.to_string()));
        }
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 50, "{count} examples");
}

#[test]
fn help() {
    let mut text = String::new();
    let mut root = Args::command().term_width(100);
    root.build();
    each(&root, &mut |command| {
        text += &format!(
            "=== {}\n{}\n",
            command.get_bin_name().unwrap_or("thalweg"),
            command.clone().term_width(100).render_long_help()
        );
    });
    insta::assert_snapshot!(text);
}
