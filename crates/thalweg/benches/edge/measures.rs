//! What is measured of each server, and how.

use crate::client::Link;
use crate::process::{Family, tcp_queues};
use crate::servers::{Server, resolve};
use std::io::{self, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use url::Url;

/// Rounds, of which the cheapest counts: everything that disturbs adds to what a round takes.
const ROUNDS: usize = 5;
/// How long a round is.
const ROUND: Duration = Duration::from_secs(2);
/// Connections that ask at the same time.
const ASKING: usize = 16;
/// What servers hold settles within this.
const SETTLING: Duration = Duration::from_millis(1_500);

pub(crate) struct Measure {
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    /// What is to hold, in words.
    pub(crate) bound: &'static str,
    of: fn(&Server, &str) -> Option<String>,
    scheme: &'static str,
}

macro_rules! measures {
    ($($key:literal, $name:literal, $bound:literal, $of:expr, $scheme:literal;)*) => {
        &[$(Measure { key: $key, name: $name, bound: $bound, of: $of, scheme: $scheme }),*]
    };
}

pub(crate) const ALL: &[Measure] = measures! {
    "segment", "segment over HTTP, CPU s/GB", "≤ 0.11", segment, "http";
    "segment", "segment over HTTPS, CPU s/GB", "≤ 0.60", segment, "https";
    "wrk", "segment over HTTP by wrk, CPU s/GB", "", segment_by_wrk, "http";
    "wrk", "segment over HTTPS by wrk, CPU s/GB", "", segment_by_wrk, "https";
    "wrk", "playlist over HTTP by wrk, µs CPU/request", "", playlist_by_wrk, "http";
    "playlist", "playlist over HTTP, µs CPU/request", "≤ 9", playlist, "http";
    "playlist", "playlist over HTTPS, µs CPU/request", "", playlist, "https";
    "connect", "connect and first request over HTTP, µs CPU", "", connect, "http";
    "connect", "connect and first request over HTTPS, µs CPU", "", connect, "https";
    "idle", "idle viewer over HTTP, user memory", "≤ 2 KB", idle, "http";
    "idle", "idle viewer over HTTPS, user memory", "≤ 15 KB", idle, "https";
    "slow", "slow HLS viewer over HTTP, user + kernel's queues", "≤ 150 KB", slow, "http";
    "slow", "slow HLS viewer over HTTPS, user + kernel's queues", "≤ 150 KB", slow, "https";
    "stalled", "stalled FLV viewer over HTTP: most; left 5 s after", "≤ 1 MB; 0", stalled, "http";
    "stalled", "stalled FLV viewer over HTTPS: most; left 5 s after", "≤ 1 MB; 0", stalled, "https";
    "fanout", "FLV to 500 players over HTTP, CPU s/GB", "≤ 1.0", fan_out, "http";
    "fanout", "FLV to 500 players over HTTPS, CPU s/GB", "", fan_out, "https";
    "first", "connect → first whole keyframe over HTTP, p50 / p99", "≤ 0.6 ms p50", first, "http";
    "first", "connect → first whole keyframe over HTTPS, p50 / p99", "", first, "https";
};

pub(crate) fn run(measure: &Measure, server: &Server) -> Option<String> {
    (measure.of)(server, measure.scheme)
}

fn of_scheme<'a>(urls: &'a [Url], scheme: &str) -> Option<&'a Url> {
    urls.iter().find(|url| url.scheme() == scheme)
}

/// Several connections ask for the same for a round; requests and bytes.
fn ask_all(url: &Url) -> io::Result<(u64, u64)> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..ASKING)
            .map(|_| {
                scope.spawn(|| {
                    let (mut link, mut scratch) = (Link::open(url, false)?, vec![0; 256 << 10]);
                    let (mut requests, mut bytes) = (0, 0);
                    let begun = Instant::now();
                    while begun.elapsed() < ROUND {
                        let answer = link.get(url, false, &mut scratch)?;
                        if answer.status != 200 {
                            return Err(io::Error::other(format!("status {} for {url}", answer.status)));
                        }
                        (requests, bytes) = (requests + 1, bytes + answer.len);
                    }
                    Ok((requests, bytes))
                })
            })
            .collect();
        threads.into_iter().try_fold((0, 0), |sum, thread| {
            let (requests, bytes) = thread.join().expect("a client does not panic")?;
            Ok((sum.0 + requests, sum.1 + bytes))
        })
    })
}

/// The cheapest of some rounds.
fn cheapest(mut round: impl FnMut() -> Option<f64>) -> Option<f64> {
    (0..ROUNDS).filter_map(|_| round()).min_by(f64::total_cmp)
}

fn segment(server: &Server, scheme: &str) -> Option<String> {
    let entry = of_scheme(&server.playlists, scheme)?;
    let family = Family::of(server.pid);
    let best = cheapest(|| {
        // The newest one, since the window moves on.
        let found = resolve(entry)?;
        let before = family.cpu_s();
        let (_, bytes) = ask_all(&found.segment).ok()?;
        Some((family.cpu_s() - before) / (bytes as f64 / 1e9))
    });
    Some(format!("{:.3}", best?))
}

fn playlist(server: &Server, scheme: &str) -> Option<String> {
    let found = resolve(of_scheme(&server.playlists, scheme)?)?;
    let family = Family::of(server.pid);
    let best = cheapest(|| {
        let before = family.cpu_s();
        let (requests, _) = ask_all(&found.playlist).ok()?;
        Some((family.cpu_s() - before) * 1e6 / requests as f64)
    });
    Some(format!("{:.1}", best?))
}

/// What another client makes of it: how it reads decides how long the queues are.
fn segment_by_wrk(server: &Server, scheme: &str) -> Option<String> {
    let entry = of_scheme(&server.playlists, scheme)?;
    let family = Family::of(server.pid);
    let best = cheapest(|| {
        let found = resolve(entry)?;
        let before = family.cpu_s();
        let (_, bytes) = wrk(&found.segment)?;
        Some((family.cpu_s() - before) / (bytes / 1e9))
    });
    Some(format!("{:.3}", best?))
}

fn playlist_by_wrk(server: &Server, scheme: &str) -> Option<String> {
    let found = resolve(of_scheme(&server.playlists, scheme)?)?;
    let family = Family::of(server.pid);
    let best = cheapest(|| {
        let before = family.cpu_s();
        let (requests, _) = wrk(&found.playlist)?;
        Some((family.cpu_s() - before) * 1e6 / requests)
    });
    Some(format!("{:.1}", best?))
}

/// Lets wrk ask for a round: requests and bytes, as it says them; `None` where it is missing or met an error.
fn wrk(url: &Url) -> Option<(f64, f64)> {
    let connections = format!("-c{ASKING}");
    let length = format!("-d{}s", ROUND.as_secs());
    let output = Command::new("wrk").args(["-t1", &connections, &length, url.as_str()]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `  1234 requests in 2.00s, 1.05GB read`
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let mut words = line.split_whitespace();
    let requests: f64 = words.next()?.parse().ok()?;
    let read = words.nth(3)?;
    let unit_at = read.find(|letter: char| letter.is_ascii_alphabetic())?;
    // wrk's units are of 1024. Source: wrk src/units.c.
    let unit = match &read[unit_at..] {
        "B" => 1.0,
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let has_failed = text.contains("Non-2xx") || text.contains("Socket errors");
    (!has_failed).then_some((requests, read[..unit_at].parse::<f64>().ok()? * unit))
}

fn connect(server: &Server, scheme: &str) -> Option<String> {
    let entry = of_scheme(&server.playlists, scheme)?;
    let family = Family::of(server.pid);
    let mut scratch = vec![0; 64 << 10];
    let best = cheapest(|| {
        let before = family.cpu_s();
        for _ in 0..1_000 {
            Link::open(entry, false).and_then(|mut link| link.get(entry, false, &mut scratch)).ok()?;
        }
        Some((family.cpu_s() - before) * 1e6 / 1e3)
    });
    Some(format!("{:.0}", best?))
}

/// Viewers that have asked for one playlist, and ask for nothing. They are so many that a megabyte or two, which come and go with the
/// stream itself, do not count.
fn idle(server: &Server, scheme: &str) -> Option<String> {
    const COUNT: usize = 12_000;
    let entry = of_scheme(&server.playlists, scheme)?;
    let family = Family::of(server.pid);
    let mut scratch = vec![0; 64 << 10];
    let mut come = |count: usize| {
        let viewer = |_| {
            let mut link = Link::open(entry, false)?;
            link.get(entry, false, &mut scratch)?;
            Ok::<_, io::Error>(link)
        };
        let links: io::Result<Vec<Link>> = (0..count).map(viewer).collect();
        sleep(SETTLING);
        links.ok()
    };
    // What the first ones make a server allocate for good is not theirs.
    let _first = come(1_500)?;
    let before = family.anonymous();
    let _more = come(COUNT)?;
    Some(format!("{:.1} KB", (family.anonymous() - before) / COUNT as f64 / 1e3))
}

/// Viewers of a segment that read a byte a second.
fn slow(server: &Server, scheme: &str) -> Option<String> {
    const COUNT: usize = 200;
    let entry = of_scheme(&server.playlists, scheme)?;
    let family = Family::of(server.pid);
    let mut links = Vec::new();
    let found = resolve(entry)?;
    sleep(SETTLING);
    let held = || (family.anonymous(), tcp_queues());
    let before = held();
    for _ in 0..COUNT {
        let mut link = Link::open(entry, true).ok()?;
        link.ask(&found.segment).ok()?;
        links.push(link);
    }
    for _ in 0..8 {
        sleep(Duration::from_secs(1));
        for link in &mut links {
            link.stream.raw().read_exact(&mut [0]).ok()?;
        }
    }
    let (user, kernel) = held();
    let each = |now: f64, before: f64| (now - before) / COUNT as f64 / 1e3;
    Some(format!("{:.0} + {:.0} KB", each(user, before.0), each(kernel, before.1)))
}

/// Reads until the first keyframe is whole.
fn to_keyframe(link: &mut Link) -> io::Result<()> {
    let mut bytes = link.take_ahead();
    let mut piece = [0; 64 << 10];
    while !has_keyframe(&bytes) {
        match link.stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => bytes.extend_from_slice(&piece[..got]),
        }
    }
    Ok(())
}

/// Source: Adobe's FLV 10.1, E.2 to E.4.3: nine bytes of header, four of size, then tags; type 9 is video, `0x17 1` an AVC keyframe.
fn has_keyframe(bytes: &[u8]) -> bool {
    // Chunked answers have a line before FLV's own header.
    let Some(mut at) = bytes.windows(3).position(|three| three == b"FLV").map(|at| at + 13) else { return false };
    while let Some(tag) = bytes.get(at..).filter(|rest| rest.len() >= 13) {
        let size = u32::from_be_bytes([0, tag[1], tag[2], tag[3]]) as usize;
        let is_keyframe = tag[0] == 9 && tag[11] == 0x17 && tag[12] == 1;
        if tag.len() < 11 + size {
            return false;
        }
        if is_keyframe {
            return true;
        }
        at += 11 + size + 4;
    }
    false
}

fn watch(url: &Url, has_small_buffer: bool) -> io::Result<Link> {
    let mut link = Link::open(url, has_small_buffer)?;
    link.ask(url)?;
    let (status, _) = link.head()?;
    if status == 200 { Ok(link) } else { Err(io::Error::other(format!("status {status} for {url}"))) }
}

/// Viewers that read their first keyframe, and then nothing.
fn stalled(server: &Server, scheme: &str) -> Option<String> {
    const COUNT: usize = 100;
    let url = of_scheme(&server.flv, scheme)?;
    let family = Family::of(server.pid);
    let held = || family.anonymous() + tcp_queues();
    // One that has come and gone, so that what a server keeps of a stream is there.
    watch(url, false).and_then(|mut link| to_keyframe(&mut link)).ok()?;
    sleep(SETTLING);
    let before = held();
    let mut links = Vec::new();
    for _ in 0..COUNT {
        let mut link = watch(url, true).ok()?;
        to_keyframe(&mut link).ok()?;
        links.push(link);
    }
    let mut most = 0.0_f64;
    for _ in 0..36 {
        sleep(Duration::from_secs(1));
        most = most.max(held() - before);
    }
    drop(links);
    sleep(Duration::from_secs(5));
    let each = |bytes: f64| bytes / COUNT as f64 / 1e6;
    Some(format!("{:.2} MB; {:.2} MB", each(most), each(held() - before)))
}

/// Players at the stream's own pace; what is sent is what one more is sent, as often as there are players.
fn fan_out(server: &Server, scheme: &str) -> Option<String> {
    const PLAYERS: f64 = 500.0;
    let url = of_scheme(&server.flv, scheme)?;
    let family = Family::of(server.pid);
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.args(["load", "flv", url.as_str(), "--insecure", "-n", "499", "--ramp", "2s", "--duration", "26s"]);
    let mut load = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    let mut link = watch(url, false).ok()?;
    let mut piece = vec![0; 256 << 10];
    let mut take = |time: Duration| {
        let (begun, mut bytes) = (Instant::now(), 0);
        while begun.elapsed() < time {
            match link.stream.read(&mut piece) {
                Ok(got @ 1..) => bytes += got,
                _ => return None,
            }
        }
        Some(bytes as f64)
    };
    take(Duration::from_secs(4))?;
    let best = cheapest(|| {
        let before = family.cpu_s();
        let bytes = take(Duration::from_secs(4))?;
        Some((family.cpu_s() - before) / (bytes * PLAYERS / 1e9))
    });
    let is_well = load.wait().ok()?.success();
    best.filter(|_| is_well).map(|best| format!("{best:.2}"))
}

fn first(server: &Server, scheme: &str) -> Option<String> {
    let url = of_scheme(&server.flv, scheme)?;
    let mut times = Vec::new();
    for _ in 0..500 {
        let begun = Instant::now();
        watch(url, false).and_then(|mut link| to_keyframe(&mut link)).ok()?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        sleep(Duration::from_millis(5));
    }
    times.sort_by(f64::total_cmp);
    Some(format!("{:.2} / {:.2} ms", times[times.len() / 2], times[times.len() * 99 / 100]))
}
