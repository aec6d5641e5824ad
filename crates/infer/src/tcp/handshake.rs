//! The handshake: what it agreed, and how its times place the tap.

use crate::event::packet::Packet;
use thalweg_model::{FastOpen, SynRequest};
use thalweg_units::SeqNum;
use thalweg_wire::Flags;

/// What one side's SYN said.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Syn {
    pub(crate) isn: Option<SeqNum>,
    /// The SYN itself was seen, so an absent option is known to be absent.
    pub(crate) seen: bool,
    /// The capture holds some of its options only: one that is absent may have been there.
    cut: bool,
    pub(crate) first_at: u64,
    pub(crate) last_at: u64,
    pub(crate) count: u32,
    pub(crate) mss: Option<u16>,
    pub(crate) wscale: Option<u8>,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    /// What the first one and the latest one ask for besides.
    asked: [Requests; 2],
    /// It has the bits that agree to ECN (RFC 3168 §6.1.1).
    pub(crate) ecn_agreed: bool,
    /// Subtype of its Multipath TCP option.
    pub(crate) multipath: Option<u8>,
    /// Length of the cookie in its Fast Open option.
    pub(crate) cookie: Option<u8>,
}

/// What a SYN asks for that some devices drop it for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Requests {
    /// By the bits that ask for ECN (RFC 3168 §6.1.1).
    ecn: bool,
    /// By payload or the option (RFC 7413 §4.1).
    fast_open: bool,
}

impl Syn {
    /// Whether the first one asked for ECN.
    pub(crate) const fn asked_ecn(&self) -> bool {
        self.asked[0].ecn
    }
}

/// Both SYNs and the acknowledgement that ends the handshake; times are nanoseconds since the flow's first packet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handshake {
    /// The client's, then the server's.
    pub(crate) syn: [Syn; 2],
    pub(crate) fast_open: bool,
    /// Payload of the SYN, and whether the SYN-ACK acknowledges all of it.
    syn_bytes: u32,
    syn_bytes_taken: Option<bool>,
    /// SYN to SYN-ACK: the round trip between the tap and the server. Where one was sent again it is from the last one: enough to place
    /// the tap by, as no round trip is as long as the timer (RFC 6298 §2.1).
    pub(crate) to_server: Option<u64>,
    /// SYN-ACK to its ACK: the round trip between the tap and the client, as above.
    pub(crate) to_client: Option<u64>,
    /// One of the two is from one that was sent again: which was answered is not known (Karn).
    guessed: bool,
    agreed: Agreed,
}

/// What follows from the SYNs, worked out when one comes: it is asked for at each acknowledgement.
#[derive(Debug, Clone, Default)]
struct Agreed {
    sack: Option<bool>,
    /// For each side.
    shift: [Option<u8>; 2],
    segment: [Option<u64>; 2],
}

impl Handshake {
    /// Takes a SYN or SYN-ACK of `side` (0 the client, 1 the server) in.
    pub(crate) fn syn(&mut self, side: usize, now: u64, packet: &Packet) {
        if packet.flags.has(Flags::ACK) && self.syn[0].isn.is_none() {
            self.syn[0].isn = Some(packet.ack.add(u32::MAX));
        }
        self.fast_open |= packet.payload_len > 0 && !packet.flags.has(Flags::ACK);
        let client = self.syn[0];
        if !packet.flags.has(Flags::ACK) {
            self.syn_bytes = self.syn_bytes.max(packet.payload_len);
        } else if self.syn_bytes > 0
            && let Some(isn) = client.isn
        {
            self.syn_bytes_taken.get_or_insert(packet.ack == isn.add(self.syn_bytes).add(1));
        }
        let syn = &mut self.syn[side];
        let asked = Requests {
            ecn: packet.flags.has(Flags::ECE | Flags::CWR),
            fast_open: packet.payload_len > 0 || packet.options().is_some_and(|options| options.fast_open.is_some()),
        };
        if !syn.seen {
            *syn = Syn { isn: Some(packet.seq), seen: true, first_at: now, last_at: now, count: 0, ..*syn };
            syn.timestamps = packet.timestamps.is_some();
            if let Some(options) = packet.options() {
                (syn.mss, syn.wscale, syn.sack) = (options.mss, options.window_scale, options.sack_permitted);
                (syn.multipath, syn.cookie, syn.cut) = (options.multipath, options.fast_open, options.cut);
            }
            syn.asked[0] = asked;
            syn.ecn_agreed = packet.flags.has(Flags::ECE) && !packet.flags.has(Flags::CWR);
            if side == 1 && client.seen {
                self.to_server = Some(now.saturating_sub(client.last_at));
                self.guessed |= client.count > 1;
            }
        }
        let syn = &mut self.syn[side];
        syn.count += 1;
        syn.last_at = now;
        syn.asked[1] = asked;
        if side == 0 && self.to_server.is_none() {
            syn.isn = Some(packet.seq);
        }
        self.agreed = Agreed {
            sack: self.both(|syn| syn.sack),
            shift: [0, 1].map(|side| self.agreed_shift(side)),
            segment: [0, 1].map(|side| self.agreed_segment(side)),
        };
    }

    /// Whether both SYNs have something; `None` where one was not seen, or not all of it.
    fn both(&self, has: fn(&Syn) -> bool) -> Option<bool> {
        self.syn.iter().all(|syn| syn.seen && (has(syn) || !syn.cut)).then(|| self.syn.iter().all(has))
    }

    /// The tap delivered `side`'s SYN once more: on its way in and on its way out of an emulator or router at the tap. The last
    /// copy before the answer is the one to time from.
    pub(crate) fn copied(&mut self, side: usize, now: u64) {
        let answered = if side == 0 { self.to_server } else { self.to_client };
        if answered.is_none() {
            self.syn[side].last_at = now;
        }
    }

    /// The client acknowledged the server's SYN for the first time.
    pub(crate) fn acknowledged(&mut self, now: u64) {
        let server = self.syn[1];
        if self.to_client.is_none() && server.seen {
            self.to_client = Some(now.saturating_sub(server.last_at));
            self.guessed |= server.count > 1;
        }
    }

    /// `side` acknowledges data within `least`: the round trip between the tap and it is no longer. Whether the handshake was clearly slower: round
    /// trips vary by a quarter from packet to packet.
    pub(crate) fn is_nearer(&mut self, side: usize, least: u64) -> bool {
        let told = if side == 0 { &mut self.to_client } else { &mut self.to_server };
        let is_nearer = told.is_some_and(|told| least < told / 4 * 3);
        if is_nearer {
            *told = Some(least);
        }
        is_nearer
    }

    /// The round trip between the tap and `side`.
    pub(crate) const fn to(&self, side: usize) -> Option<u64> {
        if side == 0 { self.to_client } else { self.to_server }
    }

    /// Whether both SYNs were seen and not both offer to scale windows.
    pub(crate) fn lacks_scaling(&self) -> bool {
        self.both(|syn| syn.wscale.is_some()) == Some(false)
    }

    /// The shift that turns `side`'s window fields into bytes; `None` where the capture does not tell.
    pub(crate) const fn shift(&self, side: usize) -> Option<u8> {
        self.agreed.shift[side]
    }

    fn agreed_shift(&self, side: usize) -> Option<u8> {
        let (own, other) = (&self.syn[side], &self.syn[1 - side]);
        let tells = |syn: &Syn| syn.seen && (syn.wscale.is_some() || !syn.cut);
        match (tells(own), tells(other)) {
            (true, true) => Some(own.wscale.and(other.wscale).map_or(0, |_| own.wscale.unwrap_or(0))),
            // A SYN-ACK answers the option only when the SYN had it (RFC 7323 §2.2).
            (true, false) if side == 1 => Some(own.wscale.unwrap_or(0)),
            (true, false) if own.wscale.is_none() => Some(0),
            (false, true) if other.wscale.is_none() => Some(0),
            _ => None,
        }
    }

    /// Payload bytes of a full segment that `side` sends; `None` where the capture does not tell.
    pub(crate) const fn segment(&self, side: usize) -> Option<u64> {
        self.agreed.segment[side]
    }

    fn agreed_segment(&self, side: usize) -> Option<u64> {
        // What it asks for itself is what its own link carries (RFC 9293 §3.7.1), unless a router on the way wrote another number into it.
        let limit = self.syn[1 - side].mss?.min(self.syn[side].mss.unwrap_or(u16::MAX));
        let options = if self.timestamps() == Some(true) { 12 } else { 0 };
        (limit > 100).then(|| u64::from(limit) - options)
    }

    fn timestamps(&self) -> Option<bool> {
        self.both(|syn| syn.timestamps)
    }

    pub(crate) const fn sack(&self) -> Option<bool> {
        self.agreed.sack
    }

    /// Whether ECN was negotiated; `None` where the capture does not tell.
    pub(crate) fn ecn(&self) -> Option<bool> {
        let [client, server] = self.syn;
        (client.seen && server.seen).then_some(client.asked_ecn() && server.ecn_agreed)
    }

    /// What the client's first SYN asked for and the latest one does not, if the answer shows nothing of it either.
    pub(crate) fn request_left_out(&self) -> Option<SynRequest> {
        let [client, server] = self.syn;
        let [first, latest] = client.asked;
        let is_taken = self.syn_bytes_taken == Some(true) || server.cookie.is_some();
        if first.fast_open && !latest.fast_open && !is_taken {
            Some(SynRequest::FastOpen)
        } else if first.ecn && !latest.ecn && !server.ecn_agreed {
            Some(SynRequest::Ecn)
        } else {
            None
        }
    }

    /// What there was of TCP Fast Open.
    pub(crate) fn fast_open(&self) -> Option<Box<FastOpen>> {
        let [client, server] = self.syn;
        let is_used = client.cookie.is_some() || server.cookie.is_some() || self.syn_bytes > 0;
        is_used.then(|| {
            Box::new(FastOpen {
                asked: client.cookie == Some(0),
                sent: client.cookie.is_some_and(|length| length > 0),
                granted: server.cookie.is_some_and(|length| length > 0),
                syn_bytes: u64::from(self.syn_bytes),
                accepted: self.syn_bytes_taken,
            })
        })
    }

    /// As the report gives it.
    pub(crate) fn report(&self) -> thalweg_model::Handshake {
        let [client, server] = self.syn;
        thalweg_model::Handshake {
            rtt_ms: self.to_server.zip(self.to_client).filter(|_| !self.guessed).map(|(a, b)| (a + b) as f64 / 1e6),
            mss_client: client.mss,
            mss_server: server.mss,
            wscale_client: client.wscale,
            wscale_server: server.wscale,
            sack: self.sack(),
            timestamps: self.timestamps(),
            fast_open: self.fast_open,
            syn_retransmits: client.count.saturating_sub(1) + server.count.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::packet::PayloadFront;
    use crate::testing::packet;
    use thalweg_units::Timestamp;

    const SECOND: u64 = 1_000_000_000;
    const ROUND_TRIP: u64 = SECOND / 20;

    /// A handshake of these SYNs, each with whether the client sends it and when, acknowledged at `end`.
    fn opened(syns: &[(bool, u64)], end: u64) -> Handshake {
        let mut opening = Handshake::default();
        for &(up, now) in syns {
            let flags = if up { Flags::SYN } else { Flags::SYN | Flags::ACK };
            let (side, segment) = (usize::from(!up), packet(up, flags, 100, 101, 0));
            opening.syn(
                side,
                now,
                &Packet::new(side, Timestamp::from_nanos(now), 1, &segment, &PayloadFront::default()),
            );
        }
        opening.acknowledged(end);
        opening
    }

    #[test]
    fn syns_sent_again_place_the_tap_and_time_no_round_trip() {
        let soon = 20_000;
        let client = opened(&[(true, 0), (true, SECOND), (false, SECOND + ROUND_TRIP)], SECOND + ROUND_TRIP + soon);
        assert_eq!((client.to_server, client.to_client), (Some(ROUND_TRIP), Some(soon)));
        let server = opened(&[(true, 0), (false, soon), (false, SECOND)], SECOND + ROUND_TRIP);
        assert_eq!((server.to_server, server.to_client), (Some(soon), Some(ROUND_TRIP)));
        let plain = opened(&[(true, 0), (false, ROUND_TRIP)], ROUND_TRIP + soon);
        assert_eq!([client, server, plain].map(|opening| opening.report().rtt_ms), [None, None, Some(50.02)]);
    }
}
