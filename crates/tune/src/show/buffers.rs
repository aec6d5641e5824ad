//! Buffers: what they may grow to, begin with, keep, and how that goes with the host's memory.

use super::{Look, bytes, grouped};
use crate::buffer_numbers::{FLOOR_MAX_BYTES, START_MAX_BYTES};
use crate::catalogue::sysctl;
use thalweg_model::{TuneFinding, Weight};

/// Bytes of a page on nearly all hosts; `net.ipv4.tcp_mem` counts in pages.
const PAGE_BYTES: u64 = 4096;
/// A host that is fine with fewer connections at full buffers than this says so by `--connections`.
const CONNECTIONS_FEW: u64 = 1000;
/// Unsent data above this is a second of 8 Mb/s.
const UNSENT_MAX_BYTES: u64 = 1 << 20;

const TCP_MEM: &str = "net.ipv4.tcp_mem";

pub(super) fn findings(look: &Look<'_>) -> Vec<TuneFinding> {
    let mut found = Vec::new();
    let sides = [("rmem", "receive", "SO_RCVBUF"), ("wmem", "send", "SO_SNDBUF")];
    for (short, called, option) in sides {
        found.extend(floor(look, short, called));
        found.extend(start(look, short, called));
        found.extend(no_growth(look, short, called));
        found.extend(memory(look, short, called));
        found.extend(core_max(look, short, option));
        found.extend(core_default(look, short));
    }
    found.extend(auto_tuning(look));
    found.extend(tcp_memory(look));
    found.extend(unsent(look));
    found
}

fn tcp(short: &str) -> String {
    format!("net.ipv4.tcp_{short}")
}

/// Pages of `tcp_mem` as bytes: where pressure begins, and where allocation fails.
fn tcp_mem_bytes(look: &Look<'_>) -> Option<(u64, u64)> {
    match look.numbers(TCP_MEM)?.as_slice() {
        [_, pressure, most] => Some((pressure.saturating_mul(PAGE_BYTES), most.saturating_mul(PAGE_BYTES))),
        _ => None,
    }
}

fn floor(look: &Look<'_>, short: &str, called: &str) -> Option<TuneFinding> {
    let name = tcp(short);
    let numbers = look.numbers(&name)?;
    let [least, ..] = numbers[..] else { return None };
    if least <= FLOOR_MAX_BYTES {
        return None;
    }
    let default = sysctl(&name)?.default_on(look.kernel)?;
    let says = format!(
        "Its first number, {}, is what each socket may keep under memory pressure; the kernel's default is a page, and its whole default is {default}.",
        bytes(least)
    );
    let why = match tcp_mem_bytes(look) {
        Some((pressure, most)) => format!(
            "The floor holds after pressure began: {} sockets at {} reach tcp_mem's limit of {}, where pressure, at {}, was to stop them.",
            grouped(most / least.max(1)),
            bytes(least),
            bytes(most),
            bytes(pressure)
        ),
        None => format!(
            "The floor holds after pressure began, for every {called} buffer: pressure then frees nothing below it."
        ),
    };
    Some(look.find("buffer-floor", Weight::Trap, &name, says, why, look.mended(&name)))
}

fn start(look: &Look<'_>, short: &str, called: &str) -> Option<TuneFinding> {
    let name = tcp(short);
    let numbers = look.numbers(&name)?;
    let [_, start, _] = numbers[..] else { return None };
    if start < START_MAX_BYTES {
        return None;
    }
    let default = sysctl(&name)?.default_on(look.kernel)?.split_whitespace().nth(1)?;
    let says = format!("Every connection's {called} buffer begins at {}, not at {default} bytes.", bytes(start));
    let why = if short == "wmem" {
        format!(
            "A slow reader's connection holds {} of unsent data before the program sees that it is slow; auto-tuning would have given it what its window needs.",
            bytes(start)
        )
    } else {
        format!(
            "A program that does not read lets {} wait for it in each connection; auto-tuning would have grown the buffer where the rate asks for it.",
            bytes(start)
        )
    };
    Some(look.find("buffer-start", Weight::Trap, &name, says, why, look.mended(&name)))
}

/// The limit is where buffers begin, or the kernel's memory for all of them is less than one.
fn no_growth(look: &Look<'_>, short: &str, called: &str) -> Option<TuneFinding> {
    let name = tcp(short);
    let numbers = look.numbers(&name)?;
    let [_, start, most] = numbers[..] else { return None };
    let (says, why, set) = match tcp_mem_bytes(look) {
        Some((pressure, _)) if pressure < start => (
            format!(
                "TCP is under memory pressure from {} on, which one {called} buffer of {} exceeds.",
                bytes(pressure),
                bytes(start)
            ),
            "Under pressure no buffer grows, and windows shrink.".to_owned(),
            look.mended(TCP_MEM),
        ),
        _ if start == most => (
            format!("Every {called} buffer stays at {}: its limit is what it begins with.", bytes(most)),
            format!("Auto-tuning has no room, and a connection carries less than {} a round trip.", bytes(most)),
            look.mended(&name),
        ),
        _ => return None,
    };
    Some(look.find("buffer-cannot-grow", Weight::Trap, &name, says, why, set))
}

fn memory(look: &Look<'_>, short: &str, called: &str) -> Option<TuneFinding> {
    let name = tcp(short);
    let most = *look.numbers(&name)?.get(2)?;
    let (pressure, limit) = tcp_mem_bytes(look)?;
    let fit = pressure / most.max(1);
    let (weight, asked) = match look.connections {
        Some(wanted) if wanted > fit => (Weight::Trap, format!(", and {} are expected", grouped(wanted))),
        None if fit < CONNECTIONS_FEW && !at_default(look, &name) => (Weight::Note, String::new()),
        _ => return None,
    };
    let says = format!("{} {called} buffers at their limit bring TCP into memory pressure{asked}.", grouped(fit));
    let why = format!(
        "tcp_mem begins pressure at {} and fails at {}; {} ÷ {} = {}.",
        bytes(pressure),
        bytes(limit),
        bytes(pressure),
        bytes(most),
        grouped(fit)
    );
    let set = look.connections.map(|wanted| {
        let each = (pressure / wanted.max(1)).max(64 << 10);
        format!("a third number of {each} at the most, or more memory in {TCP_MEM}")
    });
    Some(look.find("buffer-memory", weight, &name, says, why, set))
}

fn core_max(look: &Look<'_>, short: &str, option: &str) -> Option<TuneFinding> {
    let (core, tcp) = (format!("net.core.{short}_max"), tcp(short));
    let (limit, most) = (look.number(&core)?, *look.numbers(&tcp)?.get(2)?);
    if limit >= most || (at_default(look, &core) && at_default(look, &tcp)) {
        return None;
    }
    let says = format!(
        "It is below the third number of {tcp}, {}; that binds programs that set {option}, and nothing else.",
        bytes(most)
    );
    let why = format!(
        "A program gets twice this by {option}, {}, and its buffer does not grow any more; auto-tuning does not read {core}.",
        bytes(limit.saturating_mul(2))
    );
    let set = format!("{core} = {most}, or let programs not set {option}");
    Some(look.find("core-max-binds", Weight::Note, &core, says, why, Some(set)))
}

fn core_default(look: &Look<'_>, short: &str) -> Option<TuneFinding> {
    let core = format!("net.core.{short}_default");
    look.number(&core)?;
    if at_default(look, &core) {
        return None;
    }
    let says = format!("TCP does not read it: TCP's buffers begin at the second number of {}.", tcp(short));
    let why = "It is the default of UDP's and other sockets. Source: net/ipv4/tcp.c, tcp_init_sock.".to_owned();
    Some(look.find("not-for-tcp", Weight::Note, &core, says, why, None))
}

fn auto_tuning(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_moderate_rcvbuf";
    if look.number(NAME)? != 0 {
        return None;
    }
    let start = look.numbers(&tcp("rmem")).and_then(|numbers| numbers.get(1).copied());
    let stays = start.map_or_else(|| "the second number of tcp_rmem".to_owned(), bytes);
    let says = format!("Receive buffers do not grow: each stays at {stays}.");
    let why =
        "A window of half of that a round trip is the most a connection can receive, whatever the third number is."
            .to_owned();
    Some(look.find("auto-tuning-off", Weight::Trap, NAME, says, why, Some(format!("{NAME} = 1"))))
}

fn tcp_memory(look: &Look<'_>) -> Option<TuneFinding> {
    let (pressure, limit) = tcp_mem_bytes(look)?;
    let memory = look.state.memory_bytes?;
    // The kernel's own limit is 9.37 % of the memory. Source: net/ipv4/tcp.c, `tcp_init_mem`.
    if limit <= memory / 2 {
        return None;
    }
    let says = format!("TCP may take {} of the host's {}.", bytes(limit), bytes(memory));
    let why = format!(
        "Pressure begins at {} only; the kernel's own limit would be {}, 9.37 % of the memory. The pages cannot be swapped.",
        bytes(pressure),
        bytes(memory / 32 * 3)
    );
    let pages = memory / PAGE_BYTES;
    let set = format!("{TCP_MEM} = {} {} {}", pages / 16, pages / 8, pages / 4);
    Some(look.find("tcp-memory-beyond-host", Weight::Trap, TCP_MEM, says, why, Some(set)))
}

fn unsent(look: &Look<'_>) -> Option<TuneFinding> {
    const NAME: &str = "net.ipv4.tcp_notsent_lowat";
    let limit = look.number(NAME)?;
    if at_default(look, NAME) || limit <= UNSENT_MAX_BYTES {
        return None;
    }
    let says = format!("Up to {} may wait unsent in each connection.", bytes(limit));
    let why = format!(
        "At 4 Mb/s that is {:.1} s of data in front of what the program writes next; a live stream cannot be cut any more.",
        limit as f64 * 8.0 / 4e6
    );
    Some(look.find("unsent-data", Weight::Note, NAME, says, why, Some(format!("{NAME} = 131072"))))
}

fn at_default(look: &Look<'_>, name: &str) -> bool {
    let value = look.sysctl(name).map(|line| line.value.as_str()).unwrap_or_default();
    sysctl(name).is_some_and(|entry| look.is_default(entry, value))
}
