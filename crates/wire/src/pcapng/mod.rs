//! pcapng files, in and out.
//!
//! Source: IETF draft-ietf-opsawg-pcapng.

mod annotate;
pub(crate) mod read;
mod sections;
mod write;

pub use annotate::{AnnotateError, Annotated, annotate};
pub use write::Writer;

/// Section Header Block.
pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
/// Interface Description Block.
pub(crate) const INTERFACE: u32 = 1;
/// Packet Block, obsolete, still in old files.
pub(crate) const OLD_PACKET: u32 = 2;
/// Simple Packet Block.
pub(crate) const SIMPLE_PACKET: u32 = 3;
/// Interface Statistics Block.
pub(crate) const STATISTICS: u32 = 5;
/// Enhanced Packet Block.
pub(crate) const ENHANCED_PACKET: u32 = 6;
/// Byte-order magic of a section header.
pub(crate) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// End of a block's options.
pub(crate) const OPT_END: u16 = 0;
/// A comment, in UTF-8.
pub(crate) const OPT_COMMENT: u16 = 1;
