//! Slow bulk transfers with causes drawn at random, and what a grid search over both hosts' settings has for them.
#![allow(dead_code, unreachable_pub)]

pub mod disguise;

use std::fmt::Write as _;

/// Random numbers that are the same on every host: SplitMix64.
pub struct Draw(pub u64);

impl Draw {
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in the logarithm.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.unit())
    }
}

/// A slow bulk transfer.
pub struct Slow {
    /// The scenario without its workload.
    text: String,
    /// One or two of the causes it was drawn from.
    pub causes: Vec<&'static str>,
    pub rtt_ms: f64,
    /// Of the path, or of its policer.
    pub rate_bps: f64,
    pub loss: f64,
}

impl Slow {
    /// Draws one with one cause if `number` is even, and with up to two if it is odd.
    pub fn draw(draw: &mut Draw, number: usize, causes: &[&'static str]) -> Self {
        let (rtt_ms, rate) = (draw.between(20.0, 200.0), draw.between(20.0, 200.0));
        let queue = rate * rtt_ms / 8.0 * draw.between(0.5, 1.5);
        let mut chosen: Vec<&'static str> = Vec::new();
        for _ in 0..=number % 2 {
            chosen.push(causes[(draw.unit() * causes.len() as f64) as usize]);
        }
        chosen.sort_unstable();
        chosen.dedup();
        let held = rate * rtt_ms / 8.0 * 1e3 * draw.between(0.1, 0.4);
        let (mut path, mut client, mut server) = (String::new(), "[client]\n".to_owned(), "[server]\n".to_owned());
        let mut slow = Self { text: String::new(), causes: chosen, rtt_ms, rate_bps: rate * 1e6, loss: 0.0 };
        let mut queue = format!("{queue:.0}KB");
        for cause in slow.causes.clone() {
            let line = match cause {
                "window" => {
                    let usual = held.min(87380.0);
                    writeln!(client, "sysctl.\"net.ipv4.tcp_rmem\" = \"4096 {usual:.0} {:.0}\"", held * 1.6)
                }
                "scale" => writeln!(client, "sysctl.\"net.ipv4.tcp_window_scaling\" = \"0\""),
                "buffer" => {
                    let most = (held * 1.5).max(32768.0);
                    writeln!(server, "sysctl.\"net.ipv4.tcp_wmem\" = \"4096 16384 {most:.0}\"")
                }
                "asked" => writeln!(client, "socket.rcvbuf = {:.0}", (held * 0.8).max(16384.0)),
                "clamp" => writeln!(server, "route.cwnd = {:.0}", (held / 1448.0).max(4.0)),
                "paced" => {
                    writeln!(server, "socket.max_pacing_rate = \"{:.1}mbit\"", rate * draw.between(0.1, 0.4))
                }
                "policer" => {
                    let (policed, burst) = (rate * draw.between(0.1, 0.4), draw.between(15e3, 600e3));
                    slow.rate_bps = policed * 1e6;
                    writeln!(path, "down.policer = {{ rate = \"{policed:.2}mbit\", burst = \"{burst:.0}B\" }}")
                }
                "queue" => {
                    queue = format!("{:.0} packets", draw.between(12.0, 60.0));
                    Ok(())
                }
                _ => {
                    let loss = draw.between(0.02, 0.2);
                    slow.loss = loss / 100.0;
                    writeln!(path, "loss = \"{loss:.3}%\"")
                }
            };
            line.expect("written");
        }
        slow.text = format!(
            "[path]\nrtt = \"{rtt_ms:.1}ms\"\nrate = \"{rate:.1}mbit\"\nqueue = \"{queue}\"\n{path}{client}{server}"
        );
        slow
    }

    /// The scenario with a stream of so many seconds.
    pub fn scenario(&self, name: &str, seconds: f64) -> String {
        let Self { text, .. } = self;
        format!("name = \"{name}\"\n{text}[workload]\nkind = \"stream\"\nseconds = \"{seconds}s\"\n")
    }

    /// The keys of the scenario that the causes of the hosts set and a remedy takes off, each in quotes.
    fn host_keys(&self) -> Vec<String> {
        let key = |cause: &&'static str| match *cause {
            "scale" => Some(r#"'client.sysctl."net.ipv4.tcp_window_scaling"'"#),
            "asked" => Some("'client.socket.rcvbuf'"),
            "clamp" => Some("'server.route.cwnd'"),
            "paced" => Some("'server.socket.max_pacing_rate'"),
            _ => None,
        };
        self.causes.iter().filter_map(key).map(str::to_owned).collect()
    }

    /// Everything that could be lifted, at once, with each congestion control and three sizes of buffers: what a grid search reaches.
    pub fn grid(&self) -> String {
        let mut arms = String::new();
        let unset = self.host_keys().join(", ");
        for congestion in ["cubic", "bbr"] {
            for most in [4u64 << 20, 8 << 20, 16 << 20] {
                let _ = write!(
                    arms,
                    "[[arm]]\nname = \"{congestion} {most}\"\nunset = [{unset}]\nclient.sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 {most}\"\n\
                     server.sysctl.\"net.ipv4.tcp_wmem\" = \"4096 16384 {most}\"\nserver.socket.congestion = \"{congestion}\"\n"
                );
            }
        }
        arms
    }

    /// An arm without one of the causes, named after it.
    pub fn without(&self, cause: &str) -> String {
        let (unset, set) = match cause {
            "window" => ("", "client.sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 16777216\"\n"),
            "buffer" => ("", "server.sysctl.\"net.ipv4.tcp_wmem\" = \"4096 16384 16777216\"\n"),
            "scale" => (r#"'client.sysctl."net.ipv4.tcp_window_scaling"'"#, ""),
            "asked" => ("'client.socket.rcvbuf'", ""),
            "clamp" => ("'server.route.cwnd'", ""),
            "paced" => ("'server.socket.max_pacing_rate'", ""),
            "policer" => ("'path.down.policer'", ""),
            "queue" => ("", "path.queue = \"8MB\"\n"),
            _ => ("'path.loss'", ""),
        };
        format!("[[arm]]\nname = \"without {cause}\"\nunset = [{unset}]\n{set}")
    }

    /// An arm with a remedy's changes, as `fix --json` has them.
    pub fn with(&self, changes: &[serde_json::Value]) -> String {
        let (mut unset, mut lines) = (Vec::new(), String::new());
        for change in changes {
            let (kind, name) = change["setting"].as_object().and_then(|all| all.iter().next()).expect("a setting");
            let (side, name) = (change["side"].as_str().expect("a side"), name.as_str().expect("a name"));
            let to = change["to"].as_str().expect("a value");
            if to == "auto" {
                unset.extend(self.host_keys().into_iter().filter(|key| *key == format!("'{side}.{kind}.{name}'")));
            } else if kind == "sysctl" {
                let _ = writeln!(lines, "{side}.sysctl.\"{name}\" = \"{to}\"");
            } else if to.parse::<u64>().is_ok() || to.parse::<bool>().is_ok() {
                let _ = writeln!(lines, "{side}.{kind}.{name} = {to}");
            } else {
                let _ = writeln!(lines, "{side}.{kind}.{name} = \"{to}\"");
            }
        }
        format!("[[arm]]\nname = \"remedy\"\nunset = [{}]\n{lines}", unset.join(", "))
    }
}
