//! Several connections on one path, as the tests of shared paths and of thresholds run them.
#![allow(dead_code, unreachable_pub)]

/// A path with connections on it. What they carry together says what holds them: a full path, or something else.
pub struct Case {
    /// Its name.
    pub name: String,
    /// The scenario.
    pub text: String,
    /// What the path lets through, in bits per second of payload: 1,448 of a frame's 1,514 bytes.
    pub rate: f64,
}

/// Every pair of a path and what is on it.
pub fn cases() -> Vec<Case> {
    let paths = [("8mbit", 8e6, "30ms", 40), ("50mbit", 50e6, "60ms", 200), ("200mbit", 200e6, "12ms", 150)];
    let parallel = |count: u32| format!("kind = \"stream\"\nparallel = {count}\nseconds = \"8s\"");
    let joined = "kind = \"mixed\"\n[[workload.part]]\nname = \"first\"\nkind = \"stream\"\nseconds = \"8s\"\n[[workload.part]]\nname = \"others\"\nkind = \"stream\"\nparallel = 3\nseconds = \"4s\"\nstart = \"2s\"";
    let mut cases = Vec::new();
    for (rate, bits, rtt, queue) in paths {
        for (what, workload) in [("two", parallel(2)), ("six", parallel(6)), ("joined", joined.to_owned())] {
            for control in ["cubic", "bbr"] {
                let name = format!("full-{rate}-{what}-{control}");
                let path = format!("rtt = \"{rtt}\"\nrate = \"{rate}\"\nqueue = \"{queue} packets\"");
                cases.push(case(name, &path, &workload, control, bits));
            }
        }
        // Windows of 1.22 segments over the root of the loss rate (Mathis et al.): six of them use up a part of ten times the rate.
        let lossy = bits * 10.0;
        for jitter in ["", "jitter = \"2ms\"\n"] {
            let name = format!("lossy-{rate}-{}", if jitter.is_empty() { "even" } else { "jitter" });
            let path =
                format!("rtt = \"{rtt}\"\nrate = \"{lossy}bit\"\nqueue = \"5000 packets\"\nloss = \"2%\"\n{jitter}");
            cases.push(case(name, &path, &parallel(6), "cubic", lossy));
        }
    }
    // Held by their receivers' buffers, which take a part of the path together, and now and then a packet is lost.
    let windows = "rtt = \"40ms\"\nrate = \"500mbit\"\nqueue = \"5000 packets\"\nloss = \"0.01%\"";
    let mut held = case("held-500mbit".to_owned(), windows, &parallel(4), "cubic", 500e6);
    held.text.push_str("[client.socket]\nrcvbuf = \"200kB\"\n");
    cases.push(held);
    cases
}

fn case(name: String, path: &str, workload: &str, control: &str, rate: f64) -> Case {
    let text =
        format!("name = \"v\"\n[path]\n{path}\n[workload]\n{workload}\n[server.socket]\ncongestion = \"{control}\"\n");
    Case { name, text, rate: rate * 1_448.0 / 1_514.0 }
}
