//! Connections: how they open, recover, and end.

use super::{Look, grouped};
use crate::catalogue::sysctl;
use thalweg_model::{TuneFinding, Weight};
use thalweg_units::figures::counted;

/// RFC 1122 4.2.3.5 asks for 100 s before a connection is broken, which are 8 retransmissions.
const RETRIES2_MIN: u64 = 8;
/// Two SYN retransmissions give up within 3 s since Linux 6.5, and 7 s before.
const SYN_RETRIES_MIN: u64 = 3;
/// Linux's own limit is half of the hash table's buckets, 8,192 and more on hosts with 1 GiB.
const TIME_WAIT_MIN: u64 = 8192;
/// Length of TIME_WAIT. Source: Linux `TCP_TIMEWAIT_LEN`, include/net/tcp.h.
const TIME_WAIT_S: u64 = 60;
/// A delayed acknowledgement of Linux waits this long at the least. Source: Linux `TCP_DELACK_MIN`, include/net/tcp.h.
pub(super) const DELAYED_ACK_US: u64 = 40_000;
/// A third of the range that the kernel gives.
const PORTS_MIN: u64 = 10_000;
/// Before it BBR is paced by the qdisc fq alone. Source: Linux 4.13, `sk_pacing_status`.
const PACES_ITSELF: (u32, u32) = (4, 13);

pub(super) fn findings(look: &Look<'_>) -> Vec<TuneFinding> {
    let rules = [
        fast_open,
        congestion_unavailable,
        unpaced,
        syn_backlog,
        time_wait_cut,
        time_wait_length,
        time_wait_reuse,
        rto_min,
        pacing,
        ports,
    ];
    let mut found: Vec<TuneFinding> = rules.into_iter().filter_map(|rule| rule(look)).collect();
    found.extend(retries(look));
    found.extend(switched_off(look));
    found
}

fn fast_open(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_fastopen";
    let bits = look.number(NAME)?;
    if bits & 3 != 1 {
        return None;
    }
    let says = "Fast Open is on for connections that this host opens, and off for those it accepts.".to_owned();
    let why =
        "Bit 1 is the client's and bit 2 the server's; a listener also sets TCP_FASTOPEN, or has bit 0x400.".to_owned();
    let set = format!("{NAME} = {} on a server whose requests are safe to repeat", bits | 2);
    Some(look.find("fastopen-client-only", Weight::Note, NAME, says, why, Some(set)))
}

fn congestion_unavailable(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_congestion_control";
    let chosen = &look.sysctl(NAME)?.value;
    let available = &look.sysctl("net.ipv4.tcp_available_congestion_control")?.value;
    if available.split_whitespace().any(|word| word == chosen) {
        return None;
    }
    let says = format!("{chosen} is not among what is loaded: {available}.");
    let why = "The kernel loads the module when the name is written; where it has none, the write fails.".to_owned();
    Some(look.find("congestion-unavailable", Weight::Trap, NAME, says, why, Some(format!("modprobe tcp_{chosen}"))))
}

fn unpaced(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_congestion_control";
    if look.sysctl(NAME)?.value != "bbr" || look.kernel.is_some_and(|kernel| kernel >= PACES_ITSELF) {
        return None;
    }
    let fq = |kind: &str| kind == "fq";
    let by_default = look.sysctl("net.core.default_qdisc").is_some_and(|line| fq(&line.value));
    let devices = &look.state.qdiscs;
    if by_default || (!devices.is_empty() && devices.iter().any(|(_, kind)| fq(kind))) {
        return None;
    }
    let (weight, says) = match look.kernel {
        Some((major, minor)) => {
            (Weight::Trap, format!("Linux {major}.{minor} does not pace BBR without the qdisc fq."))
        }
        None => (
            Weight::Note,
            "Before Linux 4.13 BBR needs the qdisc fq on the device; later kernels pace by themselves.".to_owned(),
        ),
    };
    let why = "Without pacing BBR sends its window in bursts, and its measurements are of them.".to_owned();
    let set = look.kernel.map(|_| "net.core.default_qdisc = fq, and fq on the devices that are up".to_owned());
    Some(look.find("bbr-unpaced", weight, NAME, says, why, set))
}

fn syn_backlog(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_max_syn_backlog";
    let (backlog, most) = (look.number(NAME)?, look.number("net.core.somaxconn")?);
    if backlog <= most {
        return None;
    }
    let cookies = look.number("net.ipv4.tcp_syncookies").unwrap_or(1) > 0;
    let says = format!("A listener queues {} half-open connections at the most, net.core.somaxconn.", grouped(most));
    let why = if cookies {
        "With tcp_syncookies the kernel does not read tcp_max_syn_backlog at all. Source: net/ipv4/tcp_input.c, tcp_conn_request."
    } else {
        "The queue is bounded by the listen backlog and net.core.somaxconn before tcp_max_syn_backlog."
    };
    let set = format!("net.core.somaxconn = {backlog}, and a listen backlog as long, if that many are wanted");
    Some(look.find("syn-backlog-unused", Weight::Note, NAME, says, why.to_owned(), Some(set)))
}

fn time_wait_cut(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_max_tw_buckets";
    let most = look.number(NAME)?;
    if most >= TIME_WAIT_MIN {
        return None;
    }
    let says =
        format!("More than {} closed in a second end without TIME_WAIT.", counted(most / TIME_WAIT_S, "connection"));
    let why = format!(
        "{} ÷ {TIME_WAIT_S} s = {}. A late packet then reaches the next connection with the same ports, or is answered with RST.",
        grouped(most),
        grouped(most / TIME_WAIT_S)
    );
    Some(look.find(
        "time-wait-cut",
        Weight::Trap,
        NAME,
        says,
        why,
        Some("leave it out: the kernel sizes it by the memory".to_owned()),
    ))
}

fn time_wait_length(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_fin_timeout";
    let seconds = look.number(NAME)?;
    if seconds >= TIME_WAIT_S {
        return None;
    }
    let says = format!("It ends FIN_WAIT_2 after {seconds} s; TIME_WAIT stays {TIME_WAIT_S} s long.");
    let why = "TIME_WAIT's length is fixed (TCP_TIMEWAIT_LEN). FIN_WAIT_2 is the wait for the peer's FIN; a peer that sends on is answered with RST.".to_owned();
    Some(look.find("time-wait-not-shorter", Weight::Note, NAME, says, why, None))
}

fn time_wait_reuse(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_tw_reuse";
    if look.number(NAME)? != 1 || look.number("net.ipv4.tcp_timestamps") != Some(0) {
        return None;
    }
    let says = "It needs net.ipv4.tcp_timestamps, which is off.".to_owned();
    let why = "Timestamps are how the kernel tells an old packet from a new connection's.".to_owned();
    Some(look.find(
        "time-wait-not-reused",
        Weight::Trap,
        NAME,
        says,
        why,
        Some("net.ipv4.tcp_timestamps = 1".to_owned()),
    ))
}

fn rto_min(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_rto_min_us";
    let least = look.number(NAME)?;
    if least >= DELAYED_ACK_US {
        return None;
    }
    let says = format!("{} µs is below the 40 ms that a Linux peer may delay an acknowledgement.", grouped(least));
    let why = "The timeout then fires in vain, retransmits what arrived, and cuts the congestion window.".to_owned();
    let set = "rto_min on the route to peers whose delayed acknowledgements are as short".to_owned();
    Some(look.find("rto-below-delayed-ack", Weight::Trap, NAME, says, why, Some(set)))
}

fn pacing(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_pacing_ca_ratio";
    let ratio = look.number(NAME)?;
    if ratio >= 100 {
        return None;
    }
    let says = format!("Connections are paced at {ratio} % of what their window allows.");
    let why = "The window then never fills, and the rate falls with each estimate.".to_owned();
    Some(look.find("pacing-below-window", Weight::Trap, NAME, says, why, Some(format!("{NAME} = 120"))))
}

fn ports(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.ip_local_port_range";
    let numbers = look.numbers(NAME)?;
    let [first, last] = numbers[..] else { return None };
    let count = (last + 1).saturating_sub(first);
    if count >= PORTS_MIN || last < first {
        return None;
    }
    let says = format!("{} at a time can be opened to one address and port.", counted(count, "connection"));
    let why = format!("With TIME_WAIT of {TIME_WAIT_S} s, {} a second use them up.", grouped(count / TIME_WAIT_S));
    Some(look.find("client-ports", Weight::Trap, NAME, says, why, Some(format!("{NAME} = 32768 60999"))))
}

fn retries(look: &Look<'_>) -> Vec<TuneFinding> {
    let rules: [(&str, u64, &str); 3] = [
        ("net.ipv4.tcp_syn_retries", SYN_RETRIES_MIN, "an attempt to connect fails"),
        ("net.ipv4.tcp_synack_retries", SYN_RETRIES_MIN, "a half-open connection is forgotten"),
        ("net.ipv4.tcp_retries2", RETRIES2_MIN, "a connection without acknowledgements is broken"),
    ];
    let one = |(name, least, what): (&str, u64, &str)| {
        // A value that the kernel refuses is not in force.
        let taken = |count: &u64| sysctl(name).is_some_and(|entry| entry.is_written(&count.to_string()));
        let count = look.number(name).filter(|count| *count < least).filter(taken)?;
        let default = sysctl(name)?.default_on(look.kernel)?;
        let says = format!("After {} {what}.", counted(count, "retransmission"));
        let why = match name {
            // Each is twice as long as the one before, from 1 s on.
            "net.ipv4.tcp_synack_retries" => format!(
                "That is {} s; a path that loses a tenth of its packets, or wakes a radio, takes longer at times.",
                (2u64 << count) - 1
            ),
            "net.ipv4.tcp_syn_retries" => format!(
                "That is {} s before Linux 6.5 and {} s since (tcp_syn_linear_timeouts); a path that loses a tenth of its packets refuses one in {}.",
                (2u64 << count) - 1,
                count + 1,
                grouped(10u64.pow(count as u32 + 1))
            ),
            _ => format!("RFC 1122 4.2.3.5 asks for 100 s at the least, which are {RETRIES2_MIN}."),
        };
        Some(look.find("few-retries", Weight::Trap, name, says, why, Some(format!("{name} = {default}"))))
    };
    rules.into_iter().filter_map(one).collect()
}

/// What is on by default, and costs much when it is off.
fn switched_off(look: &Look<'_>) -> Vec<TuneFinding> {
    let rules = [
        (
            "net.ipv4.tcp_window_scaling",
            "window-scaling-off",
            "No window passes 65,535 bytes.",
            "Each round trip carries 65,535 bytes at the most: 15 Mb/s at 35 ms.",
        ),
        (
            "net.ipv4.tcp_sack",
            "loss-recovery-off",
            "Receivers report no gaps.",
            "One loss a round trip is repaired, and RACK and tail loss probes do not work.",
        ),
        (
            "net.ipv4.tcp_early_retrans",
            "loss-recovery-off",
            "Tail loss probes are off.",
            "A loss at the end of a transfer costs a retransmission timeout of 200 ms and more.",
        ),
        (
            "net.ipv4.tcp_recovery",
            "loss-recovery-off",
            "RACK is off.",
            "Losses of retransmissions wait for the timeout. Source: RFC 8985.",
        ),
        (
            "net.ipv4.tcp_timestamps",
            "timestamps-off",
            "Timestamps are off.",
            "Fewer round-trip times are measured, wrapped sequence numbers are not recognised, and a connection made by a SYN cookie has neither window scale nor SACK.",
        ),
    ];
    let default = |name: &str| sysctl(name).and_then(|entry| entry.default_on(None)).unwrap_or("1");
    let mut found: Vec<TuneFinding> = rules
        .into_iter()
        .filter(|(name, ..)| look.number(name) == Some(0))
        .map(|(name, code, says, why)| {
            look.find(
                code,
                Weight::Trap,
                name,
                says.to_owned(),
                why.to_owned(),
                Some(format!("{name} = {}", default(name))),
            )
        })
        .collect();
    const RESET: &str = "net.ipv4.tcp_abort_on_overflow";
    if look.number(RESET).is_some_and(|on| on > 0) {
        let says = "A full accept queue answers clients with RST.".to_owned();
        let why =
            "A burst that is over in a second becomes errors; without it the client's next try succeeds.".to_owned();
        found.push(look.find("accept-overflow-reset", Weight::Trap, RESET, says, why, Some(format!("{RESET} = 0"))));
    }
    found
}
