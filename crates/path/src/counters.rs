//! What a direction counted.

use thalweg_units::Bytes;

/// A number of segments and their bytes, counted from the IP header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Segments.
    pub packets: u64,
    /// Bytes.
    pub bytes: Bytes,
}

/// Why a segment is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It exceeds the policer's rate.
    Policer,
    /// The queue is full.
    QueueFull,
    /// The queue management drops before the queue is full: RED, CoDel, FQ-CoDel, PIE.
    QueueManagement,
    /// It is on the list of losses.
    Listed,
    /// It is longer than the black hole lets pass.
    BlackHole,
    /// The random loss.
    RandomLoss,
    /// The delay holds as many segments as its limit lets it.
    DelayFull,
    /// The path holds as many segments as it can.
    PathFull,
}

impl DropReason {
    /// All, in the order of their declaration.
    pub const ALL: [Self; 8] = [
        Self::Policer,
        Self::QueueFull,
        Self::QueueManagement,
        Self::Listed,
        Self::BlackHole,
        Self::RandomLoss,
        Self::DelayFull,
        Self::PathFull,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policer => "policer",
            Self::QueueFull => "queue_full",
            Self::QueueManagement => "queue_management",
            Self::Listed => "listed",
            Self::BlackHole => "black_hole",
            Self::RandomLoss => "random_loss",
            Self::DelayFull => "delay_full",
            Self::PathFull => "path_full",
        }
    }
}

/// What a direction counted since it began. Arrived and duplicated together are departed, dropped and still on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Segments that came in.
    pub arrived: Tally,
    /// Segments that went out, copies among them.
    pub departed: Tally,
    /// Copies that were made.
    pub duplicated: Tally,
    /// Segments of which one bit was flipped.
    pub corrupted: Tally,
    /// Segments that were marked Congestion Experienced.
    pub marked: Tally,
    dropped: [Tally; DropReason::ALL.len()],
}

impl Counters {
    /// Segments dropped for this reason.
    pub const fn dropped(&self, reason: DropReason) -> Tally {
        self.dropped[reason as usize]
    }

    /// Segments dropped for any reason.
    pub fn dropped_in_all(&self) -> Tally {
        let mut all = Tally::default();
        self.dropped.iter().for_each(|tally| all.add(*tally));
        all
    }

    /// Segments on the path, copies included.
    pub(crate) fn held_packets(&self) -> u64 {
        let came = self.arrived.packets + self.duplicated.packets;
        came - self.departed.packets - self.dropped_in_all().packets
    }

    /// Bytes on the path, copies included.
    pub fn held_bytes(&self) -> u64 {
        let came = self.arrived.bytes.get() + self.duplicated.bytes.get();
        came - self.departed.bytes.get() - self.dropped_in_all().bytes.get()
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.arrived.add(other.arrived);
        self.departed.add(other.departed);
        self.duplicated.add(other.duplicated);
        self.corrupted.add(other.corrupted);
        self.marked.add(other.marked);
        self.dropped.iter_mut().zip(other.dropped).for_each(|(own, other)| own.add(other));
    }

    pub(crate) fn drop(&mut self, reason: DropReason, bytes: u32) {
        self.dropped[reason as usize].count(bytes);
    }
}

impl Tally {
    /// Counts one segment.
    pub(crate) fn count(&mut self, bytes: u32) {
        self.add(Self { packets: 1, bytes: Bytes::new(u64::from(bytes)) });
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes = Bytes::new(self.bytes.get() + other.bytes.get());
    }
}
