//! Reading integers out of byte slices without indexing past their end.

/// The two bytes at `at`, big-endian; `None` past the end.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// The four bytes at `at`, big-endian; `None` past the end.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

/// The two bytes at `at`, little-endian; `None` past the end.
pub(crate) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

/// The four bytes at `at`, little-endian; `None` past the end.
pub(crate) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

/// The byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// The two bytes at `at`; zero past the end, so callers check lengths first.
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let Some(&chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { return 0 };
        match self {
            Self::Little => u16::from_le_bytes(chunk),
            Self::Big => u16::from_be_bytes(chunk),
        }
    }

    /// The four bytes at `at`; zero past the end, so callers check lengths first.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let Some(&chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { return 0 };
        match self {
            Self::Little => u32::from_le_bytes(chunk),
            Self::Big => u32::from_be_bytes(chunk),
        }
    }

    /// The eight bytes at `at`; zero past the end, so callers check lengths first.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let Some(&chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) else { return 0 };
        match self {
            Self::Little => u64::from_le_bytes(chunk),
            Self::Big => u64::from_be_bytes(chunk),
        }
    }
}
