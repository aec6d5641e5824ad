//! What was typed, read; and what is wrong with it, in words of this program.

use crate::args::Args;
use clap::Parser;
use clap::error::{ContextKind, ErrorKind};
use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

/// Reads the command line, or ends the process with its help or with what is wrong.
pub(crate) fn parse() -> Args {
    read(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

fn read(words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    Args::try_parse_from(words).map_err(named)
}

/// The error with a sentence in the place of the library's on numbers.
fn named(error: clap::Error) -> clap::Error {
    let Some(number) = error.source().and_then(|source| source.downcast_ref::<ParseIntError>()) else { return error };
    let why = match number.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        IntErrorKind::NegOverflow => "it is too small",
        _ => "it is no whole number",
    };
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (value, option) = (context(ContextKind::InvalidValue), context(ContextKind::InvalidArg));
    let text = format!("invalid value '{value}' for '{option}': {why}\n\nFor more information, try '--help'.\n");
    clap::Error::raw(ErrorKind::ValueValidation, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_number_is_named_in_plain_words() {
        let error = |words: &str| read(words.split(' ').map(OsString::from)).map(|_| ()).expect_err(words).to_string();
        for (words, says) in [
            ("thalweg path --seed x", "invalid value 'x' for '--seed <N>': it is no whole number"),
            ("thalweg path --publish x", "invalid value 'x' for '--publish <PORT>': it is no whole number"),
            ("thalweg lab run a --seed 99999999999999999999", "for '--seed <N>': it is too large"),
            ("thalweg lab run a --jobs 0", "for '--jobs <JOBS>': it is 1 or more"),
            ("thalweg get foo", "it has no scheme"),
            ("thalweg get foo/bar", "hint: write it as http://foo/bar or https://foo/bar"),
        ] {
            let text = error(words);
            assert!(text.contains(says), "{words}: {text}");
        }
    }
}
