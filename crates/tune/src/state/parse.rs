//! Reading what people paste: `sysctl -a`, `ip route`, `ss -ti`, `uname -a`, `tc qdisc`, `/proc/meminfo`, and text between them.

use super::parse_route::route;
use super::{HostState, Socket, Sysctl};
use thalweg_model::since;

/// The longest text that is read, in bytes; a `sysctl -a` is a tenth of a megabyte.
pub const TEXT_MAX: usize = 16 << 20;
/// Lines longer than this, in bytes, are not of these commands.
const LINE_MAX: usize = 16 << 10;

/// Begins the text where an editor marks it as UTF-8, and is no part of it. Source: Unicode Standard, section 23.8.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reads a text. Lines that are none of what is known are passed over.
pub fn parse(text: &str) -> HostState {
    let mut state = HostState::default();
    let mut ends = None;
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let mut lines = text.lines().enumerate().filter(|(_, line)| line.len() <= LINE_MAX).peekable();
    while let Some((number, line)) = lines.next() {
        let line_number = Some(number + 1);
        // Prompts and list marks before a line are no part of it.
        let line = line.trim().trim_start_matches(['>', '|']).trim_start();
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // The next hops of a multipath route have lines of their own.
        while let Some((_, more)) = lines.next_if(|(_, next)| next.trim_start().starts_with("nexthop ")) {
            words.extend(more.split_whitespace());
        }
        if words.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some((name, value)) = sysctl(line) {
            if name == "kernel.osrelease" {
                state.kernel = since::release(&value);
            }
            state.sysctls.push(Sysctl { name, value, line: line_number });
        } else if let Some(mut route) = route(&words) {
            route.line = line_number;
            state.routes.push(route);
        } else if let Some(mut socket) = socket(&words) {
            (socket.ends, socket.line) = (ends.take(), line_number);
            state.sockets.push(socket);
        } else {
            ends = connection(&words);
            other(&words, &mut state);
        }
    }
    state
}

/// `net.ipv4.tcp_rmem = 4096 131072 6291456`, also with `sysctl -w` before it, quotes, and slashes for dots.
fn sysctl(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let name = name.split_whitespace().last()?.trim_start_matches(['-', '`']).trim_start_matches("/proc/sys/");
    let name = name.replace('/', ".");
    let known_beginning = ["net.", "vm.", "fs.", "kernel.", "user.", "dev.", "abi.", "debug.", "crypto.", "sunrpc."];
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-*:@".contains(c));
    if !plain || !known_beginning.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    let value = value.trim().trim_matches(['"', '\'', '`']);
    Some((name, value.split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// The second line of `ss -ti`.
fn socket(words: &[&str]) -> Option<Socket> {
    let has = |beginning: &str| words.iter().any(|word| word.starts_with(beginning));
    if !(has("rto:") && has("mss:") && has("cwnd:")) {
        return None;
    }
    let share = |name: &str| {
        let word = words.iter().find(|word| word.starts_with(name))?;
        let (_, part) = word.split_once('(')?;
        part.trim_end_matches(')').trim_end_matches('%').parse().ok()
    };
    let flags = ["ts", "sack", "ecn", "ecnseen", "fastopen", "app_limited", "unknown"];
    let congestion = words.iter().take_while(|word| !word.contains(':')).find(|word| !flags.contains(word));
    Some(Socket {
        ends: None,
        congestion: congestion.map(|word| (*word).to_owned()),
        scaled: has("wscale:"),
        paced: words.contains(&"pacing_rate"),
        receive_window_limited: share("rwnd_limited:"),
        send_buffer_limited: share("sndbuf_limited:"),
        line: None,
    })
}

/// The first line of `ss -ti`.
fn connection(words: &[&str]) -> Option<String> {
    let state =
        words.iter().position(|word| ["ESTAB", "CLOSE-WAIT", "FIN-WAIT-1", "FIN-WAIT-2", "LAST-ACK"].contains(word))?;
    match words.get(state + 3..)? {
        [local, remote, ..] => Some(format!("{local} {remote}")),
        _ => None,
    }
}

/// `uname -a`, `/proc/version`, `/proc/meminfo`, `tc qdisc`.
fn other(words: &[&str], state: &mut HostState) {
    match words {
        ["Linux", "version", release, ..] | ["Linux", _, release, ..]
            if release.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            state.kernel = since::release(release).or(state.kernel);
        }
        ["MemTotal:", number, "kB", ..] => {
            state.memory_bytes = number.parse().ok().map(|kib: u64| kib.saturating_mul(1024))
        }
        ["qdisc", kind, rest @ ..] => {
            let dev = rest.iter().position(|word| *word == "dev").and_then(|at| rest.get(at + 1));
            state.qdiscs.extend(dev.map(|dev| ((*dev).to_owned(), (*kind).to_owned())));
        }
        _ => {}
    }
}
