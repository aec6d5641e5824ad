//! Gives a capture of the lab addresses and a payload of its own, so that whether any of it is passed on can be told.

use std::fs;
use std::path::Path;

/// What is written over each address: of hardware, of the Internet protocol, and over all payload.
const HARDWARE: [[u8; 6]; 2] = [*b"\x5e\xc7\xe7\xa1\xb2\xc3", *b"\x5e\xc7\xe7\xd4\xe5\xf6"];
const ADDRESSES: [[u8; 4]; 2] = [[203, 0, 113, 77], [198, 51, 100, 88]];
const PAYLOAD: &[u8] = b"not-for-others-";
/// Of a packet block of pcapng: its head, before the packet. Source: draft-ietf-opsawg-pcapng, Enhanced Packet Block.
const HEAD: usize = 28;
const ENHANCED_PACKET: u32 = 6;

/// Writes over the addresses and the payload of a capture whose frames are Ethernet's.
pub fn disguise(path: &Path) {
    let mut file = fs::read(path).expect("a capture");
    let mut at = 0;
    while at + 12 <= file.len() {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        let (kind, length) = (word(at), word(at + 4) as usize);
        if kind == ENHANCED_PACKET {
            let captured = word(at + 20) as usize;
            frame(&mut file[at + HEAD..at + HEAD + captured]);
        }
        at += length.max(12);
    }
    fs::write(path, file).expect("written");
}

fn frame(frame: &mut [u8]) {
    if frame.len() < 54 || frame[12..14] != [8, 0] {
        return;
    }
    let from_client = frame[26..30] < frame[30..34];
    let (from, to) = if from_client { (0, 1) } else { (1, 0) };
    frame[..6].copy_from_slice(&HARDWARE[to]);
    frame[6..12].copy_from_slice(&HARDWARE[from]);
    frame[26..30].copy_from_slice(&ADDRESSES[from]);
    frame[30..34].copy_from_slice(&ADDRESSES[to]);
    let payload = (34 + usize::from(frame[46] >> 4) * 4).min(frame.len());
    frame[payload..].iter_mut().zip(PAYLOAD.iter().cycle()).for_each(|(byte, secret)| *byte = *secret);
}

/// What of a disguised capture is in `folder`, by file.
pub fn survivors(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in crate::common::files(folder) {
        let bytes = fs::read(folder.join(&file)).expect("a file");
        let mut look = |what: &str, secret: &[u8]| {
            if bytes.windows(secret.len()).any(|part| part.eq_ignore_ascii_case(secret)) {
                found.push(format!("{}: {what}", file.display()));
            }
        };
        for address in HARDWARE {
            look("hardware address", &address);
            look("hardware address", address.map(|byte| format!("{byte:02x}")).join(":").as_bytes());
        }
        for address in ADDRESSES {
            look("address", &address);
            look("address", address.map(|byte| byte.to_string()).join(".").as_bytes());
        }
        look("payload", &PAYLOAD[..8]);
    }
    found
}
