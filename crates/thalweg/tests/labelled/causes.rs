//! Transfers whose limiter is known by arithmetic, drawn at random: each cause makes its own, and refuses what another limiter
//! could be said to hold as well.

use super::Draw;
use std::fmt::Write;

/// Payload of a full segment with timestamps, and what its frame costs the path: Ethernet header included.
const SEGMENT: f64 = 1448.0;
const FRAME: f64 = 1514.0;
/// A limiter holds the transfer where the next one would allow this much more. Fifteen percent is the least; what arithmetic gives only
/// roughly (a window's part of its buffer, a loss rate's window) is given more.
const CLEAR: f64 = 1.2;
const ROUGH: f64 = 1.6;

/// A transfer and what holds it.
pub struct Made {
    /// What a capture at the sender must show.
    pub sender: &'static str,
    /// What one at the receiver may show instead, where the difference does not reach it.
    pub receiver: &'static [&'static str],
    /// Nothing of the network, the hosts' settings or the path's losses holds it: any such finding is false.
    pub healthy: bool,
    /// A finding that must be there beside the verdict.
    pub finding: Option<&'static str>,
    /// The least and most that the transfer may reach by the label's arithmetic, payload bits per second; outside, the label is refused.
    pub goodput: (f64, f64),
    /// What the sender's kernel must have counted for more than half of its busy time; else the label is refused.
    pub counted: Option<&'static str>,
    /// The scenario's text.
    pub text: String,
}

/// A path with room for everything.
struct Wide {
    rtt_ms: f64,
    mbit: f64,
    seconds: f64,
    up: bool,
}

impl Wide {
    /// A path, of at most `most` megabits a second.
    fn draw(draw: &mut Draw, most: f64) -> Self {
        let rtt_ms = draw.spread(8.0, 160.0);
        Self { rtt_ms, mbit: draw.spread(10.0, most), seconds: 0.0, up: draw.chance(0.25) }
    }

    /// Payload bits per second.
    fn payload(&self) -> f64 {
        self.mbit * 1e6 * SEGMENT / FRAME
    }

    /// What it holds, payload bytes.
    fn bdp(&self) -> f64 {
        self.payload() / 8.0 * self.rtt_ms / 1e3
    }

    /// Long enough that slow start is a small part, and short enough for a small capture at `bps`.
    fn last(&mut self, bps: f64) {
        self.seconds = (40e6 * 8.0 / bps).clamp(4.0, 10.0).max(self.rtt_ms * 0.06);
    }

    fn queue(&self, bdps: f64) -> u64 {
        ((self.bdp() * bdps / SEGMENT) as u64).max(60)
    }

    fn sender(&self) -> &'static str {
        if self.up { "client" } else { "server" }
    }

    fn receiver(&self) -> &'static str {
        if self.up { "server" } else { "client" }
    }

    fn way(&self) -> &'static str {
        if self.up { "up" } else { "down" }
    }

    /// The path's lines, with a queue of `queue` packets.
    fn path(&self, queue: u64) -> String {
        format!(
            "[path]\nrtt = \"{:.2}ms\"\nrate = \"{:.0}kbit\"\nqueue = \"{queue} packets\"\n",
            self.rtt_ms,
            self.mbit * 1e3
        )
    }

    fn stream(&self) -> String {
        format!("[workload]\nkind = \"stream\"\ndirection = \"{}\"\nseconds = \"{:.2}s\"\n", self.way(), self.seconds)
    }
}

/// Buffers on both hosts that hold far more than any path here.
fn large_buffers(text: &mut String, receive: &str, send: &str) {
    let _ = write!(
        text,
        "[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\"\n\"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\"\n{}\
         [server.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\"\n\"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\"\n{}",
        receive, send
    );
}

/// As [`large_buffers`], with lines of one host's own.
fn with_host(text: &mut String, host: &str, lines: &str) {
    if host == "client" { large_buffers(text, lines, "") } else { large_buffers(text, "", lines) }
}

fn made(sender: &'static str, receiver: &'static [&'static str], text: String) -> Made {
    Made { sender, receiver, healthy: false, finding: None, goodput: (0.0, f64::INFINITY), counted: None, text }
}

/// The receive buffer, by `tcp_rmem` or by `SO_RCVBUF`, holds less than the path.
pub fn receive_window(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 300.0);
    let window = draw.spread(60e3, 1.5e6);
    // Half to two thirds of the buffer is offered (Linux 6.12: scaling_ratio; 6.1: tcp_adv_win_scale 1).
    if window * 1.3 * CLEAR > wide.bdp() || window * 8e3 / wide.rtt_ms < 1e6 {
        return None;
    }
    wide.last(window * 8e3 / wide.rtt_ms);
    let mut text = wide.path(wide.queue(1.0)) + &wide.stream();
    // What a program asks for is bounded by net.core.rmem_max, 212,992.
    if window > 200e3 || draw.chance(0.5) {
        let rmem = format!("\"net.ipv4.tcp_rmem\" = \"4096 {} {:.0}\"\n", (window as u64).min(131_072), window * 2.0);
        let other = "\"net.ipv4.tcp_wmem\" = \"4096 65536 67108864\"\n";
        let _ = write!(text, "[{}.sysctl]\n{rmem}[{}.sysctl]\n{other}", wide.receiver(), wide.sender());
    } else {
        with_host(&mut text, wide.receiver(), &format!("[{}.socket]\nrcvbuf = \"{:.0}B\"\n", wide.receiver(), window));
    }
    let mut made = made("receive-window", &["receive-window"], text);
    made.counted = Some("rwnd_limited_ms");
    Some(made)
}

/// One side's SYN lacks the window scale option.
pub fn window_scaling_missing(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 300.0);
    if 65_535.0 * CLEAR > wide.bdp() {
        return None;
    }
    wide.last(65_535.0 * 8e3 / wide.rtt_ms);
    let off = if draw.chance(0.5) { "client" } else { "server" };
    let mut text = wide.path(wide.queue(1.0)) + &wide.stream();
    with_host(&mut text, off, "\"net.ipv4.tcp_window_scaling\" = 0\n");
    Some(made("window-scaling-missing", &["window-scaling-missing"], text))
}

/// The receiving program reads at a rate of its own.
pub fn reader(draw: &mut Draw) -> Option<Made> {
    let wide = Wide::draw(draw, 200.0);
    let rate = draw.spread(1.5e6, 40e6);
    if rate * CLEAR * 1.2 > wide.payload() {
        return None;
    }
    let pause = *draw.one(&[2u64, 10, 40]);
    Some(reads(&wide.path(wide.queue(1.0)), rate, pause))
}

/// A program that reads at a rate, in bits per second, a piece every `pause` milliseconds, behind this path.
pub fn reads(path: &str, rate: f64, pause: u64) -> Made {
    let total = (rate / 8.0 * 6.0).min(12e6);
    let mut text = path.to_owned();
    let _ = write!(
        text,
        "[workload]\nkind = \"command\"\nserver = \"python3 server.py\"\nclient = \"python3 client.py {{server}}\"\nport = 7000\n\
         [workload.files]\n\"server.py\" = '''\n{SERVER_SENDS}\nTOTAL = {total:.0}\nserve(TOTAL)\n'''\n\"client.py\" = '''\n{CLIENT_READS}\n\
         read_slowly(sys.argv[1], {:.0}, {:.3})\n'''\n",
        rate / 8.0 * pause as f64 / 1e3,
        pause as f64 / 1e3,
    );
    made("reader", &["reader"], text)
}

/// The send buffer, by `tcp_wmem`, holds less than the path.
pub fn send_buffer(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 500.0);
    wide.rtt_ms = draw.spread(10.0, 35.0);
    // Twice what a program writes at once, at least: into a smaller one it writes all or nothing, and what holds it is that.
    let buffer = draw.spread(262e3, 1.2e6);
    // Payload in flight is less than all of it: its packets' memory is counted, and the program is woken when a third is free.
    if buffer * 1.1 * CLEAR > wide.bdp() {
        return None;
    }
    wide.last(buffer * 6e3 / wide.rtt_ms);
    let mut text = wide.path(wide.queue(1.0).max((buffer * 4.0 / SEGMENT) as u64)) + &wide.stream();
    let wmem = format!("\"net.ipv4.tcp_wmem\" = \"4096 16384 {buffer:.0}\"\n");
    let other = "\"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\"\n";
    let _ = write!(text, "[{}.sysctl]\n{wmem}[{}.sysctl]\n{other}", wide.sender(), wide.receiver());
    let mut made = made("send-buffer", &["send-buffer", "application"], text);
    // Some runs have more in flight than their buffer should hold (docs/limits.md) and are faster; the path must be clear of those, too.
    made.goodput = (buffer * 8e3 / wide.rtt_ms * 0.4, wide.payload() / CLEAR);
    Some(made)
}

/// A clamp on the congestion window, as a route's locked `cwnd` sets it.
pub fn cwnd_clamp(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 300.0);
    wide.up = false;
    let segments = draw.spread(20.0, 500.0).round();
    if segments * SEGMENT * CLEAR > wide.bdp() || segments * SEGMENT * 8e3 / wide.rtt_ms < 1e6 {
        return None;
    }
    wide.last(segments * SEGMENT * 8e3 / wide.rtt_ms);
    let mut text = wide.path(wide.queue(1.0));
    // The clamp holds from a host's second connection on.
    let _ = write!(
        text,
        "[workload]\nkind = \"mixed\"\n[[workload.part]]\nname = \"first\"\nstart = \"0s\"\nkind = \"crr\"\nrequest = 100\nresponse = 100\n\
         transactions = 1\n[[workload.part]]\nname = \"bulk\"\nstart = \"1s\"\nkind = \"stream\"\nseconds = \"{:.2}s\"\n",
        wide.seconds
    );
    with_host(&mut text, "server", &format!("[server.route]\ncwnd = {segments:.0}\n"));
    Some(made("congestion-window-clamp", &["congestion-window-clamp", "send-buffer", "application"], text))
}

/// A transfer over before its window fits the path.
pub fn initial_window(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 500.0);
    wide.rtt_ms = draw.spread(25.0, 250.0);
    let response = draw.spread(30e3, 1.2e6);
    // Slow start's rounds against what one round and the path's rate would take.
    let rounds = (response / SEGMENT / 10.0 + 1.0).log2().ceil();
    let slow = rounds * wide.rtt_ms;
    let fast = response * 8e3 / wide.payload() + wide.rtt_ms;
    if slow < fast * 1.5 || response > wide.bdp() {
        return None;
    }
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(
        text,
        "[workload]\nkind = \"crr\"\nrequest = {}\nresponse = {response:.0}\ntransactions = 1\n",
        draw.spread(100.0, 900.0) as u64
    );
    large_buffers(&mut text, "", "");
    Some(made("initial-window", &["initial-window"], text))
}

/// Losses of no queue's doing.
pub fn random_loss(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 400.0);
    let p = draw.spread(0.0004, 0.02);
    let reno = draw.chance(0.2);
    let rtt = wide.rtt_ms / 1e3;
    // Mathis et al. 1997 for Reno, RFC 9438 §5.1 for CUBIC (C = 0.4), which is at least Reno's.
    let window = (1.22 / p.sqrt()).max(if reno { 0.0 } else { 1.17 * rtt.powf(0.75) / p.powf(0.75) });
    let rate = window * SEGMENT * 8.0 / rtt;
    if rate * ROUGH * 1.2 > wide.payload() || rate < 1e6 {
        return None;
    }
    wide.last(rate);
    // Enough losses to see more than the first slow start.
    wide.seconds = wide.seconds.max(20.0 / p * SEGMENT * 8.0 / rate).min(25.0);
    if wide.seconds * rate > 60e6 * 8.0 || wide.seconds * rate / 8.0 / SEGMENT * p < 12.0 {
        return None;
    }
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(text, "[path.{}]\nloss = \"{:.4}%\"\n", wide.way(), p * 100.0);
    text += &wide.stream();
    let lines = if reno { format!("[{}.socket]\ncongestion = \"reno\"\n", wide.sender()) } else { String::new() };
    with_host(&mut text, wide.sender(), &lines);
    let mut made = made("random-loss", &["random-loss"], text);
    made.goodput = (0.0, wide.payload() / CLEAR);
    Some(made)
}

/// A queue far too short for the path.
pub fn congestion_loss(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 200.0);
    let queue = draw.spread(12.0, 60.0).round();
    let bdp = wide.bdp() / SEGMENT;
    if queue > 0.1 * bdp || bdp > 600.0 {
        return None;
    }
    // Several times between losses: CUBIC takes seconds to grow again (RFC 9438 §4.2, K), Reno a round trip for each segment.
    wide.seconds = (100e6 * 8.0 / wide.payload()).clamp(10.0, 40.0);
    let mut text = wide.path(queue as u64) + &wide.stream();
    let reno =
        if draw.chance(0.5) { format!("[{}.socket]\ncongestion = \"reno\"\n", wide.sender()) } else { String::new() };
    with_host(&mut text, wide.sender(), &reno);
    let mut made = made("congestion-loss", &["congestion-loss"], text);
    // A window cut to 0.5 or 0.7 below what the path holds leaves it idle: where that costs less, nothing is to gain.
    made.goodput = (0.0, wide.payload() / 1.15);
    Some(made)
}

/// A policer's token bucket.
pub fn policer(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 400.0);
    let rate = draw.spread(1.0, 60.0);
    let burst = draw.spread(15e3, 600e3);
    if rate * 2.0 > wide.mbit || rate * 1e6 / 8.0 * wide.rtt_ms / 1e3 < 8.0 * FRAME {
        return None;
    }
    wide.last(rate * 1e6);
    wide.seconds = wide.seconds.max(burst * 8.0 * 4.0 / (rate * 1e6)).max(8.0);
    if wide.seconds > 20.0 {
        return None;
    }
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(
        text,
        "[path.{}]\npolicer = {{ rate = \"{:.0}kbit\", burst = \"{burst:.0}B\" }}\n",
        wide.way(),
        rate * 1e3
    );
    text += &wide.stream();
    large_buffers(&mut text, "", "");
    Some(made("policer", &["policer"], text))
}

/// Silences that only a timer ends.
pub fn timeout(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 60.0);
    if draw.chance(0.5) {
        // The path is dead for a part of the time.
        wide.rtt_ms = draw.spread(8.0, 80.0);
        wide.last(wide.payload());
        let (from, long) = (draw.between(1.0, 2.5), draw.between(1.5, 2.5));
        // The timer doubles: it fires again before as much time as the path was dead has passed once more, and what it waited for at first.
        wide.seconds = from + 2.0 * long + 0.8;
        let mut text = wide.path(wide.queue(1.0));
        let _ = write!(
            text,
            "[[path.{way}.step]]\nat = \"{from:.2}s\"\nloss = \"100%\"\n[[path.{way}.step]]\nat = \"{:.2}s\"\nloss = \"0%\"\n",
            from + long,
            way = wide.way()
        );
        text += &wide.stream();
        large_buffers(&mut text, "", "");
        return Some(made("retransmission-timeout", &["retransmission-timeout", "application"], text));
    }
    // The last segment of some responses is lost, and without SACK no probe is sent: 200 ms and more each.
    wide.rtt_ms = draw.spread(1.0, 20.0);
    let segments = draw.between(2.0, 6.0) as u64;
    let transactions = draw.between(40.0, 120.0) as u64;
    let every = draw.between(3.0, 8.0) as u64;
    let waiting = transactions as f64 * wide.rtt_ms;
    let mut list = Vec::new();
    for n in 0..transactions {
        if draw.chance(1.0 / every as f64) {
            list.push((n + 1) * segments + list.len() as u64);
        }
    }
    if list.len() as f64 * (200.0 + wide.rtt_ms) < waiting * 1.5 {
        return None;
    }
    let list: Vec<String> = list.iter().map(u64::to_string).collect();
    let text = format!(
        "[path]\nrtt = \"{:.2}ms\"\nrate = \"50mbit\"\n[path.down]\nloss = {{ model = \"list\", segments = [{}] }}\n\
         [workload]\nkind = \"rr\"\nrequest = 200\nresponse = {}\ntransactions = {transactions}\n[server.sysctl]\n\"net.ipv4.tcp_sack\" = 0\n",
        wide.rtt_ms,
        list.join(", "),
        segments * 1448
    );
    Some(made("retransmission-timeout", &["retransmission-timeout", "application"], text))
}

/// The line is used up, behind a queue of about what it holds.
pub fn path_rate(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 120.0);
    if wide.bdp() < 8.0 * SEGMENT || wide.bdp() > 1.2e6 {
        return None;
    }
    // Slow start, ten round trips and more, is to be a small part.
    wide.seconds = (wide.rtt_ms * 0.3).clamp(6.0, 40.0);
    if wide.seconds * wide.payload() > 100e6 * 8.0 {
        return None;
    }
    let mut text = wide.path(wide.queue(draw.between(0.8, 1.5))) + &wide.stream();
    let control = *draw.one(&["cubic", "cubic", "reno", "bbr"]);
    let lines = format!("[{}.socket]\ncongestion = \"{control}\"\n", wide.sender());
    with_host(&mut text, wide.sender(), &lines);
    let mut made = made("path-rate", &["path-rate", "nothing-to-gain"], text);
    made.healthy = true;
    made.goodput = (wide.payload() * 0.9, f64::INFINITY);
    Some(made)
}

/// The line is used up, and its queue holds far more than the line.
pub fn bufferbloat(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 60.0);
    let queue_ms = draw.spread(150.0, 1_200.0);
    if queue_ms < wide.rtt_ms * 3.0 || wide.mbit * queue_ms > 40_000.0 {
        return None;
    }
    wide.last(wide.payload());
    wide.seconds = wide.seconds.max(8.0);
    let queue = wide.mbit * 1e3 * queue_ms / 8.0 / FRAME;
    let mut text = wide.path(queue as u64) + &wide.stream();
    large_buffers(&mut text, "", "");
    let mut made = made("path-rate", &["path-rate"], text);
    made.finding = Some("bufferbloat");
    made.goodput = (wide.payload() * 0.85, f64::INFINITY);
    Some(made)
}

/// How long slow start takes to the window that a rate needs.
fn growth_s(bps: f64, rtt_ms: f64) -> f64 {
    (bps * rtt_ms / 8e3 / SEGMENT / 10.0).log2().max(0.0) * rtt_ms / 1e3
}

/// The program has data at a rate of its own.
pub fn application(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 200.0);
    let mut text = wide.path(wide.queue(1.0));
    match *draw.one(&["pace", "burst", "rr"]) {
        "pace" => {
            let pace = draw.spread(0.5e6, wide.payload() / ROUGH);
            wide.last(pace);
            // A packet each 10 ms at least, and no more in a round trip than the first flight holds, or soon does.
            if growth_s(pace, wide.rtt_ms) > 0.03 * wide.seconds || wide.rtt_ms > 80.0 {
                return None;
            }
            let _ = writeln!(text, "{}pace = \"{:.0}kbit\"", wide.stream(), pace / 1e3);
        }
        "burst" => {
            let rate = draw.spread(1e6, wide.payload() / ROUGH);
            // Each of the 25 writes a second fits the first flight.
            if growth_s(rate, wide.rtt_ms) > 0.15 || rate / 8.0 / 25.0 > 10.0 * SEGMENT {
                return None;
            }
            // What a live stream begins with is no limit where it is no more than the first flight.
            let _ = write!(
                text,
                "[workload]\nkind = \"burst\"\nbuffered = 10000\nrate = \"{:.0}kbit\"\ntotal = {:.0}\nkeyframe = 5000\n",
                rate / 1e3,
                rate / 8.0 * 6.0
            );
        }
        _ => {
            // Responses within the first flight, one after the other.
            let _ = write!(
                text,
                "[workload]\nkind = \"rr\"\nrequest = {}\nresponse = {}\ntransactions = {}\n",
                draw.spread(50.0, 1_400.0) as u64,
                draw.spread(500.0, 12_000.0) as u64,
                draw.between(20.0, 120.0) as u64
            );
        }
    }
    large_buffers(&mut text, "", "");
    let mut made = made("application", &["application"], text);
    made.healthy = true;
    Some(made)
}

/// A response that the first flight carries.
pub fn short(draw: &mut Draw) -> Option<Made> {
    let wide = Wide::draw(draw, 500.0);
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(
        text,
        "[workload]\nkind = \"crr\"\nrequest = {}\nresponse = {}\ntransactions = 1\n",
        draw.spread(100.0, 1_000.0) as u64,
        draw.spread(1_500.0, 13_000.0) as u64
    );
    large_buffers(&mut text, "", "");
    let mut made = made("nothing-to-gain", &["nothing-to-gain"], text);
    made.healthy = true;
    Some(made)
}

/// Messages with pauses after which the window begins anew.
pub fn idle_restart(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 400.0);
    wide.rtt_ms = draw.spread(25.0, 160.0);
    let message = draw.spread(120e3, 1.2e6);
    // The window halves for each timeout of idleness (RFC 7661 §1, Linux tcp_cwnd_restart): four of them leave the first one.
    let rto = 200.0 + wide.rtt_ms * 1.2;
    let rounds = (message / SEGMENT / 10.0 + 1.0).log2().ceil();
    let slow = rounds * wide.rtt_ms;
    let fast = message * 8e3 / wide.payload() + wide.rtt_ms;
    let period = slow + rto * draw.between(5.0, 7.0);
    if slow < fast * 1.5 || message * 1.3 > wide.bdp() * 4.0 {
        return None;
    }
    let seconds = period / 1e3 * draw.between(8.0, 14.0);
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(
        text,
        "[workload]\nkind = \"topics\"\nseconds = \"{seconds:.2}s\"\n[[workload.topic]]\nname = \"t\"\nperiod = \"{period:.1}ms\"\nsize = \"{message:.0}B\"\n"
    );
    large_buffers(&mut text, "", "");
    Some(made("idle-restart", &["idle-restart"], text))
}

/// Small writes that wait for each other's acknowledgement, which is delayed.
pub fn delayed_ack(draw: &mut Draw) -> Option<Made> {
    let wide = Wide::draw(draw, 200.0);
    let rtt_ms = draw.spread(0.5, 30.0);
    let (head, body, answer) =
        (draw.spread(40.0, 400.0) as u64, draw.spread(100.0, 1_000.0) as u64, draw.spread(10.0, 900.0) as u64);
    let times = draw.between(30.0, 80.0) as u64;
    let text = format!(
        "[path]\nrtt = \"{rtt_ms:.2}ms\"\nrate = \"{:.0}mbit\"\n[workload]\nkind = \"command\"\nserver = \"python3 server.py\"\n\
         client = \"python3 client.py {{server}}\"\nport = 7000\n[workload.files]\n\"server.py\" = '''\n{SERVER_ANSWERS}\nanswer({}, {answer})\n'''\n\
         \"client.py\" = '''\n{CLIENT_ASKS}\nask(sys.argv[1], {times}, {head}, {body}, {answer})\n'''\n",
        wide.mbit,
        head + body
    );
    Some(made("delayed-ack", &["delayed-ack"], text))
}

/// Packets longer than the path carries vanish.
pub fn black_hole(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 100.0);
    wide.rtt_ms = draw.spread(8.0, 80.0);
    let hole = draw.between(1_000.0, 1_480.0) as u64;
    let probing = draw.chance(0.5);
    wide.seconds = 8.0;
    let mut text = wide.path(wide.queue(1.0));
    let _ = write!(text, "[path.{}]\nblack_hole = {hole}\n", wide.way());
    text += &wide.stream();
    let probe = if probing { "\"net.ipv4.tcp_mtu_probing\" = 1\n" } else { "" };
    with_host(&mut text, wide.sender(), probe);
    Some(made("path-mtu-black-hole", &["path-mtu-black-hole", "unknown"], text))
}

/// Packets overtake each other, and the sender takes that for loss.
pub fn reordering(draw: &mut Draw) -> Option<Made> {
    let mut wide = Wide::draw(draw, 200.0);
    wide.last(wide.payload());
    let mut text = wide.path(wide.queue(2.0));
    let _ = write!(text, "[path.{}]\nreorder = \"{:.3}%\"\n", wide.way(), draw.spread(0.2, 3.0));
    text += &wide.stream();
    large_buffers(&mut text, "", "");
    let mut made = made("reordering", &["reordering"], text);
    made.goodput = (0.0, wide.payload() / 1.3);
    Some(made)
}

const SERVER_SENDS: &str = "\
import socket
def serve(total):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind(('0.0.0.0', 7000)); l.listen(8)
    while True:
        c, _ = l.accept()
        if c.recv(100): c.sendall(b'x' * total)
        c.close()";

const CLIENT_READS: &str = "\
import socket, sys, time
def read_slowly(host, at_once, pause):
    s = socket.create_connection((host, 7000))
    s.sendall(b'go')
    while True:
        left = at_once
        while left > 0:
            got = len(s.recv(min(left, 65536)))
            if got == 0: return
            left -= got
        time.sleep(pause)";

const SERVER_ANSWERS: &str = "\
import socket
def answer(request, response):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    l.bind(('0.0.0.0', 7000)); l.listen(8)
    while True:
        c, _ = l.accept()
        while True:
            missing = request
            while missing > 0:
                got = len(c.recv(missing))
                if got == 0: break
                missing -= got
            if missing > 0: break
            c.sendall(b'r' * response)
        c.close()";

const CLIENT_ASKS: &str = "\
import socket, sys
def ask(host, times, head, body, response):
    s = socket.create_connection((host, 7000))
    for _ in range(times):
        s.sendall(b'h' * head); s.sendall(b'b' * body)
        missing = response
        while missing > 0: missing -= len(s.recv(missing))
    s.close()";
