//! The `thalweg` command.

fn main() -> std::process::ExitCode {
    cli::main()
}
