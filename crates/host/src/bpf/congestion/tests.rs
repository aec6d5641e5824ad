//! Connections under it, on loopback. Where a host lets nobody register a congestion control, that is said.

use super::*;
use crate::namespaces::{bpf_file_system, inside, skip};
use crate::tcp_info::TcpInfo;
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

const PIN: &str = "/sys/fs/bpf/thalweg-test-periodic";
const PERIOD: Duration = Duration::from_millis(100);

/// A connection whose first end has this priority and sends by `periodic`.
fn connection(priority: i32) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let publisher = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
    let (subscriber, _) = listener.accept().expect("accepted");
    publisher.set_nodelay(true).expect("set");
    set_priority(&publisher, priority);
    sockopt::set_tcp_congestion(&publisher, Periodic::NAME).expect("set");
    (publisher, subscriber)
}

fn set_priority(stream: &TcpStream, priority: i32) {
    let (level, option, len) = (libc::SOL_SOCKET, libc::SO_PRIORITY, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the option's value outlives the call, and its length is given.
    let set = unsafe { libc::setsockopt(stream.as_raw_fd(), level, option, (&raw const priority).cast(), len) };
    assert_eq!(set, 0);
}

fn window(stream: &TcpStream) -> u64 {
    TcpInfo::of(stream).expect("told").get("tcpi_snd_cwnd")
}

/// Publishes messages of this size at least 100 ms apart, and reads them. One that is late does not bring the next nearer: its distance is the period
/// that is paced by.
fn publish((publisher, subscriber): &mut (TcpStream, TcpStream), bytes: usize, messages: u32) {
    let mut message = vec![0; bytes];
    for _ in 0..messages {
        let begun = Instant::now();
        publisher.write_all(&message).expect("sent");
        subscriber.read_exact(&mut message).expect("read");
        std::thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
    }
}

#[test]
fn a_priority_gives_a_window_and_the_lowest_paces_by_its_period() {
    inside("bpf::congestion::tests::a_priority_gives_a_window_and_the_lowest_paces_by_its_period", || {
        if !bpf_file_system() {
            return skip("a congestion control of our own: no BPF file system");
        }
        crate::link::set_up(crate::link::index("lo").expect("lo")).expect("up");
        let pin = Path::new(PIN);
        match Periodic::load(pin) {
            Ok(()) => {}
            Err(error)
                if matches!(
                    error.source.kind(),
                    ErrorKind::PermissionDenied
                        | ErrorKind::NotFound
                        | ErrorKind::Unsupported
                        | ErrorKind::AlreadyExists
                ) =>
            {
                return skip(&error.to_string());
            }
            Err(error) => panic!("{error}"),
        }
        // The route has no initcwnd, so the share is 10.
        let windows = [0, 1, 6].map(|priority| window(&connection(priority).0));
        assert_eq!(windows, [5, 2, 10]);
        let mut paced = connection(1);
        publish(&mut paced, 200_000, 6);
        let rate = TcpInfo::of(&paced.0).expect("told").get("tcpi_pacing_rate");
        // 200 kB in half of 100 ms, or of more on a busy machine; the first pass unpaced.
        assert!((1_000_000..=5_000_000).contains(&rate), "{rate}");
        let mut free = connection(0);
        publish(&mut free, 200_000, 4);
        let info = TcpInfo::of(&free.0).expect("told");
        assert_eq!((info.get("tcpi_pacing_rate"), info.get("tcpi_snd_cwnd")), (u64::MAX, 5));
        // The name is gone, and open connections stay.
        Periodic::unload(pin).expect("unloaded");
        assert!(Periodic::unload(pin).is_err());
        publish(&mut free, 200_000, 2);
        drop((free, paced));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        assert!(sockopt::set_tcp_congestion(&listener, Periodic::NAME).is_err());
    });
}
