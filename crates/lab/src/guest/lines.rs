//! Lines between two routers in real time: a pair of TUN devices, and the emulator that carries their frames.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_host::cpu_time::CpuTime;
use thalweg_host::netns::NetNs;
use thalweg_host::peer::processor_time;
use thalweg_host::tun::Tun;
use thalweg_host::{HostError, sysctl};
use thalweg_live::{Carriers, Lateness, LiveError, Progress, Wire};
use thalweg_model::{Discipline, Loss, Metric, Metrics, Path, PathDirection, PathVerdict, Queue, Step, Way};
use thalweg_path::{Counters, DropReason};
use thalweg_units::{Seed, Span};

/// What a new namespace has from the host and not from the kernel: the kernel's own defaults, as a lab kernel has them.
///
/// Source: net/ipv4/tcp_ipv4.c, `tcp_sk_init`; net/ipv4/tcp.c, `tcp_init`.
const INHERITED: [(&str, &str); 2] =
    [("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")];
/// The congestion control of every namespace, where nothing else is asked for.
pub(super) const CONGESTION: &str = "cubic";
pub(super) const CONGESTION_SYSCTL: &str = "net.ipv4.tcp_congestion_control";
/// Bits of the network both ends are in.
const NETWORK_BITS: u8 = 24;

/// One end of a link that is to be made: namespace, device, address.
pub(super) type Port<'a> = (&'a NetNs, &'a str, Ipv4Addr);

/// A line; it carries nothing until it is told so.
#[derive(Debug)]
pub(super) struct Line {
    /// Which client it is for.
    number: u32,
    near: End,
    far: End,
    wire: Option<Wire>,
    /// What was asked for.
    path: Path,
}

/// A TUN device in a router.
#[derive(Debug)]
pub(super) struct End {
    pub(super) tun: Arc<Tun>,
    ns: NetNs,
}

/// How true to what was asked something carried frames.
#[derive(Debug, Default)]
pub(super) struct Fidelity {
    pub(super) faults: Vec<String>,
    /// Median, 99th percentile and maximum of the later direction.
    pub(super) late: [Span; 3],
    /// Frames that nobody asked to lose.
    pub(super) lost: u64,
}

impl Fidelity {
    /// Takes note of how late a direction was.
    pub(super) fn add_lateness(&mut self, lateness: &Lateness) {
        let own = [lateness.quantile(0.5), lateness.quantile(0.99), lateness.max()];
        self.late.iter_mut().zip(own).for_each(|(late, own)| *late = own.max(*late));
    }

    fn add(&mut self, other: Self) {
        self.faults.extend(other.faults);
        self.late.iter_mut().zip(other.late).for_each(|(late, other)| *late = other.max(*late));
        self.lost += other.lost;
    }
}

impl End {
    pub(super) fn make((ns, name, address): Port<'_>, mtu: u16) -> Result<Self, LiveError> {
        let tun = ns.run(|| {
            let tun = Tun::create(name, mtu)?;
            tun.set_up(&[(IpAddr::V4(address), NETWORK_BITS)])?;
            Ok(tun)
        });
        let tun = Arc::new(tun.map_err(thalweg_live::no_tun)?);
        Ok(Self { tun, ns: ns.run(|| NetNs::current(name))? })
    }

    /// Frames of its queue that nobody read in time.
    pub(super) fn unread(&self) -> Result<u64, HostError> {
        self.ns.run(|| self.tun.losses()).map(|losses| losses.unread)
    }
}

impl Line {
    /// Makes the devices; `far` is the server's side.
    pub(super) fn between(far: Port<'_>, near: Port<'_>, mtu: u16, number: u32) -> Result<Self, LiveError> {
        let (far, near) = (End::make(far, mtu)?, End::make(near, mtu)?);
        Ok(Self { number, near, far, wire: None, path: Path::default() })
    }

    /// Carries frames from now on.
    pub(super) fn carry(&mut self, path: &Path, seed: Seed, carriers: &Carriers) -> Result<(), LiveError> {
        self.rest()?;
        let own = if self.number <= 1 { seed } else { seed.derive(u64::from(self.number)) };
        self.wire = Some(Wire::start(path, own, carriers, &self.near.tun, &self.far.tun)?);
        self.path = path.clone();
        Ok(())
    }

    /// Changes a direction from now on; why not, where that cannot be.
    pub(super) fn change(&self, way: Way, step: &Step) -> Result<(), String> {
        let changed = self.wire.as_ref().map_or(Ok(()), |wire| wire.handle().change(way, step));
        changed.map_err(|unsupported| unsupported.to_string())
    }

    /// Whether it carries frames.
    pub(super) const fn is_carrying(&self) -> bool {
        self.wire.is_some()
    }

    /// What it carries frames by, with the changes since it began.
    pub(super) fn path(&self) -> Path {
        let Some(wire) = &self.wire else { return self.path.clone() };
        let progress = wire.progress();
        let now = |progress: &Progress| PathDirection::clone(&progress.asked);
        Path { down: now(&progress.down), up: now(&progress.up), ..self.path.clone() }
    }

    /// Carries nothing any more.
    pub(super) fn rest(&mut self) -> Result<(), HostError> {
        self.wire.take().map_or(Ok(()), |wire| wire.finish().map(drop))
    }

    /// How true it was, frames that were not read included.
    pub(super) fn fidelity(&self) -> Result<Fidelity, HostError> {
        let Some(wire) = &self.wire else { return Ok(Fidelity::default()) };
        let mut progress = wire.progress();
        progress.down.lost.unread += self.far.unread()?;
        progress.up.lost.unread += self.near.unread()?;
        let faults = thalweg_live::verdict(&progress).faults;
        let lost = progress.down.lost.in_all() + progress.up.lost.in_all();
        let mut fidelity = Fidelity { faults, lost, ..Fidelity::default() };
        [&progress.down, &progress.up].iter().for_each(|way| fidelity.add_lateness(&way.lateness));
        Ok(fidelity)
    }

    /// Packets that the path dropped and marked, by the figures and labels of the virtual lab.
    pub(super) fn counts(&self) -> Vec<Count> {
        let Some(wire) = &self.wire else { return Vec::new() };
        let progress = wire.progress();
        let ways = [(Way::Down, "down", &progress.down), (Way::Up, "up", &progress.up)];
        ways.into_iter().flat_map(|(way, name, progress)| counts(self.path.direction(way), name, progress)).collect()
    }
}

/// A figure of the virtual lab, the place it is of, and its value.
pub(super) type Count = (&'static str, String, u64);

fn counts(asked: &PathDirection, way: &str, progress: &Progress) -> Vec<Count> {
    let dropped = |reasons: &[DropReason]| -> u64 {
        reasons.iter().map(|reason| progress.counters.dropped(*reason).packets).sum()
    };
    let bottleneck = format!("{way}_bottleneck");
    let mut found: Vec<Count> = lost_on_the_way(asked, way, &progress.counters).into_iter().collect();
    if asked.policer.is_some() {
        found.push(("policed_packets", bottleneck.clone(), dropped(&[DropReason::Policer])));
    }
    if asked.rate.is_some() || asked.trace.is_some() {
        let queue = dropped(&[DropReason::QueueFull, DropReason::QueueManagement]);
        found.push(("dropped_packets", bottleneck.clone(), queue));
    }
    if asked.ecn {
        found.push(("marked_packets", bottleneck.clone(), progress.counters.marked.packets));
    }
    if asked.trace.is_some() {
        found.push(("queue_max_bytes", bottleneck, progress.queue_peak.1.get()));
    }
    found
}

/// Packets that a direction's propagation dropped, where it has one.
pub(super) fn lost_on_the_way(asked: &PathDirection, way: &str, counters: &Counters) -> Option<Count> {
    let reasons = [DropReason::RandomLoss, DropReason::Listed, DropReason::DelayFull];
    let lost = reasons.into_iter().map(|reason| counters.dropped(reason).packets).sum();
    (asked.delay > Span::ZERO || asked.loss != Loss::None)
        .then(|| ("dropped_packets", format!("{way}_propagation"), lost))
}

/// Gives the current namespace the kernel's own defaults where it has the host's; what is refused goes to `skipped`.
pub(super) fn kernel_defaults(skipped: &mut Vec<String>) {
    for (name, value) in INHERITED {
        if let Err(error) = sysctl::write(name, value) {
            skipped.push(format!("the kernel's default: {error}"));
        }
    }
    // A namespace takes only those for its default that anybody may use; sockets get it by their option in any case.
    let _ = sysctl::write(CONGESTION_SYSCTL, CONGESTION);
}

/// Frames that the devices of a namespace dropped, by its /proc/net/dev. What waits in the queue of a line's device, `line`, and is not
/// read is counted by its reader.
pub(super) fn dropped(text: &str, line: &str) -> u64 {
    let of = |row: &str| -> Option<u64> {
        let (name, numbers) = row.split_once(':')?;
        let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let sent = if name.trim() == line { 0 } else { *numbers.get(11)? };
        Some(numbers.get(3)? + sent)
    };
    text.lines().filter_map(of).sum()
}

/// What is emulated, one line for each direction.
pub(super) fn describe(path: &Path) -> Vec<String> {
    let one = |name: &str, direction: &PathDirection| {
        let mut parts = vec![format!("{name}: emulator, delay {}", direction.delay)];
        parts.extend(direction.jitter.as_ref().map(|jitter| format!("jitter {}", jitter.stddev)));
        parts.extend(match direction.loss {
            Loss::None => None,
            Loss::Random(chance) => Some(format!("loss {}", chance.probability)),
            Loss::GilbertElliott { p, r, .. } => Some(format!("loss gilbert-elliott p {p} r {r}")),
            Loss::List { .. } => Some("listed losses".to_owned()),
        });
        parts.extend(direction.policer.map(|policer| format!("policer {}", policer.rate)));
        parts.extend(direction.rate.map(|rate| format!("rate {rate}")));
        parts.extend(direction.trace.as_ref().map(|_| "rate of a trace".to_owned()));
        if direction.rate.is_some() || direction.trace.is_some() {
            let (limit, discipline) = (queue(direction.queue), discipline(direction.discipline));
            parts.push(format!("queue {limit}, {discipline}"));
        }
        parts.join(", ")
    };
    vec![one("down", &path.down), one("up", &path.up)]
}

fn queue(queue: Queue) -> String {
    match queue {
        Queue::Packets(packets) => format!("{packets} packets"),
        Queue::Bytes(bytes) => bytes.to_string(),
        Queue::Time(span) => span.to_string(),
    }
}

const fn discipline(discipline: Discipline) -> &'static str {
    match discipline {
        Discipline::Fifo => "fifo",
        Discipline::Red { .. } => "red",
        Discipline::Codel { .. } => "codel",
        Discipline::FqCodel { .. } => "fq_codel",
        Discipline::Pie { .. } => "pie",
        Discipline::Cake { .. } => "cake",
    }
}

/// Whether all that `carried` frames was as asked for; processor time, lateness and losses go to `metrics`. `lost_by_links` frames are
/// lost besides those of the emulator, and `before` is what this thread had taken when the workload began.
pub(super) fn report(
    carried: Vec<Fidelity>,
    lost_by_links: u64,
    before: CpuTime,
    metrics: &mut Metrics,
) -> PathVerdict {
    let mut all = Fidelity { lost: lost_by_links, ..Fidelity::default() };
    if lost_by_links > 0 {
        all.faults.push(format!(
            "this host's links lost {lost_by_links} frames that nobody asked them to lose: a queue of its kernel was full"
        ));
    }
    carried.into_iter().for_each(|one| all.add(one));
    let Fidelity { faults, late, lost } = all;
    let seconds = |time: CpuTime| (time.user + time.system).as_secs_f64();
    let (own, all) = (CpuTime::of_thread(), processor_time());
    let group = |parts: Vec<(&str, f64)>| {
        Metric::Group(parts.into_iter().map(|(name, value)| (name.to_owned(), Metric::One(value))).collect())
    };
    let programs = own.since(before).and(CpuTime::of_children());
    let cpu = vec![("programs", seconds(programs)), ("path", (all.as_secs_f64() - seconds(own)).max(0.0))];
    let micros = |span: Span| span.as_nanos() as f64 / 1e3;
    let names = ["p50", "p99", "max"];
    metrics.insert("cpu_s".to_owned(), group(cpu));
    metrics.insert("late_us".to_owned(), group(names.into_iter().zip(late.map(micros)).collect()));
    metrics.insert("lost_by_engine".to_owned(), Metric::Count(lost));
    PathVerdict { faithful: faults.is_empty(), faults }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_frames_are_those_of_both_ways_but_for_a_lines_own_queue() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n \
                    inner:    9       9    0    2    0     0          0         0        9       9    0   40    0     0       0          0\n  \
                    eth0:     9       9    0    3    0     0          0         0        9       9    0    5    0     0       0          0\n";
        assert_eq!(dropped(text, "inner"), 10);
        assert_eq!(dropped(text, "other"), 50);
    }
}
