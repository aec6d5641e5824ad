//! What can be typed after `thalweg tune attach`, `attached`, `detach` and `canary`.

use clap::Args as ClapArgs;
use std::net::IpAddr;
use std::path::PathBuf;
use thalweg_units::{Bytes, Span};

/// Where programs are pinned.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct PinsArgs {
    /// Folder in the BPF file system that the names are in
    #[arg(long, value_name = "DIR", default_value = "/sys/fs/bpf/thalweg")]
    pub(crate) pins: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune attach edge --port 443 --initial-window 40 --share 20\n  thalweg tune attach far --port 443 --to 203.0.113.0/24 --congestion bbr --rto-min 100ms\n  thalweg tune detach edge\n\nA BPF program on a cgroup sets the options when a connection of that local port opens; programs need not be changed or restarted, and open connections stay as they are. It remains until it is detached or the host restarts. Connections of both shares are counted: thalweg tune attached.\n\nNeeds root, or CAP_BPF and CAP_NET_ADMIN. Exit: 0 attached, 2 the command is wrong, 3 this host does not allow it."
)]
pub(crate) struct TuneAttachArgs {
    /// A name for it: small letters, digits and -
    #[arg(value_parser = name)]
    pub(crate) name: String,
    /// Connections of this local port; default: all of the cgroup
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,
    /// Connections to these addresses, such as 203.0.113.0/24 or 2001:db8::/32; default: all
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub(crate) to: Option<(IpAddr, u8)>,
    /// Connections of this cgroup's processes and of those below; default: of all
    #[arg(long, value_name = "DIR")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Connections that get the settings, in percent; the others are counted for comparison
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) share: u8,
    /// Segments of the initial window
    #[arg(long, value_name = "SEGMENTS", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) initial_window: Option<u32>,
    /// Most segments of the congestion window
    #[arg(long, value_name = "SEGMENTS", value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) cwnd_clamp: Option<u32>,
    /// Least retransmission timeout
    #[arg(long, value_name = "TIME")]
    pub(crate) rto_min: Option<Span>,
    /// Longest delay of an acknowledgement
    #[arg(long, value_name = "TIME")]
    pub(crate) delack_max: Option<Span>,
    /// Congestion control, such as bbr
    #[arg(long, value_name = "NAME")]
    pub(crate) congestion: Option<String>,
    /// Bytes whose acknowledgement is timed, from the handshake on
    #[arg(long, value_name = "BYTES", default_value = "100kB")]
    pub(crate) first_bytes: Bytes,
    #[command(flatten)]
    pub(crate) pinned: PinsArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  thalweg tune attached\n  thalweg tune attached --json")]
pub(crate) struct TuneAttachedArgs {
    #[command(flatten)]
    pub(crate) pinned: PinsArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  thalweg tune detach edge")]
pub(crate) struct TuneDetachArgs {
    /// Its name
    #[arg(value_parser = name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) pinned: PinsArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune attach edge --port 443 --initial-window 40 --share 0\n  thalweg tune canary edge --steps 20,30,40 --step-time 15min\n\nThe time until the first bytes are acknowledged, and the share of connections that had resent something by then, are compared between the two shares all the time, by intervals that stay valid however often they are looked at. Harm ends the trial and sets the share to 0.\nCtrl-C sets it back to what it was.\n\nExit: 0 no harm, 1 harm, 2 the command is wrong, 3 this host does not allow it."
)]
pub(crate) struct TuneCanaryArgs {
    /// What is attached
    #[arg(value_parser = name)]
    pub(crate) name: String,
    /// Shares of connections that get the settings, in percent, one after the other
    #[arg(long, value_name = "PERCENT,…", default_value = "20,30,40", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) steps: Vec<u8>,
    /// How long each step takes
    #[arg(long, value_name = "TIME", default_value = "15min")]
    pub(crate) step_time: Span,
    /// How often both shares are compared
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) look: Span,
    /// Probability that the trial finds gain or harm where there is none
    #[arg(long, value_name = "PROBABILITY", default_value = "0.05", value_parser = probability)]
    pub(crate) error: f64,
    #[command(flatten)]
    pub(crate) pinned: PinsArgs,
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=64).contains(&text.len()) && text.chars().all(is_plain) && !text.starts_with('-') {
        Ok(text.to_owned())
    } else {
        Err("a name has up to 64 small letters, digits and -".to_owned())
    }
}

fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().map_err(|_| format!("{address} is no IP address"))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse).ok().filter(|length| *length <= most);
    length.map(|length| (address, length)).ok_or_else(|| format!("the length of a prefix of {address} is 0 to {most}"))
}

fn probability(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "a number such as 0.05".to_owned())?;
    if number > 0.0 && number < 0.5 { Ok(number) } else { Err("between 0 and 0.5".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_and_names_are_checked() {
        assert_eq!(prefix("203.0.113.0/24"), Ok(("203.0.113.0".parse().expect("v4"), 24)));
        assert_eq!(prefix("2001:db8::"), Ok(("2001:db8::".parse().expect("v6"), 128)));
        for wrong in ["203.0.113.0/33", "2001:db8::/129", "10.0.0/8", "example.org/8", "10.0.0.0/", "10.0.0.0/-1"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
        assert!(name("edge-2").is_ok() && name("../x").is_err() && name("").is_err() && name("-x").is_err());
        assert!(probability("0.01").is_ok() && probability("0").is_err() && probability("nan").is_err());
    }
}
