//! Paths in real time on this machine: one flow without limits, 3 Gb/s over 35 ms, the error of round trips and rates, and
//! fifty paths at once. Medians of three runs. Names of parts as arguments run these alone. To be run as root, or as the root of
//! a user namespace, where /dev/net/tun is open.
#![allow(clippy::print_stdout)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};
use thalweg_host::peer::processor_time;
use thalweg_host::sysctl;
use thalweg_live::{Asked, Carriers, End, Family, LivePath, far, near};
use thalweg_model::{Path, PathDirection, Queue};
use thalweg_units::{Rate, Seed, Span};

const RUNS: usize = 3;
const BUFFERS: &str = "4096 131072 67108864";

fn start(direction: &PathDirection, carriers: &Carriers) -> LivePath {
    let path = Path { down: direction.clone(), up: direction.clone(), ..Path::default() };
    let asked =
        Asked { path, seed: Seed::new(1), world: false, publish: Vec::new(), expose: Vec::new(), has_server: true };
    let path = LivePath::start(&asked, None, carriers).expect("a path");
    for end in [End::Near, End::Far] {
        let set = || ["tcp_rmem", "tcp_wmem"].map(|name| sysctl::write(&format!("net.ipv4.{name}"), BUFFERS));
        path.within(end, set).into_iter().for_each(|set| drop(set.expect("set")));
    }
    path
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Sends from the far end for `time`; returns the rate of payload in the last three quarters, in bits per second, and the
/// processor time of both ends' threads.
fn stream(path: &LivePath, time: Duration) -> (f64, Span) {
    let listener = path.within(End::Far, || TcpListener::bind((far(Family::V4), 0))).expect("bound");
    let to = listener.local_addr().expect("bound");
    let mut client = path.within(End::Near, move || TcpStream::connect(to)).expect("connected");
    let (mut server, _) = listener.accept().expect("accepted");
    let end = Instant::now() + time;
    let sending = std::thread::spawn(move || {
        let bytes = vec![7; 1 << 20];
        while Instant::now() < end && server.write_all(&bytes).is_ok() {}
        thread_time()
    });
    let mut buffer = vec![0; 1 << 20];
    let warm = end - time * 3 / 4;
    let (mut counted, mut since) = (0u64, None);
    while let Ok(length @ 1..) = client.read(&mut buffer) {
        let now = Instant::now();
        if now >= end {
            break;
        }
        if now >= warm {
            since.get_or_insert(now);
            counted += length as u64;
        }
    }
    let seconds = since.map_or(f64::NAN, |since| (end - since).as_secs_f64());
    drop(client);
    let sender = sending.join().unwrap_or(Span::ZERO);
    (counted as f64 * 8.0 / seconds, sender + thread_time())
}

fn thread_time() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Span::from_secs_f64(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

fn one_flow(name: &str, direction: &PathDirection, time: Duration) {
    let mut rates = Vec::new();
    let mut costs = Vec::new();
    let mut lost = 0;
    for _ in 0..RUNS {
        let path = start(direction, &Carriers::default());
        let (before, own) = (processor_time(), thread_time());
        let (rate, ends) = stream(&path, time);
        let spent = processor_time().saturating_sub(before).as_secs_f64();
        let ended = path.finish().expect("ended").progress;
        let carried = ended.down.counters.departed.bytes.get() as f64 / 1e9;
        rates.push(rate / 1e9);
        costs.push((spent - (ends.as_secs_f64() - own.as_secs_f64())) / carried);
        lost += ended.down.lost.unread + ended.down.lost.refused + ended.down.lost.overflow;
    }
    println!(
        "{name:44} {:6.2} Gb/s, {:.2} s of processor a GB, {lost} frames lost by itself",
        median(rates),
        median(costs)
    );
}

/// Round trips of datagrams, one way delayed by `delay`, with a rest of `rest` before each: the error of their times.
fn round_trips(name: &str, delay: Span, rest: Duration) {
    const COUNT: usize = 200;
    let direction = PathDirection { delay, ..PathDirection::default() };
    let path = start(&direction, &Carriers::default());
    let socket = |end: End, own, other| {
        let socket = path.within(end, move || UdpSocket::bind((own, 9))).expect("bound");
        socket.connect((other, 9)).expect("connected");
        socket
    };
    let near_end = socket(End::Near, near(Family::V4), far(Family::V4));
    let far_end = socket(End::Far, far(Family::V4), near(Family::V4));
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        while let Ok(length) = far_end.recv(&mut buffer) {
            far_end.send(&buffer[..length]).expect("sent");
        }
    });
    let asked = delay.as_secs_f64() * 2e6;
    let mut errors: Vec<f64> = (0..COUNT)
        .map(|_| {
            std::thread::sleep(rest);
            let begun = Instant::now();
            near_end.send(b"there and back").expect("sent");
            near_end.recv(&mut [0; 64]).expect("received");
            begun.elapsed().as_secs_f64() * 1e6 - asked
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    let at = |part: f64| errors[((COUNT - 1) as f64 * part) as usize];
    println!("{name:44} least {:+.0} µs, p50 {:+.0} µs, p99 {:+.0} µs", errors[0], at(0.5), at(0.99));
    let late = path.progress().down.lateness;
    println!("{:44} p50 {}, p99 {}", "  departures late by", late.quantile(0.5), late.quantile(0.99));
}

/// What the emulator adds to a round trip, and what waking two programs and reading two devices takes without it.
fn all_round_trips() {
    round_trips("round trip of 100 ms, its error", Span::from_millis(50), Duration::ZERO);
    round_trips("round trip of 0 ms after a rest of 50 ms", Span::ZERO, Duration::from_millis(50));
}

/// Rate of the wire over five seconds in which the queue never runs empty, for each path; each has one of `carriers`, in turn.
fn rates(paths: usize, rate: Rate, carriers: &[Carriers]) -> Vec<f64> {
    let queue = Queue::Time(Span::from_millis(50));
    let direction = PathDirection { rate: Some(rate), queue, delay: Span::from_millis(5), ..PathDirection::default() };
    let paths: Vec<LivePath> =
        carriers.iter().cycle().take(paths).map(|carriers| start(&direction, carriers)).collect();
    std::thread::scope(|scope| {
        paths.iter().for_each(|path| drop(scope.spawn(|| stream(path, Duration::from_secs(8)))));
        std::thread::sleep(Duration::from_secs(2));
        let look = || -> Vec<_> { paths.iter().map(|path| path.progress().down).collect() };
        let begun = look();
        std::thread::sleep(Duration::from_secs(5));
        let each = begun.into_iter().zip(look()).map(|(begun, ended)| {
            let packets = ended.counters.departed.packets - begun.counters.departed.packets;
            let bytes = ended.counters.departed.bytes.get() - begun.counters.departed.bytes.get() + 14 * packets;
            bytes as f64 * 8.0 / ended.at.saturating_sub(begun.at).as_secs_f64()
        });
        each.collect()
    })
}

fn fifty_paths() {
    let alone: Vec<Carriers> = (0..50).map(|_| Carriers::default()).collect();
    fifty("50 paths of 100 Mb/s, a thread each", &alone);
    fifty("50 paths of 100 Mb/s, shared threads", &[Carriers::default()]);
}

fn fifty(name: &str, carriers: &[Carriers]) {
    let each = rates(50, Rate::from_bits_per_second(100_000_000), carriers);
    let within = each.iter().filter(|rate| (*rate / 1e8 - 1.0).abs() <= 0.01).count();
    let (least, most) = each.iter().fold((f64::MAX, 0f64), |(least, most), rate| (least.min(*rate), most.max(*rate)));
    println!("{:44} {within} within 1 %; {:.1} to {:.1} Mb/s", name, least / 1e6, most / 1e6);
}

fn flows() {
    one_flow("one flow, no limits", &PathDirection::default(), Duration::from_secs(2));
    let queue = Queue::Time(Span::from_millis(35));
    let rate = Some(Rate::from_bits_per_second(3_000_000_000));
    let delay = Span::from_micros(17_500);
    one_flow(
        "one flow, 3 Gb/s, 35 ms",
        &PathDirection { rate, queue, delay, ..PathDirection::default() },
        Duration::from_secs(6),
    );
    let rate = Some(Rate::from_bits_per_second(100_000_000));
    one_flow(
        "one flow, 100 Mb/s, 35 ms",
        &PathDirection { rate, queue, delay, ..PathDirection::default() },
        Duration::from_secs(3),
    );
}

fn full_links() {
    for megabits in [10u64, 100, 1_000] {
        let asked = Rate::from_bits_per_second(megabits * 1_000_000);
        let errors = (0..RUNS)
            .map(|_| rates(1, asked, &[Carriers::default()])[0] / asked.bits_per_second() as f64 * 100.0 - 100.0);
        println!("{:44} {:+.2} %", format!("a full link of {asked}, error of its rate"), median(errors.collect()));
    }
}

fn main() {
    let parts: [(&str, fn()); 4] =
        [("flows", flows), ("round-trips", all_round_trips), ("full-links", full_links), ("fifty-paths", fifty_paths)];
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_asked = |name: &str| asked.is_empty() || asked.iter().any(|arg| arg == name);
    parts.iter().filter(|(name, _)| is_asked(name)).for_each(|(_, run)| run());
}
