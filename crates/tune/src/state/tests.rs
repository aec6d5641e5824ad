//! Pasted texts are read as people paste them.

use super::*;

#[test]
fn a_mixed_text_is_read() {
    let text = "
Linux edge-1 6.1.0-18-amd64 #1 SMP Debian x86_64 GNU/Linux
MemTotal:       16303540 kB
# a comment = 1
net.ipv4.tcp_rmem = 4096\t131072\t6291456
sysctl -w net.ipv4.tcp_wmem=\"4096 16384 4194304\"
/proc/sys/net/ipv4/tcp_sack = 1
> net.core.somaxconn=4096
net.ipv4.tcp_available_ulp =
vm.swappiness = 10
default via 10.0.0.254 dev eth0 proto dhcp metric 100 initcwnd 20 rto_min lock 50ms
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.7
172.17.0.0/16 dev docker0 proto kernel scope link src 172.17.0.1 linkdown
default via inet6 fe80::1 dev eth0 metric 1024 pref medium
sudo ip route change via 100.100.56.254 dev eno1  initcwnd 40
ESTAB 0 3842312 10.0.0.7:80 192.0.2.1:40000
\t bbr wscale:7,8 rto:236 rtt:35.1/2.2 mss:1448 pmtu:1500 cwnd:312 pacing_rate 1.1Gbps rwnd_limited:1200ms(45.3%) sndbuf_limited:100ms(3.8%)
qdisc fq 8001: dev eth0 root refcnt 2 limit 10000p
this is a sentence = and no setting
";
    let state = parse(text);
    assert_eq!((state.kernel, state.memory_bytes), (Some((6, 1)), Some(16_303_540 * 1024)));
    let read: Vec<(&str, &str)> = state.sysctls.iter().map(|s| (s.name.as_str(), s.value.as_str())).collect();
    assert_eq!(
        read,
        [
            ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            ("net.ipv4.tcp_sack", "1"),
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.tcp_available_ulp", ""),
            ("vm.swappiness", "10"),
        ]
    );
    assert_eq!(state.sysctls[0].line, Some(5));
    let titles: Vec<String> = state.routes.iter().map(Route::title).collect();
    assert_eq!(
        titles,
        [
            "default via 10.0.0.254 dev eth0 metric 100",
            "10.0.0.0/24 dev eth0",
            "172.17.0.0/16 dev docker0",
            "default via fe80::1 dev eth0 metric 1024",
            "default via 100.100.56.254 dev eno1",
        ]
    );
    assert_eq!(state.routes[0].attributes["rto_min"], "lock 50ms");
    assert_eq!(state.routes[0].attributes["initcwnd"], "20");
    assert!(state.routes[2].link_down && !state.routes[1].link_down);
    let socket = &state.sockets[0];
    assert_eq!(socket.ends.as_deref(), Some("10.0.0.7:80 192.0.2.1:40000"));
    assert_eq!((socket.congestion.as_deref(), socket.scaled, socket.paced), (Some("bbr"), true, true));
    assert_eq!((socket.receive_window_limited, socket.send_buffer_limited), (Some(45.3), Some(3.8)));
    assert_eq!(state.qdiscs, [("eth0".to_owned(), "fq".to_owned())]);
}

#[test]
fn odd_texts_are_passed_over() {
    for odd in [
        "",
        "=",
        "net.=",
        "default",
        "default via",
        "via dev",
        "10.0.0.0/24",
        "ip route change",
        "qdisc",
        "Linux",
        "ESTAB 0 0",
        "rto: mss: cwnd:",
        "initcwnd lock",
    ] {
        let state = parse(odd);
        assert!(state.routes.len() + state.qdiscs.len() <= 1 && state.sysctls.len() <= 1, "{odd}: {state:?}");
    }
    let long = format!("net.ipv4.tcp_rmem = {}", "1 ".repeat(100_000));
    assert_eq!(parse(&long), HostState::default());
}

#[test]
fn the_mark_of_an_editor_is_no_part_of_the_first_line() {
    let state = parse("\u{feff}net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_dsack = 1\n");
    assert_eq!(state.sysctl("net.ipv4.tcp_sack").map(|line| line.value.as_str()), Some("0"));
}
