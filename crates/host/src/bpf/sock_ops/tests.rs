//! Connections of a cgroup of the test's own. Where a host lets nobody do that, it is said.

use super::*;
use crate::namespaces::{bpf_file_system, inside, skip};
use crate::tcp_info::TcpInfo;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thalweg_units::Span;

const PINS: &str = "/sys/fs/bpf/thalweg-test";

/// A cgroup of its own, which this process joins.
struct Group {
    folder: PathBuf,
}

impl Group {
    fn join() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let root =
            mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[2] == "cgroup2")?;
        let folder = Path::new(root[1]).join(format!("thalweg-test-{}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        let group = Self { folder };
        fs::write(group.folder.join("cgroup.procs"), "0").ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let parent = self.folder.parent().expect("a parent");
        let _ = fs::write(parent.join("cgroup.procs"), "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A connection to the listener, both ends: the client's first.
fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let (server, _) = listener.accept().expect("accepted");
    (client, server)
}

fn window_of(stream: &TcpStream) -> u64 {
    TcpInfo::of(stream).expect("told").get("tcpi_snd_cwnd")
}

fn congestion_of(stream: &TcpStream) -> String {
    rustix::net::sockopt::tcp_congestion(stream).expect("told")
}

#[test]
fn a_share_of_connections_gets_the_settings_and_both_are_counted() {
    inside("bpf::sock_ops::tests::a_share_of_connections_gets_the_settings_and_both_are_counted", || {
        let group = Group::join();
        let Some(group) = group.filter(|_| bpf_file_system()) else {
            return skip("settings of a cgroup's connections: no cgroup2, or no BPF file system");
        };
        crate::link::set_up(crate::link::index("lo").expect("lo")).expect("up");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let settings = ConnectionSettings {
            share: 100,
            port: Some(port),
            destination: Some((IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8)),
            initial_window: Some(40),
            cwnd_clamp: Some(1_000),
            rto_min: Some(Span::from_millis(50)),
            delack_max: Some(Span::from_millis(20)),
            congestion: Some("reno".to_owned()),
            first_bytes: 20_000,
        };
        let pins = Path::new(PINS);
        match ConnectionProgram::attach(&group.folder, pins, &settings) {
            Ok(_) => {}
            Err(error) if error.source.kind() == std::io::ErrorKind::PermissionDenied => {
                return skip(&error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
        let program = ConnectionProgram::open(pins).expect("pinned");
        assert_eq!(program.settings().expect("told"), settings);
        let (mut client, mut server) = connection(&listener);
        assert_eq!((window_of(&server), congestion_of(&server)), (40, "reno".to_owned()));
        assert_ne!(window_of(&client), 40);
        server.write_all(&[7; 50_000]).expect("sent");
        drop(server);
        assert_eq!(client.read_to_end(&mut Vec::new()).expect("read"), 50_000);
        drop(client);
        let until = Instant::now() + Duration::from_secs(5);
        while program.counters().expect("told")[1].closed == 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let [control, set] = program.counters().expect("told");
        assert_eq!(control, ArmCounters::default());
        assert_eq!((set.opened, set.closed, set.first, set.refused), (1, 1, 1, 0), "{set:?}");
        assert!((50_000..=50_001).contains(&set.bytes) && set.segments > 0, "{set:?}");
        // Another port is nobody's; with a share of nothing the port's connections are counted and left as they are.
        drop(connection(&TcpListener::bind("127.0.0.1:0").expect("a port")));
        program.set_share(0).expect("changed");
        let (_client, server) = connection(&listener);
        assert_eq!(window_of(&server), 10);
        let [control, set] = program.counters().expect("told");
        assert_eq!((control.opened, set.opened), (1, 1));
        // The connection's own end, and nothing after it.
        ConnectionProgram::detach(pins).expect("detached");
        assert!(ConnectionProgram::open(pins).is_err() && !pins.exists());
        let (_client, server) = connection(&listener);
        assert_ne!(congestion_of(&server), "reno");
    });
}

#[test]
fn settings_are_read_as_they_were_written() {
    let all = ConnectionSettings {
        share: 20,
        port: Some(443),
        destination: Some(("2001:db8:1::".parse().expect("an address"), 48)),
        initial_window: Some(42),
        cwnd_clamp: None,
        rto_min: Some(Span::from_millis(100)),
        delack_max: None,
        congestion: Some("bbr".to_owned()),
        first_bytes: 300_000,
    };
    let four =
        ConnectionSettings { destination: Some((Ipv4Addr::new(10, 1, 0, 0).into(), 16)), port: None, ..all.clone() };
    let none = ConnectionSettings { destination: None, congestion: None, ..four.clone() };
    for settings in [all, four, none] {
        let bytes = settings.bytes();
        assert_eq!(bytes.len(), ConnectionSettings::LEN);
        let numbers: Vec<u64> =
            bytes.chunks(8).map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight"))).collect();
        assert_eq!(ConnectionSettings::from_numbers(&numbers.try_into().expect("all")), settings);
    }
}
