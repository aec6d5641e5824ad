//! What a host needs for a purpose.

use super::draft::{Draft, Raise};
use super::{Demand, NoRoute};
use crate::buffers::{MARGIN, MOST, TIMES_BDP, window_share};
use crate::show::{bytes, grouped};
use crate::state::HostState;
use crate::{human_time, round_up};
use thalweg_model::TunePlan;
use thalweg_units::figures::counted;

/// Payload of a full segment: Ethernet's 1500 bytes without headers and timestamps.
const SEGMENT: u64 = 1448;
/// What Linux begins with. Source: RFC 6928, Linux `TCP_INIT_CWND`.
const USUAL_WINDOW: u64 = 10;
/// The largest initial window that is proposed; see `initial_window`.
const LARGEST_WINDOW: u64 = 40;
/// Unsent data of a live stream: a quarter of a second of 4 Mb/s. Source: the value of TuneD's network-throughput profile.
const UNSENT: u64 = 128 << 10;
/// Bytes of a page.
const PAGE: u64 = 4096;
/// A shared buffer of small switches, which a burst of all senders must fit in.
const SWITCH_BUFFER: u64 = 128 << 10;
/// Before it BBR is paced by the qdisc fq alone.
const PACES_ITSELF: (u32, u32) = (4, 13);
/// Linux 5.4 and later queue this many connections.
const ACCEPT_QUEUE: u64 = 4096;
/// The largest window without the window scale option. Source: RFC 7323 section 2.1.
const UNSCALED_MAX: u64 = 65_535;
/// Source: Linux `TCP_RTO_MIN`, include/net/tcp.h.
const RTO_MIN_MS: u64 = 200;
const SCALING: &str = "net.ipv4.tcp_window_scaling";
const SACK: &str = "net.ipv4.tcp_sack";
const CONGESTION: &str = "net.ipv4.tcp_congestion_control";

/// What a host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Sends live streams to many viewers.
    LiveEdge,
    /// Moves large amounts over a few connections.
    Bulk,
    /// Moves large amounts over a long path at a high rate.
    LongFat,
    /// Talks over small switches with short round trips.
    InVehicle,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 4] = [Self::LiveEdge, Self::Bulk, Self::LongFat, Self::InVehicle];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiveEdge => "live-edge",
            Self::Bulk => "bulk",
            Self::LongFat => "long-fat",
            Self::InVehicle => "in-vehicle",
        }
    }
}

/// Plans for a purpose.
///
/// # Errors
/// When the purpose sets attributes of the demand's route, and the host does not have it.
pub fn for_purpose(purpose: Purpose, demand: &Demand, state: &HostState) -> Result<TunePlan, NoRoute> {
    let mut draft = Draft::new(state, purpose.name());
    let bdp = demand.rate.bdp(demand.rtt).get();
    let how = format!("{} × {} ÷ 8", demand.rate, human_time(demand.rtt));
    draft.step("what the path holds (BDP)", how, bytes(bdp));
    match purpose {
        Purpose::LiveEdge => {
            options(&mut draft, bdp);
            send_buffer(&mut draft, demand, bdp);
            initial_window(&mut draft, demand, bdp);
            pacing(&mut draft, demand);
            unsent(&mut draft);
            idle(&mut draft);
            accept_queue(&mut draft, demand);
        }
        Purpose::Bulk | Purpose::LongFat => {
            options(&mut draft, bdp);
            send_buffer(&mut draft, demand, bdp);
            receive_buffer(&mut draft, demand, bdp);
            if purpose == Purpose::LongFat {
                pacing(&mut draft, demand);
            }
        }
        Purpose::InVehicle => in_vehicle(&mut draft, demand, bdp),
    }
    draft.finish()
}

/// Options of TCP without which no buffer has its effect, where somebody switched them off.
fn options(draft: &mut Draft<'_>, bdp: u64) {
    let is_off = |name: &str| draft.state.sysctl(name).is_some_and(|line| line.value == "0");
    let (no_scaling, no_sack) = (is_off(SCALING), is_off(SACK));
    if no_scaling && bdp > UNSCALED_MAX {
        let why =
            format!("Without it no window passes {} bytes, and the path holds {}.", grouped(UNSCALED_MAX), bytes(bdp));
        draft.sysctl(SCALING, "1", Raise::Set, &why, "None known; peers need it, too.");
    }
    if no_sack {
        let why = "Without it a sender repairs one loss a round trip, and stops for timeouts (RFC 2018, RFC 8985).";
        draft.sysctl(SACK, "1", Raise::Set, why, "None known; peers need it, too.");
    }
}

fn send_buffer(draft: &mut Draft<'_>, demand: &Demand, bdp: u64) {
    let wanted = (bdp as f64 * TIMES_BDP) as u64;
    let needed = round_up(wanted.min(MOST)).get();
    let how = format!(
        "{} × {TIMES_BDP:.0}: two windows, and as much again for packets' overhead (tcp_sndbuf_expand){}",
        bytes(bdp),
        rounding(wanted)
    );
    draft.step("send buffer of one connection", how, bytes(needed));
    limited(draft, demand, wanted, "send");
    memory(draft, demand, "tcp_wmem", needed);
    let why = format!(
        "Every byte in flight stays in the send buffer until it is acknowledged: {} for {}.",
        bytes(needed),
        demand.rate
    );
    let risk = "A limit, not an allocation; a slow reader's connection can hold this much.";
    draft.sysctl("net.ipv4.tcp_wmem", &needed.to_string(), Raise::IfLower, &why, risk);
}

fn receive_buffer(draft: &mut Draft<'_>, demand: &Demand, bdp: u64) {
    let scale = draft.state.sysctl("net.ipv4.tcp_adv_win_scale").and_then(|line| line.value.parse().ok());
    let (part, by) = window_share(draft.state.kernel, scale);
    let wanted = (bdp as f64 * MARGIN / part) as u64;
    let needed = round_up(wanted.min(MOST)).get();
    let how = format!(
        "{} × {MARGIN} ÷ {part:.2}: a quarter for the queue in front, and {by}{}",
        bytes(bdp),
        rounding(wanted)
    );
    draft.step("receive buffer of one connection", how, bytes(needed));
    limited(draft, demand, wanted, "receive");
    memory(draft, demand, "tcp_rmem", needed);
    let why = format!("The window offered must reach {} and a quarter.", bytes(bdp));
    let risk = "A limit, not an allocation; a program that does not read can hold this much.";
    draft.sysctl("net.ipv4.tcp_rmem", &needed.to_string(), Raise::IfLower, &why, risk);
    if draft.state.sysctl("net.ipv4.tcp_moderate_rcvbuf").is_some_and(|line| line.value == "0") {
        draft.sysctl(
            "net.ipv4.tcp_moderate_rcvbuf",
            "1",
            Raise::Set,
            "Without it receive buffers do not grow.",
            "None known.",
        );
    }
}

/// What became of a buffer's size: it is rounded up, or cut to the most.
fn rounding(wanted: u64) -> String {
    if wanted > MOST {
        format!("; {}, of which {} is the most that is proposed", bytes(wanted), bytes(MOST))
    } else {
        format!("; {}, rounded up to a whole MiB", bytes(wanted))
    }
}

/// What one connection would need above the most that is proposed for one.
fn limited(draft: &mut Draft<'_>, demand: &Demand, wanted: u64, called: &str) {
    if wanted > MOST {
        let connections = wanted.div_ceil(MOST);
        let more = if demand.connections < connections {
            format!(" Use {} connections.", grouped(connections))
        } else {
            String::new()
        };
        draft.warn(format!(
            "One connection would need a {called} buffer of {}; {} is the most that is proposed, which carries 1/{} of the rate.{more}",
            bytes(wanted),
            bytes(MOST),
            grouped(connections)
        ));
    }
}

/// Worst case of all connections against TCP's memory and the host's.
fn memory(draft: &mut Draft<'_>, demand: &Demand, name: &str, each: u64) {
    let all = each.saturating_mul(demand.connections);
    draft.step(
        &format!("worst case of {name}"),
        format!("{} × {}", counted(demand.connections, "connection"), bytes(each)),
        bytes(all),
    );
    let pages = draft.state.sysctl("net.ipv4.tcp_mem").map(|line| line.value.clone());
    let numbers: Vec<u64> =
        pages.iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect();
    if let [_, pressure, most] = numbers[..]
        && all > pressure.saturating_mul(PAGE)
    {
        draft.warn(format!(
            "If every connection filled its buffer, {} would be needed; tcp_mem begins pressure at {} ({}) and fails at {}. \
             What is unsent is bounded by TCP_NOTSENT_LOWAT, and what is unread by the program.",
            bytes(all),
            bytes(pressure.saturating_mul(PAGE)),
            counted(pressure.saturating_mul(PAGE) / each.max(1), "connection"),
            bytes(most.saturating_mul(PAGE))
        ));
    }
    if let Some(memory) = draft.state.memory_bytes.filter(|memory| all > *memory) {
        draft.warn(format!(
            "The worst case of {name}, {}, is more than the host's memory, {}.",
            bytes(all),
            bytes(memory)
        ));
    }
}

fn initial_window(draft: &mut Draft<'_>, demand: &Demand, bdp: u64) {
    let window = (bdp / SEGMENT).clamp(USUAL_WINDOW, LARGEST_WINDOW);
    let how =
        format!("{} ÷ {SEGMENT} bytes, no less than {USUAL_WINDOW} and no more than {LARGEST_WINDOW}", bytes(bdp));
    draft.step("initial window", how, format!("{window} segments"));
    if window <= USUAL_WINDOW {
        return;
    }
    let trips = (window as f64 / USUAL_WINDOW as f64).log2();
    let why = format!("A first picture takes {trips:.1} round trips less, {} each.", human_time(demand.rtt));
    let risk = "Every connection over this route begins with the burst; a shallow queue drops it. Raise it in steps, 20, 30, 40, and watch retransmissions.";
    draft.route(demand, "initcwnd", &window.to_string(), Raise::IfLower, &why, risk);
}

/// BBR on the route alone: it keeps its rate through loss, and keeps queues short.
fn pacing(draft: &mut Draft<'_>, demand: &Demand) {
    if draft.state.sysctl(CONGESTION).is_some_and(|line| line.value == "bbr") {
        return;
    }
    let why = "Paces at the path's rate, keeps it through random loss, and keeps less in the queue than CUBIC.";
    let risk = "Against CUBIC flows in a shallow shared queue BBR v1 takes more than its share and retransmits more.";
    draft.route(demand, "congctl", "bbr", Raise::Set, why, risk);
    if draft.state.kernel.is_some_and(|kernel| kernel < PACES_ITSELF) {
        let why = "Before Linux 4.13 BBR is paced by the qdisc fq alone.";
        draft.sysctl("net.core.default_qdisc", "fq", Raise::Set, why, "Holds for devices that come up from now on.");
    }
}

fn unsent(draft: &mut Draft<'_>) {
    let why = "No more than this waits unsent, so a stream can be cut where its viewer is slow.";
    let risk = "More wake-ups of the program.";
    draft.socket("notsent_lowat", &UNSENT.to_string(), why, risk);
}

fn idle(draft: &mut Draft<'_>) {
    let why = "A segment or a group of pictures comes after a pause; the window is to be there then.";
    let risk =
        "After a pause a burst as large as the old window meets a path that may have changed; pacing softens it.";
    draft.sysctl("net.ipv4.tcp_slow_start_after_idle", "0", Raise::Set, why, risk);
}

fn accept_queue(draft: &mut Draft<'_>, demand: &Demand) {
    if demand.connections >= 1000 {
        let why = "Viewers come back all at once after a fault.";
        draft.sysctl(
            "net.core.somaxconn",
            &ACCEPT_QUEUE.to_string(),
            Raise::IfLower,
            why,
            "None: the program asks for its backlog.",
        );
    }
}

/// Short round trips, a small shared buffer: short timeouts, and no burst larger than the buffer.
fn in_vehicle(draft: &mut Draft<'_>, demand: &Demand, bdp: u64) {
    let queue = demand.queue.map_or(SWITCH_BUFFER, |queue| queue.get());
    let share = queue / demand.connections.max(1);
    let clamp = ((bdp + share) / SEGMENT).max(USUAL_WINDOW);
    let how = format!(
        "({} + {} ÷ {}) ÷ {SEGMENT} bytes, no less than {USUAL_WINDOW}",
        bytes(bdp),
        bytes(queue),
        counted(demand.connections, "connection")
    );
    draft.step("congestion window that the path and the switch hold", how, format!("{clamp} segments"));
    if (USUAL_WINDOW * SEGMENT).saturating_mul(demand.connections) > bdp + queue {
        draft.warn(format!(
            "{} at once send {} at their beginning, and the path and the switch hold {}: no clamp prevents that loss. Spread the beginnings.",
            counted(demand.connections, "connection"),
            bytes((USUAL_WINDOW * SEGMENT).saturating_mul(demand.connections)),
            bytes(bdp + queue)
        ));
    }
    let why = "No sender puts more on its way than the path and its share of the switch's buffer hold.";
    let risk = "Where the path is longer or the buffer larger than given, the clamp limits the rate.";
    draft.route(demand, "cwnd", &format!("lock {clamp}"), Raise::Set, why, risk);
    shortest_timeout(draft, demand);
    let why = "Peers that have the same shortest timeout wait for these acknowledgements.";
    draft.route(demand, "quickack", "1", Raise::Set, why, "Twice the acknowledgements.");
    let why = "Messages keep fewer than four packets in flight; their timeout then does not double.";
    draft.sysctl(
        "net.ipv4.tcp_thin_linear_timeouts",
        "1",
        Raise::Set,
        why,
        "Six retransmissions at one interval on a path that is away.",
    );
}

/// Shortens the least retransmission timeout of the route; one that is as short already is left alone.
fn shortest_timeout(draft: &mut Draft<'_>, demand: &Demand) {
    let timeout_ms = (4 * demand.rtt.as_micros().div_ceil(1000)).max(5);
    let how = format!("4 × {}, no less than 5 ms", human_time(demand.rtt));
    draft.step("shortest timeout", how, format!("{timeout_ms} ms"));
    let route = draft.state.route_to(&demand.to).and_then(|route| route.attributes.get("rto_min"));
    // The kernel ignores one that is not locked.
    let locked = route.and_then(|value| value.strip_prefix("lock ")?.trim_end_matches("ms").parse::<u64>().ok());
    let host = draft.state.sysctl("net.ipv4.tcp_rto_min_us").and_then(|line| line.value.parse::<u64>().ok());
    let now_ms = locked.or(host.map(|micros| micros / 1000)).unwrap_or(RTO_MIN_MS);
    if timeout_ms >= now_ms {
        draft.enough(format!("the shortest timeout is {now_ms} ms"));
        return;
    }
    let why = format!("A burst that a small buffer drops is repaired after this and not after {now_ms} ms.");
    let risk = "Peers must acknowledge sooner than that: quickack on their route, or timeouts fire in vain.";
    draft.route(demand, "rto_min", &format!("lock {timeout_ms}ms"), Raise::Set, &why, risk);
}
