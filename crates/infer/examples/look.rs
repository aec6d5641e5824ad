//! Prints one line for each connection of each capture named on the command line.

#![allow(clippy::print_stdout, reason = "an example's output")]

fn main() {
    for path in std::env::args().skip(1) {
        let started = std::time::Instant::now();
        match infer::diagnose_file(std::path::Path::new(&path)) {
            Err(error) => println!("{error}"),
            Ok(found) => {
                let r = &found.report;
                println!(
                    "{path}: {} packets, {} flows, {:?} {:?}",
                    r.packets,
                    r.flows.len(),
                    started.elapsed(),
                    r.notes
                );
                for f in r.flows.iter().take(6) {
                    let l: Vec<String> = f
                        .limits
                        .named()
                        .iter()
                        .filter(|l| l.1 > 0.005)
                        .map(|l| format!("{} {:.2}", l.0, l.1))
                        .collect();
                    println!(
                        "  {}->{} {:?} {:?} {:?} up {} down {} {:.2} Mb/s rtt {:?} retr {:?} ooo {} dup {} zw {} full {} [{}]",
                        f.client,
                        f.server,
                        f.interface,
                        f.vantage,
                        f.direction,
                        f.bytes_up,
                        f.bytes_down,
                        f.goodput_bps / 1e6,
                        f.rtt_min_ms,
                        f.retransmits,
                        f.out_of_order,
                        f.dup_acks,
                        f.zero_windows,
                        f.window_full,
                        l.join(", ")
                    );
                    println!("    {} gain {:?}: {}", f.verdict.code, f.verdict.gain, f.verdict.claim);
                    for other in &f.findings {
                        println!("      {} {:.2} gain {:?}", other.code, other.share, other.gain);
                    }
                }
            }
        }
    }
}
