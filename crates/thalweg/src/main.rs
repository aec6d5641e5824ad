//! The `thalweg` command.

/// The doctor keeps small pieces of thousands of connections that come and go, which takes the system's allocator half of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    thalweg_cli::main()
}
