//! How many viewers a server holds: from a thousand HLS players to thirty thousand, server and players on the same processors.
//!
//! `cargo bench -p thalweg --bench edge -- scale [--seconds N] [http|https:PLAYERS]… [--svg FILE]`

use crate::process::{Family, kernel, tcp_queues};
use crate::servers::{self, Picture};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Players that come in a second.
const COMING: u64 = 500;
const CURVE: [(&str, u64); 8] = [
    ("http", 1_000),
    ("http", 3_000),
    ("http", 10_000),
    ("http", 20_000),
    ("http", 30_000),
    ("https", 1_000),
    ("https", 5_000),
    ("https", 15_000),
];

/// What a load of so many players took.
struct Point {
    scheme: String,
    players: u64,
    server_cores: f64,
    load_cores: f64,
    user_mb: f64,
    kernel_mb: f64,
    playlist_ms: [f64; 3],
    segment_ms: [f64; 3],
    first_frame_ms: [f64; 3],
    /// Whole ones.
    segments: u64,
    gbps: f64,
    stalls: u64,
    failures: u64,
    playing: u64,
}

pub(crate) fn run(arguments: &[String]) {
    let (mut seconds, mut svg, mut points) = (60, None, Vec::new());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), word.split_once(':')) {
            ("--seconds", _) => seconds = words.next().and_then(|n| n.parse().ok()).expect("--seconds has a number"),
            ("--svg", _) => svg = words.next(),
            (_, Some((scheme, players))) => points.push((scheme, players.parse().expect("a number of players"))),
            _ => panic!("what is '{word}'? See the head of scale.rs"),
        }
    }
    let points = if points.is_empty() { CURVE.to_vec() } else { points };
    let folder = tempfile::tempdir().expect("a folder");
    let picture = servers::picture(Path::new(env!("CARGO_TARGET_TMPDIR")), Picture::Small).expect("ffmpeg publishes");
    println!(
        "| | players | playing | server, cores | players, cores | server's own memory | kernel, both ends | playlist p50 / p99 / max, ms | segment p50 / p99 / max, ms | first frame p50 / p99 / max, ms | whole segments | Gb/s | stalls | failures |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut found = Vec::new();
    for (scheme, players) in points {
        let Some(point) = hold(folder.path(), &picture, scheme, players, seconds) else {
            println!("| {scheme} | {players} | **the load did not end well** |");
            continue;
        };
        let three = |ms: &[f64; 3]| format!("{:.1} / {:.0} / {:.0}", ms[0], ms[1], ms[2]);
        println!(
            "| {} | {} | {} | {:.3} | {:.3} | {:.0} MB | {:.0} MB | {} | {} | {} | {} | {:.2} | {} | {} |",
            point.scheme,
            point.players,
            point.playing,
            point.server_cores,
            point.load_cores,
            point.user_mb,
            point.kernel_mb,
            three(&point.playlist_ms),
            three(&point.segment_ms),
            three(&point.first_frame_ms),
            point.segments,
            point.gbps,
            point.stalls,
            point.failures
        );
        found.push(point);
    }
    if let Some(path) = svg {
        fs::write(path, draw(&found)).expect("the picture is written");
    }
}

fn hold(folder: &Path, picture: &Path, scheme: &str, players: u64, seconds: u64) -> Option<Point> {
    let server = servers::ours(folder, picture, 2, "[hls]\ntarget = '4s'\n");
    let url = server.playlists.iter().find(|url| url.scheme() == scheme)?;
    servers::resolve(url)?;
    sleep(Duration::from_secs(16));
    let family = Family::of(server.pid);
    let before = (family.anonymous(), kernel() + tcp_queues());
    let ramp = players.div_ceil(COMING);
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["load", "hls", url.as_str(), "--insecure", "--json", "-n", &players.to_string()]);
    command.args(["--ramp", &format!("{ramp}s"), "--duration", &format!("{}s", ramp + seconds)]);
    command.args(["--expect", "failures <= 0", "--expect", "stalled <= 0%"]);
    let mut load = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    // Until all are there and have fetched what they begin with.
    sleep(Duration::from_secs(ramp + 5));
    let players_family = Family::of(load.id());
    let (begun, cpu, load_cpu) = (Instant::now(), family.cpu_s(), players_family.cpu_s());
    sleep(Duration::from_secs(seconds.saturating_sub(10).max(5)));
    let wall = begun.elapsed().as_secs_f64();
    let (server_cores, load_cores) = ((family.cpu_s() - cpu) / wall, (players_family.cpu_s() - load_cpu) / wall);
    let (user_mb, kernel_mb) = ((family.anonymous() - before.0) / 1e6, (kernel() + tcp_queues() - before.1) / 1e6);
    let mut text = String::new();
    std::io::Read::read_to_string(load.stdout.as_mut()?, &mut text).ok()?;
    load.wait().ok()?;
    let report: Value = serde_json::from_str(&text).ok()?;
    let three = |what: &str| ["p50", "p99", "max"].map(|at| report[what][at].as_f64().unwrap_or(f64::NAN));
    Some(Point {
        scheme: scheme.to_owned(),
        players,
        server_cores,
        load_cores,
        user_mb,
        kernel_mb,
        playlist_ms: three("playlist_ms"),
        segment_ms: three("segment_ms"),
        first_frame_ms: three("first_frame_ms"),
        segments: report["segment_ms"]["count"].as_u64()?,
        gbps: report["rate_bps"].as_f64()? / 1e9,
        stalls: report["stalls"]["count"].as_u64()?,
        failures: report["failures"].as_object()?.values().filter_map(Value::as_u64).sum(),
        playing: report["players"]["playing"].as_u64()?,
    })
}

type Line = (&'static str, &'static str, &'static str, fn(&Point) -> f64);
/// A panel: what it shows, and lines by scheme, colour, name and value.
const PANELS: [(&str, &[Line]); 3] = [
    (
        "processor time of the server, cores",
        &[("http", "#1f77b4", "HTTP", |p| p.server_cores), ("https", "#d62728", "HTTPS", |p| p.server_cores)],
    ),
    (
        "the server's own memory, MB",
        &[("http", "#1f77b4", "HTTP", |p| p.user_mb), ("https", "#d62728", "HTTPS", |p| p.user_mb)],
    ),
    (
        "playlist, ms from when it was due (p50 thin, p99)",
        &[
            ("http", "#1f77b4", "", |p| p.playlist_ms[0]),
            ("https", "#d62728", "", |p| p.playlist_ms[0]),
            ("http", "#1f77b4", "HTTP", |p| p.playlist_ms[1]),
            ("https", "#d62728", "HTTPS", |p| p.playlist_ms[1]),
        ],
    ),
];

fn draw(points: &[Point]) -> String {
    const WIDTH: f64 = 360.0;
    const HEIGHT: f64 = 220.0;
    let mut out = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1290 300\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"1290\" height=\"300\" fill=\"white\"/>\n",
    );
    let most_players = points.iter().map(|point| point.players).max().unwrap_or(1) as f64;
    for (at, (title, lines)) in PANELS.iter().enumerate() {
        let left = 50.0 + at as f64 * 430.0;
        let top = points.iter().flat_map(|p| lines.iter().filter(|l| l.0 == p.scheme).map(|l| (l.3)(p)));
        let top = top.filter(|y| y.is_finite()).fold(1e-9, f64::max) * 1.1;
        let x = |players: u64| left + WIDTH * players as f64 / most_players;
        let y = |value: f64| 260.0 - HEIGHT * value / top;
        let _ = writeln!(out, "<text x=\"{left}\" y=\"24\">{title}</text>");
        let _ = writeln!(out, "<path d=\"M{left} 40V260H{}\" fill=\"none\" stroke=\"#444\"/>", left + WIDTH);
        for part in 0..=4 {
            let value = top * f64::from(part) / 4.0;
            let text = if top < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") };
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{:.0}\" text-anchor=\"end\">{text}</text>",
                left - 4.0,
                y(value) + 4.0
            );
            let players = (most_players / 4.0 * f64::from(part)) as u64;
            let _ = writeln!(out, "<text x=\"{:.0}\" y=\"278\" text-anchor=\"middle\">{players}</text>", x(players));
        }
        for (scheme, color, name, value) in *lines {
            let mut own = points.iter().filter(|point| point.scheme == *scheme);
            let path: Vec<String> = own.clone().map(|p| format!("{:.1},{:.1}", x(p.players), y(value(p)))).collect();
            let width = if name.is_empty() { 1 } else { 2 };
            let path = path.join(" ");
            let _ = writeln!(
                out,
                "<polyline points=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>"
            );
            if let Some(last) = own.next_back() {
                let (x, y) = (x(last.players) - 40.0, y(value(last)) - 6.0);
                let _ = writeln!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\" fill=\"{color}\">{name}</text>");
            }
        }
    }
    out + "<text x=\"645\" y=\"295\" text-anchor=\"middle\">HLS players</text>\n</svg>\n"
}
