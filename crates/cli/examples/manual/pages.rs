//! The man pages and completions, made from the definition of the command line.

use clap_complete::Shell;
use std::io;
use std::path::Path;

/// Shells whose completions are made.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Writes `man1/*.1`, a page for each verb, and `completions/*`, a file for each shell.
pub(crate) fn write(folder: &Path) -> io::Result<()> {
    let (man, completions) = (folder.join("man1"), folder.join("completions"));
    std::fs::create_dir_all(&man)?;
    std::fs::create_dir_all(&completions)?;
    // Pages do not show the values that the environment of whoever makes them happens to give.
    let command = thalweg_cli::command().mut_args(|arg| arg.hide_env_values(true));
    clap_mangen::generate_to(command.clone(), &man)?;
    for entry in std::fs::read_dir(&man)? {
        let path = entry?.path();
        std::fs::write(&path, page(&std::fs::read_to_string(&path)?))?;
    }
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut command.clone(), "thalweg", &completions)?;
    }
    Ok(())
}

/// A page with its examples as they are typed, under a heading of their own, and with the program's name as its source.
fn page(made: &str) -> String {
    let verb = made.split_once('"').and_then(|(_, rest)| rest.split_once(' ')).map_or("", |(verb, _)| verb);
    let made = made.replacen(&format!("\"{verb} "), "\"thalweg ", 1);
    let Some((before, after)) = made.split_once(".SH EXTRA\n") else { return made };
    let (examples, after) = after.split_once(".SH ").unwrap_or((after, ""));
    let examples =
        examples.strip_prefix("Examples:\n").or_else(|| examples.strip_prefix("Example:\n")).unwrap_or(examples);
    format!("{before}.SH EXAMPLES\n.nf\n{examples}.fi\n.SH {after}")
}
