//! What a viewer costs: processor time and memory of `thalweg serve`, of nginx with the same segment, and of any other server.
//!
//! `cargo bench -p thalweg --bench edge` measures ours and nginx. Another server, which has to serve a live stream already, is
//! named after `--`, any number of times: `NAME PID [playlist=URL] [flv=URL]`. The servers are bound to processor 0 (others: see to
//! it), clients to processor 1. `-- scale` measures how many viewers ours holds: scale.rs.
#![allow(clippy::print_stdout)]

mod client;
mod floor;
mod measures;
mod process;
mod scale;
mod servers;

use rustix::thread::{CpuSet, sched_setaffinity};
use servers::{Picture, Server};
use std::path::Path;

/// Binds this thread, and what it starts from here on, to a processor; to any where there is only one.
pub(crate) fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    let _ = sched_setaffinity(None, &set);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.split_first() {
        Some((first, more)) if first == "scale" => return scale::run(more),
        Some((first, paths)) if first == floor::WORD => return floor::serve(paths).expect("the files are there"),
        _ => {}
    }
    // Some measures by their keys, apart by commas.
    let only: Option<Vec<String>> =
        std::env::var("EDGE_BENCH").ok().map(|list| list.split(',').map(str::to_owned).collect());
    let folder = tempfile::tempdir().expect("a folder");
    let mut servers = Vec::new();
    match servers::picture(Path::new(env!("CARGO_TARGET_TMPDIR")), Picture::Large) {
        Some(picture) => {
            let ours = servers::ours(folder.path(), &picture, 1, "");
            let root = folder.path().join("root");
            let segment = servers::copy(&root, &ours).expect("there is a segment");
            let nginx = servers::nginx(folder.path());
            if nginx.is_none() {
                println!("**NOT MEASURED: nginx is not installed**");
            }
            let floor = floor::start(&root.join("index.m3u8"), &segment);
            servers.push(ours);
            servers.extend(nginx);
            servers.extend(floor);
        }
        None => println!("**NOT MEASURED: ffmpeg, which publishes, is not installed**"),
    }
    servers.extend(others(&arguments));
    pin(1);
    // Until what is kept of the streams is as much as it becomes, so that no viewer is charged with it.
    std::thread::sleep(std::time::Duration::from_secs(30));
    let mut table: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for measure in measures::ALL.iter().filter(|m| only.as_ref().is_none_or(|only| only.iter().any(|o| o == m.key))) {
        let found =
            servers.iter().map(|server| measures::run(measure, server).unwrap_or_else(|| "–".to_owned())).collect();
        println!("{}: {found:?}", measure.name);
        table.push((measure.name, measure.bound, found));
    }
    println!("\n| | to hold | {} |", servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(" | "));
    println!("|---|---|{}", "---|".repeat(servers.len()));
    for (name, bound, found) in table {
        println!("| {name} | {bound} | {} |", found.join(" | "));
    }
}

/// Servers named on the command line.
fn others(arguments: &[String]) -> Vec<Server> {
    let mut servers: Vec<Server> = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match (word.split_once('='), servers.last_mut()) {
            (Some(("playlist", url)), Some(server)) => server.playlists.push(url.parse().expect("a URL")),
            (Some(("flv", url)), Some(server)) => server.flv.push(url.parse().expect("a URL")),
            _ => {
                let pid =
                    words.next().and_then(|pid| pid.parse().ok()).expect("a server's name is followed by its pid");
                let (playlists, flv, _children) = (Vec::new(), Vec::new(), Vec::new());
                servers.push(Server { name: word.clone(), pid, playlists, flv, _children });
            }
        }
    }
    servers
}
