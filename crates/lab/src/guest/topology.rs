//! Two hosts and the path between them, as namespaces.
//!
//! ```text
//! server ── bottleneck ── propagation ── client
//! ```
//!
//! Each direction passes two routers, and each router's outgoing device has one discipline: first rate and queue, then
//! delay, jitter and loss. Apart, the queue's limit counts what waits and not what is on its way, and a sender's own
//! device never holds a packet back, so captures at the hosts see what their TCP does.

use super::distribution;
use host::link::{self, End};
use host::netns::NetNs;
use host::qdisc::{self, Netem, NetemLoss, Qdisc, Tbf};
use host::{HostError, route, sysctl};
use model::{Distribution, Experiment, HostReport, HostSettings, Loss, PathDirection, Queue, SettingsReport, Side};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use units::{Bytes, Rate, Seed, Span};

/// Name of each host's device.
pub(super) const DEVICE: &str = "eth0";
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 1);
const SERVER_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 254);
const CLIENT_GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 3, 254);
const BOTTLENECK_INNER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 1);
const PROPAGATION_INNER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// Ethernet header: what disciplines count on top of an IP packet.
const LINK_HEADER_BYTES: u64 = 14;
/// Packets a delay holds: more than any path has on its way.
const UNLIMITED_PACKETS: u32 = 50_000_000;
/// A rate that takes no time but makes netem keep packets in order: with a rate it never lets one leave before the one
/// ahead of it. Source: net/sched/sch_netem.c, `netem_enqueue`.
const IN_ORDER: Rate = Rate::from_bits_per_second(8_000_000_000_000_000);
/// Pages TCP may use in the whole guest before it calls that pressure; two hosts with large buffers share it.
const TCP_MEM: &str = "98304 114688 131072";
/// Sysctls reported whether or not a scenario sets them.
const ALWAYS_REPORTED: [&str; 6] = [
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps",
];

/// The namespaces of a run.
#[derive(Debug)]
pub(super) struct Topology {
    pub(super) client: NetNs,
    pub(super) server: NetNs,
    bottleneck: NetNs,
    propagation: NetNs,
}

impl Topology {
    /// Builds everything the experiment asks for.
    pub(super) fn build(experiment: &Experiment, seed: Seed) -> Result<Self, HostError> {
        sysctl::write("net.ipv4.tcp_mem", TCP_MEM)?;
        let names = ["client", "server", "bottleneck", "propagation"];
        let [client, server, bottleneck, propagation] = names.map(NetNs::create);
        let topology = Self { client: client?, server: server?, bottleneck: bottleneck?, propagation: propagation? };
        topology.join(experiment.path.mtu)?;
        topology.shape(experiment, seed)?;
        for (ns, settings, to, gateway) in [
            (&topology.client, &experiment.client, SERVER, CLIENT_GATEWAY),
            (&topology.server, &experiment.server, CLIENT, SERVER_GATEWAY),
        ] {
            ns.run(|| {
                for (name, value) in &settings.sysctl {
                    sysctl::write(name, value)?;
                }
                route::add(to, gateway, &settings.route)
            })?;
        }
        Ok(topology)
    }

    /// The address the other side has, seen from `side`.
    pub(super) const fn peer_of(side: Side) -> Ipv4Addr {
        match side {
            Side::Client => SERVER,
            Side::Server => CLIENT,
        }
    }

    fn join(&self, mtu: u16) -> Result<(), HostError> {
        for (ns, routes) in
            [(&self.client, false), (&self.server, false), (&self.bottleneck, true), (&self.propagation, true)]
        {
            ns.run(|| {
                // No router solicitations or duplicate address detection in the captures.
                sysctl::write("net.ipv6.conf.all.disable_ipv6", "1")?;
                sysctl::write("net.ipv6.conf.default.disable_ipv6", "1")?;
                sysctl::write("net.ipv4.ip_forward", if routes { "1" } else { "0" })?;
                link::set_up(link::LOOPBACK)
            })?;
        }
        let end = |ns, name, address: Ipv4Addr| {
            let [.., net, host] = address.octets();
            End { ns, name, mac: [0x02, 0, 0, 0, net, host], address }
        };
        let pairs = [
            (end(&self.server, DEVICE, SERVER), end(&self.bottleneck, "server", SERVER_GATEWAY)),
            (end(&self.bottleneck, "inner", BOTTLENECK_INNER), end(&self.propagation, "inner", PROPAGATION_INNER)),
            (end(&self.propagation, "client", CLIENT_GATEWAY), end(&self.client, DEVICE, CLIENT)),
        ];
        for (a, b) in &pairs {
            link::connect(a, b, mtu)?;
            for end in [a, b] {
                end.ns.run(|| link::offloads_off(end.name))?;
            }
        }
        self.bottleneck.run(|| route::add(CLIENT, PROPAGATION_INNER, &Default::default()))?;
        self.propagation.run(|| route::add(SERVER, BOTTLENECK_INNER, &Default::default()))
    }

    fn shape(&self, experiment: &Experiment, seed: Seed) -> Result<(), HostError> {
        let path = &experiment.path;
        let attach = |ns: &NetNs, device: &str, stage: Option<Qdisc>| match stage {
            None => Ok(()),
            Some(stage) => ns.run(|| qdisc::attach(link::index(device)?, &stage)),
        };
        attach(&self.bottleneck, "inner", rate_stage(&path.down, path.mtu))?;
        attach(&self.propagation, "client", delay_stage(&path.down, seed.derive(1)))?;
        attach(&self.propagation, "inner", rate_stage(&path.up, path.mtu))?;
        attach(&self.bottleneck, "server", delay_stage(&path.up, seed.derive(2)))
    }

    /// Settings as the kernel has them now; socket options come with the workload's first sockets.
    pub(super) fn read_back(&self, experiment: &Experiment) -> Result<SettingsReport, HostError> {
        let host = |ns: &NetNs, settings: &HostSettings, to: Ipv4Addr| {
            ns.run(|| {
                let names = ALWAYS_REPORTED.into_iter().chain(settings.sysctl.keys().map(String::as_str));
                let sysctl = names.map(|name| Ok((name.to_owned(), sysctl::read(name)?)));
                Ok(HostReport {
                    sysctl: sysctl.collect::<Result<BTreeMap<_, _>, HostError>>()?,
                    route: route::metrics(to)?,
                    socket: BTreeMap::new(),
                })
            })
        };
        let mut path = Vec::new();
        for (way, stage, ns, device) in [
            ("down", "bottleneck", &self.bottleneck, "inner"),
            ("down", "propagation", &self.propagation, "client"),
            ("up", "bottleneck", &self.propagation, "inner"),
            ("up", "propagation", &self.bottleneck, "server"),
        ] {
            let text = ns.run(|| qdisc::describe(link::index(device)?))?;
            if text != "none" && text != "noqueue" {
                path.push(format!("{way} {stage}: {text}"));
            }
        }
        Ok(SettingsReport {
            client: host(&self.client, &experiment.client, SERVER)?,
            server: host(&self.server, &experiment.server, CLIENT)?,
            path,
        })
    }
}

/// Rate and queue. A queue of packets is netem's own serializer, exact at any rate; one of bytes is a token bucket's.
fn rate_stage(direction: &PathDirection, mtu: u16) -> Option<Qdisc> {
    let rate = direction.rate?;
    let frame = u64::from(mtu) + LINK_HEADER_BYTES;
    let bytes = match direction.queue {
        Queue::Packets(packets) => {
            return Some(Qdisc::Netem(Netem { rate: Some(rate), limit: packets, ..Netem::default() }));
        }
        Queue::Bytes(bytes) => bytes,
        Queue::Time(span) => Bytes::new(rate.bdp(span).get().max(frame)),
    };
    // The bucket holds two frames, or what 20 µs send: the wake-up of a queue is never that late in virtual time.
    let burst = Bytes::new((2 * frame).max(rate.bdp(Span::from_micros(20)).get()));
    Some(Qdisc::Tbf(Tbf { rate, burst, limit: bytes, ..Tbf::default() }))
}

fn delay_stage(direction: &PathDirection, seed: Seed) -> Option<Qdisc> {
    let PathDirection { delay, jitter, loss, .. } = direction;
    if *delay == Span::ZERO && jitter.is_none() && *loss == Loss::None {
        return None;
    }
    Some(Qdisc::Netem(Netem {
        delay: *delay,
        jitter: jitter.as_ref().map_or(Span::ZERO, |jitter| jitter.stddev),
        distribution: match jitter {
            Some(jitter) if jitter.distribution == Distribution::Normal => distribution::normal(),
            _ => Vec::new(),
        },
        loss: match *loss {
            Loss::None => NetemLoss::None,
            Loss::Random { probability } => NetemLoss::Random(probability),
            Loss::GilbertElliott { p, r, h, k } => NetemLoss::GilbertElliott([p, r, h, k]),
        },
        rate: jitter.as_ref().filter(|jitter| !jitter.reorder).map(|_| IN_ORDER),
        limit: UNLIMITED_PACKETS,
        seed: seed.get(),
        ..Netem::default()
    }))
}
