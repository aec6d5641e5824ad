//! Which files are captures, and what to do about one that cannot be read.

use crate::failure::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thalweg_infer::Error;

/// What the names of capture files end in; also with a number behind, as tcpdump's -C and log rotation have them, or packed.
const NAMES: [&str; 4] = [".pcap", ".pcapng", ".cap", ".ntar"];
/// What packed ones end in besides.
const PACKED: [&str; 3] = [".gz", ".xz", ".zst"];

/// The captures that `paths` name: a folder stands for the captures in it and below, in order of their names.
///
/// A folder that cannot be read stands for itself, so that reading it as a capture says why, and the others are read.
#[must_use]
pub fn capture_files(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        if path.is_dir() { folder(path, &mut all) } else { all.push(path.clone()) }
    }
    all
}

fn folder(path: &Path, all: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let Ok(mut entries) = entries else { return all.push(path.to_owned()) };
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().to_lowercase());
        // A link to a folder above would never end.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if path.is_dir() {
            if !is_link {
                folder(&path, all);
            }
        } else if is_capture(&name) {
            all.push(path);
        }
    }
}

/// Whether a file in a folder is taken for a capture, by its name in small letters: `a.pcap`, `a.pcap3`, `a.pcap.3`, packed or not. What
/// lies beside one and is named after it, `a.pcap.json`, is none.
fn is_capture(name: &str) -> bool {
    let whole = PACKED.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let plain = whole.trim_end_matches(|c: char| c.is_ascii_digit());
    let plain = if plain.len() < whole.len() { plain.strip_suffix('.').unwrap_or(plain) } else { plain };
    NAMES.iter().any(|end| plain.ends_with(end))
}

/// That a capture could not be read, with what to do about it.
pub(super) fn unreadable(error: Error) -> Failure {
    let hint = hint(&error);
    Failure::user(error).hint(hint)
}

fn hint(error: &Error) -> &'static str {
    match error {
        Error::Open { cause, .. } | Error::Read { cause, .. } => match cause.kind() {
            io::ErrorKind::NotFound => "is the name right? A folder stands for all captures in it",
            io::ErrorKind::PermissionDenied => {
                "what root captured is often root's alone: sudo chown it, or run this with sudo"
            }
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                "it is damaged or was cut while it was packed: copy it again, or unpack what is left of it first"
            }
            _ => "it could not be read to its end: copy it again, or look after the disk that it is on",
        },
        Error::NotACapture { .. } => {
            "captures are pcap or pcapng files, as tcpdump -w and Wireshark write them, as they are or packed with gzip, xz or zstd"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folders_captures_are_told_by_their_names() {
        for name in ["a.pcap", "a.pcapng", "a.cap", "a.pcap3", "a.pcap.3", "a.pcap12.gz", "a.pcap.1.xz", "a.pcapng.zst"]
        {
            assert!(is_capture(name), "{name}");
        }
        for name in
            ["a.pcap.json", "notes.pcap.txt", "a.pcap.partial", "a.pcapng.gz.md5", "pcap", "a.capture", "a.gz", "3"]
        {
            assert!(!is_capture(name), "{name}");
        }
    }

    #[test]
    fn a_hint_fits_its_cause() {
        let open = |kind: io::ErrorKind| hint(&Error::Open { path: "x".to_owned(), cause: kind.into() });
        assert!(open(io::ErrorKind::NotFound).contains("name"));
        assert!(open(io::ErrorKind::PermissionDenied).contains("sudo"));
        let other = hint(&Error::NotACapture { path: "x".to_owned(), looks_like: "text".to_owned() });
        assert!(other.contains("pcap or pcapng"));
    }
}
