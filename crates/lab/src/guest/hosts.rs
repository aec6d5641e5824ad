//! The hosts of an experiment and what joins them, as namespaces.
//!
//! ```text
//! shared   server ── bottleneck ── propagation ─┬─ client          and a pair of hosts for cross traffic beside them
//!                                               └─ client2
//! own      server ── core ─┬─ bottleneck ── propagation ── client
//!                          └─ bottleneck ── propagation ── client2
//! switch   server ── switch ─┬─ propagation ── client
//!                            └─ propagation ── client2
//! ```
//!
//! Each direction passes two routers, and each router's outgoing device has one discipline: first rate and queue, then
//! delay, jitter and loss. Apart, the queue's limit counts what waits and not what is on its way, and a sender's own
//! device never holds a packet back unless it has a rate of its own, so captures at the hosts see what their TCP does.
//!
//! In real time the line between a bottleneck and a propagation is a pair of TUN devices, and the emulator is both; so it is for a switch,
//! whose hosts each have a router with a TUN device.

use super::Failed;
use super::counters;
use super::device::{Device, Role};
use super::disciplines;
use super::lines::{self, Fidelity, Line, Port};
use super::live_switch::LiveSwitch;
use crate::plan::{Clock, Plan};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use thalweg_host::link::{self, End};
use thalweg_host::netns::NetNs;
use thalweg_host::{HostError, route, sysctl};
use thalweg_live::{Carriers, LiveError};
use thalweg_model::{
    Between, Experiment, HostName, HostReport, HostSettings, Metric, Metrics, Path, RouteSettings, SettingsReport,
    Side, Step, Switch, Way,
};
use thalweg_units::Seed;

/// Name of each host's device.
pub(super) const DEVICE: &str = "eth0";
/// The server, in every topology.
pub(super) const SERVER: HostId = 0;
const ANYWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
/// Name of the device at either end of the line between two routers.
const INNER: &str = "inner";
/// Pages TCP may use in the whole guest before it calls that pressure; all hosts share it.
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

/// A host's number: the server, the clients, then those of cross traffic.
pub(super) type HostId = usize;

/// A host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    /// Which side's settings it has; `None` for hosts of cross traffic.
    pub(super) side: Option<Side>,
    pub(super) ns: NetNs,
    pub(super) address: Ipv4Addr,
}

/// The namespaces of a run.
#[derive(Debug)]
pub(super) struct Topology {
    hosts: Vec<Host>,
    clients: usize,
    routers: Vec<NetNs>,
    /// Devices with a discipline or a program on them; none in real time.
    pub(super) devices: Vec<Device>,
    clock: Clock,
    /// In real time, what joins the routers.
    pub(super) lines: Vec<Line>,
    /// In real time, a switch.
    switch: Option<LiveSwitch>,
    /// Settings that this host refused, one sentence each.
    pub(super) skipped: Vec<String>,
    dropped_before: u64,
}

/// A device and the namespace it is in.
pub(super) type Across<'a> = (&'a NetNs, &'a str);

impl Topology {
    /// Builds the hosts and routers the experiment asks for, with nothing on the path yet.
    pub(super) fn build(plan: &Plan) -> Result<Self, Failed> {
        let experiment = &plan.experiment;
        if plan.clock == Clock::Virtual {
            sysctl::write("net.ipv4.tcp_mem", TCP_MEM)?;
        }
        let clients = experiment.topology.clients;
        let mut topology = Self {
            hosts: Vec::new(),
            clients: clients as usize,
            routers: Vec::new(),
            devices: Vec::new(),
            clock: plan.clock,
            lines: Vec::new(),
            switch: None,
            skipped: Vec::new(),
            dropped_before: 0,
        };
        topology.add_host("server", Some(Side::Server), Ipv4Addr::new(10, 0, 1, 1))?;
        for number in 1..=clients {
            topology.add_host(&HostName::Client(number).to_string(), Some(Side::Client), client_network(number, 1))?;
        }
        match experiment.topology.between {
            Between::Own if clients > 1 => topology.join_own(experiment)?,
            Between::Shared | Between::Own => topology.join_shared(experiment)?,
            Between::Switch(asked) if plan.clock == Clock::Real => topology.plug_in(experiment, asked)?,
            Between::Switch(_) => topology.join_switch(experiment)?,
        }
        let namespaces = topology.hosts.iter().map(|host| &host.ns).chain(&topology.routers);
        namespaces.into_iter().try_for_each(|ns| ns.run(link::wait_until_operational))?;
        topology.set_up(plan)?;
        topology.learn(plan)?;
        Ok(topology)
    }

    /// Whose time the run has.
    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// The host of that number.
    pub(super) fn host(&self, id: HostId) -> &Host {
        &self.hosts[id]
    }

    /// All hosts but those of cross traffic: the server, then the clients.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter().filter(|host| host.side.is_some())
    }

    /// How many hosts there are, those of cross traffic included.
    pub(super) const fn all(&self) -> usize {
        self.hosts.len()
    }

    /// The clients' numbers.
    pub(super) fn clients(&self) -> Vec<HostId> {
        (1..=self.clients).collect()
    }

    /// The number of the host of that name.
    pub(super) const fn id(name: HostName) -> HostId {
        match name {
            HostName::Server => SERVER,
            HostName::Client(number) => number as HostId,
        }
    }

    /// Server and client of cross traffic.
    pub(super) const fn cross(&self) -> (HostId, HostId) {
        (self.clients + 1, self.clients + 2)
    }

    /// The router of that number.
    pub(super) fn router(&self, at: usize) -> &NetNs {
        &self.routers[at]
    }

    /// Where the frames of a device arrive: at the other router's inner device, or, from a switch's port, at the next router or
    /// the server.
    pub(super) fn across(&self, device: &Device) -> Across<'_> {
        let inner = |role: Role, way: Way| {
            self.devices.iter().find(|other| other.role == role && other.way == way && other.number == device.number)
        };
        match (device.role, device.way) {
            (Role::Port, Way::Up) => (&self.hosts[SERVER].ns, DEVICE),
            (Role::Port, Way::Down) => match inner(Role::Propagation, Way::Up) {
                Some(wire) => (&self.routers[wire.router], &wire.interface),
                None => unreachable!("invariant: every client of a switch has a wire"),
            },
            (_, way) => {
                let back = if way == Way::Down { Way::Up } else { Way::Down };
                match inner(Role::Bottleneck, back) {
                    Some(other) => (&self.routers[other.router], &other.interface),
                    None => unreachable!("invariant: a bottleneck has one in the other direction"),
                }
            }
        }
    }

    fn add_host(&mut self, name: &str, side: Option<Side>, address: Ipv4Addr) -> Result<(), HostError> {
        let ns = NetNs::create(name)?;
        prepare(&ns, false)?;
        self.hosts.push(Host { name: name.to_owned(), side, ns, address });
        Ok(())
    }

    fn add_router(&mut self, name: &str) -> Result<usize, HostError> {
        let ns = NetNs::create(name)?;
        prepare(&ns, true)?;
        self.routers.push(ns);
        Ok(self.routers.len() - 1)
    }

    fn join_shared(&mut self, experiment: &Experiment) -> Result<(), Failed> {
        let (bottleneck, propagation) = (self.add_router("bottleneck")?, self.add_router("propagation")?);
        let mut servers = vec![(SERVER, "server".to_owned(), Ipv4Addr::new(10, 0, 1, 254))];
        let mut clients: Vec<(HostId, String, Ipv4Addr)> = self
            .clients()
            .into_iter()
            .map(|id| (id, self.hosts[id].name.clone(), client_network(id as u32, 254)))
            .collect();
        if !experiment.cross.is_empty() {
            self.add_host("cross-server", None, Ipv4Addr::new(10, 0, 9, 1))?;
            self.add_host("cross-client", None, Ipv4Addr::new(10, 0, 8, 1))?;
            let (server, client) = self.cross();
            servers.push((server, "cross".to_owned(), Ipv4Addr::new(10, 0, 9, 254)));
            clients.push((client, "cross".to_owned(), Ipv4Addr::new(10, 0, 8, 254)));
        }
        let (inner_b, inner_p) = (Ipv4Addr::new(10, 0, 2, 1), Ipv4Addr::new(10, 0, 2, 2));
        self.join_routers(experiment, 1, (bottleneck, inner_b), (propagation, inner_p))?;
        for (router, ends) in [(bottleneck, &servers), (propagation, &clients)] {
            for (id, device, gateway) in ends {
                self.attach_host(experiment, *id, (&self.routers[router], device, *gateway))?;
            }
        }
        self.routers[bottleneck].run(|| route::add(ANYWHERE, 0, inner_p, &RouteSettings::default()))?;
        self.routers[propagation].run(|| route::add(ANYWHERE, 0, inner_b, &RouteSettings::default()))?;
        if self.clock == Clock::Real {
            return Ok(());
        }
        self.devices = vec![
            Device::new(Way::Down, Role::Bottleneck, bottleneck, "inner", 1),
            Device::new(Way::Up, Role::Bottleneck, propagation, "inner", 1),
        ];
        for (number, (_, device, _)) in (1u32..).zip(&clients) {
            self.devices.push(Device::new(Way::Down, Role::Propagation, propagation, device, number));
        }
        for (number, (_, device, _)) in (1u32..).zip(&servers) {
            self.devices.push(Device::new(Way::Up, Role::Propagation, bottleneck, device, number));
        }
        Ok(())
    }

    fn join_own(&mut self, experiment: &Experiment) -> Result<(), Failed> {
        let core = self.add_router("core")?;
        self.attach_host(experiment, SERVER, (&self.routers[core], "server", Ipv4Addr::new(10, 0, 1, 254)))?;
        for id in self.clients() {
            let number = id as u32;
            let (bottleneck, propagation) = (self.add_router("bottleneck")?, self.add_router("propagation")?);
            let net = |second: u8, last: u8| Ipv4Addr::new(10, second, number as u8, last);
            let (outer_core, outer_b, inner_b, inner_p) = (net(5, 1), net(5, 2), net(4, 1), net(4, 2));
            let name = format!("path{number}");
            self.link(
                experiment,
                (&self.routers[core], &name, outer_core),
                (&self.routers[bottleneck], "core", outer_b),
            )?;
            self.join_routers(experiment, number, (bottleneck, inner_b), (propagation, inner_p))?;
            self.attach_host(experiment, id, (&self.routers[propagation], "client", client_network(number, 254)))?;
            let to = network(self.hosts[id].address);
            let plain = RouteSettings::default();
            self.routers[core].run(|| route::add(to, 24, outer_b, &plain))?;
            self.routers[bottleneck].run(|| {
                route::add(to, 24, inner_p, &plain)?;
                route::add(ANYWHERE, 0, outer_core, &plain)
            })?;
            self.routers[propagation].run(|| route::add(ANYWHERE, 0, inner_b, &plain))?;
            if self.clock == Clock::Real {
                continue;
            }
            self.devices.extend([
                Device::new(Way::Down, Role::Bottleneck, bottleneck, "inner", number),
                Device::new(Way::Down, Role::Propagation, propagation, "client", number),
                Device::new(Way::Up, Role::Bottleneck, propagation, "inner", number),
                Device::new(Way::Up, Role::Propagation, bottleneck, "core", number),
            ]);
        }
        Ok(())
    }

    fn join_switch(&mut self, experiment: &Experiment) -> Result<(), HostError> {
        let switch = self.add_router("switch")?;
        self.attach_host(experiment, SERVER, (&self.routers[switch], "server", Ipv4Addr::new(10, 0, 1, 254)))?;
        self.devices.push(Device::new(Way::Up, Role::Port, switch, "server", 0));
        for id in self.clients() {
            let number = id as u32;
            let device = self.hosts[id].name.clone();
            let wire = self.add_router("propagation")?;
            let net = |last: u8| Ipv4Addr::new(10, 4, number as u8, last);
            self.link(experiment, (&self.routers[switch], &device, net(1)), (&self.routers[wire], "switch", net(2)))?;
            self.attach_host(experiment, id, (&self.routers[wire], "client", client_network(number, 254)))?;
            let to = network(self.hosts[id].address);
            let plain = RouteSettings::default();
            self.routers[switch].run(|| route::add(to, 24, net(2), &plain))?;
            self.routers[wire].run(|| route::add(ANYWHERE, 0, net(1), &plain))?;
            self.devices.extend([
                Device::new(Way::Down, Role::Port, switch, &device, number),
                Device::new(Way::Down, Role::Propagation, wire, "client", number),
                Device::new(Way::Up, Role::Propagation, wire, "switch", number),
            ]);
        }
        Ok(())
    }

    /// Gives every host a router of its own, whose other device is one of the emulated switch's ports.
    fn plug_in(&mut self, experiment: &Experiment, asked: Switch) -> Result<(), Failed> {
        let mut switch = LiveSwitch::new(asked, experiment.topology.nic);
        for id in 0..=self.clients {
            let router = self.add_router("port")?;
            let (host, name) = (self.hosts[id].address, self.hosts[id].name.clone());
            let gateway = if id == SERVER { Ipv4Addr::new(10, 0, 1, 254) } else { client_network(id as u32, 254) };
            let net = |last: u8| Ipv4Addr::new(10, 4, id as u8, last);
            self.attach_host(experiment, id, (&self.routers[router], &name, gateway))?;
            let end = lines::End::make((&self.routers[router], INNER, net(1)), experiment.path.mtu)?;
            // Nobody is asked where a TUN device's gateway is.
            self.routers[router].run(|| route::add(ANYWHERE, 0, net(2), &RouteSettings::default()))?;
            switch.plug(end, host);
        }
        self.switch = Some(switch);
        Ok(())
    }

    /// Joins the routers of a path, the server's side first; each is given by its number and address.
    fn join_routers(
        &mut self,
        experiment: &Experiment,
        number: u32,
        (bottleneck, inner_b): (usize, Ipv4Addr),
        (propagation, inner_p): (usize, Ipv4Addr),
    ) -> Result<(), Failed> {
        let far = (&self.routers[bottleneck], INNER, inner_b);
        let near = (&self.routers[propagation], INNER, inner_p);
        match self.clock {
            Clock::Virtual => Ok(self.link(experiment, far, near)?),
            Clock::Real => {
                let made = Line::between(far, near, experiment.path.mtu, number)?;
                self.lines.push(made);
                Ok(())
            }
        }
    }

    fn attach_host(&self, experiment: &Experiment, id: HostId, gateway: Port<'_>) -> Result<(), HostError> {
        let host = &self.hosts[id];
        self.link(experiment, (&host.ns, DEVICE, host.address), gateway)?;
        let plain = RouteSettings::default();
        let settings = host.side.map_or(&plain, |side| &settings_of(experiment, side).route);
        host.ns.run(|| route::add(ANYWHERE, 0, gateway.2, settings))
    }

    fn link(&self, experiment: &Experiment, a: Port<'_>, b: Port<'_>) -> Result<(), HostError> {
        let ends = [a, b].map(|(ns, name, address)| {
            let [_, second, net, host] = address.octets();
            End { ns, name, mac: [0x02, 0, 0, second, net, host], address }
        });
        link::connect(&ends[0], &ends[1], experiment.path.mtu)?;
        if !experiment.path.offloads {
            for end in &ends {
                end.ns.run(|| link::offloads_off(end.name))?;
                if self.clock == Clock::Real && end.name != DEVICE {
                    // What a router gets in one burst it carries as one frame, and divides it again on the way out.
                    end.ns.run(|| link::receive_offload_on(end.name))?;
                }
            }
        }
        Ok(())
    }

    /// Sets what the hosts are asked to have.
    fn set_up(&mut self, plan: &Plan) -> Result<(), Failed> {
        let experiment = &plan.experiment;
        let late = if plan.clock == Clock::Real { disciplines::LATE_REAL } else { disciplines::LATE_VIRTUAL };
        let mut skipped = Vec::new();
        let has_programs = experiment.workload.has_programs();
        for host in &self.hosts {
            let settings = host.side.map(|side| settings_of(experiment, side));
            host.ns.run(|| {
                if plan.clock == Clock::Real {
                    lines::kernel_defaults(&mut skipped);
                }
                for (name, value) in settings.iter().flat_map(|settings| &settings.sysctl) {
                    match sysctl::write(name, value) {
                        // The lab's own sockets get it by their option.
                        Err(_) if plan.clock == Clock::Real && name == lines::CONGESTION_SYSCTL && !has_programs => {}
                        Err(error) if plan.clock == Clock::Real && plan.alike.contains(name) => {
                            skipped.push(format!("{}: {error}", host.name));
                        }
                        other => drop(other?),
                    }
                }
                Ok(())
            })?;
            if let (Some(nic), Some(_)) = (&experiment.topology.nic, settings) {
                let attached = host.ns.run(|| disciplines::attach_nic(DEVICE, nic, experiment.path.mtu, late));
                attached.map_err(no_card)?;
            }
        }
        skipped.dedup();
        self.skipped = skipped;
        Ok(())
    }

    /// Settings as the kernel has them now; socket options come with the workload's first sockets.
    pub(super) fn read_back(&self, experiment: &Experiment) -> Result<SettingsReport, HostError> {
        let host = |host: &Host, settings: &HostSettings, to: Ipv4Addr| {
            host.ns.run(|| {
                let names = ALWAYS_REPORTED.into_iter().chain(settings.sysctl.keys().map(String::as_str));
                // In real time a setting that was skipped may not be there.
                let there = names.filter(|name| self.clock == Clock::Virtual || sysctl::read(name).is_ok());
                let sysctl = there.map(|name| Ok((name.to_owned(), sysctl::read(name)?)));
                Ok(HostReport {
                    sysctl: sysctl.collect::<Result<BTreeMap<_, _>, HostError>>()?,
                    route: route::metrics(to)?,
                    socket: BTreeMap::new(),
                })
            })
        };
        let mut path = Vec::new();
        for device in self.devices.iter().filter(|device| device.number <= 1) {
            path.extend(device.describe(self.router(device.router))?);
        }
        if self.clock == Clock::Real {
            path.extend(self.emulated(&experiment.path));
        }
        let (server, client) = (&self.hosts[SERVER], &self.hosts[1]);
        Ok(SettingsReport {
            client: host(client, &experiment.client, server.address)?,
            server: host(server, &experiment.server, client.address)?,
            path,
        })
    }

    /// What the emulator is, one line each; `asked` where no line has begun to carry frames.
    pub(super) fn emulated(&self, asked: &Path) -> Vec<String> {
        let path = self.lines.first().filter(|line| line.is_carrying()).map_or_else(|| asked.clone(), Line::path);
        self.switch.as_ref().map(LiveSwitch::describe).into_iter().chain(lines::describe(&path)).collect()
    }

    /// Makes hosts whose routes have a `cwnd` or `ssthresh` take note of them: the kernel has them from its cache of metrics.
    fn learn(&mut self, plan: &Plan) -> Result<(), Failed> {
        let cached = |settings: &HostSettings| settings.route.cwnd.is_some() || settings.route.ssthresh.is_some();
        if !cached(&plan.experiment.client) && !cached(&plan.experiment.server) {
            return Ok(());
        }
        // Nothing of the path is to be seen: the cache has round-trip times, too.
        let plain = Path { mtu: plan.experiment.path.mtu, ..Path::default() };
        self.carry(&plain, plan.seed)?;
        for client in self.clients() {
            let (server, client) = (&self.hosts[SERVER], &self.hosts[client]);
            route::learn(&server.ns, &client.ns, server.address)?;
        }
        self.lines.iter_mut().try_for_each(Line::rest)?;
        Ok(self.switch.as_mut().map_or(Ok(()), LiveSwitch::rest)?)
    }

    /// Carries packets over the lines from now on.
    pub(super) fn carry(&mut self, path: &Path, seed: Seed) -> Result<(), LiveError> {
        self.dropped_before = self.dropped_by_links()?;
        self.switch.as_mut().map_or(Ok(()), |switch| switch.carry(path, seed))?;
        let carriers = Carriers::default();
        self.lines.iter_mut().try_for_each(|line| line.carry(path, seed, &carriers))
    }

    /// Changes these directions of every path from now on; why not, where that cannot be.
    pub(super) fn change(&self, ways: &[Way], step: &Step) -> Result<(), String> {
        if self.switch.is_some() {
            return Err("its hosts are on a switch, whose ports and wires stay as they began".to_owned());
        }
        let all = self.lines.iter().flat_map(|line| ways.iter().map(move |way| (line, *way)));
        all.into_iter().try_for_each(|(line, way)| line.change(way, step))
    }

    /// How true to what was asked lines and switch have been.
    pub(super) fn fidelity(&self) -> Result<Vec<Fidelity>, HostError> {
        let switch = self.switch.iter().map(LiveSwitch::fidelity);
        self.lines.iter().map(Line::fidelity).chain(switch).collect()
    }

    /// Frames that links dropped since packets are carried, as a queue of this host's kernel was full.
    pub(super) fn lost_by_links(&self) -> Result<u64, HostError> {
        Ok(self.dropped_by_links()?.saturating_sub(self.dropped_before))
    }

    fn dropped_by_links(&self) -> Result<u64, HostError> {
        let namespaces = self.hosts.iter().map(|host| &host.ns).chain(&self.routers);
        let dropped = |ns: &NetNs| counters::read(ns, "dev").map(|text| lines::dropped(&text, INNER));
        namespaces.map(dropped).sum()
    }

    /// Packets that the path dropped and marked, by direction and role.
    pub(super) fn losses(&self) -> Result<Metrics, HostError> {
        let mut sums: BTreeMap<&'static str, BTreeMap<String, u64>> = BTreeMap::new();
        for device in &self.devices {
            for (figure, count) in device.counts(self.router(device.router))? {
                *sums.entry(figure).or_default().entry(device.label()).or_default() += count;
            }
        }
        let emulated = self.lines.iter().flat_map(Line::counts).chain(self.switch.iter().flat_map(LiveSwitch::counts));
        for (figure, label, count) in emulated {
            *sums.entry(figure).or_default().entry(label).or_default() += count;
        }
        let group = |counts: BTreeMap<String, u64>| {
            Metric::Group(counts.into_iter().map(|(name, count)| (name, Metric::Count(count))).collect())
        };
        Ok(sums.into_iter().map(|(name, counts)| (name.to_owned(), group(counts))).collect())
    }
}

/// The settings of a side.
fn settings_of(experiment: &Experiment, side: Side) -> &HostSettings {
    match side {
        Side::Client => &experiment.client,
        Side::Server => &experiment.server,
    }
}

/// Why a host's card has no rate; only a kernel that is not ours may lack what gives it one.
fn no_card(error: HostError) -> Failed {
    let is_missing = error.source.kind() == std::io::ErrorKind::NotFound;
    let hint = if is_missing { "\n\nhint: the kernel's token bucket is a module: sudo modprobe sch_tbf" } else { "" };
    Failed(format!("{error}{hint}"))
}

/// An address in a client's own network.
const fn client_network(number: u32, last: u8) -> Ipv4Addr {
    if number == 1 { Ipv4Addr::new(10, 0, 3, last) } else { Ipv4Addr::new(10, 3, number as u8, last) }
}

const fn network(address: Ipv4Addr) -> Ipv4Addr {
    let [a, b, c, _] = address.octets();
    Ipv4Addr::new(a, b, c, 0)
}

fn prepare(ns: &NetNs, routes: bool) -> Result<(), HostError> {
    ns.run(|| {
        // No router solicitations or duplicate address detection in the captures; a host may have no IPv6 at all.
        for name in ["net.ipv6.conf.all.disable_ipv6", "net.ipv6.conf.default.disable_ipv6"] {
            match sysctl::write(name, "1") {
                Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => {}
                other => drop(other?),
            }
        }
        sysctl::write("net.ipv4.ip_forward", if routes { "1" } else { "0" })?;
        link::set_up(link::LOOPBACK)
    })
}
