//! What can be reported of a connection whose analysis panicked: its headers, in a capture of their own.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use thalweg_infer::{CaptureDiagnosis, FailedFlow, copy_headers};

/// Connections of a capture that are saved: one report of a defect needs one.
const SAVED: usize = 3;

/// Saves the failed connections of the capture at `path` to `folder`, and notes where.
pub(super) fn save(found: &mut CaptureDiagnosis, path: &Path, folder: &Path) {
    let failed: Vec<FailedFlow> = found.failed.iter().take(SAVED).copied().collect();
    for flow in failed {
        let note = match copy(path, &flow, folder) {
            Ok(saved) => format!(
                "the headers of the connection that begins with packet {}, without its addresses and payload, are in {}: report this defect of thalweg with that file",
                flow.first_packet,
                saved.display()
            ),
            Err(error) => format!(
                "the headers of the connection that begins with packet {} could not be saved for a report: {error}",
                flow.first_packet
            ),
        };
        found.report.notes.push(note);
    }
}

fn copy(path: &Path, flow: &FailedFlow, folder: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let to = folder.join(format!("thalweg-defect-{}-{number}.pcapng", std::process::id()));
    // Anybody may write to the folder: a link that is there already is not followed.
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to)?;
    let from = File::open(path)?;
    copy_headers(from, &path.display().to_string(), flow, BufWriter::new(out))?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged;
    use std::fs;
    use std::net::SocketAddr;
    use thalweg_model::Flow;

    /// The copy of a connection gets the verdict of the original, and has none of its addresses.
    #[test]
    fn a_copy_has_the_verdict_and_no_address() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("whole.pcapng");
        fs::write(&path, merged::capture()).expect("a capture");
        let mut whole = thalweg_infer::diagnose_file(&path).expect("a diagnosis");
        let flow = whole.report.flows.iter().find(|flow| flow.goodput_bps > 0.0).expect("a flow with a rate").clone();
        let ends = [&flow.client, &flow.server].map(|end| {
            let end: SocketAddr = end.parse().expect("an address");
            (end.ip(), end.port())
        });
        whole.failed = vec![FailedFlow { first_packet: flow.first_packet, interface: 0, ends }];
        save(&mut whole, &path, folder.path());
        let note = whole.report.notes.last().expect("a note").clone();
        let saved = fs::read_dir(folder.path()).expect("the folder").flatten().map(|entry| entry.path());
        let saved = saved.into_iter().find(|file| *file != path).expect("a copy");
        assert!(note.contains(&saved.display().to_string()), "{note}");
        let again = thalweg_infer::diagnose_file(&saved).expect("a diagnosis of the copy");
        assert_eq!(again.report.flows.len(), 1);
        let copied = &again.report.flows[0];
        let told = |flow: &Flow| (flow.verdict.cause.code(), flow.verdict.share, flow.verdict.gain, flow.goodput_bps);
        assert_eq!(told(copied), told(&flow));
        assert_eq!(copied.client, format!("192.0.2.1:{}", ends[0].1));
    }
}
