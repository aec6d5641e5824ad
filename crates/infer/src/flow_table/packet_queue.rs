//! Packets that wait to be analysed, each connection's in their order.
//!
//! Where there are many connections, what is known of one is in no cache when its next packet comes, and to fetch it takes longer than all that
//! is done with it. So packets wait here until there are several, or until their connection is over.

use crate::event::packet::Packet;

/// Packets whose room lies together: so many that they are fetched as one, and so few that a scan's connections, of one or two packets each,
/// take half a kilobyte. Bounds memory.
const CHUNK: usize = 8;

/// No chunk. It bounds memory to this many chunks.
const NONE: u32 = u32::MAX;

/// Packets of all connections.
#[derive(Debug, Default)]
pub(crate) struct PacketPool {
    /// Chunks, one after the other.
    packets: Vec<Packet>,
    /// For each chunk, the next of its connection.
    next: Vec<u32>,
    /// Chunks that are in no queue; that which was the last to be is taken first, for it is in the cache.
    free: Vec<u32>,
}

/// Which of them are one connection's.
#[derive(Debug)]
pub(crate) struct PacketQueue {
    first: u32,
    last: u32,
    len: u32,
}

impl PacketQueue {
    pub(crate) const EMPTY: Self = Self { first: NONE, last: NONE, len: 0 };

    /// How many packets wait in it.
    pub(crate) const fn len(&self) -> usize {
        self.len as usize
    }
}

impl PacketPool {
    /// Adds a packet to a queue.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut PacketQueue, packet: Packet) {
        let within = queue.len() % CHUNK;
        if within == 0 {
            let chunk = self.chunk();
            match queue.last {
                NONE => queue.first = chunk,
                last => self.next[last as usize] = chunk,
            }
            queue.last = chunk;
        }
        // What was there owns nothing any more (`drain`), and to look for that would wait for memory that left the cache long ago.
        std::mem::forget(std::mem::replace(&mut self.packets[queue.last as usize * CHUNK + within], packet));
        queue.len += 1;
    }

    /// A chunk that is in no queue.
    fn chunk(&mut self) -> u32 {
        let chunk = self.free.pop().unwrap_or_else(|| {
            self.packets.resize_with(self.packets.len() + CHUNK, Packet::default);
            self.next.push(NONE);
            u32::try_from(self.next.len() - 1).expect("invariant: no memory holds four thousand million chunks")
        });
        self.next[chunk as usize] = NONE;
        chunk
    }

    /// How many packets there is room for.
    #[cfg(test)]
    pub(crate) const fn room(&self) -> usize {
        self.packets.len()
    }

    /// Reads a word of each packet of a queue, then of what some refer to. None is in the cache any more; so they are fetched together, and not
    /// waited for one by one.
    fn fetch(&self, queue: &PacketQueue) {
        let words = [Packet::word, Packet::rare_word, Packet::message_word]
            .map(|word: fn(&Packet) -> u64| self.chunks(queue).flatten().fold(0, |words, packet| words ^ word(packet)));
        std::hint::black_box(words);
    }

    /// The chunks of a queue, whole.
    fn chunks(&self, queue: &PacketQueue) -> impl Iterator<Item = &[Packet]> {
        let next = |&chunk: &u32| Some(self.next[chunk as usize]).filter(|&next| next != NONE);
        std::iter::successors(Some(queue.first).filter(|&first| first != NONE), next)
            .map(|chunk| &self.packets[chunk as usize * CHUNK..][..CHUNK])
    }

    /// Takes the packets of a queue out of it that are not to be kept.
    pub(crate) fn retain(&mut self, queue: &mut PacketQueue, keep: impl Fn(&Packet) -> bool) {
        let mut kept = Vec::with_capacity(queue.len());
        self.drain(queue, |packet| {
            if keep(packet) {
                kept.push(std::mem::take(packet));
            }
        });
        kept.into_iter().for_each(|packet| self.push(queue, packet));
    }

    /// Whether any packet of a queue is such a one.
    pub(crate) fn any(&self, queue: &PacketQueue, is_one: impl FnMut(&Packet) -> bool) -> bool {
        self.chunks(queue).flatten().take(queue.len()).any(is_one)
    }

    /// Empties a queue: `each` is given its packets, in their order.
    pub(crate) fn drain(&mut self, queue: &mut PacketQueue, mut each: impl FnMut(&mut Packet)) {
        self.fetch(queue);
        let (mut chunk, mut left) = (queue.first, queue.len());
        while chunk != NONE {
            let at = chunk as usize * CHUNK;
            let here = left.min(CHUNK);
            for packet in &mut self.packets[at..at + here] {
                each(packet);
                packet.release();
            }
            left -= here;
            self.free.push(chunk);
            chunk = self.next[chunk as usize];
        }
        *queue = PacketQueue::EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::packet::PayloadFront;
    use crate::testing::packet;
    use proptest::prelude::*;
    use thalweg_units::Timestamp;
    use thalweg_wire::Flags;

    proptest! {
        /// Packets of several queues between one another; now and then one is emptied.
        #[test]
        fn queues_keep_their_packets_in_order(ops in proptest::collection::vec((0usize..4, 0u8..20), 0..400)) {
            let mut backlog = PacketPool::default();
            let mut queues = [const { PacketQueue::EMPTY }; 4];
            let mut wanted = [const { Vec::new() }; 4];
            let mut most = 0;
            for (number, (at, op)) in (0..).zip(ops) {
                if op == 0 {
                    let mut found = Vec::new();
                    backlog.drain(&mut queues[at], |packet| found.push(packet.number));
                    prop_assert_eq!(&found, &wanted[at]);
                    wanted[at].clear();
                } else {
                    let segment = packet(true, Flags::ACK, 1, 1, 0);
                    backlog.push(&mut queues[at], Packet::new(0, Timestamp::from_nanos(0), number, &segment, &PayloadFront::default()));
                    wanted[at].push(number);
                }
                prop_assert_eq!(queues[at].len(), wanted[at].len());
                most = most.max(wanted.iter().map(|queue| queue.len().div_ceil(CHUNK)).sum());
                prop_assert_eq!(backlog.room(), most * CHUNK);
            }
        }
    }
}
