//! How many connections there are, in all and from each address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The counts of all workers together.
#[derive(Debug)]
pub struct Crowd {
    most: u32,
    most_per_address: u32,
    present: Mutex<Present>,
}

#[derive(Debug, Default)]
struct Present {
    count: u32,
    addresses: HashMap<IpAddr, u32>,
}

impl Crowd {
    /// An empty crowd that may grow to `most`, with `most_per_address` from each.
    pub fn new(most: u32, most_per_address: u32) -> Self {
        Self { most, most_per_address, present: Mutex::default() }
    }

    /// Counts a connection from `address`, unless there is no room for it.
    pub fn enter(&self, address: IpAddr) -> bool {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let here = present.addresses.get(&address).copied().unwrap_or(0);
        if present.count >= self.most || here >= self.most_per_address {
            return false;
        }
        present.count += 1;
        present.addresses.insert(address, here + 1);
        true
    }

    /// One that entered has gone.
    pub fn leave(&self, address: IpAddr) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.count = present.count.saturating_sub(1);
        if let Some(here) = present.addresses.get_mut(&address) {
            *here -= 1;
            if *here == 0 {
                present.addresses.remove(&address);
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_enter_than_may() {
        let crowd = Crowd::new(3, 2);
        let [a, b] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        assert!(crowd.enter(a) && crowd.enter(a) && !crowd.enter(a));
        assert!(crowd.enter(b) && !crowd.enter(b));
        crowd.leave(a);
        assert!(crowd.enter(b) && crowd.count() == 3);
        for address in [a, b, b] {
            crowd.leave(address);
        }
        assert!(crowd.count() == 0 && crowd.present.lock().expect("whole").addresses.is_empty());
    }
}
