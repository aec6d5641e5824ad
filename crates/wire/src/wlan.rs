//! IEEE 802.11 frames and the headers that monitors put before them.
//!
//! Source: IEEE 802.11-2020 §9.2, §9.3.2.2 (A-MSDU); radiotap.org.

use crate::bytes::{be32, le16, le32};
use crate::next_header::Next;
use crate::segment::Other;

/// What a radiotap header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Radio {
    pub(crate) len: usize,
    /// The 802.11 header is padded to a multiple of four bytes.
    pub(crate) padded: bool,
}

/// Reads a radiotap header; a frame that the radio knows to be damaged is malformed.
pub(crate) fn radiotap(bytes: &[u8]) -> Result<Radio, Other> {
    const TSFT: u32 = 1;
    const FLAGS: u32 = 2;
    const MORE: u32 = 1 << 31;
    const DATA_PAD: u8 = 0x20;
    const BAD_FCS: u8 = 0x40;
    let len = usize::from(le16(bytes, 2).ok_or(Other::Malformed)?);
    let header = bytes.get(..len).ok_or(Other::Malformed)?;
    let present = le32(header, 4).ok_or(Other::Malformed)?;
    let mut at = 8;
    let mut word = present;
    while word & MORE != 0 {
        word = le32(header, at).ok_or(Other::Malformed)?;
        at += 4;
    }
    if present & TSFT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & FLAGS != 0 { *header.get(at).ok_or(Other::Malformed)? } else { 0 };
    if flags & BAD_FCS != 0 {
        return Err(Other::Malformed);
    }
    Ok(Radio { len, padded: flags & DATA_PAD != 0 })
}

/// Length of a Prism or AVS header, which differ in the first word.
pub(crate) fn prism(bytes: &[u8]) -> Result<usize, Other> {
    const AVS: u32 = 0x8021_1000;
    if be32(bytes, 0).ok_or(Other::Malformed)? & 0xffff_f000 == AVS {
        return usize::try_from(be32(bytes, 4).ok_or(Other::Malformed)?).map_err(|_| Other::Malformed);
    }
    // In the byte order of the host that captured; a header is 144 bytes.
    let len = le32(bytes, 4).ok_or(Other::Malformed)?;
    let len = if len > 0xffff { len.swap_bytes() } else { len };
    usize::try_from(len).map_err(|_| Other::Malformed)
}

/// Steps over the header of a data frame.
pub(crate) fn data(bytes: &[u8], padded: bool) -> Result<(usize, Next), Other> {
    let control: &[u8; 2] = bytes.first_chunk().ok_or(Other::Malformed)?;
    let (is_data, is_qos, has_no_data) = (control[0] & 0x0c == 0x08, control[0] & 0x80 != 0, control[0] & 0x40 != 0);
    if control[0] & 0x03 != 0 {
        return Err(Other::Malformed);
    }
    if !is_data || has_no_data {
        return Err(Other::NotIp);
    }
    if control[1] & 0x40 != 0 {
        return Err(Other::Encrypted);
    }
    if le16(bytes, 22).ok_or(Other::Malformed)? & 0x000f != 0 {
        return Err(Other::FrameRest);
    }
    let mut at = 24;
    if control[1] & 0x03 == 0x03 {
        // From one access point to another: a fourth address.
        at += 6;
    }
    let mut is_aggregate = false;
    let mut may_be_mesh = false;
    if is_qos {
        is_aggregate = bytes.get(at).ok_or(Other::Malformed)? & 0x80 != 0;
        may_be_mesh = control[1] & 0x03 == 0x03 && bytes.get(at + 1).ok_or(Other::Malformed)? & 1 != 0;
        at += 2;
        if control[1] & 0x80 != 0 {
            // High-throughput control.
            at += 4;
        }
    }
    if padded {
        at = at.next_multiple_of(4);
    }
    if may_be_mesh && !is_aggregate {
        at += mesh(bytes.get(at..).unwrap_or_default());
    }
    Ok((at, if is_aggregate { Next::Subframes } else { Next::Llc }))
}

/// Length of the mesh control field at the start of a frame's body, 0 where there is none (IEEE 802.11-2020 §9.2.4.8.3).
///
/// The bit that announces it means something else outside of a mesh, so LLC has to be behind it, and not in its place.
fn mesh(body: &[u8]) -> usize {
    const SNAP: [u8; 3] = [0xaa, 0xaa, 0x03];
    let addresses = match body.first() {
        Some(0) => 0,
        Some(1) => 6,
        Some(2) => 12,
        _ => return 0,
    };
    let len = 6 + addresses;
    if body.get(len..).is_some_and(|rest| rest.starts_with(&SNAP)) { len } else { 0 }
}
