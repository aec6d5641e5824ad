//! How fast the lab is: virtual seconds per real second, one experiment at a time, best and median of five.
#![allow(clippy::print_stdout)]

use serde_json::Value;
use std::fs;
use std::process::Command;

const ROUNDS: usize = 5;
const CRR: &str = "name = \"crr\"\n[path]\nrtt = \"100ms\"\n[workload]\nkind = \"crr\"\nrequest = 1000\nresponse = 300000\ntransactions = 300\n";
const BULK: &str = "name = \"bulk\"\n[path]\nrtt = \"35ms\"\nrate = \"3gbit\"\nqueue = \"10000 packets\"\n[workload]\nkind = \"stream\"\nseconds = \"10s\"\n[client.sysctl]\n\"net.ipv4.tcp_rmem\" = \"4096 131072 33554432\"\n[server.sysctl]\n\"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\"\n";

fn main() {
    // cargo bench passes --bench; there is nothing to choose from.
    let folder = std::env::temp_dir().join(format!("thalweg-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("crr.toml"), CRR).expect("written");
    fs::write(folder.join("bulk.toml"), BULK).expect("written");
    let off = ["--capture", "off", "--samples", "off"];
    println!("{:<52} {:>9} {:>9} {:>9} {:>9}", "", "virtual s", "best s", "median s", "ratio");
    for (title, scenario, more) in [
        ("crr, 300 × 300 KB at 100 ms, nothing recorded", vec!["crr.toml"], &off[..]),
        ("crr, 300 × 300 KB at 100 ms, capture and samples", vec!["crr.toml"], &[]),
        ("stream, 10 s of 3 Gb/s at 35 ms, nothing recorded", vec!["bulk.toml"], &off[..]),
        ("stream, 10 s of 3 Gb/s at 35 ms, capture and samples", vec!["bulk.toml"], &[]),
        ("burst, one first-frame arm of 1 MB, all recorded", vec!["first-frame", "--arm", "cubic 10"], &[]),
    ] {
        let mut walls = Vec::new();
        let mut virtual_s = 0.0;
        for round in 0..ROUNDS {
            let out = folder.join(format!("out-{round}"));
            let output = Command::new(env!("CARGO_BIN_EXE_thalweg"))
                .args(["lab", "run", "--json", "--jobs", "1", "--out"])
                .arg(&out)
                .args(&scenario)
                .args(more)
                .current_dir(&folder)
                .output()
                .expect("the program starts");
            let report: Value = serde_json::from_slice(&output.stdout)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
            walls.push(report["wall_s"].as_f64().expect("wall_s"));
            virtual_s = report["virtual_s"].as_f64().expect("virtual_s");
            fs::remove_dir_all(out).expect("removed");
        }
        walls.sort_by(f64::total_cmp);
        let (best, median) = (walls[0], walls[ROUNDS / 2]);
        println!("{title:<52} {virtual_s:>9.1} {best:>9.2} {median:>9.2} {:>8.1}×", virtual_s / median);
    }
    fs::remove_dir_all(folder).expect("removed");
}
