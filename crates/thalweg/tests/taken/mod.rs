//! A capture taken otherwise than the lab takes it: as other programs, hosts and places show the same packets.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;
use std::fs;
use std::io::BufWriter;
use std::path::Path;
use thalweg_units::Timestamp;
use thalweg_wire::pcapng::Writer;
use thalweg_wire::{Capture, Decoded, Flags, LinkType, Segment, decode};

/// Length of an Ethernet header, which the lab's packets begin with.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Packets that arrive within this long of each other are merged, in nanoseconds: a NIC that collects interrupts hands them over together.
const MERGED_NS: u64 = 60_000;
/// Most payload of a merged packet.
const MERGED_BYTES: u32 = 64_000;
/// The numbers of TCP options (RFC 9293 §3.1, RFC 7323 §3.2).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const TIMESTAMPS: u8 = 8;

/// An interface, and the ports that packets go from and to.
type Direction = (u32, u16, u16);

/// A packet of the capture.
#[derive(Clone)]
struct Frame {
    interface: u32,
    at_ns: u64,
    original_len: u32,
    bytes: Vec<u8>,
    segment: Option<Segment>,
}

impl Frame {
    fn is_syn(&self) -> bool {
        self.segment.is_some_and(|segment| segment.tcp.flags.has(Flags::SYN))
    }

    /// The TCP header's options.
    fn options(&self) -> std::ops::Range<usize> {
        let tcp = ETHERNET + IPV4;
        tcp + 20..tcp + usize::from(self.bytes[tcp + 12] >> 4) * 4
    }

    /// Where the option of this number is.
    fn option(&self, wanted: u8) -> Option<usize> {
        let std::ops::Range { start: mut at, end } = self.options();
        while at + 1 < end && self.bytes[at] != END {
            if self.bytes[at] == NO_OPERATION {
                at += 1;
                continue;
            }
            if self.bytes[at] == wanted {
                return Some(at);
            }
            at += usize::from(self.bytes[at + 1].max(2));
        }
        None
    }

    /// Whether `next`, of the same direction, goes on where this ends and says the same.
    fn goes_on(&self, next: &Self) -> bool {
        let (Some(one), Some(two)) = (self.segment, next.segment) else { return false };
        let push = self.bytes[ETHERNET + IPV4 + 13] & Flags::PSH != 0;
        !push
            && one.payload_len > 0
            && two.payload_len > 0
            && !two.tcp.flags.has(Flags::FIN)
            && one.tcp.seq.get().wrapping_add(one.payload_len) == two.tcp.seq.get()
            && one.payload_len + two.payload_len <= MERGED_BYTES
            && self.bytes[self.options()] == next.bytes[next.options()]
    }
}

/// How a capture is taken: what it is called, and what that makes of the packets.
pub struct Way {
    /// A few words.
    pub name: &'static str,
    /// Of the few verdicts that every test run judges, how many are wrong then at the sender and at the receiver, at most: what the capture does not
    /// hold any more, or what is not found without it yet.
    pub wrong: [usize; 2],
    rewrite: fn(Vec<Frame>) -> Vec<Frame>,
}

const fn way(name: &'static str, wrong: [usize; 2], rewrite: fn(Vec<Frame>) -> Vec<Frame>) -> Way {
    Way { name, wrong, rewrite }
}

/// Every way.
pub const WAYS: [Way; 22] = [
    way("as it is", [0, 0], |frames| frames),
    way("times in microseconds", [0, 0], |frames| each(frames, |frame| frame.at_ns -= frame.at_ns % 1000)),
    way("headers alone", [0, 0], |frames| each(frames, |frame| frame.bytes.truncate(frame.options().end))),
    way("IPv6", [0, 0], |frames| each(frames, as_ipv6)),
    way("no identification", [0, 0], |frames| each(frames, without_identification)),
    way("no timestamps", [0, 0], |frames| each(frames, without_timestamps)),
    way("no timestamps, no identification", [0, 1], |frames| {
        each(each(frames, without_timestamps), without_identification)
    }),
    way("timestamps of 100 Hz", [0, 0], |frames| each(frames, |frame| scaled_timestamps(frame, |ticks| ticks / 10))),
    way("no SYNs", [0, 2], |frames| only(frames, |frame| !frame.is_syn())),
    way("from the middle on", [3, 6], from_the_middle_on),
    way("the first half", [3, 3], |mut frames| {
        frames.truncate(frames.len() / 2);
        frames
    }),
    way("merged by the NIC", [0, 0], merged),
    way("every packet twice", [0, 0], |frames| {
        let copy = |frame: Frame| [frame.clone(), Frame { at_ns: frame.at_ns + 3000, ..frame }];
        in_order(frames.into_iter().flat_map(copy).collect())
    }),
    way("jumbo frames at the client", [0, 0], |frames| each(frames, larger_mss)),
    way("a clock that is 100 ppm fast", [0, 0], |frames| {
        let first = frames.first().map_or(0, |frame| frame.at_ns);
        each(frames, |frame| frame.at_ns += (frame.at_ns - first) / 10_000)
    }),
    way("one packet of 200 missing", [0, 0], |frames| each_nth_missing(frames, 200)),
    way("one packet of 20 missing", [1, 1], |frames| each_nth_missing(frames, 20)),
    way("times in milliseconds", [0, 0], |frames| each(frames, |frame| frame.at_ns -= frame.at_ns % 1_000_000)),
    way("interrupts each 100 µs", [0, 0], |frames| {
        each(frames, |frame| frame.at_ns = frame.at_ns.next_multiple_of(100_000))
    }),
    way("cut after 68 bytes", [2, 0], |frames| each(frames, |frame| frame.bytes.truncate(68))),
    way("timestamps of 1 MHz", [0, 0], |frames| {
        each(frames, |frame| scaled_timestamps(frame, |ticks| ticks.wrapping_mul(1000)))
    }),
    way("a clock that is set by 50 ms", [0, 0], |frames| {
        let (first, last) = frames.first().zip(frames.last()).map_or((0, 0), |(a, b)| (a.at_ns, b.at_ns));
        each(frames, |frame| {
            if frame.at_ns > (first + last) / 2 {
                frame.at_ns += 50_000_000;
            }
        })
    }),
];

/// Writes the capture `from` as `way` takes it.
pub fn write(from: &Path, way: &Way, to: &Path) {
    let file = fs::File::open(from).expect("a capture");
    let mut capture = Capture::new(std::io::BufReader::new(file)).expect("a capture");
    let mut frames = Vec::new();
    while let Some(packet) = capture.next().expect("a packet") {
        let segment = match decode(packet.link, packet.bytes, packet.original_len) {
            Decoded::Tcp(segment) => Some(segment),
            _ => None,
        };
        let (interface, original_len) = (packet.interface, packet.original_len);
        frames.push(Frame {
            interface,
            at_ns: packet.at.as_nanos(),
            original_len,
            bytes: packet.bytes.to_vec(),
            segment,
        });
    }
    let out = BufWriter::new(fs::File::create(to).expect("a file"));
    let mut writer = Writer::new(out, "taken otherwise").expect("written");
    for interface in capture.interfaces() {
        writer.add_interface(interface.name.as_deref().unwrap_or("?"), LinkType::ETHERNET, 0).expect("written");
    }
    for frame in (way.rewrite)(frames) {
        let at = Timestamp::from_nanos(frame.at_ns);
        writer.packet(frame.interface, at, frame.original_len, &frame.bytes, None).expect("written");
    }
}

fn each(mut frames: Vec<Frame>, mut change: impl FnMut(&mut Frame)) -> Vec<Frame> {
    frames.iter_mut().filter(|frame| frame.segment.is_some()).for_each(&mut change);
    frames
}

fn only(mut frames: Vec<Frame>, keep: impl FnMut(&Frame) -> bool) -> Vec<Frame> {
    frames.retain(keep);
    frames
}

fn each_nth_missing(frames: Vec<Frame>, n: u32) -> Vec<Frame> {
    let mut number = 0;
    only(frames, |_| {
        number += 1;
        number % n != 0
    })
}

fn in_order(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.sort_by_key(|frame| frame.at_ns);
    frames
}

/// The same segment in IPv6, from addresses that end in those it had.
fn as_ipv6(frame: &mut Frame) {
    let old = frame.bytes[ETHERNET..ETHERNET + IPV4].to_vec();
    let payload = u16::from_be_bytes([old[2], old[3]]) - IPV4 as u16;
    let mut header = vec![0; IPV6];
    header[0] = 0x60;
    header[1] = old[1] << 4;
    header[4..6].copy_from_slice(&payload.to_be_bytes());
    header[6] = old[9];
    header[7] = old[8];
    for (at, address) in [(8, &old[12..16]), (24, &old[16..20])] {
        header[at] = 0xfd;
        header[at + 12..at + 16].copy_from_slice(address);
    }
    frame.bytes.splice(ETHERNET..ETHERNET + IPV4, header);
    frame.bytes[12..14].copy_from_slice(&[0x86, 0xdd]);
    frame.original_len += (IPV6 - IPV4) as u32;
}

fn without_identification(frame: &mut Frame) {
    frame.bytes[ETHERNET + 4..ETHERNET + 6].fill(0);
}

fn without_timestamps(frame: &mut Frame) {
    if let Some(at) = frame.option(TIMESTAMPS) {
        frame.bytes[at..at + 10].fill(NO_OPERATION);
    }
}

/// Both clocks of timestamps count otherwise than in milliseconds.
fn scaled_timestamps(frame: &mut Frame, scale: fn(u32) -> u32) {
    let Some(at) = frame.option(TIMESTAMPS) else { return };
    for value in [at + 2, at + 6] {
        let ticks: [u8; 4] = frame.bytes[value..value + 4].try_into().expect("four bytes");
        let scaled = scale(u32::from_be_bytes(ticks));
        frame.bytes[value..value + 4].copy_from_slice(&scaled.to_be_bytes());
    }
}

/// A client whose network has frames of 9,000 bytes.
fn larger_mss(frame: &mut Frame) {
    let segment = frame.segment.expect("a segment");
    if segment.tcp.flags.has(Flags::SYN) && !segment.tcp.flags.has(Flags::ACK) {
        let at = frame.options().start;
        assert_eq!(frame.bytes[at..at + 2], [2, 4], "Linux' first option is the MSS");
        frame.bytes[at + 2..at + 4].copy_from_slice(&8960u16.to_be_bytes());
    }
}

/// Without the first 200 packets of each interface, or the first fifth of few.
fn from_the_middle_on(frames: Vec<Frame>) -> Vec<Frame> {
    let count = |interface| frames.iter().filter(|frame| frame.interface == interface).count();
    let mut left: Vec<usize> = [0, 1].map(|interface| (count(interface) / 5).min(200)).to_vec();
    only(frames, |frame| {
        let left = &mut left[frame.interface as usize];
        let keep = *left == 0;
        *left = left.saturating_sub(1);
        keep
    })
}

/// Segments that follow each other at once are one packet, seen when the last of them came (`dev_gro_receive`). Its receiver acknowledges none of them
/// before.
fn merged(frames: Vec<Frame>) -> Vec<Frame> {
    let mut done: Vec<Frame> = Vec::new();
    // The last packet of each, and when its last segment came.
    let mut open: BTreeMap<Direction, (usize, u64)> = BTreeMap::new();
    for frame in frames {
        let Some(segment) = frame.segment else {
            done.push(frame);
            continue;
        };
        let direction = (frame.interface, segment.tcp.source_port, segment.tcp.destination_port);
        if let Some((at, seen_ns)) = open.get_mut(&direction)
            && frame.at_ns - *seen_ns < MERGED_NS
            && done[*at].goes_on(&frame)
        {
            let whole = &mut done[*at];
            whole.original_len += segment.payload_len;
            let length = (whole.original_len as usize - ETHERNET) as u16;
            whole.bytes[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&length.to_be_bytes());
            whole.bytes[ETHERNET + IPV4 + 13] |= segment.tcp.flags.0;
            whole.segment.as_mut().expect("a segment").payload_len += segment.payload_len;
            (whole.at_ns, *seen_ns) = (frame.at_ns, frame.at_ns);
            continue;
        }
        open.insert(direction, (done.len(), frame.at_ns));
        done.push(frame);
    }
    without_early_acks(in_order(done))
}

/// Without acknowledgements of what did not come yet.
fn without_early_acks(frames: Vec<Frame>) -> Vec<Frame> {
    let mut ends: BTreeMap<Direction, u32> = BTreeMap::new();
    only(frames, |frame| {
        let Some(segment) = frame.segment else { return true };
        let (from, to, on) = (segment.tcp.source_port, segment.tcp.destination_port, frame.interface);
        if segment.payload_len > 0 {
            ends.insert((on, from, to), segment.tcp.seq.get().wrapping_add(segment.payload_len));
            return true;
        }
        ends.get(&(on, to, from)).is_none_or(|end| segment.tcp.ack.get().wrapping_sub(*end) as i32 <= 0)
    })
}
