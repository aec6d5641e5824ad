//! Random connections over paths that lose, reorder and duplicate: each a run of the lab with one connection of TCP.
#![allow(unreachable_pub)]

use std::fmt::Write;
use thalweg_units::Seed;

/// A connection.
pub struct Case {
    pub name: String,
    /// Keys of its arm.
    pub text: String,
    /// The host that sends most of the data.
    pub sender: &'static str,
}

impl Case {
    pub fn receiver(&self) -> &'static str {
        if self.sender == "server" { "client" } else { "server" }
    }
}

/// Random numbers of one connection.
struct Draw(Seed, u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.1 += 1;
        (self.0.derive(self.1).get() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Evenly on a logarithmic scale.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn whole(&mut self, low: u64, high: u64) -> u64 {
        self.between(low as f64, high as f64 + 1.0).floor().min(high as f64) as u64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.unit() * (count as f64) < 1.0
    }

    fn of<T: Copy>(&mut self, some: &[T]) -> T {
        some[(self.unit() * some.len() as f64) as usize]
    }
}

/// What makes packets be sent again.
const KINDS: [&str; 14] = [
    "random",
    "bursts",
    "listed",
    "flight",
    "blackout",
    "tail",
    "messages",
    "reordered",
    "overflow",
    "bbr",
    "no-sack",
    "no-timestamps",
    "both-ways",
    "duplicated",
];

/// The connection of that number.
pub fn case(seed: u64, number: u64) -> Case {
    let mut draw = Draw(Seed::new(seed).derive(number), 0);
    let kind = KINDS[(number % KINDS.len() as u64) as usize];
    let upwards = draw.one_in(6) && !matches!(kind, "messages" | "tail");
    let (sender, way, data) = if upwards { ("client", "up", "up") } else { ("server", "down", "down") };
    let rtt = draw.between(4.0, 200.0);
    let rate = draw.between(4.0, 300.0);
    let mut text = String::new();
    let mut put = |line: String| writeln!(text, "{line}").expect("written");
    put(format!("path.rtt = \"{rtt:.2}ms\"\npath.rate = \"{rate:.2}mbit\""));
    // A queue that holds all a window may be, unless it is to overflow.
    let packets = if kind == "overflow" { draw.whole(6, 40) } else { 20_000 };
    put(format!("path.queue = \"{packets} packets\""));
    let bytes = draw.whole(150_000, 2_000_000);
    let segments = bytes / 1448;
    let loss = draw.between(0.7, 6.0);
    let listed = |list: Vec<u64>| {
        let list: Vec<String> = list.iter().map(u64::to_string).collect();
        format!("path.{data}.loss = {{ model = \"list\", segments = [{}] }}", list.join(", "))
    };
    // Losses begin behind the handshake: the kernel counts SYNs sent again and their timeouts among the others, and not for each
    // connection.
    let opened = format!("{:.2}ms", rtt * 1.2);
    let later =
        |way: &str, percent: f64| format!("path.{way}.step = [{{ at = \"{opened}\", loss = \"{percent:.2}%\" }}]");
    let mut stream = true;
    match kind {
        "random" | "bbr" | "no-sack" | "no-timestamps" => put(later(data, loss)),
        "both-ways" => {
            put(later("down", loss.min(2.0)));
            put(later("up", loss.min(2.0)));
        }
        "bursts" => put(format!(
            "path.{data}.step = [{{ at = \"{opened}\", loss = {{ model = \"gilbert-elliott\", p = \"{:.2}%\", r = \"{:.0}%\", h = \"0%\", k = \"100%\" }} }}]",
            draw.between(0.4, 2.0),
            draw.between(15.0, 60.0)
        )),
        "listed" => {
            let mut list: Vec<u64> = Vec::new();
            for _ in 0..draw.whole(1, 8) {
                let first = draw.whole(1, segments);
                let length = if draw.one_in(3) { draw.whole(2, 12) } else { 1 };
                list.extend(first..first + length);
            }
            list.sort_unstable();
            list.dedup();
            put(listed(list));
        }
        // All of a flight, and some of what repairs it.
        "flight" => {
            let (first, flight) = draw.of(&[(1, 10), (11, 20), (31, 40)]);
            let length = flight + draw.whole(1, 5) - 1;
            put(listed((first..first + length).collect()));
        }
        "blackout" => {
            let at = rtt * 2.5e-3 + draw.between(0.02, 0.4);
            let long = draw.between(0.1, 2.0);
            put(format!(
                "path.{data}.step = [{{ at = \"{at:.3}s\", loss = \"100%\" }}, {{ at = \"{:.3}s\", loss = \"0%\" }}]",
                at + long
            ));
        }
        "tail" => {
            let answer = draw.whole(1, 30);
            let lost = draw.whole(1, answer.min(12));
            let transaction = draw.whole(1, 8) * answer;
            put(listed((transaction - lost + 1..=transaction).collect()));
            put(format!(
                "workload.part = [{{ name = \"tcp\", kind = \"rr\", request = 100, response = {}, transactions = 8 }}, LINGER]",
                answer * 1448 - draw.whole(1, 1000)
            ));
            stream = false;
        }
        "messages" => {
            put(later(data, loss));
            put(format!(
                "workload.part = [{{ name = \"tcp\", kind = \"rr\", request = 100, response = {}, transactions = {} }}, LINGER]",
                draw.whole(500, 40_000),
                draw.whole(40, 120)
            ));
            stream = false;
        }
        "reordered" => {
            if draw.one_in(2) {
                put(format!(
                    "path.{data}.jitter = {{ stddev = \"{:.2}ms\", reorder = true }}",
                    rtt * draw.between(0.02, 0.3)
                ));
            } else {
                put(format!("path.{data}.reorder = \"{:.2}%\"", draw.between(0.7, 10.0)));
            }
            if draw.one_in(2) {
                put(later(data, loss / 3.0));
            }
        }
        "duplicated" => {
            put(later(data, loss / 3.0));
            put(format!("path.{data}.duplicate = \"{:.2}%\"", draw.between(0.2, 5.0)));
        }
        _ => {}
    }
    if stream {
        let pace = if draw.one_in(5) {
            format!(", pace = \"{:.2}mbit\"", rate * draw.between(0.1, 0.9))
        } else {
            String::new()
        };
        put(format!(
            "workload.part = [{{ name = \"tcp\", kind = \"stream\", direction = \"{way}\", bytes = {bytes}{pace} }}, LINGER]"
        ));
    }
    if kind == "bbr" {
        put(format!("{sender}.socket.congestion = \"bbr\""));
    }
    if kind == "no-sack" {
        put(format!("{sender}.sysctl.\"net.ipv4.tcp_sack\" = 0"));
    }
    if kind == "no-timestamps" {
        put(format!("{sender}.sysctl.\"net.ipv4.tcp_timestamps\" = 0"));
    }
    if draw.one_in(4) {
        put(format!("{sender}.route.rto_min = \"{}ms\"", draw.of(&[10, 20, 50])));
    }
    // The run goes on until everything has come to rest, so that both ends' captures hold all there was.
    let linger = "{ name = \"end\", kind = \"udp-train\", direction = \"down\", size = 100, interval = \"1ms\", packets = 1, start = \"150s\" }";
    let text = text.replace("LINGER", linger);
    Case { name: format!("{number} {kind}"), text, sender }
}
