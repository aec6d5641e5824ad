//! Captures written by hand: packets with their times at the hosts, seen from a tap beside one of them.

use thalweg_wire::Flags;

const ACK: u8 = Flags::ACK;
const SYN: u8 = Flags::SYN;

/// The client and the server, as indices.
pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Where and how a connection is captured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) v6: bool,
    pub(crate) timestamps: bool,
    /// The side beside which the tap is.
    pub(crate) tap: usize,
    /// The round trip, in microseconds.
    pub(crate) rtt: u64,
}

impl Setup {
    /// Every combination, over this round trip in milliseconds.
    pub(crate) fn all(rtt_ms: u64) -> impl Iterator<Item = Self> {
        (0..8).map(move |n| Self {
            v6: n & 1 != 0,
            timestamps: n & 2 != 0,
            tap: if n & 4 != 0 { SERVER } else { CLIENT },
            rtt: rtt_ms * 1_000,
        })
    }
}

/// A packet to be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) flags: u8,
    /// Relative to the side's first sequence number.
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) len: usize,
    pub(crate) window: u16,
    pub(crate) ttl: Option<u8>,
    pub(crate) id: Option<u16>,
    /// A selective acknowledgement, as the packet has it.
    pub(crate) sack: Option<(u32, u32)>,
}

/// A connection on its way into a capture.
#[derive(Debug)]
pub(crate) struct Wire {
    setup: Setup,
    /// What the tap saw, with its microseconds.
    seen: Vec<(u64, Vec<u8>)>,
    /// The next sequence number of each side, and what it has heard of the other.
    pub(crate) next: [u32; 2],
    pub(crate) heard: [u32; 2],
    pub(crate) window: [u16; 2],
    /// The window scale that SYNs offer.
    pub(crate) scale: Option<u8>,
    /// The longest segment that either side's SYN asks for.
    pub(crate) mss: [u16; 2],
    /// Flags of either side's SYN besides.
    pub(crate) syn_flags: [u8; 2],
    /// What the payload of the next packet begins with.
    front: Vec<u8>,
    /// When what packets echo had reached their sender, where that is not just before; in microseconds.
    pub(crate) heard_at: Option<u64>,
    /// The only side whose packets are captured.
    pub(crate) only: Option<usize>,
    /// Bytes that the capture keeps of a packet.
    pub(crate) snaplen: usize,
    pub(crate) ports: [u16; 2],
    ids: [u16; 2],
    isn: [u32; 2],
}

impl Wire {
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            setup,
            seen: Vec::new(),
            next: [0; 2],
            heard: [0; 2],
            window: [60_000; 2],
            scale: None,
            mss: [1_460; 2],
            syn_flags: [0; 2],
            front: Vec::new(),
            heard_at: None,
            only: None,
            snaplen: usize::MAX,
            ports: [40_001, 80],
            ids: [55_538, 65_530],
            isn: [3_000_000_000, 4_294_960_000],
        }
    }

    /// A side sends this at a time, in microseconds; what is lost is seen beside its sender only.
    pub(crate) fn put(&mut self, at: u64, side: usize, lost: bool, sent: Sent) {
        let is_here = self.setup.tap == side;
        let is_captured = self.only.is_none_or(|only| only == side);
        if is_captured && (!lost || is_here) {
            let seen_at = if is_here { at } else { at + self.setup.rtt / 2 };
            let bytes = self.packet(at, side, &sent);
            self.seen.push((seen_at, bytes));
        }
    }

    /// The sequence number of a side's byte, as packets have it.
    pub(crate) fn number(&self, side: usize, seq: u32) -> u32 {
        self.isn[side].wrapping_add(seq)
    }

    /// A side counts from another first number from now on.
    pub(crate) fn renumber(&mut self, side: usize) {
        self.isn[side] = self.isn[side].wrapping_mul(2_654_435_761).wrapping_add(1);
    }

    /// A router answers a packet of `side` by an error that names the MTU of its next link.
    pub(crate) fn too_big(&mut self, at: u64, side: usize, mtu: u16) {
        let quoted = self.packet(at, side, &self.now(side, ACK, 0));
        let (header, message, protocol) =
            if self.setup.v6 { (40, [2, 0, 0, 0, 0, 0], 58) } else { (20, [3, 4, 0, 0, 0, 0], 1) };
        let mut bytes = quoted[..header].to_vec();
        bytes[if self.setup.v6 { 6 } else { 9 }] = protocol;
        let addresses = if self.setup.v6 { 8 } else { 12 };
        let length = (header - addresses) / 2;
        bytes[addresses..header].rotate_left(length);
        let body: Vec<u8> =
            message.into_iter().chain(mtu.to_be_bytes()).chain(quoted[..header + 8].iter().copied()).collect();
        let total = if self.setup.v6 { body.len() } else { header + body.len() } as u16;
        let at_length = if self.setup.v6 { 4 } else { 2 };
        bytes[at_length..at_length + 2].copy_from_slice(&total.to_be_bytes());
        bytes.extend(body);
        self.seen.push((at, bytes));
    }

    /// The same, of what comes next of the side: flags, and bytes of payload.
    pub(crate) fn send(&mut self, at: u64, side: usize, flags: u8, len: usize) {
        let sent = self.now(side, flags, len);
        self.put(at, side, false, sent);
        let numbers = u32::from(flags & (SYN | Flags::FIN) != 0) + len as u32;
        self.next[side] += numbers;
        self.heard[1 - side] = self.next[side];
    }

    /// The side sends so many bytes, which begin with these.
    pub(crate) fn say(&mut self, at: u64, side: usize, front: &[u8], len: usize) {
        self.front = front[..front.len().min(len)].to_vec();
        self.send(at, side, ACK | Flags::PSH, len);
        self.front.clear();
    }

    /// The side sends a datagram from and to these ports.
    pub(crate) fn datagram(&mut self, at: u64, side: usize, ports: [u16; 2], payload: &[u8]) {
        let udp: Vec<u8> =
            [ports[0], ports[1], 8 + payload.len() as u16, 0].into_iter().flat_map(u16::to_be_bytes).collect();
        let bytes = self.ip(side, 17, 64, 0, &[&udp[..], payload].concat());
        self.seen.push((if self.setup.tap == side { at } else { at + self.setup.rtt / 2 }, bytes));
    }

    /// What comes next of the side.
    pub(crate) fn now(&self, side: usize, flags: u8, len: usize) -> Sent {
        let ack = if flags & ACK != 0 { self.heard[side] } else { 0 };
        Sent { flags, seq: self.next[side], ack, len, window: self.window[side], ttl: None, id: None, sack: None }
    }

    /// SYN, SYN-ACK and ACK from `at` on; gives when the client has sent the last of them.
    pub(crate) fn open(&mut self, at: u64) -> u64 {
        let rtt = self.setup.rtt;
        self.send(at, CLIENT, SYN | self.syn_flags[CLIENT], 0);
        self.send(at + rtt / 2, SERVER, SYN | ACK | self.syn_flags[SERVER], 0);
        self.send(at + rtt, CLIENT, ACK, 0);
        at + rtt
    }

    /// A connection whose windows have this scale, and when a request of the client has reached the server.
    pub(crate) fn asked(setup: Setup, scale: Option<u8>) -> (Self, u64) {
        let mut wire = Self::new(setup);
        wire.scale = scale;
        let at = wire.open(0) + 1_000;
        wire.send(at, CLIENT, ACK, 100);
        (wire, at + setup.rtt / 2)
    }

    /// A request at `at`, and after `wait` its response, in flights that double; gives when the client has acknowledged the last of it.
    pub(crate) fn exchange(&mut self, at: u64, wait: u64, response: usize) -> u64 {
        let rtt = self.setup.rtt;
        self.send(at, CLIENT, ACK | Flags::PSH, 200);
        let arrived = at + rtt / 2;
        if wait > 0 {
            self.send(arrived, SERVER, ACK, 0);
        }
        self.respond(arrived + wait, response)
    }

    /// A response of the server from `at` on; gives when the client has acknowledged the last of it.
    pub(crate) fn respond(&mut self, at: u64, response: usize) -> u64 {
        const SEGMENT: usize = 1_400;
        let (rtt, mut now, mut left, mut flight) = (self.setup.rtt, at, response, 10);
        let mut acknowledged = at;
        while left > 0 {
            let mut sent_at = now;
            for _ in 0..flight {
                let len = left.min(SEGMENT);
                if len > 0 {
                    self.send(sent_at, SERVER, ACK, len);
                    left -= len;
                    acknowledged = sent_at + rtt / 2 + 5;
                    self.send(acknowledged, CLIENT, ACK, 0);
                    sent_at += 12;
                }
            }
            flight *= 2;
            now += rtt.max(sent_at - now);
        }
        acknowledged
    }

    /// What was seen of another connection between the two is in the same capture.
    pub(crate) fn join(&mut self, other: Self) {
        self.seen.extend(other.seen);
    }

    /// The capture.
    pub(crate) fn capture(mut self) -> Vec<u8> {
        self.seen.sort_by_key(|(at, _)| *at);
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 101] {
            file.extend(word.to_le_bytes());
        }
        for (at, bytes) in &self.seen {
            let (len, kept) = (bytes.len() as u32, bytes.len().min(self.snaplen));
            for word in [1_700_000_000 + (at / 1_000_000) as u32, (at % 1_000_000) as u32, kept as u32, len] {
                file.extend(word.to_le_bytes());
            }
            file.extend(&bytes[..kept]);
        }
        file
    }

    fn packet(&mut self, at: u64, side: usize, sent: &Sent) -> Vec<u8> {
        let mut options = Vec::new();
        if sent.flags & SYN != 0 {
            let [high, low] = self.mss[side].to_be_bytes();
            options.extend([2, 4, high, low, 1, 1, 4, 2]);
            options.extend(self.scale.iter().flat_map(|&scale| [1, 3, 3, scale]));
        }
        if let Some((left, right)) = sent.sack {
            options.extend([1, 1, 5, 10]);
            options.extend([left, right].into_iter().flat_map(u32::to_be_bytes));
        }
        if self.setup.timestamps && sent.flags & Flags::RST == 0 {
            options.extend([1, 1, 8, 10]);
            let of = |side: usize, at: u64| (at / 1_000) as u32 + [7_000_000, 90_000_000][side];
            options.extend(of(side, at).to_be_bytes());
            let heard = self.heard_at.unwrap_or(at).saturating_sub(self.setup.rtt / 2);
            let echo = if sent.flags & ACK != 0 { of(1 - side, heard) } else { 0 };
            options.extend(echo.to_be_bytes());
        }
        let mut tcp = Vec::new();
        tcp.extend(self.ports[side].to_be_bytes());
        tcp.extend(self.ports[1 - side].to_be_bytes());
        tcp.extend(self.isn[side].wrapping_add(sent.seq).to_be_bytes());
        let ack = if sent.flags & ACK != 0 { self.isn[1 - side].wrapping_add(sent.ack) } else { 0 };
        tcp.extend(ack.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, sent.flags]);
        tcp.extend(sent.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        tcp.extend(&self.front);
        tcp.extend(std::iter::repeat_n(b'x', sent.len - self.front.len().min(sent.len)));
        let ttl = sent.ttl.unwrap_or(if side == self.setup.tap { 64 } else { 51 });
        self.ids[side] = self.ids[side].wrapping_add(1);
        let id = sent.id.unwrap_or(self.ids[side]);
        self.ip(side, 6, ttl, id, &tcp)
    }

    /// A packet of a side with this protocol, time to live and identification.
    fn ip(&self, side: usize, protocol: u8, ttl: u8, id: u16, payload: &[u8]) -> Vec<u8> {
        let mut ip = Vec::new();
        if self.setup.v6 {
            ip.extend([0x60, 0, 0, 0]);
            ip.extend((payload.len() as u16).to_be_bytes());
            ip.extend([protocol, ttl]);
            for end in [side, 1 - side] {
                ip.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 + end as u8]);
            }
        } else {
            ip.extend([0x45, 0]);
            ip.extend((20 + payload.len() as u16).to_be_bytes());
            ip.extend(id.to_be_bytes());
            ip.extend([0x40, 0, ttl, protocol, 0, 0]);
            for end in [side, 1 - side] {
                ip.extend([10, 9, 0, 1 + end as u8]);
            }
        }
        ip.extend(payload);
        ip
    }
}
