//! What the program's end of a path sends and receives, written to a file as it happens.

use crate::site::spawn;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};
use thalweg_host::HostError;
use thalweg_host::tun::VNET_HEADER_LEN;
use thalweg_units::Timestamp;
use thalweg_wire::LinkType;
use thalweg_wire::pcapng::Writer;

/// Bytes that wait to be written; packets beyond them are left out of the file and counted.
const WAITING_MAX_BYTES: usize = 64 << 20;
const INTERFACE: &str = "path0";

/// When it was seen, and its bytes with the vnet header.
type Packet = (Timestamp, Vec<u8>);

/// A pcapng file that is being written by a thread of its own, so that a slow disk does not delay packets.
#[derive(Debug)]
pub(crate) struct Capture {
    tap: Tap,
    writer: JoinHandle<io::Result<()>>,
}

/// Where packets go in.
#[derive(Debug, Clone)]
pub(crate) struct Tap {
    /// Locked while a packet gets its time, so that the file is in order.
    packets: Arc<Mutex<Sender<Packet>>>,
    waiting_bytes: Arc<AtomicUsize>,
    left_out: Arc<AtomicU64>,
}

impl Capture {
    /// Begins the file.
    pub(crate) fn begin(file: File) -> Result<Self, HostError> {
        let (packets, queue) = channel();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let tap = Tap {
            packets: Arc::new(Mutex::new(packets)),
            waiting_bytes: Arc::clone(&waiting_bytes),
            left_out: Arc::default(),
        };
        let writer = spawn("capture", move || write(file, &queue, &waiting_bytes))?;
        Ok(Self { tap, writer })
    }

    /// A way to put packets in.
    pub(crate) fn tap(&self) -> Tap {
        self.tap.clone()
    }

    /// Ends the file once all taps are gone; returns how many packets were left out.
    pub(crate) fn finish(self) -> io::Result<u64> {
        let left_out = Arc::clone(&self.tap.left_out);
        drop(self.tap);
        self.writer.join().map_err(|_| io::Error::other("the writer failed"))??;
        Ok(left_out.load(Ordering::Relaxed))
    }
}

impl Tap {
    /// Adds the frame of these parts, which begin with a vnet header.
    pub(crate) fn packet(&self, parts: &[&[u8]]) {
        let bytes = parts.concat();
        let length = bytes.len();
        if self.waiting_bytes.fetch_add(length, Ordering::Relaxed) > WAITING_MAX_BYTES {
            self.waiting_bytes.fetch_sub(length, Ordering::Relaxed);
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
        // A writer that failed says so at the end.
        let _ = packets.send((now(), bytes));
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn write(file: File, queue: &Receiver<Packet>, waiting_bytes: &AtomicUsize) -> io::Result<()> {
    let mut out = Writer::new(BufWriter::new(file), "thalweg path")?;
    let interface = out.add_interface(INTERFACE, LinkType::RAW, 0)?;
    for (at, bytes) in queue {
        waiting_bytes.fetch_sub(bytes.len(), Ordering::Relaxed);
        let ip = bytes.get(VNET_HEADER_LEN..).unwrap_or_default();
        out.packet(interface, at, ip.len() as u32, ip, None)?;
    }
    let mut out = out.finish()?;
    io::Write::flush(&mut out)
}
