//! What a file that is no capture looks like, so that its owner knows what to do.

/// A few words on what bytes that begin like `head` are.
pub(crate) fn looks_like(head: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 14] = [
        (b"\x1f\x8b", "gzip-compressed data"),
        (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
        (b"\xfd7zXZ\0", "xz-compressed data"),
        (b"BZh", "bzip2-compressed data"),
        (b"\x04\x22\x4d\x18", "lz4-compressed data"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x7fELF", "a program (ELF)"),
        (b"snoop\0\0\0", "a Solaris snoop capture"),
        (b"RTSS", "a Microsoft Network Monitor 1 capture"),
        (b"GMBU", "a Microsoft Network Monitor 2 capture"),
        (b"TRSNIFF data", "a Sniffer capture"),
        (b"\0\0\0\x1d\0\0\0\x01", "an iptrace capture"),
        (b"%PDF", "a PDF document"),
        (b"{", "JSON"),
    ];
    if head.is_empty() {
        return "an empty file";
    }
    if let Some((_, name)) = KNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
        return name;
    }
    let is_text = head.iter().all(|&b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    if is_text { "text" } else { "data of no known capture format" }
}
