//! What a sender did and heard: facts of the protocol, in the sender's own time, whichever end was captured.
//!
//! `tcp` reconstructs these events from packets, at the sender's tap or elsewhere; `observe` counts them. Nothing of what is counted goes
//! back. Times are nanoseconds since the connection's first packet, sequence numbers are unwrapped to 64 bits, amounts are bytes.

pub(crate) mod packet;

use std::collections::VecDeque;

/// A fact about one direction of a connection.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// All that follows is known so well.
    Accuracy(Accuracy),
    /// A packet with payload or the FIN, before it is known what it carries.
    Packet(DataPacket),
    /// New payload.
    Sent(Sent),
    /// Payload that was sent before.
    Resent(Resent<'a>),
    /// A gap before new payload.
    Unseen(Unseen),
    /// Payload that never came to the tap is acknowledged: it arrived, and the capture lacks it.
    Uncaptured { start: u64, end: u64, mss: u64 },
    /// A packet was overtaken by this many bytes; `late` is where it began that came, and how much later than what overtook it, if that was seen.
    Overtaken { bytes: u64, late: Option<(u64, u64)> },
    /// A retransmission that began `offset` bytes behind the first, at `start`, was not needed.
    Needless { now: u64, number: u64, start: u64, offset: u64 },
    /// The silence until now was the retransmission timer's or a probe's, at most so much of it.
    TimerExpired { longest: u64 },
    /// The last silence, which was taken for the program's, was a timer's, at most so much of it.
    WasTimeout { longest: u64 },
    /// So much is in flight after a packet.
    Flight { now: u64, flight: u64 },
    /// So much was in flight for so long, as echoes of timestamps tell.
    FlightLasted { flight: u64, lasted: u64 },
    /// An acknowledgement, as it reached the sender.
    Acked(Acked),
    /// A round trip was timed.
    Rtt(RttSample),
    /// An acknowledgement ends in data that was selectively acknowledged, while data up to `next` was out: the receiver dropped it.
    Reneged { now: u64, number: u64, window: u64, next: u64 },
    /// So many bytes that were selectively acknowledged are sent again.
    SackedResent(u64),
    /// A segment that came to a tap at the receiver is sent again: it was not taken.
    Refused,
    /// A SACK block about data that was never sent.
    ForeignBlock { now: u64, number: u64 },
    /// The connection is over.
    Ended(Ended),
}

/// How well events are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Accuracy {
    /// As the sender saw them.
    #[default]
    Exact,
    /// To a tick of the timestamps' clock, or a round trip without one.
    Tick,
}

/// Why the sender sent data again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetransmitKind {
    Fast,
    Timer,
    Probe,
}

/// What the sender waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Nothing to send.
    Application = 0,
    /// The receiver's window is full, and as large as it ever was.
    ReceiveWindow = 1,
    /// The receiver's window is closed or shrinking: the application does not read.
    Reader = 2,
    /// Losses are being repaired.
    Recovery = 3,
    /// Silence until a timer expired.
    Timeout = 4,
    /// The congestion window, the path or the send buffer: distinguished when the whole flow is known.
    Open = 5,
}

impl Limit {
    /// How many there are. Bounds memory.
    pub(crate) const COUNT: usize = 6;
}

/// What triggered new data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// An acknowledgement of new data just before; `pure` if it had no payload.
    Ack { pure: bool },
    /// Nothing that the sender heard.
    #[default]
    Own,
}

/// A packet with payload or the FIN.
#[derive(Debug)]
pub(crate) struct DataPacket {
    pub(crate) now: u64,
    pub(crate) start: u64,
    /// After its payload and FIN.
    pub(crate) end: u64,
    /// SND.NXT before it.
    pub(crate) next: u64,
    pub(crate) mss: u64,
    /// Of its payload.
    pub(crate) len: u32,
    /// Payload of its millisecond so far, or of the one before if that is more.
    pub(crate) burst: u64,
    /// Its TSval, unless the packet before had the same.
    pub(crate) new_tsval: Option<u32>,
    /// Nanoseconds since the packet before it left, by a far sender's timestamps.
    pub(crate) quiet: Option<u64>,
    /// What the sender waited for until now.
    pub(crate) limit: Limit,
}

impl Sent {
    /// Nanoseconds since new data was sent before.
    pub(crate) const fn silence(&self) -> u64 {
        self.now.saturating_sub(self.last_send)
    }

    /// How much later than a round trip the acknowledgement of what was sent before came, in nanoseconds.
    pub(crate) const fn ack_delay(&self) -> u64 {
        self.last_progress.saturating_sub(self.last_send).saturating_sub(self.rtt_min)
    }

    /// What was in flight before, and this.
    pub(crate) const fn flight_with(&self) -> u64 {
        self.flight_before + self.next - self.start
    }
}

/// Shortest delay of an acknowledgement that counts: Linux `TCP_DELACK_MIN` is 40 ms; timers of 100 Hz fire up to 10 ms early on
/// another's clock.
pub(crate) const MIN_ACK_DELAY_NS: u64 = 25_000_000;

/// New payload, as it has left.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) now: u64,
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// The first byte of all, SND.UNA, and SND.NXT after it.
    pub(crate) first: u64,
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) mss: u64,
    /// Payload sent so far, each byte counted once, and retransmissions.
    pub(crate) total: u64,
    pub(crate) retransmits: u64,
    /// In flight before it and after it.
    pub(crate) flight_before: u64,
    pub(crate) flight: u64,
    pub(crate) trigger: Trigger,
    /// When the sender sent before, and when new data was last acknowledged.
    pub(crate) last_send: u64,
    pub(crate) last_progress: u64,
    /// The least round trip, the handshake's included: where the receiver delays each acknowledgement no other shows the path's.
    pub(crate) rtt_min: u64,
    /// Open time without a packet is the application's if it lasted longer than this.
    pub(crate) patience: u64,
    /// The application had nothing to send since the packet before.
    pub(crate) was_idle: bool,
    /// The receiver's window had room all the while, and no acknowledgement triggered this.
    pub(crate) had_window: bool,
    /// Room in a congestion window was left until there was more of it.
    pub(crate) was_gathered: bool,
    /// The receiver's window, if this leaves less than a segment of it.
    pub(crate) fills_window: Option<u64>,
    /// Something else than the congestion window ended the flight with it: the payload, or the receiver's window.
    pub(crate) is_bounded: bool,
    pub(crate) is_repairing: bool,
    pub(crate) pause: Option<Pause>,
}

/// How a pause between two packets of new data ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pause {
    /// When it ended, and how long after an acknowledgement; 0 elsewhere than at the sender.
    pub(crate) at: u64,
    pub(crate) after_ack: u64,
    /// For how long nothing was sent, where timestamps tell; else it is what is charged to the application.
    pub(crate) lasted: Option<u64>,
    /// A full segment followed an acknowledgement without payload at once.
    pub(crate) clocked: bool,
    /// For how long nothing was sent, where the sender's tap shows that the acknowledgement set the segment off; else 0.
    pub(crate) set_off_after: u64,
    /// It began after a segment that was shorter than a full one.
    pub(crate) short: bool,
    /// In flight when it began and when it ended.
    pub(crate) began_at: u64,
    pub(crate) ended_at: u64,
}

/// What the time between two sends was, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waited {
    /// Charged to the application.
    pub(crate) charged: u64,
    /// Since acknowledgements had made room for a segment.
    pub(crate) room: u64,
}

/// A segment that was sent and is not acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SentSegment {
    pub(crate) end: u64,
    pub(crate) sent: u64,
    /// As of [`DataPacket::burst`].
    pub(crate) burst: u32,
    pub(crate) resent: bool,
    /// Sent again in parts, or behind what is missing, so what was acknowledged up to its end need not have come at that length.
    pub(crate) parted: bool,
    /// Timeouts there had been when it was last sent again.
    pub(crate) timeouts: u32,
}

/// `[start, end)` is sent again.
#[derive(Debug)]
pub(crate) struct Resent<'a> {
    pub(crate) now: u64,
    pub(crate) number: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) first: u64,
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) mss: u64,
    /// The smoothed round trip.
    pub(crate) rtt: u64,
    pub(crate) kind: RetransmitKind,
    /// A timer or a probe's timer expired; else it follows one, or an acknowledgement.
    pub(crate) by_timer: bool,
    /// It begins a recovery.
    pub(crate) begins_recovery: bool,
    /// Nothing behind it is known to have arrived.
    pub(crate) is_tail: bool,
    /// The first copy did not come to the tap.
    pub(crate) is_new_here: bool,
    /// What is out, oldest first, as it was before.
    pub(crate) out: &'a VecDeque<SentSegment>,
}

/// `[from, to)` left between `after` and `before`, and the tap did not see it: it was lost, or it is late.
#[derive(Debug)]
pub(crate) struct Unseen {
    pub(crate) after: u64,
    pub(crate) before: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) mss: u64,
    /// The smoothed round trip.
    pub(crate) rtt: u64,
    pub(crate) is_repairing: bool,
}

/// An acknowledgement, after the sender has taken it in.
#[derive(Debug)]
pub(crate) struct Acked {
    pub(crate) now: u64,
    pub(crate) number: u64,
    /// Its number, within what was sent.
    pub(crate) ack: u64,
    pub(crate) first: u64,
    pub(crate) una: u64,
    pub(crate) next: u64,
    pub(crate) mss: u64,
    /// The receiver's program sent data with it.
    pub(crate) is_message: bool,
    /// It acknowledged new data by its number.
    pub(crate) advanced: bool,
    /// What the sender waited for until now.
    pub(crate) limit: Limit,
    /// Newly delivered, and in all.
    pub(crate) delivered: u64,
    pub(crate) total: u64,
    /// The highest byte that is known to have arrived.
    pub(crate) reached: u64,
    /// Not acknowledged by number before it, and in flight after it.
    pub(crate) outstanding: u64,
    pub(crate) flight: u64,
    pub(crate) tsecr: Option<u32>,
    pub(crate) ecn_echo: bool,
    /// Nothing but the congestion window, the path or the send buffer holds the sender now.
    pub(crate) has_room: bool,
    /// A recovery ended.
    pub(crate) is_repaired: bool,
    pub(crate) window: Advertised,
}

/// The receiver's window in an acknowledgement.
#[derive(Debug)]
pub(crate) struct Advertised {
    pub(crate) bytes: u64,
    /// As the header has it.
    pub(crate) field: u16,
    /// Its scale is known.
    pub(crate) is_known: bool,
    pub(crate) is_syn: bool,
    /// None was larger before.
    pub(crate) is_largest: bool,
}

/// A round trip.
#[derive(Debug)]
pub(crate) struct RttSample {
    pub(crate) now: u64,
    pub(crate) rtt: u64,
    /// When the data it tells of passed the tap.
    pub(crate) passed_at: u64,
    /// How late the packet that shows it came by its sender's clock, from an arbitrary moment on, unless that had paused.
    pub(crate) late: Option<i64>,
    pub(crate) is_repairing: bool,
}

/// The end of a direction.
#[derive(Debug)]
pub(crate) struct Ended {
    /// After the last byte of payload.
    pub(crate) end: u64,
    pub(crate) mss: u64,
    pub(crate) retransmits: u64,
    pub(crate) last_delivery: u64,
    /// When the connection ended, if data waited behind a closed window to the end.
    pub(crate) shut_until: Option<u64>,
    /// The data phase ended with the last delivery: nothing more was to be sent.
    pub(crate) ends_with_delivery: bool,
}
