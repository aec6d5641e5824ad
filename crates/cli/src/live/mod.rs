//! `diagnose --live` and `fix --live`: this host's own connections, from its packets or from samples of its sockets.

mod packets;
mod process;
mod sockets;

pub(crate) use packets::{record_to, refused, watch};
pub(crate) use process::filter_of;
pub(crate) use sockets::NAME;

use thalweg_model::HostReport;
use thalweg_model::since::{self, Release};
use thalweg_pipeline::diagnose::Remedies;

/// How remedies are planned where this host is one end: for its settings, and for `kernel` or else its own release.
pub(crate) fn remedies(kernel: Option<Release>) -> Remedies {
    let running = || since::release(&thalweg_host::sysctl::read("kernel.osrelease").ok()?);
    let read = |name: &str| Some((name.to_owned(), thalweg_host::sysctl::read(name).ok()?));
    let sysctl = Remedies::SYSCTLS.into_iter().filter_map(read).collect();
    Remedies { kernel: kernel.or_else(running), own: Some(HostReport { sysctl, ..HostReport::default() }) }
}
