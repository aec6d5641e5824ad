//! Changes as commands for a shell.

use std::net::IpAddr;
use thalweg_model::{Change, Setting, Side};

/// The commands that apply changes, one a line, each with the host it is for. Metrics of one host's route are one command: each replaces the
/// whole route.
pub fn apply(changes: &[Change]) -> Vec<String> {
    lines(changes, peer).into_iter().map(|line| line.apply()).collect()
}

/// The commands that undo them.
pub fn undo(changes: &[Change]) -> Vec<String> {
    lines(changes, peer).into_iter().rev().map(|line| line.undo()).collect()
}

/// The commands that apply changes between these ends, each `ip:port`.
pub fn between(changes: &[Change], client: &str, server: &str) -> Vec<String> {
    lines(changes, ends(client, server)).into_iter().map(|line| line.apply()).collect()
}

/// The commands that undo what [`between`] applies.
pub fn undo_between(changes: &[Change], client: &str, server: &str) -> Vec<String> {
    lines(changes, ends(client, server)).into_iter().rev().map(|line| line.undo()).collect()
}

/// What one command sets.
enum Line<'a> {
    /// A sysctl or a socket option.
    One(&'a Change),
    /// All metrics of the route to a host's peer.
    Route { side: Side, peer: Peer<'a>, metrics: Vec<&'a Change> },
}

/// The other end, as a host has a route to it.
#[derive(Clone, Copy)]
enum Peer<'a> {
    /// By its address, or a word in the place of one.
    Address(&'a str),
    /// The address is private, and the host sees another in its place.
    Translated { own: &'a str, far: &'a str },
}

impl Line<'_> {
    fn apply(&self) -> String {
        match self {
            Self::One(change) => command(change, Some(&change.to)),
            Self::Route { side, peer, metrics } => on(*side, &peer.route(metrics)),
        }
    }

    fn undo(&self) -> String {
        match self {
            Self::One(change) => command(change, change.from.as_deref()),
            Self::Route { side, peer, .. } => on(*side, &peer.route_before()),
        }
    }
}

/// The commands' contents, in the order of the changes; a route is where its first metric is.
fn lines<'a>(changes: &'a [Change], peer: impl Fn(Side) -> Peer<'a>) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for change in changes {
        let known = lines.iter_mut().find_map(|line| match line {
            Line::Route { side, metrics, .. } if *side == change.side => Some(metrics),
            _ => None,
        });
        match (&change.setting, known) {
            (Setting::Route(_), Some(metrics)) => metrics.push(change),
            (Setting::Route(_), None) => {
                lines.push(Line::Route { side: change.side, peer: peer(change.side), metrics: vec![change] });
            }
            _ => lines.push(Line::One(change)),
        }
    }
    lines
}

const fn peer<'a>(side: Side) -> Peer<'a> {
    Peer::Address(match side {
        Side::Client => "SERVER_ADDRESS",
        Side::Server => "CLIENT_ADDRESS",
    })
}

fn ends<'a>(client: &'a str, server: &'a str) -> impl Fn(Side) -> Peer<'a> {
    move |side| {
        let (own, far) = if side == Side::Client { (client, server) } else { (server, client) };
        let (own, far) = (address(own), address(far));
        if is_translated(far, own) { Peer::Translated { own, far } } else { Peer::Address(far) }
    }
}

impl Peer<'_> {
    /// A route of the peer's own with these metrics, and else like the one that leads there now, which is often the default route and is left
    /// as it is. That route is kept in a file, the first time, for [`Peer::route_before`].
    fn route(&self, metrics: &[&Change]) -> String {
        let peer = match self.address() {
            Ok(peer) => peer,
            Err(why) => return why,
        };
        let (ip, begin) = (ip(peer), begin(peer));
        let name = |change: &Change| change.setting.name().to_owned();
        let names: Vec<String> = metrics.iter().map(|change| name(change)).collect();
        let set = metrics.iter().filter(|change| change.to != "auto");
        let set: String = set.map(|change| format!(" {} {}", name(change), change.to)).collect();
        format!(
            "{begin}; [ -s $kept ] || {ip} -o route get fibmatch $peer | sed -E '{AS_INPUT}' >$kept; \
             {ip} route replace $peer{set} $(sed -E 's/^[^ ]+//; s/ ({})( lock)? [^ ]+//g' $kept)",
            names.join("|")
        )
    }

    /// The route of the peer's own that was there before [`Peer::route`], or none. What `ip` prints has a prefix length or the word `default`
    /// where the route is not the peer's own.
    fn route_before(&self) -> String {
        match self.address() {
            Ok(peer) => {
                let (ip, begin) = (ip(peer), begin(peer));
                format!(
                    "{begin}; case $(cut -d' ' -f1 $kept) in default|*/*) {ip} route del $peer;; *) {ip} route replace $(cat $kept);; esac; \
                     rm $kept"
                )
            }
            Err(why) => why,
        }
    }

    /// The address, or why there is no command.
    fn address(&self) -> Result<&str, String> {
        match self {
            Self::Translated { own, far } => {
                Err(format!("# no command: {far} is a private address, which {own} sees translated to another"))
            }
            Self::Address(peer) if peer.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback()) => {
                Err(format!("# no command: {peer} is the host itself, to which no route is set"))
            }
            Self::Address(peer) => Ok(peer),
        }
    }
}

/// Makes a route that `ip` prints one that it takes: without the states of links and the remaining lifetime, and without the word for a locked
/// `rto_min`, which `ip` always locks. Source: iproute2 6.1, ip/iproute.c, `print_rta_metrics`, `print_rt_flags` and `iproute_modify`.
const AS_INPUT: &str = r"s/\\//g; s/ (dead|linkdown|pervasive|unresolved|(rt_)?(offload|trap)(_failed)?)//g; s/ expires [^ ]+//; s/ rto_min lock/ rto_min/";

/// The address, and the file that keeps the route to it. The file goes with a restart, as the routes do.
fn begin(peer: &str) -> String {
    format!("peer={peer}; kept=/run/thalweg-route.$peer")
}

fn on(side: Side, text: &str) -> String {
    format!("{text}   # on the {}", side.as_str())
}

/// The address of an end such as `10.0.0.1:80` or `[fd00::1]:80`.
fn address(end: &str) -> &str {
    end.rsplit_once(':').map_or(end, |(address, _)| address).trim_matches(['[', ']'])
}

/// Whether `own` cannot know a peer by this address: it is private, and `own` is not (RFC 1918, RFC 4193, RFC 6598).
fn is_translated(peer: &str, own: &str) -> bool {
    let is_private = |address: &str| {
        address.parse::<IpAddr>().is_ok_and(|address| match address.to_canonical() {
            IpAddr::V4(address) => {
                let [first, second, ..] = address.octets();
                address.is_private() || address.is_link_local() || (first == 100 && second & 0xc0 == 64)
            }
            IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
        })
    };
    is_private(peer) && !is_private(own)
}

fn command(change: &Change, value: Option<&str>) -> String {
    let text = match (&change.setting, value) {
        (Setting::Sysctl(name), Some(value)) => match limit(change, value) {
            // What it is is not known, so it is only ever raised.
            Some(max) => format!(
                "{}sysctl -w {name}=\"$(sysctl -n {name} | awk '{{ print $1, $2, ($3 > {max} ? $3 : {max}) }}')\"",
                keep(name)
            ),
            None if change.from.is_none() => format!("{}sysctl -w {name}=\"{value}\"", keep(name)),
            None => format!("sysctl -w {name}=\"{value}\""),
        },
        (Setting::Sysctl(name), None) => format!("kept={}; sysctl -w {name}=\"$(cat $kept)\" && rm $kept", kept(name)),
        (Setting::Socket(name), Some("auto")) => format!("# in the program: do not set {}", option(name)),
        (Setting::Socket(name), value) if name == "fastopen" => {
            fast_open(change.side, value.is_some_and(|value| value != "false"))
        }
        (Setting::Socket(name), Some("true")) => format!("# in the program: set {} to 1", option(name)),
        (Setting::Socket(name), Some(value)) => {
            format!("# in the program: set {} to {value}{}", option(name), bytes(name, value))
        }
        (Setting::Socket(name), None) => format!("# in the program: leave {} alone", option(name)),
        (Setting::Route(_), _) => unreachable!("invariant: metrics of a route are one command"),
    };
    on(change.side, &text)
}

/// Where the value of a sysctl that was not known is kept until it is undone, or the host restarts.
fn kept(name: &str) -> String {
    format!("/run/thalweg-sysctl.{name}")
}

fn keep(name: &str) -> String {
    format!("kept={}; [ -s $kept ] || sysctl -n {name} >$kept; ", kept(name))
}

fn ip(peer: &str) -> &'static str {
    if peer.contains(':') { "ip -6" } else { "ip" }
}

/// The last of three values, where the ones before it are not known.
fn limit<'a>(change: &Change, value: &'a str) -> Option<&'a str> {
    let mut words = value.split_whitespace();
    let max = words.nth(2).filter(|_| words.next().is_none());
    max.filter(|_| change.from.is_none())
}

/// Fast Open has another option on each side. Source: Linux 4.11, `TCP_FASTOPEN_CONNECT`, include/uapi/linux/tcp.h.
fn fast_open(side: Side, on: bool) -> String {
    match (side, on) {
        (Side::Client, true) => "# in the program: set TCP_FASTOPEN_CONNECT to 1".to_owned(),
        (Side::Server, true) => {
            "# in the program: set TCP_FASTOPEN to the length of its queue, such as 1024".to_owned()
        }
        (Side::Client, false) => "# in the program: do not set TCP_FASTOPEN_CONNECT".to_owned(),
        (Side::Server, false) => "# in the program: do not set TCP_FASTOPEN".to_owned(),
    }
}

/// A rate as the option takes it.
fn bytes(name: &str, value: &str) -> String {
    let rate = value.parse::<thalweg_units::Rate>().ok().filter(|_| name == "max_pacing_rate");
    rate.map_or_else(String::new, |rate| format!(" ({} bytes per second)", rate.bytes_per_second()))
}

/// The kernel's name of a socket option.
fn option(name: &str) -> String {
    match name {
        "sndbuf" | "rcvbuf" | "max_pacing_rate" => format!("SO_{}", name.to_uppercase()),
        _ => format!("TCP_{}", name.to_uppercase()),
    }
}
