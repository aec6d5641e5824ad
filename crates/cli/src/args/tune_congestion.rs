//! What can be typed after `thalweg tune congestion`.

use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune congestion load\n  ip route change 192.168.1.0/24 dev eth0 congctl periodic initcwnd 4\n  thalweg tune congestion unload\n\n'periodic' is for messages at fixed periods through a switch whose buffer is known and small; the route's initcwnd is a connection's share of it. See docs/periodic.md. It is a BPF program, and remains until it is unloaded or the host restarts.\n\nNeeds root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and Linux 6.4. Exit: 0 done, 2 the command is wrong, 3 this host does not allow it."
)]
pub(crate) struct TuneCongestionArgs {
    #[command(subcommand)]
    pub(crate) verb: TuneCongestionVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TuneCongestionVerb {
    /// Registers 'periodic' with this host's kernel
    #[command(after_help = "Example:\n  thalweg tune congestion load")]
    Load(PinArgs),
    /// Removes it; connections that use it keep it until they end
    #[command(after_help = "Example:\n  thalweg tune congestion unload")]
    Unload(PinArgs),
    /// Lists the congestion controls of this host
    #[command(after_help = "Example:\n  thalweg tune congestion list --json")]
    List(PinArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PinArgs {
    /// Its name in the BPF file system
    #[arg(long, value_name = "FILE", default_value = "/sys/fs/bpf/thalweg-periodic")]
    pub(crate) pin: PathBuf,
}
