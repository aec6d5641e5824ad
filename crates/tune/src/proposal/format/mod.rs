//! A plan as the configuration of other programs. What one cannot express is refused by name, with the nearest way that can.

mod ansible;
mod ip_route;
mod netplan;
mod network_manager;
mod networkd;
mod sysctl_d;
mod way;

use crate::route_command;
use std::collections::BTreeMap;
use thalweg_model::{PlannedChange, RouteTarget, Setting, TunePlan};

/// A program's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A file of `/etc/sysctl.d`.
    SysctlD,
    /// Commands of `ip route`.
    IpRoute,
    /// A drop-in of systemd-networkd.
    Networkd,
    /// A file of netplan.
    Netplan,
    /// Commands of NetworkManager's `nmcli`.
    NetworkManager,
    /// Tasks of Ansible.
    Ansible,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::SysctlD, Self::IpRoute, Self::Networkd, Self::Netplan, Self::NetworkManager, Self::Ansible];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysctlD => "sysctl.d",
            Self::IpRoute => "ip-route",
            Self::Networkd => "networkd",
            Self::Netplan => "netplan",
            Self::NetworkManager => "networkmanager",
            Self::Ansible => "ansible",
        }
    }
}

/// A configuration, and what it could not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// The configuration; empty where nothing could be expressed.
    pub text: String,
    /// What was refused.
    pub refused: Vec<Refusal>,
}

/// A change that a format cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The setting.
    pub setting: String,
    /// Why, in a sentence.
    pub why: String,
    /// The nearest way that can.
    pub instead: String,
}

/// Writes a plan in a format.
pub fn emit(plan: &TunePlan, format: Format) -> Emission {
    let mut refused = Vec::new();
    let mut taken = Vec::new();
    for change in &plan.changes {
        match refusal(change, format) {
            Some(refusal) => refused.push(refusal),
            None => taken.push(change),
        }
    }
    let write = match format {
        Format::SysctlD => sysctl_d::write,
        Format::IpRoute => ip_route::write,
        Format::Networkd => networkd::write,
        Format::Netplan => netplan::write,
        Format::NetworkManager => network_manager::write,
        Format::Ansible => ansible::write,
    };
    let text = if taken.is_empty() { String::new() } else { write(plan, &taken) };
    Emission { text, refused }
}

/// What programs call a route's attribute; `None` where they have no name for it.
struct Names {
    /// In `ip route`.
    attribute: &'static str,
    /// systemd-networkd's key, and the release it came with.
    networkd: Option<(&'static str, &'static str)>,
    /// netplan's key, and the release it came with.
    netplan: Option<(&'static str, &'static str)>,
    /// NetworkManager's name.
    network_manager: Option<&'static str>,
}

const fn names(
    attribute: &'static str,
    networkd: Option<(&'static str, &'static str)>,
    netplan: Option<(&'static str, &'static str)>,
    network_manager: Option<&'static str>,
) -> Names {
    Names { attribute, networkd, netplan, network_manager }
}

/// Sources: systemd.network(5); netplan's YAML reference; nm-settings-nmcli(5).
const ATTRIBUTES: [Names; 9] = [
    names("initcwnd", Some(("InitialCongestionWindow", "237")), Some(("congestion-window", "0.102")), Some("initcwnd")),
    names(
        "initrwnd",
        Some(("InitialAdvertisedReceiveWindow", "237")),
        Some(("advertised-receive-window", "0.102")),
        Some("initrwnd"),
    ),
    names("cwnd", None, None, Some("cwnd")),
    // networkd has TCPRetransmissionTimeoutSec, which does not lock it.
    names("rto_min", None, None, Some("rto_min")),
    names("quickack", Some(("QuickAck", "237")), None, Some("quickack")),
    names("congctl", Some(("TCPCongestionControlAlgorithm", "252")), None, None),
    names("mtu", Some(("MTUBytes", "237")), Some(("mtu", "0.101")), Some("mtu")),
    names("advmss", Some(("TCPAdvertisedMaximumSegmentSize", "248")), Some(("advertised-mss", "1.1")), Some("advmss")),
    names("fastopen_no_cookie", Some(("FastOpenNoCookie", "243")), None, None),
];

fn attribute(name: &str) -> Option<&'static Names> {
    ATTRIBUTES.iter().find(|names| names.attribute == name)
}

/// systemd-networkd's key of an attribute.
fn networkd_key(name: &str) -> Option<&'static str> {
    attribute(name)?.networkd.map(|(key, _)| key)
}

fn refusal(change: &PlannedChange, format: Format) -> Option<Refusal> {
    let refuse = |setting: &str, why: &str, instead: &str| {
        Some(Refusal { setting: setting.to_owned(), why: why.to_owned(), instead: instead.to_owned() })
    };
    match &change.setting {
        Setting::Socket(name) => refuse(
            &socket_option(name),
            "A socket option is set by the program that has the socket; no configuration of the system reaches it.",
            &format!("setsockopt in the program, or its own configuration: {} {}", socket_option(name), change.to),
        ),
        Setting::Sysctl(name) => match format {
            Format::SysctlD | Format::Ansible => None,
            Format::IpRoute | Format::Networkd | Format::Netplan | Format::NetworkManager => refuse(
                name,
                &format!("{} holds no sysctls.", format.name()),
                "--format sysctl.d, a file in /etc/sysctl.d",
            ),
        },
        Setting::Route(name) => {
            let setting = format!("route attribute {name}");
            let (why, instead) = match (attribute_refusal(name, format), &change.route) {
                (Some(refusal), _) => refusal,
                (None, Some(route)) => (
                    route_refusal(route, format)?,
                    "thalweg tune apply of the plan, which changes the route in place and leaves its other parts"
                        .to_owned(),
                ),
                (None, None) => return None,
            };
            refuse(&setting, &why, &instead)
        }
    }
}

/// Why a format cannot hold a route's attribute, and what can.
fn attribute_refusal(name: &str, format: Format) -> Option<(String, String)> {
    let names = attribute(name);
    let networkd = names.is_some_and(|names| names.networkd.is_some());
    let can = match format {
        Format::IpRoute => true,
        Format::SysctlD => false,
        Format::Networkd | Format::Ansible => networkd,
        Format::Netplan => names.is_some_and(|names| names.netplan.is_some()),
        Format::NetworkManager => names.is_some_and(|names| names.network_manager.is_some()),
    };
    if can {
        return None;
    }
    let instead = match format {
        Format::Netplan if networkd => {
            "--format networkd: a drop-in for the same device next to netplan's file, in /etc/systemd/network"
        }
        _ if networkd => "--format networkd, or --format ip-route in a dispatcher hook",
        _ => "--format ip-route, in a hook of networkd-dispatcher or NetworkManager's dispatcher.d",
    };
    let why = match format {
        // Source: systemd, src/network/networkd-route-metric.c, `route_metric_set_netlink_message`; Linux `tcp_rto_min`.
        Format::Networkd | Format::Ansible if name == "rto_min" => {
            "networkd's TCPRetransmissionTimeoutSec does not lock it, and the kernel ignores it unlocked.".to_owned()
        }
        _ => format!("{} has no name for it.", format.name()),
    };
    Some((why, instead.to_owned()))
}

/// Why a format cannot repeat the rest of a route.
fn route_refusal(route: &RouteTarget, format: Format) -> Option<String> {
    match format {
        Format::SysctlD => None,
        Format::IpRoute => route_command::words(route).err().map(|unwritten| unwritten.why().to_owned()),
        Format::Networkd | Format::Ansible | Format::Netplan | Format::NetworkManager => way::way(route, format).err(),
    }
}

/// The kernel's name of a socket option.
fn socket_option(name: &str) -> String {
    let entry = crate::catalogue::find(&format!("socket:{name}")).into_iter().next();
    entry.map_or_else(|| name.to_owned(), |entry| entry.name.clone())
}

/// Changes of routes, by route, with the way of each in a file of `format`; what has none was refused.
fn by_way<'a>(changes: &[&'a PlannedChange], format: Format) -> Vec<(way::Way<'a>, Vec<(&'a str, &'a str)>)> {
    let way = |(route, attributes)| Some((way::way(route, format).ok()?, attributes));
    by_route(changes).into_iter().filter_map(way).collect()
}

/// Changes of routes, by route.
fn by_route<'a>(changes: &[&'a PlannedChange]) -> BTreeMap<&'a RouteTarget, Vec<(&'a str, &'a str)>> {
    let mut routes: BTreeMap<&RouteTarget, Vec<(&str, &str)>> = BTreeMap::new();
    for change in changes {
        if let (Setting::Route(name), Some(route)) = (&change.setting, &change.route) {
            routes.entry(route).or_default().push((name, &change.to));
        }
    }
    routes
}

/// Changes of sysctls.
fn sysctls<'a>(changes: &[&'a PlannedChange]) -> Vec<(&'a str, &'a PlannedChange)> {
    let one = |change: &&'a PlannedChange| match &change.setting {
        Setting::Sysctl(name) => Some((name.as_str(), *change)),
        _ => None,
    };
    changes.iter().filter_map(one).collect()
}

/// What a file begins with.
fn header(plan: &TunePlan) -> String {
    let kernel = plan.kernel.as_ref().map(|kernel| format!(", for Linux {kernel}")).unwrap_or_default();
    format!("# thalweg tune plan: {}{kernel}\n", plan.purpose)
}
