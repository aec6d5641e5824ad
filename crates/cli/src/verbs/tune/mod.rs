//! `thalweg tune`: this host's settings.

mod apply;
mod attach;
mod canary;
mod congestion;
mod failure;
mod list;
mod log;
mod plan;
mod show;
mod this_host;
mod timer;

use crate::args::tune::TuneVerb;
use crate::failure::Failure;
use crate::output::Output;
use std::process::ExitCode;
use thalweg_model::since::{self, Release};

pub(crate) fn run(verb: TuneVerb, output: &Output) -> Result<ExitCode, Failure> {
    match verb {
        TuneVerb::List(args) => list::run(&args, output),
        TuneVerb::Plan(args) => plan::run(&args, output),
        TuneVerb::Apply(args) => apply::run(&args, output),
        TuneVerb::Confirm(args) => apply::confirm(&args, output),
        TuneVerb::Rollback(args) => apply::rollback(&args, output),
        TuneVerb::Log(args) => log::run(&args, output),
        TuneVerb::Persist(args) => apply::persist(&args, output),
        TuneVerb::Watch(args) => timer::watch(&args),
        TuneVerb::Attach(args) => attach::run(&args, output),
        TuneVerb::Attached(args) => attach::list(&args, output),
        TuneVerb::Detach(args) => attach::detach(&args, output),
        TuneVerb::Canary(args) => canary::run(&args, output),
        TuneVerb::Congestion(args) => congestion::run(&args, output),
        TuneVerb::Show(args) => show::run(&args, output),
    }
}

/// The release of the kernel that runs here.
fn running() -> Option<Release> {
    since::release(&thalweg_host::sysctl::read("kernel.osrelease").ok()?)
}
