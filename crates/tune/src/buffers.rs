//! A buffer of a host holds less than the path: raise what it may grow to, and let it grow.

use crate::facts::{Facts, socket, sysctl};
use crate::{human, human_time, remedy, round_up};
use thalweg_model::since::Release;
use thalweg_model::{Applicability, Change, Code, Remedy, Side};
use thalweg_units::Bytes;

/// The least part of a receive buffer that is offered as window, on kernels that measure it: a small packet costs as much
/// again in overhead. Source: Linux 6.6, `TCP_DEFAULT_SCALING_RATIO` = 128/256, include/net/tcp.h.
const MEASURED_PART: f64 = 0.5;
/// Parts of its limit that a window can come up to: with full packets the payload's part of their memory, 1448 of 2304 bytes. Below half
/// the buffer had not grown to its limit. Source: Linux 6.6, `tcp_measure_rcv_mss`, net/ipv4/tcp_input.c.
const SEEN_PART: std::ops::RangeInclusive<f64> = MEASURED_PART..=1.0;
/// What the window is given beyond what the path holds, for the queue in front of it. More would let a sender that knows only
/// loss fill that queue to the brim.
pub(crate) const MARGIN: f64 = 1.25;
/// The kernel sizes a send buffer for twice the congestion window, overhead included, and the overhead of a packet can be
/// as much as its payload. Source: net/ipv4/tcp_input.c, `tcp_sndbuf_expand`.
pub(crate) const TIMES_BDP: f64 = 4.0;
/// If the path's rate is not known: this multiple of the present limit, then measure again.
const STEP: u64 = 4;
/// The most that is proposed for one connection: 10 Gb/s over 25 ms. Limits raised further and further take a host's memory when
/// many connections use them (bpftune's issues 36, 93, 188); what needs more is better sent over several connections.
pub(crate) const MOST: u64 = 64 << 20;

const PATH_UNKNOWN: &str = "the path's rate is not known";
const OVERRUN: &str = "data out of order needs memory for each packet, up to several times its payload";

/// Linux's own min and default, and its largest max, net/ipv4/tcp.c `tcp_init`.
const USUAL_RMEM: (&str, u64) = ("4096 131072", 6 << 20);
const USUAL_WMEM: (&str, u64) = ("4096 16384", 4 << 20);

const ADV_WIN_SCALE: &str = "net.ipv4.tcp_adv_win_scale";

/// A buffer.
struct Buffer {
    code: Code,
    side: Side,
    /// Its limits: min, default, max.
    sysctl: &'static str,
    /// Linux's own min and default, and its largest max, net/ipv4/tcp.c `tcp_init`.
    usual: (&'static str, u64),
    /// The option that fixes it, as scenarios and as programs call it.
    option: &'static str,
    so: &'static str,
    called: &'static str,
    /// About what it holds now, where its limit is not known.
    holds: u64,
    needed: Option<f64>,
    why: String,
    /// Why it is to hold a few times what it does, where what it needs is not known.
    more_because: &'static str,
    wont_help: &'static str,
}

pub(crate) fn receive(facts: &Facts<'_>) -> Vec<Remedy> {
    let (part, _) = window_part(facts);
    let needed = facts.bdp().map(|bdp| bdp.get() as f64 * MARGIN / part);
    receive_buffer(Code::ReceiveWindow, needed, PATH_UNKNOWN, facts)
}

/// Of a receive buffer that overran: what it needs depends on the memory of each packet, which no capture shows.
pub(crate) fn overrun(facts: &Facts<'_>) -> Vec<Remedy> {
    receive_buffer(Code::ReceiveBufferOverrun, None, OVERRUN, facts)
}

fn receive_buffer(code: Code, needed: Option<f64>, more_because: &'static str, facts: &Facts<'_>) -> Vec<Remedy> {
    let side = facts.receiver();
    let (part, by) = window_part(facts);
    let why = format!("a quarter is for its queue, and {by}");
    let buffer = Buffer {
        code,
        side,
        sysctl: "net.ipv4.tcp_rmem",
        usual: USUAL_RMEM,
        option: "rcvbuf",
        so: "SO_RCVBUF",
        called: "receive buffer",
        // A window that is full is no larger than the flight.
        holds: (facts.measured.window_max_bytes.max(facts.measured.flight_max_bytes) as f64 / part) as u64,
        needed,
        why,
        more_because,
        wont_help: "Connections whose program sets SO_RCVBUF itself (that ends auto-tuning), those already open, and those \
                    that end before their window has grown: for these the initial window decides.",
    };
    buffer.plan(facts, scale_allows_more(facts, side))
}

pub(crate) fn send(facts: &Facts<'_>) -> Vec<Remedy> {
    let buffer = Buffer {
        code: Code::SendBuffer,
        side: facts.sender(),
        sysctl: "net.ipv4.tcp_wmem",
        usual: USUAL_WMEM,
        option: "sndbuf",
        so: "SO_SNDBUF",
        called: "send buffer",
        // Each byte in flight costs up to one more byte of overhead.
        holds: facts.measured.send_buffer_bytes.unwrap_or(facts.measured.flight_max_bytes * 2),
        needed: facts.bdp().map(|bdp| bdp.get() as f64 * TIMES_BDP),
        why: "every byte in flight stays in the buffer, with what its packet costs, until it is acknowledged"
            .to_owned(),
        more_because: PATH_UNKNOWN,
        wont_help: "Connections whose program sets SO_SNDBUF itself (that ends auto-tuning), and a program that has nothing \
                    to send.",
    };
    buffer.plan(facts, false)
}

/// Round trips for which what is behind a loss waits at the receiver: one until the loss is repaired, and another where the repair is lost as well.
/// `buffers_that_outlast_repair_come_true` measures what such buffers gain.
const ROUND_TRIPS_OF_REPAIR: f64 = 2.0;

/// Buffers for a sender that sends on through losses: what is behind one stays in both until it is repaired, and nothing new is sent once one is full.
pub(crate) fn through_losses(facts: &Facts<'_>) -> Option<Remedy> {
    let bdp = facts.bdp()?.get() as f64;
    let (part, _) = window_part(facts);
    let window = (facts.measured.window_max_bytes as f64 / part) as u64;
    let both = [
        (facts.receiver(), "net.ipv4.tcp_rmem", USUAL_RMEM, window, bdp * ROUND_TRIPS_OF_REPAIR / part),
        (facts.sender(), "net.ipv4.tcp_wmem", USUAL_WMEM, 0, bdp * TIMES_BDP),
    ];
    let changes: Vec<Change> = both
        .into_iter()
        .filter_map(|(side, name, usual, holds, needed)| {
            let (first_two, limit) = limits(facts, side, name, usual.0);
            let needed = round_up(needed as u64).get().min(MOST);
            let raised = format!("{first_two} {needed}");
            let limit = limit.unwrap_or(holds.max(usual.1));
            (needed > limit).then(|| facts.set(side, sysctl(name), raised)).flatten()
        })
        .collect();
    let reason = format!(
        "Let the buffers of both hosts hold what arrives while a loss is repaired: the path holds {}, and what is behind a loss stays in \
         both until it is there.",
        human(facts.bdp()?)
    );
    let wont_help =
        "Connections whose program sets SO_RCVBUF or SO_SNDBUF (that ends auto-tuning), and those already open.";
    (!changes.is_empty()).then(|| remedy(Code::RandomLoss, reason, changes, Applicability::Safe, wont_help))
}

/// The min and default of a buffer's sysctl, the `usual` ones where they are not known, and its max where that is.
fn limits(facts: &Facts<'_>, side: Side, name: &str, usual: &str) -> (String, Option<u64>) {
    let words: Vec<&str> = facts.sysctl(side, name).map(|text| text.split_whitespace().collect()).unwrap_or_default();
    let first_two = words.get(..2).map_or_else(|| usual.to_owned(), |two| two.join(" "));
    (first_two, words.get(2).and_then(|max| max.parse().ok()))
}

impl Buffer {
    /// `elsewhere`: another fact shows that the sysctl already allows more than is used.
    fn plan(self, facts: &Facts<'_>, elsewhere: bool) -> Vec<Remedy> {
        let Self { code, side, option, so, called, .. } = self;
        let (first_two, limit) = limits(facts, side, self.sysctl, self.usual.0);
        let (needed, why) = match (self.needed, facts.path_rate) {
            (Some(needed), Some(rate)) => {
                let path = human(facts.bdp().unwrap_or_default());
                let rtt = human_time(facts.rtt);
                (round_up(needed as u64), format!("the path holds {path} ({rate} × {rtt}), {}", self.why))
            }
            _ => (
                round_up((limit.unwrap_or(self.holds) * STEP).max(self.usual.1)),
                format!(
                    "{}: four times what there is, and no less than Linux ships; then measure again",
                    self.more_because
                ),
            ),
        };
        let (needed, why) = if needed.get() > MOST {
            let most = Bytes::new(MOST);
            (most, format!("{why}. That would take {needed}; {most} is the most for one connection, so use several"))
        } else {
            (needed, why)
        };
        let raised = (limit.unwrap_or(self.holds) < needed.get())
            .then(|| facts.set(side, sysctl(self.sysctl), format!("{first_two} {}", needed.get())));
        let is_fixed = facts.fixed_buffers.contains(&(side, option));
        let freed = Change {
            side,
            setting: socket(option),
            from: is_fixed.then(|| "set by the program".to_owned()),
            to: "auto".to_owned(),
        };
        let mut changes: Vec<Change> = raised.flatten().into_iter().collect();
        let grow = |changes| {
            let reason = format!("Let the {called} grow to {needed}: {why}.");
            // It is a limit: a connection's buffer grows to it only where its own rate and round trip ask for it.
            remedy(code, reason, changes, Applicability::Safe, self.wont_help)
        };
        if is_fixed || limit.is_some() {
            // All that matters is known.
            changes.extend(is_fixed.then_some(freed));
            return if changes.is_empty() { Vec::new() } else { vec![grow(changes)] };
        }
        let free = remedy(
            code,
            format!(
                "If the program sets {so}, let it not: that fixes the {called}, at no more than net.core.{}_max allows, and ends \
                 its auto-tuning{}.",
                if side == facts.sender() { "wmem" } else { "rmem" },
                if elsewhere { "; the window scale tells that the system's limit is above what is used" } else { "" }
            ),
            vec![freed],
            Applicability::Safe,
            "",
        );
        let mut both: Vec<Remedy> = (!changes.is_empty()).then(|| grow(changes)).into_iter().collect();
        both.insert(if elsewhere { 0 } else { both.len() }, free);
        both
    }
}

/// The part of the buffer offered as window, and by what: where the limit is known and the window came up to it, what this kernel was seen
/// to offer.
pub(crate) fn window_part(facts: &Facts<'_>) -> (f64, String) {
    let (_, limit) = limits(facts, facts.receiver(), "net.ipv4.tcp_rmem", USUAL_RMEM.0);
    let fixed = facts.fixed_buffers.contains(&(facts.receiver(), "rcvbuf"));
    if let Some(limit) = limit.filter(|limit| *limit > 0 && !fixed) {
        let seen = facts.measured.window_max_bytes as f64 / limit as f64;
        if SEEN_PART.contains(&seen) {
            return (seen, format!("this connection's window was {:.0} % of its buffer", seen * 100.0));
        }
    }
    let known = facts.sysctl(facts.receiver(), ADV_WIN_SCALE).and_then(|text| text.parse::<i32>().ok());
    window_share(facts.kernel, known)
}

/// The part of a receive buffer that a kernel offers as window, and by what. Up to 6.5 it follows from `tcp_adv_win_scale`, 1 by default;
/// later kernels ignore that.
pub(crate) fn window_share(kernel: Option<Release>, adv_win_scale: Option<i32>) -> (f64, String) {
    let measured = "Linux 6.6 and later offers half of the buffer as window, or more";
    if kernel.is_some_and(|kernel| kernel >= (6, 6)) {
        return (MEASURED_PART, measured.to_owned());
    }
    let scale = adv_win_scale.unwrap_or(1).clamp(-31, 31);
    // net/ipv4: `tcp_win_from_space`.
    let part = if scale <= 0 { 0.5f64.powi(-scale) } else { 1.0 - 0.5f64.powi(scale) };
    let before = format!("{:.0} % of it at {ADV_WIN_SCALE} {scale}", part * 100.0);
    match kernel {
        Some((major, minor)) => (part, format!("Linux {major}.{minor} offers {before}")),
        None => (part.min(MEASURED_PART), format!("{measured}; before 6.6 {before}, from there on that is ignored")),
    }
}

/// Whether the window scale shows a limit well above the largest window: the kernel takes it from the larger of `tcp_rmem`'s maximum
/// and `net.core.rmem_max`, unless `SO_RCVBUF` was set before. Source: net/ipv4/tcp_output.c, `tcp_select_initial_window`.
fn scale_allows_more(facts: &Facts<'_>, side: Side) -> bool {
    let scale = match side {
        Side::Client => facts.handshake.wscale_client,
        Side::Server => facts.handshake.wscale_server,
    };
    let window = facts.measured.window_max_bytes;
    // A window is half of its buffer, or a little less where packets are small.
    scale.is_some_and(|scale| window > 0 && window * 3 < (1 << 15) << scale.min(14))
}
