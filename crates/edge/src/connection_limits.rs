//! How many connections there are, in all and from each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts of all workers together.
#[derive(Debug)]
pub struct ConnectionLimits {
    most: AtomicU32,
    most_per_address: AtomicU32,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    count: u32,
    addresses: HashMap<IpAddr, u32>,
}

impl ConnectionLimits {
    /// No connections yet; there may be `most`, with `most_per_address` from each address.
    pub fn new(most: u32, most_per_address: u32) -> Self {
        Self { most: most.into(), most_per_address: most_per_address.into(), present: Mutex::default() }
    }

    /// Sets other limits; connections that exceed them stay.
    pub fn bound(&self, most: u32, most_per_address: u32) {
        self.most.store(most, Ordering::Relaxed);
        self.most_per_address.store(most_per_address, Ordering::Relaxed);
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection from `address`, unless there is no room for it. One of a proxy, which stands for many, has no address.
    pub fn enter(&self, address: Option<IpAddr>) -> bool {
        let mut present = self.present();
        let entered = present.count < self.most.load(Ordering::Relaxed)
            && present.enter(address, self.most_per_address.load(Ordering::Relaxed));
        present.count += u32::from(entered);
        entered
    }

    /// One that entered as `from` turns out to be another's, unless there is no room for that one.
    pub fn is_really(&self, from: Option<IpAddr>, to: Option<IpAddr>) -> bool {
        let mut present = self.present();
        let entered = present.enter(to, self.most_per_address.load(Ordering::Relaxed));
        if entered {
            present.leave(from);
        }
        entered
    }

    /// One that entered has gone.
    pub fn leave(&self, address: Option<IpAddr>) {
        let mut present = self.present();
        present.count = present.count.saturating_sub(1);
        present.leave(address);
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.present().count
    }
}

impl Present {
    fn enter(&mut self, address: Option<IpAddr>, most: u32) -> bool {
        let Some(address) = address else { return true };
        let here = self.addresses.get(&address).copied().unwrap_or(0);
        if here < most {
            self.addresses.insert(address, here + 1);
        }
        here < most
    }

    fn leave(&mut self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        if let Some(here) = self.addresses.get_mut(&address) {
            *here -= 1;
            if *here == 0 {
                self.addresses.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_enter_than_may() {
        let limits = ConnectionLimits::new(3, 2);
        let [a, b] = [Some(IpAddr::from([192, 0, 2, 1])), Some(IpAddr::from([192, 0, 2, 2]))];
        assert!(limits.enter(a) && limits.enter(a) && !limits.enter(a));
        assert!(limits.enter(b) && !limits.enter(b));
        limits.leave(a);
        assert!(limits.enter(b) && limits.count() == 3);
        limits.bound(4, 2);
        assert!(limits.enter(a) && !limits.enter(a) && !limits.enter(b));
        limits.leave(a);
        limits.bound(3, 2);
        assert!(
            limits.is_really(b, a) && !limits.is_really(b, a) && limits.is_really(b, None),
            "a proxy's are another's"
        );
        for address in [a, a, None] {
            limits.leave(address);
        }
        assert!(limits.count() == 0 && limits.present.lock().expect("whole").addresses.is_empty());
    }
}
