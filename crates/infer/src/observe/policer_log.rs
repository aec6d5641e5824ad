//! What left since the first loss, and what of it was lost: what a token bucket is fitted to.

use crate::event::{DataPacket, Resent, Unseen};

/// Packets kept, from the first loss on: at one percent lost, eighty losses. Bounds memory.
const MAX_PACKETS: usize = 1 << 13;
/// A packet that left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: u64,
    pub(crate) start: u64,
    pub(crate) len: u32,
    /// Microseconds until its acknowledgement; 0 is not known.
    pub(crate) rtt: u32,
    pub(crate) lost: bool,
    /// It never came to the tap.
    pub(crate) unseen: bool,
    /// When it left by a far sender's timestamps, in microseconds from an arbitrary moment on; 0 is not known.
    pub(crate) left_us: u32,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }

    fn carries(&self, byte: u64) -> bool {
        (self.start..self.end()).contains(&byte)
    }
}

/// What left since the first loss.
#[derive(Debug, Default)]
pub(crate) struct PolicerLog {
    pub(crate) sent: Vec<Sent>,
    open: bool,
    pub(crate) losses: usize,
    /// Some of them never came to the tap.
    pub(crate) missed: bool,
    /// When the packet left that came last, as of [`Sent::left_us`].
    left_us: u32,
}

impl PolicerLog {
    /// `[start, end)` is sent again, so it was lost. With the first loss the log begins with all that is out.
    pub(crate) fn resent(&mut self, resent: &Resent<'_>) {
        if !self.open {
            self.open = true;
            let mut start = resent.una;
            let out = resent.out.iter().take(MAX_PACKETS).map(|segment| {
                let (start, end) = (std::mem::replace(&mut start, segment.end), segment.end);
                let len = end.saturating_sub(start) as u32;
                Sent { at: segment.sent, start, len, rtt: 0, lost: false, unseen: false, left_us: 0 }
            });
            self.sent = out.collect();
        }
        self.lose(resent.start, resent.end);
        self.sent(resent.now, resent.start, (resent.end - resent.start) as u32);
    }

    /// A packet with payload, before it is known what it carries.
    pub(crate) fn packet(&mut self, packet: &DataPacket) {
        if let Some(quiet) = packet.quiet {
            self.left_us = self.left_us.max(1).saturating_add((quiet / 1_000) as u32);
        }
    }

    /// A packet left.
    pub(crate) fn sent(&mut self, at: u64, start: u64, len: u32) {
        if self.open && self.sent.len() < MAX_PACKETS {
            let left_us = self.left_us;
            self.sent.push(Sent { at, start, len, rtt: 0, lost: false, unseen: false, left_us });
        }
    }

    /// Packets that the tap never saw are taken to have followed what was seen before them at the distance of that: what empties a bucket
    /// is a burst.
    pub(crate) fn missed(&mut self, unseen: &Unseen) {
        let (&Unseen { after, before: until, from, to, .. }, mss) = (unseen, unseen.mss.max(1));
        self.open = true;
        self.missed = true;
        let even = until.saturating_sub(after) / ((to - from) / mss + 1);
        let before = match self.sent.as_slice() {
            [.., a, b] if b.at == after => b.at - a.at,
            _ => 0,
        };
        let packets = (from..to).step_by(mss as usize).enumerate().take(MAX_PACKETS - self.sent.len());
        let unseen = packets.map(|(n, start)| {
            let at = after + even.min(before) * (n as u64 + 1);
            let len = mss.min(to - start) as u32;
            Sent { at, start, len, rtt: 0, lost: true, unseen: true, left_us: 0 }
        });
        // A flight that shows late was sent before what showed it.
        let place = self.sent.partition_point(|sent| sent.at <= after);
        let known = self.sent.len();
        self.sent.splice(place..place, unseen);
        self.losses += self.sent.len() - known;
    }

    /// What carried `[start, end)` last is lost. Of a burst that was handed down whole, that is the part alone.
    fn lose(&mut self, start: u64, end: u64) {
        let last = self.sent.iter().rposition(|sent| sent.carries(start));
        let Some(n) = last.filter(|&n| !self.sent[n].lost) else { return };
        self.losses += 1;
        let whole = self.sent[n];
        let cuts = [whole.start, start, end.min(whole.end()), whole.end()];
        let parts = cuts.windows(2).zip([false, true, false]).filter(|(cut, _)| cut[0] < cut[1]);
        let parts = parts.map(|(cut, lost)| Sent { start: cut[0], len: (cut[1] - cut[0]) as u32, lost, ..whole });
        self.sent.splice(n..=n, parts);
        // As many as are kept at most, the lost ones too.
        self.sent.truncate(MAX_PACKETS);
    }

    /// `[start, …)` had arrived all the same, or came late: it was not lost.
    pub(crate) fn arrived(&mut self, start: u64) {
        let found = self.sent.iter_mut().rev().find(|sent| sent.lost && sent.carries(start));
        if let Some(sent) = found {
            (sent.lost, sent.unseen) = (false, false);
            self.losses -= 1;
        }
    }

    /// `[start, end)` arrived and never came to the tap: it was not lost.
    pub(crate) fn uncaptured(&mut self, start: u64, end: u64) {
        let unseen = self.sent.iter_mut().rev().filter(|sent| sent.unseen).take_while(|sent| sent.end() > start);
        for sent in unseen.filter(|sent| sent.lost && sent.start < end) {
            sent.lost = false;
            self.losses -= 1;
        }
    }

    /// The packet that left at `at` was acknowledged after `rtt`, both in nanoseconds.
    pub(crate) fn timed(&mut self, at: u64, rtt: u64) {
        let n = self.sent.partition_point(|sent| sent.at < at);
        if let Some(sent) = self.sent.get_mut(n).filter(|sent| sent.at == at) {
            sent.rtt = (rtt / 1_000).clamp(1, u64::from(u32::MAX)) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_burst_handed_down_whole_the_part_that_is_sent_again_is_lost() {
        let mut log = PolicerLog { open: true, ..PolicerLog::default() };
        log.sent(5, 0, 14_480);
        log.lose(2_896, 4_344);
        let parts: Vec<_> = log.sent.iter().map(|sent| (sent.start, sent.len, sent.lost)).collect();
        assert_eq!(parts, [(0, 2_896, false), (2_896, 1_448, true), (4_344, 10_136, false)]);
        // Another part, the same once more, and one that begins where it was handed down.
        log.lose(13_032, 20_000);
        log.lose(2_896, 4_344);
        log.lose(0, 1_448);
        assert_eq!((log.losses, log.sent.len()), (3, 5));
        log.arrived(13_032);
        assert_eq!((log.losses, log.sent.iter().filter(|sent| sent.lost).count()), (2, 2));
        assert_eq!(log.sent.iter().map(|sent| sent.len).sum::<u32>(), 14_480);
    }
}
