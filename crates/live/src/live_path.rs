//! A path in real time between two namespaces, and the programs at its ends.

use crate::address::{self, Family};
use crate::capture::Capture;
use crate::carriers::Carriers;
use crate::direction::{Arrived, Hooks, Leaves, Progress};
use crate::error::{LiveError, no_tun};
use crate::frame::Frame;
use crate::handle::Handle;
use crate::outside::{self, Gate, Reach};
use crate::per_way::PerWay;
use crate::program::Program;
use crate::relays::Relays;
use crate::resolver;
use crate::site::{Site, spawn};
use crate::tcp_settings::TcpSettings;
use crate::wire::Wire;
use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_host::confined::ReplacedFile;
use thalweg_host::tun::Tun;
use thalweg_host::user_namespace::{self, Privilege};
use thalweg_host::{HostError, link, sockets, sysctl};
use thalweg_model::Path;
use thalweg_units::Seed;

/// The device at either end.
const DEVICE: &str = "path0";
/// How often the kernel is asked what is still on its way.
const DRAIN_TICK: Duration = Duration::from_millis(5);

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The path.
    pub path: Path,
    /// Of its losses and delays.
    pub seed: Seed,
    /// Whether programs behind the path reach what this host reaches.
    pub world: bool,
    /// Ports of this host's loopback that lead to the program behind the path.
    pub publish: Vec<u16>,
    /// Ports of the far end, and where on this host's network they lead to.
    pub expose: Vec<(u16, String)>,
    /// Whether a program will run at the far end, to which the far end's ports belong.
    pub has_server: bool,
}

/// An end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Where the client's program runs.
    Near,
    /// Where this host, or a server's program, is reached.
    Far,
}

/// A path between two namespaces, which end with it.
#[derive(Debug)]
pub struct LivePath {
    near: Arc<Site>,
    far: Arc<Site>,
    near_tun: Arc<Tun>,
    far_tun: Arc<Tun>,
    wire: Wire,
    relays: Arc<Relays>,
    capture: Option<Capture>,
    privilege: Privilege,
    files: Vec<ReplacedFile>,
    notes: Vec<String>,
}

/// What is left to say when a path has ended.
#[derive(Debug)]
pub struct Ended {
    /// What each direction did.
    pub progress: PerWay<Progress>,
    /// Packets that the capture lacks, as the disk was too slow; or why it could not be written to its end.
    pub left_out: io::Result<u64>,
}

impl LivePath {
    /// Makes the namespaces and devices, and carries frames from now on. What the program's end sends and receives is written
    /// to `capture`. The first path is to be started while the process has one thread; `carriers` may carry others already.
    ///
    /// # Errors
    /// [`LiveError`], with what to do about it where something can be done.
    pub fn start(asked: &Asked, capture: Option<File>, carriers: &Carriers) -> Result<Self, LiveError> {
        // A path that cannot be emulated is refused before anything is made.
        Wire::check(&asked.path)?;
        let refused = |error| LiveError::NoNamespaces { error, hint: user_namespace::why_refused() };
        let privilege = user_namespace::enter().map_err(refused)?;
        let (near, far) = (Site::new("near").map_err(refused)?, Site::new("far").map_err(refused)?);
        let settings = Arc::new(TcpSettings::read());
        let reach = Reach {
            world: asked.world,
            exposed: asked.expose.clone(),
            has_server: asked.has_server,
            resolver: if asked.world { resolver::of_this_host() } else { None },
        };
        let world: Vec<Family> = Family::ALL.into_iter().filter(|family| asked.world && family.leads_away()).collect();
        let set_up = |site: &Site, end| {
            let (settings, mtu, world) = (Arc::clone(&settings), asked.path.mtu, world.clone());
            site.run(move || end_of_path(end, mtu, &world, &settings))
        };
        let ((near_tun, mut notes), (far_tun, _)) = (set_up(&near, End::Near)?, set_up(&far, End::Far)?);
        notes.retain(|note| !note.is_empty());
        let mut path = Self {
            near: Arc::new(near),
            far: Arc::new(far),
            near_tun: Arc::new(near_tun),
            far_tun: Arc::new(far_tun),
            wire: Wire::new(&asked.path, asked.seed, carriers)?,
            relays: Arc::default(),
            capture: capture.map(Capture::begin).transpose()?,
            privilege,
            files: resolver::files(reach.resolver.is_some()),
            notes,
        };
        asked.publish.iter().try_for_each(|port| outside::publish(&path.far, *port, &path.relays))?;
        if let Some(resolver) = reach.resolver {
            let bind = || UdpSocket::bind((address::far(Family::V4), 53));
            let socket = path.far.run(bind);
            let act = || "listen for questions of names".to_owned();
            outside::resolve(socket.map_err(|source| HostError { act: act(), source })?, resolver)?;
        }
        path.carry(Gate::new(reach, &path.far, Arc::clone(&path.relays))?);
        Ok(path)
    }

    /// Starts to carry frames.
    fn carry(&mut self, gate: Option<Gate>) {
        let tap = |capture: &Option<Capture>| capture.as_ref().map(Capture::tap);
        let down = Hooks {
            leaves: tap(&self.capture)
                .map(|tap| Box::new(move |_: &Frame, parts: &[&[u8]]| tap.packet(parts)) as Leaves),
            arrived: None,
        };
        let up = Hooks {
            arrived: tap(&self.capture)
                .map(|tap| Box::new(move |frame: &Frame| tap.packet(&[frame.bytes()])) as Arrived),
            leaves: gate.map(|mut gate| {
                Box::new(move |frame: &Frame, _: &[&[u8]]| {
                    if let Some(to) = frame.opens_connection_to() {
                        gate.prepare(to);
                    }
                }) as Leaves
            }),
        };
        self.wire.carry(&self.near_tun, &self.far_tun, PerWay { down, up });
    }

    /// Starts a program at an end of the path. What it starts ends with it, and all of it with this process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, end: End, command: Command) -> Result<Program, HostError> {
        let site = if end == End::Near { &self.near } else { &self.far };
        Program::start(command, self.privilege, self.files.clone(), |live| {
            site.run(move || spawn("program", live)).map(drop)
        })
    }

    /// Does something in the network namespace of an end; sockets that it makes stay there.
    pub fn within<T: Send + 'static>(&self, end: End, act: impl FnOnce() -> T + Send + 'static) -> T {
        let site = if end == End::Near { &self.near } else { &self.far };
        site.run(act)
    }

    /// Whether a program at this end accepts TCP connections.
    pub fn is_listening(&self, end: End) -> bool {
        self.within(end, sockets::any_listens)
    }

    /// What the directions did until now.
    pub fn progress(&self) -> PerWay<Progress> {
        self.handle().progress()
    }

    /// Something that can look at the path, and change it, from another thread.
    pub fn handle(&self) -> Handle {
        self.wire.handle()
    }

    /// What is not as asked for, one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Waits until what the near end's programs sent before they ended has arrived and has been passed on, at most `most`.
    pub fn drain(&self, most: Duration) {
        let until = Instant::now() + most;
        let is_on_its_way = || sockets::connections().is_ok_and(|all| all.iter().any(|one| one.unacknowledged > 0));
        while self.within(End::Near, is_on_its_way) && Instant::now() < until {
            std::thread::sleep(DRAIN_TICK);
        }
        self.relays.drain(until);
    }

    /// Ends the path: what is still on it is lost.
    ///
    /// # Errors
    /// When a direction failed before.
    pub fn finish(self) -> Result<Ended, HostError> {
        let mut progress = self.wire.finish()?;
        let losses = |site: &Site, tun: &Arc<Tun>| {
            let tun = Arc::clone(tun);
            site.run(move || tun.losses())
        };
        // A device's queue holds what its side sends.
        progress.up.lost.unread += losses(&self.near, &self.near_tun)?.unread;
        progress.down.lost.unread += losses(&self.far, &self.far_tun)?.unread;
        Ok(Ended { progress, left_out: self.capture.map_or(Ok(0), Capture::finish) })
    }
}

/// Makes the device of an end, with its addresses and routes, in the current namespace; and what could not be as on the host.
fn end_of_path(end: End, mtu: u16, world: &[Family], settings: &TcpSettings) -> Result<(Tun, Vec<String>), LiveError> {
    let refused = settings.apply();
    let tun = Tun::create(DEVICE, mtu).map_err(no_tun)?;
    // Neither asks for routers nor reports groups: only programs' packets pass.
    for setting in ["router_solicitations", "mldv2_unsolicited_report_interval"] {
        // Where IPv6 is switched off there is none.
        let _ = sysctl::write(&format!("net.ipv6.conf.{DEVICE}.{setting}"), "0");
    }
    let address = |family| if end == End::Near { address::near(family) } else { address::far(family) };
    tun.set_up(&[(address(Family::V4), Family::V4.bits())])?;
    let mut notes = Vec::new();
    if !refused.is_empty() {
        notes.push(format!("behind the path these settings are not the host's: {}", refused.join(", ")));
    }
    if tun.set_up(&[(address(Family::V6), Family::V6.bits())]).is_err() {
        notes.push("this host has IPv6 switched off: the path has none".to_owned());
    }
    for family in world {
        // The far end takes in everything, whoever it is to.
        let device = if end == End::Near { link::index(DEVICE)? } else { link::LOOPBACK };
        link::add_default_route(device, *family == Family::V6)?;
    }
    Ok((tun, notes))
}
