//! Paths in real time: what holds on any machine, however busy it is. Rates and times on a quiet one are in docs/live.md.
#![allow(missing_docs)]

mod common;

use common::{inside, start, start_on, start_path, tcp, udp};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};
use thalweg_live::{Carriers, End, Family, LivePath, PerWay, Progress, Signal};
use thalweg_model::{Chance, Loss, Path, PathDirection, Queue, Step, Way};
use thalweg_units::{Rate, Ratio, Span};

const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

fn ratio(ratio: f64) -> Ratio {
    Ratio::new(ratio).expect("a ratio")
}

fn mbit(mbit: u64) -> Option<Rate> {
    Some(Rate::from_bits_per_second(mbit * 1_000_000))
}

/// Nothing is on the path any more: what came in has left or was dropped, and the emulator lost nothing.
fn assert_conserved(progress: &PerWay<Progress>) {
    for one in [&progress.down, &progress.up] {
        let counters = &one.counters;
        let gone = counters.departed.packets + counters.dropped_in_all().packets;
        assert_eq!(counters.arrived.packets + counters.duplicated.packets, gone, "{counters:?}");
        assert_eq!(one.lost, thalweg_live::Lost::default());
    }
}

#[test]
fn a_round_trip_takes_what_is_asked_for_and_never_less() {
    inside("a_round_trip_takes_what_is_asked_for_and_never_less", || {
        let delay = Span::from_millis(20);
        let path = start(&PathDirection { delay, ..PathDirection::default() });
        for family in FAMILIES {
            let (near, far) = (udp(&path, End::Near, family, 9), udp(&path, End::Far, family, 9));
            let mut buffer = [0; 100];
            let mut round_trips: Vec<Duration> = (0..20)
                .map(|_| {
                    let begun = Instant::now();
                    near.send(b"there").expect("sent");
                    far.recv(&mut buffer).expect("received");
                    far.send(b"back").expect("sent");
                    near.recv(&mut buffer).expect("received");
                    begun.elapsed()
                })
                .collect();
            round_trips.sort();
            assert!(round_trips[0] >= Duration::from_millis(40), "early: {:?}", round_trips[0]);
            // Other programs may hold the processors for a while, but not each time.
            assert!(round_trips[5] < Duration::from_millis(44), "{family:?}: {round_trips:?}");
        }
        let ended = path.finish().expect("ended");
        assert_conserved(&ended.progress);
    });
}

/// Sends datagrams of 1,472 bytes, packets of 1,500, from the far end until `until`: bursts that are long enough for a machine on
/// which the next one is late.
fn flood(socket: &UdpSocket, until: Instant) {
    let bytes = [7; 1_472];
    while Instant::now() < until {
        // A full queue is what this is for.
        (0..300).for_each(|_| drop(socket.send(&bytes)));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_full_link_sends_at_its_rate() {
    inside("a_full_link_sends_at_its_rate", || {
        let queue = Queue::Time(Span::from_millis(200));
        let down = PathDirection { rate: mbit(50), queue, ..PathDirection::default() };
        let path = start_path(Path { down, ..Path::default() }, &Carriers::default());
        let (_near, far) = (udp(&path, End::Near, Family::V4, 9), udp(&path, End::Far, Family::V4, 9));
        let end = Instant::now() + Duration::from_millis(4_500);
        let flooding = std::thread::spawn(move || flood(&far, end));
        // The queue is full after a while, and stays so.
        let looks: Vec<Progress> = (0..4)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(1_000));
                path.progress().down
            })
            .collect();
        flooding.join().expect("sent");
        assert!(looks.iter().all(|look| look.queued.packets > 10), "the queue must not run empty: {looks:?}");
        let rate = |begun: &Progress, ended: &Progress| {
            let packets = ended.counters.departed.packets - begun.counters.departed.packets;
            let bits = (ended.counters.departed.bytes.get() - begun.counters.departed.bytes.get() + 14 * packets) * 8;
            bits as f64 / ended.at.saturating_sub(begun.at).as_secs_f64()
        };
        let mut rates: Vec<f64> = looks.windows(2).map(|pair| rate(&pair[0], &pair[1])).collect();
        rates.sort_by(f64::total_cmp);
        // A busy machine may hand over late just when it is looked at.
        assert!((rates[1] / 50e6 - 1.0).abs() < 0.01, "{rates:?}");
    });
}

#[test]
fn losses_have_their_probability_and_packets_are_conserved() {
    inside("losses_have_their_probability_and_packets_are_conserved", || {
        const COUNT: u64 = 20_000;
        const AT_A_TIME: usize = 50;
        let up = PathDirection { loss: Loss::random(ratio(0.02)), ..PathDirection::default() };
        let path = start_path(Path { up, ..Path::default() }, &Carriers::default());
        let (near, far) = (udp(&path, End::Near, Family::V6, 9), udp(&path, End::Far, Family::V6, 9));
        far.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        let (mut received, mut buffer) = (0, [0; 100]);
        // As many at a time as every buffer on the way holds, however late a busy machine empties it.
        for first in (0..COUNT).step_by(AT_A_TIME) {
            for number in first..first + AT_A_TIME as u64 {
                near.send(&number.to_be_bytes()).expect("sent");
            }
            let sent = first + AT_A_TIME as u64;
            let deadline = Instant::now() + Duration::from_secs(10);
            while received + path.progress().up.counters.dropped_in_all().packets < sent {
                received += u64::from(far.recv(&mut buffer).is_ok());
                assert!(Instant::now() < deadline, "{received} of {sent}: {:?}", path.progress().up);
            }
        }
        while far.recv(&mut buffer).is_ok() {
            received += 1;
        }
        let ended = path.finish().expect("ended");
        assert_conserved(&ended.progress);
        let lost = COUNT - received;
        let (mean, deviation) = (COUNT as f64 * 0.02, (COUNT as f64 * 0.02 * 0.98).sqrt());
        assert!((lost as f64 - mean).abs() < 4.0 * deviation, "{lost} of {COUNT}");
        // IPv6 sends a few packets of its own, which may be among the dropped ones.
        let dropped = ended.progress.up.counters.dropped_in_all().packets;
        assert!((lost..lost + 5).contains(&dropped), "{lost} lost, {dropped} dropped");
    });
}

/// Bytes that differ everywhere.
fn content(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_transfer_survives_splitting_marks_losses_copies_and_flipped_bits() {
    inside("a_transfer_survives_splitting_marks_losses_copies_and_flipped_bits", || {
        let chance = |part| Some(Chance::of(ratio(part)));
        let direction = PathDirection {
            delay: Span::from_millis(1),
            loss: Loss::random(ratio(0.002)),
            duplicate: chance(0.01),
            corrupt: chance(0.002),
            rate: mbit(400),
            queue: Queue::Packets(500),
            ..PathDirection::default()
        };
        let path = start(&direction);
        for family in FAMILIES {
            let sent = content(8_000_000);
            let (mut client, mut server) = tcp(&path, family);
            let expected = sent.clone();
            let sending = std::thread::spawn(move || {
                server.write_all(&sent).expect("sent");
                server
            });
            let mut received = vec![0; expected.len()];
            client.read_exact(&mut received).expect("received");
            assert!(received == expected, "{family:?}: the transfer is damaged");
            drop(sending.join().expect("sent"));
        }
        let down = path.progress().down.counters;
        assert!(down.duplicated.packets > 20 && down.corrupted.packets > 3, "{down:?}");
    });
}

#[test]
fn a_running_path_changes() {
    inside("a_running_path_changes", || {
        let path = start(&PathDirection::default());
        let (near, far) = (udp(&path, End::Near, Family::V4, 9), udp(&path, End::Far, Family::V4, 9));
        let handle = path.handle();
        let step = |delay, loss| Step { at: Span::ZERO, rate: None, delay, loss };
        let mut buffer = [0; 100];
        handle.change(Way::Up, &step(Some(Span::from_millis(30)), None)).expect("changed");
        let begun = Instant::now();
        near.send(b"late").expect("sent");
        far.recv(&mut buffer).expect("received");
        assert!(begun.elapsed() >= Duration::from_millis(30));
        handle.change(Way::Up, &step(None, Some(Loss::random(ratio(1.0))))).expect("changed");
        far.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        near.send(b"lost").expect("sent");
        assert!(far.recv(&mut buffer).is_err());
    });
}

fn run(path: &LivePath, end: End, script: &str) -> u8 {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    let program = path.run(end, command).expect("started");
    program.wait(Duration::from_secs(20)).expect("waited").expect("ended")
}

#[test]
fn programs_have_their_own_network_and_their_exit_codes() {
    inside("programs_have_their_own_network_and_their_exit_codes", || {
        let path = start(&PathDirection::default());
        assert_eq!(run(&path, End::Near, "exit 7"), 7);
        assert_eq!(run(&path, End::Near, "kill -TERM $$"), 128 + 15);
        assert_eq!(run(&path, End::Near, "grep -q path0 /proc/net/dev && grep -q ' client' /etc/hosts"), 0);
        // It sees its own processes: the first is what ends with the path.
        assert_eq!(run(&path, End::Far, "test $(ls -d /proc/[0-9]* | wc -l) -lt 10"), 0);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"]);
        let program = path.run(End::Near, command).expect("started");
        std::thread::sleep(Duration::from_millis(200));
        program.signal(Signal::TERM);
        assert_eq!(program.wait(Duration::from_secs(10)).expect("waited"), Some(5));
        assert!(path.run(End::Near, Command::new("/no/such/program")).is_err());
    });
}

/// How many threads of this process carry paths that share them.
fn shared_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("mounted");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name == "paths\n").count()
}

#[test]
fn paths_that_share_threads_carry_each_its_own_and_end_alone() {
    inside("paths_that_share_threads_carry_each_its_own_and_end_alone", || {
        let carriers = Carriers::default();
        // Each has another delay, so that a frame on the wrong path is seen.
        let delay = |at: usize| Span::from_millis(10 * (at as u64 + 1));
        let direction = |at| PathDirection { rate: mbit(100), delay: delay(at), ..PathDirection::default() };
        let paths: Vec<LivePath> = (0..8).map(|at| start_on(&direction(at), &carriers)).collect();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(shared_threads(), processors.min(paths.len()));

        let sockets: Vec<_> = paths
            .iter()
            .map(|path| (udp(path, End::Near, Family::V4, 9), udp(path, End::Far, Family::V4, 9)))
            .collect();
        let begun = Instant::now();
        for (near, _) in &sockets {
            near.send(b"there").expect("sent");
        }
        for (at, (_, far)) in sockets.iter().enumerate() {
            far.recv(&mut [0; 100]).expect("received");
            assert!(begun.elapsed() >= delay(at).to_duration());
        }
        // Every second one ends; the others carry on, and their figures are their own.
        let mut left = Vec::new();
        for (at, (path, sockets)) in paths.into_iter().zip(sockets).enumerate() {
            if at % 2 == 0 {
                assert_conserved(&path.finish().expect("ended").progress);
            } else {
                left.push((path, sockets));
            }
        }
        for (path, (near, far)) in left {
            far.send(b"back").expect("sent");
            near.recv(&mut [0; 100]).expect("received");
            let progress = path.finish().expect("ended").progress;
            assert_conserved(&progress);
            assert!(progress.up.counters.departed.packets < 10, "{:?}", progress.up.counters);
        }
        drop(carriers);
        let until = Instant::now() + Duration::from_secs(5);
        while shared_threads() > 0 {
            assert!(Instant::now() < until, "{} threads are left", shared_threads());
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

#[test]
fn a_path_that_fails_leaves_those_on_its_thread_alone() {
    inside("a_path_that_fails_leaves_those_on_its_thread_alone", || {
        let carriers = Carriers::default();
        let direction = PathDirection { rate: mbit(100), ..PathDirection::default() };
        let paths: Vec<LivePath> = (0..4).map(|_| start_on(&direction, &carriers)).collect();
        // Its far device is gone.
        assert_eq!(run(&paths[0], End::Far, "ip link delete path0"), 0);
        let (near, far) = (udp(&paths[2], End::Near, Family::V4, 9), udp(&paths[2], End::Far, Family::V4, 9));
        for _ in 0..10 {
            near.send(b"there").expect("sent");
            far.recv(&mut [0; 100]).expect("received");
        }
        let ended: Vec<bool> = paths.into_iter().map(|path| path.finish().is_ok()).collect();
        assert_eq!(ended, [false, true, true, true]);
    });
}
