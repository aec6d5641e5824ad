//! Which tests wait for streams: assigns the connections of several clients at one port.

use crate::protocol::Cookie;
use crate::stream::Link;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use thalweg_host::poll::Waker;

/// Tests at a time.
pub(super) const TESTS_MAX: usize = 64;

/// A test, as the thread that accepts connections knows it.
struct Waiting {
    client: SocketAddr,
    /// The address that the client has connected to.
    local: IpAddr,
    /// TCP streams that are still to come.
    tcp: usize,
    /// UDP streams that are still to come, and the clients' ends of those that came.
    udp: usize,
    greeted: Vec<SocketAddr>,
    arrived: Sender<Arrived>,
    waker: Arc<Waker>,
}

/// A stream that a client has opened, and its place among them: connections are accepted in the order in which they are made, but their cookies may
/// be read in another.
pub(super) type Arrived = (u64, Link);

/// The tests that run.
#[derive(Default)]
pub(super) struct Registry {
    tests: Mutex<HashMap<Cookie, Waiting>>,
    changed: Condvar,
}

/// What became of a greeting.
pub(super) enum Greeting {
    /// It opens a stream of this test, whose client connected to this address.
    New(Cookie, IpAddr),
    /// No test waits for it.
    Unknown,
}

impl Registry {
    fn tests(&self) -> MutexGuard<'_, HashMap<Cookie, Waiting>> {
        self.tests.lock().expect("invariant: nobody panics with it")
    }

    /// How many tests run.
    pub(super) fn count(&self) -> usize {
        self.tests().len()
    }

    /// Whether there is a test of this cookie.
    pub(super) fn knows(&self, cookie: &Cookie) -> bool {
        self.tests().contains_key(cookie)
    }

    /// Adds a test; whether there was room.
    pub(super) fn open(
        &self,
        cookie: Cookie,
        client: SocketAddr,
        local: IpAddr,
        arrived: Sender<Arrived>,
        waker: Arc<Waker>,
    ) -> bool {
        let mut tests = self.tests();
        if tests.len() >= TESTS_MAX || tests.contains_key(&cookie) {
            return false;
        }
        let waiting = Waiting { client, local, tcp: 0, udp: 0, greeted: Vec::new(), arrived, waker };
        tests.insert(cookie, waiting);
        true
    }

    /// From now on TCP streams of this test are taken.
    pub(super) fn expect_tcp(&self, cookie: &Cookie, streams: usize) {
        if let Some(test) = self.tests().get_mut(cookie) {
            test.tcp = streams;
        }
    }

    /// From now on UDP streams of this test are taken. A greeting carries no cookie, so the tests of one host open their streams one after
    /// the other: this waits for its turn; whether it came.
    pub(super) fn expect_udp(&self, cookie: &Cookie, streams: usize, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut tests = self.tests();
        loop {
            let Some(host) = tests.get(cookie).map(|test| test.client.ip()) else { return false };
            let is_taken =
                tests.iter().any(|(other, test)| other != cookie && test.udp > 0 && test.client.ip() == host);
            if !is_taken {
                if let Some(test) = tests.get_mut(cookie) {
                    test.udp = streams;
                }
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            tests = self.changed.wait_timeout(tests, left).expect("invariant: nobody panics with it").0;
        }
    }

    /// Hands a TCP stream to its test; whether that waits for one.
    pub(super) fn deliver_tcp(&self, cookie: &Cookie, stream: Arrived) -> bool {
        let mut tests = self.tests();
        let Some(test) = tests.get_mut(cookie).filter(|test| test.tcp > 0) else { return false };
        test.tcp -= 1;
        let is_taken = test.arrived.send(stream).is_ok();
        test.waker.wake();
        is_taken
    }

    /// Which test a greeting from this address belongs to.
    pub(super) fn greeting(&self, from: SocketAddr) -> Greeting {
        let tests = self.tests();
        let mut waiting = tests.iter().filter(|(_, test)| test.udp > 0 && test.client.ip() == from.ip());
        let new = waiting.find(|(_, test)| !test.greeted.contains(&from));
        new.map_or(Greeting::Unknown, |(cookie, test)| Greeting::New(*cookie, test.local))
    }

    /// Hands a UDP stream to its test.
    pub(super) fn deliver_udp(&self, cookie: &Cookie, from: SocketAddr, link: Link) {
        let mut tests = self.tests();
        if let Some(test) = tests.get_mut(cookie).filter(|test| test.udp > 0) {
            test.udp -= 1;
            test.greeted.push(from);
            // A client greets with one stream after the other.
            let _ = test.arrived.send((test.greeted.len() as u64, link));
            test.waker.wake();
            if test.udp == 0 {
                self.changed.notify_all();
            }
        }
    }

    /// Forgets a test.
    pub(super) fn close(&self, cookie: &Cookie) {
        self.tests().remove(cookie);
        self.changed.notify_all();
    }
}
