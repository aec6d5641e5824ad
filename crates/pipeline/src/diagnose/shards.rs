//! One large capture, its connections divided among threads.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use thalweg_infer::{CaptureDecoder, CaptureDiagnosis, Error, Options, Shard, ShardResult, TcpPacket};
use thalweg_wire::Capture;

/// Packets handed over at a time: enough that waking a thread costs little of what they do.
const BATCH: usize = 4_096;
/// Batches on their way to a shard.
const AHEAD: usize = 2;

/// Diagnoses a capture with its connections divided among `shards` threads; this one reads and decodes.
///
/// The report is that of one thread, to the byte.
pub(super) fn divided(
    from: impl Read,
    name: &str,
    options: &Options,
    shards: usize,
) -> Result<CaptureDiagnosis, Error> {
    let mut capture = Capture::new(from).map_err(|error| Error::from_wire(error, name))?;
    let mut decoder = CaptureDecoder::new(options.filter.clone());
    let parts = thread::scope(|scope| {
        let (back, used) = mpsc::channel::<Vec<TcpPacket>>();
        // Its time tells how long what is not over was silent.
        let capture_end = Arc::new(AtomicU64::new(0));
        let mut threads = Vec::with_capacity(shards);
        let mut ends = Vec::with_capacity(shards);
        for _ in 0..shards {
            let (end, batches) = mpsc::sync_channel::<Vec<TcpPacket>>(AHEAD);
            let (back, mut shard) = (back.clone(), Shard::new(options.clone()));
            let capture_end = Arc::clone(&capture_end);
            ends.push((end, Vec::with_capacity(BATCH)));
            threads.push(scope.spawn(move || {
                for mut batch in batches {
                    batch.iter().for_each(|seen| shard.packet(seen));
                    batch.clear();
                    let _ = back.send(batch);
                }
                shard.finish(capture_end.load(Ordering::Acquire))
            }));
        }
        let mut hand_over = |seen: TcpPacket| {
            let (end, batch) = &mut ends[(seen.shard_hash() % shards as u64) as usize];
            batch.push(seen);
            if batch.len() == BATCH {
                let fresh = used.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
                // A thread that is gone panicked, and is asked for its part below.
                let _ = end.send(std::mem::replace(batch, fresh));
            }
        };
        loop {
            match capture.next() {
                Ok(Some(packet)) => decoder.packet(&packet, &mut hand_over),
                Ok(None) => break,
                Err(error) => return Err(Error::from_wire(error, name)),
            }
        }
        decoder.finish(&mut hand_over);
        capture_end.store(decoder.clock(), Ordering::Release);
        for (end, batch) in ends {
            let _ = end.send(batch);
        }
        let join = |thread: thread::ScopedJoinHandle<'_, ShardResult>| {
            thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
        };
        Ok(threads.into_iter().map(join).collect::<Vec<ShardResult>>())
    })?;
    Ok(thalweg_infer::merge(name, &capture, decoder, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merged;
    use thalweg_infer::{PlotSelection, Retain};

    /// A capture of many connections, divided among one to five threads, gives the report of one.
    #[test]
    fn divided_work_gives_the_same_report() {
        let bytes = merged::capture();
        for wanted in [Retain::All, Retain::Costliest(3)] {
            let options = Options { drawn: PlotSelection::Of(vec![1, 2, 3, 50]), filter: None, wanted };
            let whole =
                thalweg_infer::diagnose_reader_with(bytes.as_slice(), "merged", options.clone()).expect("a capture");
            assert!(whole.connections >= 200, "{} connections", whole.connections);
            let text = serde_json::to_string(&whole.report).expect("JSON");
            for shards in [1, 2, 5] {
                let found = divided(bytes.as_slice(), "merged", &options, shards).expect("a capture");
                assert!(serde_json::to_string(&found.report).expect("JSON") == text, "{shards} shards");
                assert!(found == whole, "{shards} shards");
            }
        }
    }
}
