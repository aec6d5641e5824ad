//! The command line itself: it is consistent, every verb has an example, and its help is as it was reviewed.

use crate::args::Args;
use clap::CommandFactory;

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
