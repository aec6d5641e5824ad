//! `/proc/tcp_samples` of a lab kernel: `tcp_info` and memory of chosen sockets, taken by the kernel at a period.
//!
//! Source: kernel/lab.patch, net/ipv4/tcp_samples.c.

use crate::error::{HostError, wrap};
use crate::mem_info::MemInfo;
use crate::tcp_info::TcpInfo;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use thalweg_units::Span;

const PATH: &str = "/proc/tcp_samples";
const START: u64 = 0;
const ADD: u64 = 1;
const REMOVE: u64 = 2;
/// Bytes of a sample before its `tcp_info`: time, socket, nine words of memory and the sample's length.
const HEAD_BYTES: usize = 56;
const LENGTH_AT: usize = 52;
const READ_BYTES: usize = 1 << 19;

/// One socket at one time.
#[derive(Debug)]
pub struct Sample {
    /// When, on the monotonic clock.
    pub at: Span,
    /// The socket, by the number it was added with.
    pub id: u64,
    /// The connection.
    pub info: TcpInfo,
    /// What its queues hold.
    pub memory: MemInfo,
}

/// The sampler of this kernel, which one program at a time may use. It can be polled: it is readable before it is full, and a
/// full one waits.
#[derive(Debug)]
pub struct TcpSamples {
    file: File,
    buffer: Vec<u8>,
}

impl TcpSamples {
    /// Opens the sampler and begins: a sample of every socket at `first`, on the monotonic clock, and each `period` from there.
    ///
    /// # Errors
    /// When this is not a lab kernel of today's patch.
    pub fn start(first: Span, period: Span) -> Result<Self, HostError> {
        let opened = OpenOptions::new().read(true).write(true).open(PATH);
        let file = opened.map_err(|source| match source.kind() {
            ErrorKind::NotFound => HostError {
                act: "take samples".to_owned(),
                source: io::Error::other(format!(
                    "this lab kernel has no {PATH}; build a current one by: thalweg lab kernel build"
                )),
            },
            _ => HostError { act: format!("open {PATH}"), source },
        })?;
        let mut samples = Self { file, buffer: vec![0; READ_BYTES] };
        let order = [START, 0, first.as_nanos(), period.as_nanos(), 0];
        wrap(samples.order(order), || "start the sampler".to_owned())?;
        Ok(samples)
    }

    /// Adds a TCP socket. The samples of one time come in the order of their numbers.
    ///
    /// # Errors
    /// When the descriptor is no TCP socket.
    pub fn add(&mut self, id: u64, socket: impl AsFd) -> Result<(), HostError> {
        let fd = socket.as_fd().as_raw_fd();
        wrap(self.order([ADD, id, 0, 0, fd as u64]), || "add a socket to the sampler".to_owned())
    }

    /// Takes a last sample of a socket and removes it. `each` gets what had to be read to make room.
    ///
    /// # Errors
    /// When no socket has that number, and those of `each`.
    pub fn remove(&mut self, id: u64, each: impl FnMut(Sample) -> Result<(), HostError>) -> Result<(), HostError> {
        let act = || "remove a socket from the sampler".to_owned();
        match self.order([REMOVE, id, 0, 0, 0]) {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.read(each)?;
                wrap(self.order([REMOVE, id, 0, 0, 0]), act)
            }
            other => wrap(other, act),
        }
    }

    /// Hands every sample taken since the last call to `each`, oldest first.
    ///
    /// # Errors
    /// When the kernel refuses, and those of `each`.
    pub fn read(&mut self, mut each: impl FnMut(Sample) -> Result<(), HostError>) -> Result<(), HostError> {
        loop {
            let count = wrap(self.file.read(&mut self.buffer), || "read samples".to_owned())?;
            let mut rest = &self.buffer[..count];
            while rest.len() > HEAD_BYTES {
                let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|byte| rest[at + byte]));
                let len = u32::from_ne_bytes(std::array::from_fn(|byte| rest[LENGTH_AT + byte])) as usize;
                let Some((one, others)) = rest.split_at_checked(len.max(HEAD_BYTES)) else { break };
                each(Sample {
                    at: Span::from_nanos(word(0)),
                    id: word(8),
                    memory: MemInfo::from_bytes(&one[16..LENGTH_AT]),
                    info: TcpInfo::from_bytes(&one[HEAD_BYTES..]),
                })?;
                rest = others;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    fn order(&mut self, words: [u64; 5]) -> io::Result<()> {
        let mut bytes = [0; 40];
        for (to, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
            *to = word.to_ne_bytes();
        }
        self.file.write(&bytes).map(drop)
    }
}

impl AsFd for TcpSamples {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
