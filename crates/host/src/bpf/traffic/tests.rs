//! Frames of known lengths between two namespaces, counted by either hook.

use super::layout::{BINS_MIN, MEMORY_MAX, WIDEST_NS};
use super::*;
use crate::bpf::tests::{Pair, eth0, loaded, pair};
use crate::namespaces::{inside, skip};
use crate::netlink::{Message, Netlink};
use std::thread::sleep;
use std::time::Duration;

const ETHERNET: u64 = 14;

/// Begins to count at the near end; `None` where this kernel or this user cannot.
fn started(pair: &Pair, hook: TrafficHook, bin_ns: u64, flows: usize) -> Option<Traffic> {
    let begun = pair.near.run(|| Traffic::start(eth0(), hook, bin_ns, flows));
    match begun {
        Err(error) if error.source.raw_os_error() == Some(libc::EINVAL) && hook == TrafficHook::Tcx => {
            skip("bins by tcx: this kernel has no tcx");
            None
        }
        begun => loaded(begun),
    }
}

/// All that is sent, by bin: packets, bytes, the longest.
fn sent(traffic: &mut Traffic) -> Vec<(u64, u64, u64)> {
    sleep(Duration::from_millis(20));
    let mut found = Vec::new();
    traffic.read(|bin, _| {
        if bin.is_sent {
            found.push((bin.packets, bin.bytes, bin.packet_max_bytes));
        }
    });
    found
}

/// The disciplines of the device that filter.
fn hooks(pair: &Pair) -> usize {
    let answers = pair.near.run(|| {
        let mut message = Message::new(libc::RTM_GETQDISC, libc::NLM_F_DUMP);
        message.raw(&[0; 20]);
        Netlink::open()?.request(&mut message, "list")
    });
    answers.expect("answers").iter().filter(|answer| answer.windows(6).any(|word| word == b"clsact")).count()
}

#[test]
fn every_packet_is_in_a_bin_once() {
    inside("bpf::traffic::tests::every_packet_is_in_a_bin_once", || {
        for (net, hook) in [(11, TrafficHook::Tcx), (12, TrafficHook::Clsact)] {
            let pair = pair(net);
            let Some(mut traffic) = started(&pair, hook, 100_000, 0) else { continue };
            let began = traffic.layout.now();
            let mut total = (0, 0, 0);
            let mut last = Timestamp::default();
            for _ in 0..20 {
                pair.send([100, 1_000, 1_500].repeat(20));
                let read = traffic.read(|bin, _| {
                    assert!(bin.at >= last.min(bin.at) && bin.at.as_nanos() % 100_000 == 0, "{bin:?}");
                    if bin.is_sent {
                        total = (total.0 + bin.packets, total.1 + bin.bytes, total.2.max(bin.packet_max_bytes));
                    }
                });
                assert!(read >= last && read.as_nanos() <= traffic.layout.now());
                last = read;
            }
            for (packets, bytes, longest) in sent(&mut traffic) {
                total = (total.0 + packets, total.1 + bytes, total.2.max(longest));
            }
            assert_eq!(total, (1_200, 20 * 20 * (100 + 1_000 + 1_500 - 3 * ETHERNET), 1_500 - ETHERNET), "{hook:?}");
            assert_eq!(traffic.missed(), 0);
            let real = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after it");
            let apart = (real.as_nanos() as u64).abs_diff(traffic.layout.now());
            assert!(traffic.layout.now() > began && apart < 50_000_000, "{apart} ns from the epoch's clock");
            // Nothing is left on the device.
            let taken_off = pair.near.run(|| {
                drop(traffic);
                Ok(())
            });
            taken_off.expect("in");
            assert_eq!(hooks(&pair), 0, "{hook:?}");
        }
    });
}

#[test]
fn filters_of_a_killed_process_leave_at_the_next_start() {
    inside("bpf::traffic::tests::filters_of_a_killed_process_leave_at_the_next_start", || {
        let pair = pair(17);
        // A child that attaches and ends without cleaning up, as by `kill -9`.
        // SAFETY: the child ends by `_exit`, and takes no lock that another thread of its parent holds: the parent has no other that works.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = match pair.near.run(|| Traffic::start(eth0(), TrafficHook::Clsact, 100_000, 0)) {
                Ok(traffic) => {
                    std::mem::forget(traffic);
                    0
                }
                Err(_) => 1,
            };
            // SAFETY: no pointers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the status outlives the call.
        unsafe { libc::waitpid(child, &mut status, 0) };
        if status != 0 {
            return skip("filters of a killed process: this user or this kernel cannot attach any");
        }
        assert_eq!(hooks(&pair), 1, "it is left");
        let Some(traffic) = started(&pair, TrafficHook::Clsact, 100_000, 0) else { return };
        // One that lives keeps its own.
        let Some(second) = started(&pair, TrafficHook::Clsact, 100_000, 0) else { return };
        assert_eq!(hooks(&pair), 1);
        let taken_off = pair.near.run(|| {
            drop((traffic, second));
            Ok(())
        });
        taken_off.expect("in");
        assert_eq!(hooks(&pair), 0);
    });
}

#[test]
fn what_a_late_reader_loses_is_counted() {
    inside("bpf::traffic::tests::what_a_late_reader_loses_is_counted", || {
        let pair = pair(13);
        let Some(mut traffic) = started(&pair, TrafficHook::Tcx, 10_000, 0) else { return };
        let ring = Duration::from_nanos(traffic.layout.bins as u64 * 10_000);
        pair.send([100; 50]);
        // Those bins are still there, though their time is over.
        sleep(ring + Duration::from_millis(50));
        assert_eq!(sent(&mut traffic).iter().map(|bin| bin.0).sum::<u64>(), 50);
        assert_eq!(traffic.missed(), 0);
        // A round of the ring with traffic all the time: each place is taken again before it is read.
        let begin = std::time::Instant::now();
        let mut count = 0;
        while begin.elapsed() < ring * 2 {
            pair.send([100; 10]);
            count += 10;
        }
        let read: u64 = sent(&mut traffic).iter().map(|bin| bin.0).sum();
        let missed = traffic.missed();
        assert!(read < count && read + missed >= count && missed <= count, "{read} read, {missed} missed of {count}");
    });
}

#[test]
fn flows_have_parts_as_long_as_there_is_room() {
    inside("bpf::traffic::tests::flows_have_parts_as_long_as_there_is_room", || {
        let pair = pair(14);
        let Some(mut traffic) = started(&pair, TrafficHook::Tcx, 100_000, 2) else { return };
        let to = std::net::SocketAddr::from((pair.to, 9));
        let sockets = pair.near.run(|| Ok([(); 3].map(|()| std::net::UdpSocket::bind("0.0.0.0:0").expect("bound"))));
        let sockets = sockets.expect("in");
        let send = |one: usize, packets: usize| {
            for _ in 0..packets {
                sockets[one].send_to(&[0; 972], to).expect("sent");
            }
        };
        let port = |one: usize| sockets[one].local_addr().expect("bound").port();
        let parts = |traffic: &mut Traffic| {
            sleep(Duration::from_millis(20));
            let (mut found, mut all) = (std::collections::BTreeMap::<u16, (u64, u64)>::new(), 0);
            traffic.read(|bin, parts| {
                all += if bin.is_sent { bin.packets } else { 0 };
                for part in parts.iter().filter(|_| bin.is_sent) {
                    assert!(part.flow.protocol == 17 && part.flow.peer == to, "{part:?}");
                    let sum = found.entry(part.flow.local.port()).or_default();
                    *sum = (sum.0 + part.packets, sum.1 + part.bytes);
                }
            });
            (found, all)
        };
        send(0, 10);
        send(1, 20);
        send(2, 30);
        let (found, all) = parts(&mut traffic);
        assert_eq!(found, [(port(0), (10, 10_000)), (port(1), (20, 20_000))].into());
        assert_eq!(all, 60, "the third counts without a part");
        // Its room is given to another.
        traffic.keep_flows(|flow| flow.local.port() == port(1));
        send(2, 5);
        send(0, 5);
        send(1, 5);
        let (found, _) = parts(&mut traffic);
        assert_eq!(found, [(port(2), (5, 5_000)), (port(1), (5, 5_000))].into());
    });
}

#[test]
fn a_memory_for_many_processors_is_bounded() {
    for processors in [1, 2, 3, 64, 240, 4_096] {
        let layout = Layout::new(10_000, processors, 14, true);
        assert!(layout.bins.is_power_of_two() && layout.processors >= processors);
        assert!(layout.len() <= MEMORY_MAX || layout.bins == BINS_MIN, "{layout:?}");
        assert!(layout.bin_ns <= WIDEST_NS && layout.bins >= BINS_MIN);
    }
}
