//! Each discipline as this machine's kernel reads it back.

use super::*;
use crate::link;
use crate::namespaces::{inside, skip};
use thalweg_units::Rate;

fn ratio(part: f64) -> Ratio {
    Ratio::new(part).expect("a ratio")
}

/// Attaches to the loopback device and describes it; `None`, said aloud, where this kernel lacks the discipline.
fn told(qdisc: &Qdisc) -> Option<String> {
    match attach(link::LOOPBACK, qdisc) {
        Ok(()) => Some(describe(link::LOOPBACK).expect("described")),
        Err(error) if error.source.raw_os_error() == Some(libc::ENOENT) => {
            skip(&format!("this kernel has no {}", qdisc.kind()));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn the_kernel_tells_back_what_was_asked() {
    inside("qdisc::tests::the_kernel_tells_back_what_was_asked", || {
        link::set_up(link::LOOPBACK).expect("up");
        let rate = Rate::from_bits_per_second(80_000_000);
        let netem = Netem {
            delay: Span::from_micros(35_700),
            jitter: Span::from_millis(2),
            delay_correlation: ratio(0.25),
            loss: NetemLoss::Random(ratio(0.01)),
            loss_correlation: ratio(0.5),
            duplicate: ratio(0.02),
            reorder: ratio(0.1),
            reorder_gap: 5,
            corrupt: ratio(0.001),
            rate: Some(rate),
            packet_overhead: -4,
            ecn: true,
            limit: 77,
            ..Netem::default()
        };
        let bad = [ratio(0.01), ratio(0.3), ratio(0.2), ratio(0.999)];
        let cases = [
            (
                Qdisc::Netem(netem),
                "netem limit 77 delay 35.7ms 2ms 25% loss 1% 50% duplicate 2% reorder 10% corrupt 0.1% rate 80mbit packetoverhead -4 ecn gap 5",
            ),
            (
                Qdisc::Netem(Netem { loss: NetemLoss::GilbertElliott(bad), ..Netem::default() }),
                "netem limit 1000 loss gemodel p 1% r 30% h 20% 1-k 0.1%",
            ),
            (
                Qdisc::Tbf(Tbf { rate, burst: Bytes::new(3072), limit: Bytes::new(131_072), overhead: 24 }),
                "tbf rate 80mbit burst 3KiB limit 128KiB overhead 24",
            ),
            (Qdisc::Fifo(Fifo::Packets(17)), "pfifo limit 17p"),
            (Qdisc::Fifo(Fifo::Bytes(Bytes::new(9000))), "bfifo limit 9kB"),
            (
                // The same as tc of iproute2 6.1 makes of: limit 400000 avpkt 1000 probability 0.02 ecn.
                Qdisc::Red(Red { limit: Bytes::new(400_000), ecn: true, ..Red::default() }),
                "red limit 400kB min 33333B max 100kB ecn ewma 5 probability 2% scell_log 15",
            ),
            (
                Qdisc::Codel(Codel { ecn: true, ..Codel::default() }),
                "codel limit 1000p target 4.999ms interval 99.999ms ecn",
            ),
            (
                Qdisc::FqCodel(FqCodel { flows: 16, quantum: Some(300), ..FqCodel::default() }),
                "fq_codel limit 10240p flows 16 quantum 300 target 4.999ms interval 99.999ms memory_limit 32MiB ecn",
            ),
            (
                Qdisc::Pie(Pie { target: Span::from_millis(20), tupdate: Span::from_millis(20), ecn: true, limit: 77 }),
                "pie limit 77p target 20ms tupdate 20ms ecn",
            ),
            (
                Qdisc::Cake(Cake { bandwidth: Some(rate), overhead: 38, raw: false, ..Cake::default() }),
                "cake bandwidth 80mbit rtt 100ms overhead 38",
            ),
            (
                Qdisc::Cake(Cake { ack_filter: AckFilter::Aggressive, ..Cake::default() }),
                "cake bandwidth unlimited rtt 100ms raw ack-filter-aggressive",
            ),
            (Qdisc::Cake(Cake::default()), "cake bandwidth unlimited rtt 100ms raw"),
            (
                Qdisc::Fq(Fq::releasing_exactly()),
                "fq limit 50000000p flow_limit 50000000p nopacing timer_slack 0ns horizon 4000s horizon_cap",
            ),
        ];
        for (qdisc, expected) in cases {
            if let Some(text) = told(&qdisc) {
                assert_eq!(text, expected);
            }
        }
    });
}

#[test]
fn a_change_keeps_the_discipline_and_its_child() {
    inside("qdisc::tests::a_change_keeps_the_discipline_and_its_child", || {
        link::set_up(link::LOOPBACK).expect("up");
        let slow = Tbf { rate: Rate::from_bits_per_second(8_000), ..Tbf::default() };
        if told(&Qdisc::Tbf(slow)).is_none() {
            return;
        }
        attach_child(link::LOOPBACK, &Qdisc::Fifo(Fifo::Packets(9))).expect("a child");
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
        // To itself: a port nobody listens on would answer each through the same queue.
        let itself = socket.local_addr().expect("an address");
        for _ in 0..20 {
            socket.send_to(&[0; 1000], itself).expect("sent");
        }
        let before = statistics(link::LOOPBACK).expect("read");
        let child = before.child.expect("a child");
        assert_eq!((child.queued, child.backlog), (9, Bytes::new(9 * 1042)), "{before:?}");
        // A bucket of 3028 bytes let two pass at once.
        assert_eq!((before.root.packets, before.root.drops), (2, 9), "{before:?}");

        let fast = Tbf { rate: Rate::from_bits_per_second(16_000), ..slow };
        change(link::LOOPBACK, &Qdisc::Tbf(fast)).expect("changed");
        assert_eq!(
            describe(link::LOOPBACK).expect("described"),
            "tbf rate 16kbit burst 3028B limit 1MB | pfifo limit 9p"
        );
        assert_eq!(statistics(link::LOOPBACK).expect("read").child.map(|child| child.queued), Some(9));
        assert!(change(link::LOOPBACK, &Qdisc::Fifo(Fifo::Packets(1))).is_err());
        attach(link::LOOPBACK, &Qdisc::Fifo(Fifo::Packets(1))).expect("another kind in its place");
    });
}

#[test]
fn red_refuses_what_it_cannot_work_with() {
    inside("qdisc::tests::red_refuses_what_it_cannot_work_with", || {
        let red = Red { min: Some(Bytes::new(50_000)), burst: Some(3), ..Red::default() };
        let text = attach(link::LOOPBACK, &Qdisc::Red(red)).expect_err("too short a burst").to_string();
        assert_eq!(text, "cannot attach red: red with a burst of 3 packets needs at least 51");
    });
}
