//! What can be typed after `thalweg tune`.

use super::tune_attach::{TuneAttachArgs, TuneAttachedArgs, TuneCanaryArgs, TuneDetachArgs};
use super::tune_congestion::TuneCongestionArgs;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;
use thalweg_model::since::Release;
use thalweg_model::{Code, Side};
use thalweg_tune::catalogue::Kind;
use thalweg_tune::proposal::Purpose;
use thalweg_tune::proposal::format::Format;
use thalweg_units::{Bytes, Rate, Span};

#[derive(Debug, Subcommand)]
pub(crate) enum TuneVerb {
    /// Lists every setting that bears on TCP, with its default
    List(TuneListArgs),
    /// Says what is wrong with a host's settings, and what differs from the kernel's defaults
    Show(TuneShowArgs),
    /// Plans the smallest set of changes for a purpose, or from a diagnosis; changes nothing
    Plan(TunePlanArgs),
    /// Applies a plan, with a journal that is durable before the first write
    Apply(TuneApplyArgs),
    /// Lets an application stay that waits for it
    Confirm(TuneIdArgs),
    /// Restores what an application changed, except for what somebody changed since
    Rollback(TuneRollbackArgs),
    /// Lists applications and what became of them
    Log(TuneLogArgs),
    /// Writes a confirmed application's sysctls into a file that the next boot reads
    Persist(TunePersistArgs),
    /// Sets TCP options of connections as they open, by local port and destination, for a share of them
    Attach(TuneAttachArgs),
    /// Lists what is attached, and what both shares of connections showed
    Attached(TuneAttachedArgs),
    /// Ends what was attached
    Detach(TuneDetachArgs),
    /// Raises the share of connections step by step, and stops where they certainly fare worse
    Canary(TuneCanaryArgs),
    /// Loads a congestion control for messages at fixed periods into this host's kernel
    Congestion(TuneCongestionArgs),
    /// Waits for the confirmation of an application, and undoes it without one
    #[command(hide = true, after_help = "Example:\n  thalweg tune watch 6743fa1c-4d2")]
    Watch(TuneIdArgs),
}

/// What waits for a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Timer {
    Auto,
    Systemd,
    Process,
}

/// Where journals are.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct StateArgs {
    /// Folder of the journals
    #[arg(long, value_name = "DIR", default_value = thalweg_apply::Store::DEFAULT, env = "THALWEG_TUNE_STATE")]
    pub(crate) state: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune plan --purpose live-edge --rtt 100ms --rate 8mbit --json > plan.json\n  thalweg tune apply plan.json --skip-sockets --confirm-within 60s\n  thalweg tune confirm\n\nSocket options are set by the program that has the socket: a plan with one is refused without --skip-sockets.\nWith --confirm-within the timer is a transient unit of systemd, and a unit undoes at the next boot what nobody confirmed; without systemd a process of its own waits. What a plan does not find as it was is refused; so is a second application before the first is confirmed.\n\nExit: 0 applied, 2 the plan cannot be applied, 3 this host does not allow it. In both cases what was written is undone."
)]
pub(crate) struct TuneApplyArgs {
    /// A document of `thalweg tune plan --json`; - is stdin
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Undoes it after this time, such as 60s, unless `thalweg tune confirm` comes before
    #[arg(long, value_name = "TIME")]
    pub(crate) confirm_within: Option<Span>,
    /// What waits for the confirmation: systemd, a process of its own, or the one that this host has
    #[arg(long, value_enum, default_value = "auto", requires = "confirm_within")]
    pub(crate) timer: Timer,
    /// Leaves out socket options, which programs set, instead of refusing the plan
    #[arg(long)]
    pub(crate) skip_sockets: bool,
    #[command(flatten)]
    pub(crate) journals: StateArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  thalweg tune confirm\n  thalweg tune confirm 6743fa1c-4d2")]
pub(crate) struct TuneIdArgs {
    /// The application; default: the one that waits
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) journals: StateArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune rollback\n  thalweg tune rollback 6743fa1c-4d2\n\nExit: 0 all is as it was, 1 something was left alone, 2 there is no such application, 3 this host does not allow it."
)]
pub(crate) struct TuneRollbackArgs {
    /// The application; default: the one that waits
    pub(crate) id: Option<String>,
    /// Leaves it alone if it was confirmed; with none open nothing is done. For timers and the boot
    #[arg(long)]
    pub(crate) unless_confirmed: bool,
    #[command(flatten)]
    pub(crate) journals: StateArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  thalweg tune log\n  thalweg tune log --json")]
pub(crate) struct TuneLogArgs {
    #[command(flatten)]
    pub(crate) journals: StateArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune persist 6743fa1c-4d2\n  thalweg tune persist 6743fa1c-4d2 --file /etc/sysctl.d/95-edge.conf\n\nRoutes are made by the network's own configuration: thalweg tune plan --format networkd, netplan or networkmanager writes that.\n\nExit: 0 written, 1 written without the routes, 2 there is no such application or nobody confirmed it."
)]
pub(crate) struct TunePersistArgs {
    /// The application; it has to be confirmed
    pub(crate) id: String,
    /// The file; what else is in it stays, and a rollback takes the application's lines out again
    #[arg(long, value_name = "FILE", default_value = "/etc/sysctl.d/90-thalweg.conf")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) journals: StateArgs,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune list\n  thalweg tune list rmem wmem\n  thalweg tune list --kind route\n  thalweg tune list --verdict receive-window --kernel 6.1\n\nA name that is listed can be explained: thalweg explain NAME."
)]
pub(crate) struct TuneListArgs {
    /// Only settings whose name or meaning holds one of these words
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
    /// Only settings of this kind: sysctl, route, socket, qdisc, nic, module, bpf
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub(crate) kind: Option<Kind>,
    /// Only settings that answer this verdict, such as receive-window
    #[arg(long, value_name = "CODE", value_parser = code)]
    pub(crate) verdict: Option<Code>,
    /// Only what this Linux release has, with its defaults; default: this host's
    #[arg(long, value_name = "RELEASE", value_parser = super::values::release)]
    pub(crate) kernel: Option<Release>,
    /// What any release has
    #[arg(long, conflicts_with = "kernel")]
    pub(crate) all: bool,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune show\n  thalweg tune show --connections 30000\n  thalweg tune show --from sysctl.conf --kernel 6.1\n  (uname -a; sysctl -a; ip route; ss -ti) 2>/dev/null | thalweg tune show --from -\n\nExit: 0 no trap, 1 a trap was found, 2 the command is wrong, 3 this host cannot be read."
)]
pub(crate) struct TuneShowArgs {
    /// Reads a text instead of this host: sysctl -a, ip route, ss -ti, tc qdisc, uname -a, /proc/meminfo, in any mixture; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Linux release of the host, such as 6.1; default: what the text says, or this host's
    #[arg(long, value_name = "RELEASE", value_parser = super::values::release)]
    pub(crate) kernel: Option<Release>,
    /// Connections the host is to hold at a time; buffers are held against memory for that many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: Option<u64>,
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg tune plan --purpose live-edge --rtt 100ms --rate 8mbit --connections 30000\n  thalweg tune plan --purpose long-fat --rtt 210ms --rate 1gbit --format sysctl.d > 90-thalweg.conf\n  thalweg tune plan --purpose in-vehicle --rtt 500us --rate 1gbit --queue 128KiB --to 10.0.0.0/24 --format ip-route\n  thalweg diagnose slow.pcap --json | thalweg tune plan --diagnosis - --here client\n  thalweg fix slow-download --json | thalweg tune plan --diagnosis - --here client\n  thalweg tune plan --purpose bulk --rtt 35ms --rate 3gbit --json > plan.json && thalweg tune apply plan.json\n\nExit: 0 planned, 1 the format cannot hold all of the plan, 2 the command is wrong, 3 this host cannot be read."
)]
pub(crate) struct TunePlanArgs {
    /// What the host is for: live-edge, bulk, long-fat, in-vehicle
    #[arg(long, value_name = "PURPOSE", value_parser = purpose, required_unless_present = "diagnosis", conflicts_with = "diagnosis", requires_all = ["rtt", "rate"])]
    pub(crate) purpose: Option<Purpose>,
    /// A document of `thalweg diagnose --json` or `thalweg fix --json`; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) diagnosis: Option<PathBuf>,
    /// Which side of the diagnosed connections this host is
    #[arg(long, value_name = "SIDE", value_parser = side, default_value = "server")]
    pub(crate) here: Side,
    /// Round-trip time of the longest path that matters, such as 100ms
    #[arg(long, value_name = "TIME")]
    pub(crate) rtt: Option<Span>,
    /// Rate of one connection, such as 8mbit
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Connections at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) connections: u64,
    /// For in-vehicle: the switch's buffer; default: 128KiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) queue: Option<Bytes>,
    /// Destination of the route that attributes are for, as `ip route` lists it; ::/0 is the default route of IPv6
    #[arg(long, value_name = "PREFIX", default_value = "default", value_parser = destination)]
    pub(crate) to: String,
    /// Plans for the host of a pasted text, as tune show reads it, instead of this one
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Linux release of the host; default: what the text says, or this host's
    #[arg(long, value_name = "RELEASE", value_parser = super::values::release)]
    pub(crate) kernel: Option<Release>,
    /// Writes the configuration of another program: sysctl.d, ip-route, networkd, netplan, networkmanager, ansible
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,
}

fn purpose(text: &str) -> Result<Purpose, String> {
    let known = Purpose::ALL.map(Purpose::name).join(", ");
    Purpose::ALL.into_iter().find(|purpose| purpose.name() == text).ok_or_else(|| format!("known: {known}"))
}

fn format(text: &str) -> Result<Format, String> {
    let known = Format::ALL.map(Format::name).join(", ");
    Format::ALL.into_iter().find(|format| format.name() == text).ok_or_else(|| format!("known: {known}"))
}

fn side(text: &str) -> Result<Side, String> {
    match text {
        "client" => Ok(Side::Client),
        "server" => Ok(Side::Server),
        _ => Err("known: client, server".to_owned()),
    }
}

/// `default`, or an address with or without the bits of a prefix; a bare address is given all of its bits. IPv4's prefix of no bits is
/// `default`.
fn destination(text: &str) -> Result<String, String> {
    let wrong = || "write `default`, or a prefix such as 192.0.2.0/24".to_owned();
    if text == "default" {
        return Ok(text.to_owned());
    }
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits: u8 = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
    match (bits, address) {
        _ if bits > most => Err(wrong()),
        (0, IpAddr::V4(_)) => Ok("default".to_owned()),
        (0, IpAddr::V6(_)) => Ok("::/0".to_owned()),
        _ => Ok(format!("{address}/{bits}")),
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let known = Kind::ALL.map(Kind::name).join(", ");
    Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| format!("known: {known}"))
}

fn code(text: &str) -> Result<Code, String> {
    let known = Code::ALL.map(Code::as_str).join(", ");
    Code::ALL.into_iter().find(|code| code.as_str() == text).ok_or_else(|| format!("known: {known}"))
}

#[cfg(test)]
mod tests {
    use super::destination;

    #[test]
    fn destinations_are_those_of_ip_route() {
        for (text, wanted) in [
            ("default", "default"),
            ("0.0.0.0/0", "default"),
            ("::/0", "::/0"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8:0:0::/48", "2001:db8::/48"),
        ] {
            assert_eq!(destination(text).as_deref(), Ok(wanted));
        }
        for wrong in ["", "host", "10.0.0.0/33", "10.0.0.0/-1"] {
            assert!(destination(wrong).is_err(), "{wrong}");
        }
    }
}
