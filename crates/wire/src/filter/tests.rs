//! The language, its errors, and that the two ways of running it agree.

use super::{Expression, Filter, Instruction, Side, What};
use crate::{Decoded, LinkType, Segment, decode};
use proptest::prelude::*;
use std::net::IpAddr;

fn packet(ends: [(IpAddr, u16); 2], options: usize) -> Vec<u8> {
    let mut tcp = Vec::new();
    for (_, port) in ends {
        tcp.extend(port.to_be_bytes());
    }
    tcp.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]);
    match (ends[0].0, ends[1].0) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = (20 + 4 * options + tcp.len()) as u16;
            let mut packet = vec![0x45 + options as u8, 0];
            packet.extend(total.to_be_bytes());
            packet.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(vec![1; 4 * options]);
            packet.extend(tcp);
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet.extend(tcp);
            packet
        }
        _ => panic!("two families in one packet"),
    }
}

fn segment(bytes: &[u8]) -> Segment {
    match decode(LinkType::RAW, bytes, bytes.len() as u32) {
        Decoded::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

fn end(text: &str, port: u16) -> (IpAddr, u16) {
    (text.parse().expect("an address"), port)
}

/// What the kernel does with a program; source: Documentation/networking/filter.rst.
fn run(program: &[Instruction], packet: &[u8]) -> u32 {
    let (mut a, mut x, mut at) = (0u32, 0u32, 0usize);
    let load = |at: u32, len: usize| {
        let bytes = packet.get(at as usize..at as usize + len)?;
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    };
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let condition = match code {
            0x06 => return k,
            0x30 | 0x28 | 0x20 | 0x48 => {
                let (len, from) = match code {
                    0x30 => (1, k),
                    0x28 => (2, k),
                    0x20 => (4, k),
                    _ => (2, x + k),
                };
                // Past the packet's end the kernel drops it.
                let Some(value) = load(from, len) else { return 0 };
                a = value;
                continue;
            }
            0xb1 => {
                let Some(value) = load(k, 1) else { return 0 };
                x = 4 * (value & 15);
                continue;
            }
            0x54 => {
                a &= k;
                continue;
            }
            0x05 => {
                at += k as usize;
                continue;
            }
            0x15 => a == k,
            0x25 => a > k,
            0x35 => a >= k,
            0x45 => a & k != 0,
            _ => panic!("code {code:#x}"),
        };
        at += usize::from(if condition { jt } else { jf });
    }
}

#[test]
fn says_what_tcpdump_says() {
    let a = end("10.0.0.1", 40_000);
    let b = end("10.0.0.2", 80);
    let six = [end("2001:db8::1", 40_000), end("2001:db8::2", 443)];
    for (text, there, back, v6) in [
        ("", true, true, true),
        ("tcp", true, true, true),
        ("ip", true, true, false),
        ("ip6", false, false, true),
        ("host 10.0.0.1", true, true, false),
        ("src host 10.0.0.1", true, false, false),
        ("src 10.0.0.1", true, false, false),
        ("src or dst host 10.0.0.1", true, true, false),
        ("10.0.0.2", true, true, false),
        ("10.0.0.0/30", true, true, false),
        ("host 2001:db8::2", false, false, true),
        ("net 10.0.0.0/31", true, true, false),
        ("dst net 10.0.0.2/32", true, false, false),
        ("net 10", true, true, false),
        ("net 192.168", false, false, false),
        ("net 2001:db8::/32", false, false, true),
        ("net 0.0.0.0/0", true, true, false),
        ("port 80", true, true, false),
        ("tcp port 80", true, true, false),
        ("ip6 dst port 443", false, false, true),
        ("dst port 80", true, false, false),
        ("portrange 79-81", true, true, false),
        ("src portrange 81-79", false, true, false),
        ("port 443 or 80", true, true, true),
        ("host 10.0.0.9 or 10.0.0.1 and port 80", true, true, false),
        ("port 443 or port 80 and host 10.0.0.9", false, false, false),
        ("port 443 or (port 80 and host 10.0.0.9)", false, false, true),
        ("not port 80", false, false, true),
        ("!port 80 && !(host 10.0.0.1 || ip6)", false, false, false),
        ("not not port 80", true, true, false),
        ("not host 10.0.0.9 and 10.0.0.8", false, false, false),
        ("net 10.0.0.0 mask 255.255.255.254", true, true, false),
        ("src net 10 mask 255 and dst port http", true, false, false),
        ("net 10.0.1.0 mask 255.255.255.0", false, false, false),
        ("src and dst port 80", false, false, false),
        ("src and dst net 10.0.0.0/24", true, true, false),
        ("dst and src host 10.0.0.1", false, false, false),
        ("src and dst host 10.0.0.1 or 10.0.0.2", false, false, false),
        ("not src and dst port 80", true, true, true),
        ("src or dst port 80", true, true, false),
        ("dst or src port 80", true, true, false),
        ("port (80 or 443)", true, true, true),
        ("dst port (80 or 443)", true, false, true),
        ("src port (22 or (80 or 443)) or 40000", true, true, true),
        ("port (22 or 443) or 80", true, true, true),
        ("port not 80", false, false, true),
        ("port (not 80)", false, false, true),
        ("src (10.0.0.1 or 10.0.0.9)", true, false, false),
        ("host (10.0.0.1 and 10.0.0.2)", true, true, false),
        ("port http", true, true, false),
        ("port http or https", true, true, true),
        ("portrange http-https", true, true, true),
        ("tcp port (ssh or domain)", false, false, false),
    ] {
        let filter: Filter = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        for (ends, expected) in [([a, b], there), ([b, a], back), (six, v6)] {
            let bytes = packet(ends, 0);
            assert_eq!(filter.matches(&segment(&bytes)), expected, "{text} on {ends:?}");
            let program = filter.program(96, 200).expect("short");
            assert_eq!(run(&program, &bytes), if expected { 96 } else { 0 }, "{text} compiled, on {ends:?}");
        }
        assert_eq!(filter.matches_connection(b, a), there || back, "{text}");
    }
}

#[test]
fn errors_have_a_place_and_a_hint() {
    for (text, at, problem, hint) in [
        ("prot 80", 0, "'prot' is not known", "did you mean 'port'?"),
        ("host 10.0.0.1 and hots 10.0.0.2", 18, "'hots' is not known", "did you mean 'host'?"),
        ("host 10.0.0.300", 5, "'10.0.0.300' is no address", "names are not looked up"),
        ("host example.org", 5, "'example.org' is not known", "write: host ADDRESS"),
        ("port htps", 5, "'htps' is no port", "did you mean 'http'?"),
        ("port 80 and hots 10.0.0.1", 12, "'hots' is no port", "did you mean 'host'?"),
        ("port teapot", 5, "'teapot' is no port", "0 to 65535"),
        ("https", 0, "'https' is not known", "write port https"),
        ("net 10.0.0.0 mask", 17, "it ends where a mask", "mask 255.255.255.0"),
        ("net 10.0.0.0 mask 255.0.255.0", 18, "have a gap", "mask 255.255.255.0"),
        ("net fe80:: mask 255.0.0.0", 16, "for IPv4", "mask 255.255.255.0"),
        ("port (80 or 443", 5, "never closed", "close it"),
        ("port 65536", 5, "'65536' is no port", "0 to 65535"),
        ("portrange 80", 10, "'80' is no range", "8000-8080"),
        ("net 10.0.0.0/33", 4, "its bits are 0 to 32", "ADDRESS/BITS"),
        ("net fe80::/129", 4, "its bits are 0 to 128", "ADDRESS/BITS"),
        ("(port 80", 0, "never closed", "close it"),
        ("(port 80 port 81)", 9, "'port' where 'and', 'or' or ')' should be", "close it"),
        ("port 80)", 7, "no '('", "remove it"),
        ("port 80 and", 11, "it ends where", "write: host"),
        ("port 80 port 81", 8, "where 'and' or 'or' should be", "did you mean"),
        ("udp", 0, "never TCP", "write: host"),
        ("höst 1", 0, "'höst' is not known", "did you mean 'host'?"),
    ] {
        let error = text.parse::<Filter>().expect_err(text);
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.problem.contains(problem) && error.hint.contains(hint), "{text}: {error} {}", error.hint);
    }
    let error = "port 80 port 81".parse::<Filter>().expect_err("wrong").to_string();
    assert!(error.ends_with("\n  port 80 port 81\n          ^"), "{error}");
    assert!("(".repeat(1_000).parse::<Filter>().is_err());
    assert!("port 1 or ".repeat(5_000).parse::<Filter>().is_err());
}

#[test]
fn what_may_hold_a_tunnel_passes_the_program() {
    let program = "port 1".parse::<Filter>().expect("a filter").program(96, 200).expect("short");
    let plain = packet([end("10.0.0.1", 40_000), end("10.0.0.2", 80)], 0);
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = plain.clone();
        bytes.resize(80, 0);
        for (at, byte) in changes {
            bytes[*at] = *byte;
        }
        run(&program, &bytes) > 0
    };
    // More headers are kept of what may hold another packet than of a segment.
    let mut tunnel = plain.clone();
    tunnel[9] = 47;
    assert_eq!(run(&program, &tunnel), 200);
    let every = "".parse::<Filter>().expect("a filter").program(96, 200).expect("short");
    assert_eq!(run(&every, &plain), 96);
    assert!(!with(&[]));
    assert!(with(&[(9, 47)]) && with(&[(9, 4)]) && with(&[(9, 41)]), "tunnels in IP");
    assert!(with(&[(7, 9)]), "a later fragment");
    assert!(with(&[(9, 17), (22, 0x12), (23, 0xb5)]), "VXLAN");
    assert!(!with(&[(9, 17)]) && !with(&[(9, 1)]) && !with(&[(0, 0)]), "what cannot hold TCP");
    assert!(with(&[(0, 0x60), (6, 44)]) && !with(&[(0, 0x60), (6, 58)]), "IPv6");
}

#[test]
fn a_program_too_long_for_the_kernel_is_none() {
    let text = vec!["host 2001:db8::1"; 400].join(" or ");
    assert!(text.parse::<Filter>().expect("a filter").program(96, 200).is_none());
}

fn what() -> impl Strategy<Value = What> {
    let v4 = (0u32..4, 24u8..=32).prop_map(|(n, bits)| What::Net(IpAddr::from([10, 0, 0, n as u8]), bits));
    let v6 = (0u16..4, prop_oneof![Just(0u8), Just(32), Just(100), Just(126), Just(128)])
        .prop_map(|(n, bits)| What::Net(IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, n]), bits));
    let ports = (0u16..6, 0u16..6).prop_map(|(a, b)| What::Ports(a.min(b), a.max(b)));
    prop_oneof![v4, v6, ports, Just(What::Tcp), Just(What::Version(4)), Just(What::Version(6))]
}

fn expression() -> impl Strategy<Value = Expression> {
    let side = prop_oneof![Just(Side::Either), Just(Side::Source), Just(Side::Destination)];
    let leaf = (side, what()).prop_map(|(side, what)| Expression::Test(side, what));
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Expression::All),
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Expression::Any),
            inner.prop_map(|inner| Expression::Not(Box::new(inner))),
        ]
    })
}

/// The expression as text with every parenthesis.
fn text(expression: &Expression) -> String {
    let join = |parts: &[Expression], word: &str| parts.iter().map(text).collect::<Vec<_>>().join(word);
    match expression {
        Expression::All(parts) => format!("({})", join(parts, " and ")),
        Expression::Any(parts) => format!("({})", join(parts, " or ")),
        Expression::Not(part) => format!("not {}", text(part)),
        Expression::Test(side, what) => {
            let side = match side {
                Side::Either => "",
                Side::Source => "src ",
                Side::Destination => "dst ",
            };
            match what {
                What::Net(net, bits) => format!("{side}net {net}/{bits}"),
                What::Ports(first, last) => format!("{side}portrange {first}-{last}"),
                What::Tcp => "tcp".to_owned(),
                What::Version(4) => "ip".to_owned(),
                What::Version(_) => "ip6".to_owned(),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn program_evaluation_and_text_agree(
        expression in expression(),
        is_v6 in any::<bool>(),
        ends in ((0u8..4, 0u16..6), (0u8..4, 0u16..6)),
        options in 0usize..11,
    ) {
        let address = |n: u8| if is_v6 {
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(n)])
        } else {
            IpAddr::from([10, 0, 0, n])
        };
        let bytes = packet([(address(ends.0.0), ends.0.1), (address(ends.1.0), ends.1.1)], options);
        let filter = Filter(expression);
        let expected = filter.matches(&segment(&bytes));
        let program = filter.program(1, 1).expect("short");
        prop_assert_eq!(run(&program, &bytes) == 1, expected);
        let again: Filter = text(&filter.0).parse().expect("text of ours");
        prop_assert_eq!(again.matches(&segment(&bytes)), expected);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[ ()!a-z0-9./:-]{0,80}|\\PC{0,40}") {
        match text.parse::<Filter>() {
            Ok(filter) => prop_assert!(filter.program(1, 1).is_some_and(|program| !program.is_empty())),
            Err(error) => {
                prop_assert!(error.at <= text.chars().count());
                let _ = error.to_string();
            }
        }
    }
}
