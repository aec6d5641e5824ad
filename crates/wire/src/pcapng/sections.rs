//! Interfaces that go on in a further section, as in captures that were put one behind the other.

use crate::packet::Interface;
use thalweg_units::Timestamp;

/// By how much packets may be out of order where one section follows another, as those of several receive queues are, in nanoseconds.
const OUT_OF_ORDER: u64 = 1_000_000;

/// How many earlier interfaces are looked through for one: a file may describe tens of thousands.
const LOOKED_THROUGH: usize = 1_024;

/// What is known of one interface of one section.
#[derive(Debug, Clone, Copy)]
struct View {
    /// Where its section's interfaces begin among all.
    section: usize,
    /// The interface it is, itself or that of an earlier section; not known before its first packet.
    is: Option<usize>,
    latest: Timestamp,
}

/// Which interfaces of a capture are one.
#[derive(Debug, Default)]
pub(super) struct Sections {
    views: Vec<View>,
    /// The section of the latest packet, and when it began.
    began: (usize, Timestamp),
}

impl Sections {
    /// The next interface is described, in the section whose interfaces begin at `section`.
    pub(super) fn describe(&mut self, section: usize) {
        self.views.push(View { section, is: None, latest: Timestamp::default() });
    }

    /// The interface that a packet at `at` on interface `index` is of: that of an earlier section with the same name, or without names the
    /// same number, and link type, if its packets were over when this section began. Two hosts' captures overlap, so their interfaces stay two.
    pub(super) fn interface(&mut self, index: usize, at: Timestamp, interfaces: &[Interface]) -> usize {
        let Some(&View { section, is, .. }) = self.views.get(index) else { return index };
        if section != self.began.0 {
            self.began = (section, at);
        }
        let is = is.unwrap_or_else(|| self.earlier(index, interfaces).unwrap_or(index));
        self.views[index].is = Some(is);
        let latest = &mut self.views[is].latest;
        *latest = (*latest).max(at);
        is
    }

    fn earlier(&self, index: usize, interfaces: &[Interface]) -> Option<usize> {
        let View { section, .. } = *self.views.get(index)?;
        let wanted = interfaces.get(index)?;
        let is_it = |&before: &usize| {
            let (view, interface) = (&self.views[before], &interfaces[before]);
            interface.name == wanted.name
                && interface.link == wanted.link
                && (wanted.name.is_some() || before - view.section == index - section)
        };
        let mut before = (0..section.min(interfaces.len())).rev().take(LOOKED_THROUGH).filter(is_it);
        let found = before.find_map(|before| self.views[before].is)?;
        let over = self.views[found].latest.as_nanos() <= self.began.1.as_nanos().saturating_add(OUT_OF_ORDER);
        over.then_some(found)
    }
}
