//! The send sequence space (RFC 9293 §3.3.1), unwrapped to 64 bits, and the sizes of segments.

use thalweg_units::SeqNum;

/// Where unwrapped sequence numbers begin, so that what came before the first packet seen stays positive. It bounds no figure: numbers are told
/// relative to it; sequence numbers have 32 bits (RFC 9293 §3.4).
pub(super) const ORIGIN: u64 = 1 << 32;

/// What one direction has sent and had acknowledged, by sequence number.
#[derive(Debug)]
pub(crate) struct SendSpace {
    pub(super) reference: Option<(SeqNum, u64)>,
    pub(super) knows_first: bool,
    /// First byte, SND.UNA and SND.NXT.
    pub(crate) first: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// All below has arrived, as its receiver said at a tap that is not at the sender.
    pub(super) arrived: u64,
    /// The last number before `nxt` is its FIN's; that was acknowledged.
    pub(super) fin: bool,
    /// Bytes at the end that are an alert of TLS and not acknowledged.
    pub(super) alert: u64,
    pub(super) fin_delivered: bool,
    /// Where the byte ends that was sent into a closed window to ask for room; it counts when it is acknowledged.
    pub(super) probed: Option<u64>,
    pub(super) newest_tsval: Option<u32>,
    pub(super) newest_ip_id: Option<u16>,
    /// Payload of a full segment.
    pub(crate) mss: u64,
    /// What the SYNs let it be.
    pub(crate) agreed: Option<u64>,
    pub(crate) largest_payload: u32,
    /// Packets as long as the longest with more of the same write behind them.
    whole: u32,
}

/// Such packets are full segments from so many on, whatever the SYNs say: a program's pieces of equal length carry PSH each (RFC 9293 §3.9.1.2).
/// `segments_shorter_than_agreed_are_full_ones_where_more_follows` holds it.
const MIN_WHOLE: u32 = 2;
/// Shorter segments than this no path asks for (RFC 9293 §3.7.1).
const LEAST_MSS: u64 = 536;
/// Ethernet's 1,500 bytes (RFC 894), less headers.
const ETHERNET_MSS: u64 = 1_460;

impl Default for SendSpace {
    fn default() -> Self {
        Self {
            reference: None,
            knows_first: false,
            first: ORIGIN,
            una: ORIGIN,
            nxt: ORIGIN,
            arrived: ORIGIN,
            fin: false,
            alert: 0,
            fin_delivered: false,
            probed: None,
            newest_tsval: None,
            newest_ip_id: None,
            // Until a SYN or a segment shows another.
            mss: ETHERNET_MSS,
            agreed: None,
            largest_payload: 0,
            whole: 0,
        }
    }
}

impl SendSpace {
    /// The SYNs let a segment carry so many bytes.
    pub(crate) fn agree(&mut self, bytes: u64) {
        if self.agreed != Some(bytes) {
            self.agreed = Some(bytes);
            self.measure();
        }
    }

    /// A packet carries so many bytes; whether it ends what a program wrote.
    pub(super) fn carried(&mut self, bytes: u32, ends_write: bool) {
        if bytes > self.largest_payload {
            (self.largest_payload, self.whole) = (bytes, 0);
            self.measure();
        }
        if bytes == self.largest_payload && !ends_write && self.whole < MIN_WHOLE {
            self.whole += 1;
            self.measure();
        }
    }

    /// A router on the way may let less through than the SYNs say here.
    fn measure(&mut self) {
        let largest = u64::from(self.largest_payload);
        self.mss = match self.agreed {
            Some(agreed) if self.whole >= MIN_WHOLE => agreed.min(largest.max(LEAST_MSS)),
            Some(agreed) => agreed,
            None if self.whole >= MIN_WHOLE => largest.clamp(LEAST_MSS, ETHERNET_MSS),
            // Short messages do not show it.
            None => ETHERNET_MSS,
        };
    }

    /// Segments of a packet with so many bytes, which may be merged of several; the most there can be where their size is not known.
    pub(crate) fn segments(&self, bytes: u32) -> u64 {
        let size = if self.is_size_known() { self.mss } else { LEAST_MSS };
        u64::from(bytes).div_ceil(size.max(1)).max(1)
    }

    const fn is_size_known(&self) -> bool {
        self.agreed.is_some() || self.whole >= MIN_WHOLE
    }

    /// Whether the last segment of a packet with so many bytes is a short one: the program had written no more.
    pub(super) fn ends_short(&self, bytes: u64) -> bool {
        bytes < self.mss || self.is_size_known() && !bytes.is_multiple_of(self.mss.max(1))
    }

    /// Sets the sequence number of the first byte, where a SYN has it.
    pub(crate) fn begin(&mut self, seq: SeqNum) {
        if self.reference.is_none() {
            self.reference = Some((seq, ORIGIN));
        }
    }

    /// Sets the sequence number of the first byte, as a SYN tells it: what is missing before the first data was lost. Of SYNs without data that are
    /// not answered the latest counts, whose number may be another.
    pub(crate) fn begin_with_syn(&mut self, seq: SeqNum, is_answered: bool) {
        self.knows_first |= self.reference.is_none();
        if !is_answered && self.knows_first && self.nxt == ORIGIN {
            self.reference = Some((seq, ORIGIN));
        }
        self.begin(seq);
    }

    /// The sequence number after the highest byte sent.
    pub(crate) fn next_seq(&self) -> Option<SeqNum> {
        let (reference, at) = self.reference?;
        Some(reference.add(self.nxt.wrapping_sub(at) as u32))
    }

    /// Whether all that it sent was acknowledged.
    pub(crate) const fn is_answered(&self) -> bool {
        self.una >= self.nxt
    }

    pub(super) fn unwrap_seq(&self, seq: SeqNum) -> Option<u64> {
        let (reference, at) = self.reference?;
        at.checked_add_signed(i64::from(seq.since(reference)))
    }

    /// Where its payload ends so far; an alert is none of a program.
    pub(super) fn payload_end(&self) -> u64 {
        self.nxt - u64::from(self.fin) - self.alert
    }
}
