//! Descriptors handed to another process over a local socket.
//!
//! Source: `SCM_RIGHTS` in unix(7).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Descriptors that one message may carry here.
const MOST: usize = 4;

/// Sends one byte with `descriptors`, at most four of them.
///
/// # Errors
/// When the kernel refuses, or the other end is gone.
pub fn send(connection: &UnixStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("more than {MOST} descriptors")));
    }
    sendmsg(connection, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives the byte that [`send`] sent, and its descriptors. They are closed where this process starts a program.
///
/// # Errors
/// When the other end is gone, or sent something else.
pub fn receive(connection: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received = recvmsg(connection, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if received.bytes == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(descriptors) }
}

/// Whether the other end of a pipe, which nobody writes to, is closed.
pub fn is_closed(reader: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(reader, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_descriptor_arrives_as_one_of_the_same_file() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        send(&here, &[writer.as_fd()]).expect("sent");
        drop(writer);
        let received = receive(&there).expect("received");
        assert_eq!(received.len(), 1);
        File::from(received.into_iter().next().expect("one")).write_all(b"hello").expect("written");
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("read");
        assert_eq!(text, "hello");
        drop(here);
        assert!(receive(&there).is_err(), "the other end is gone");
        let (reader, writer) = io::pipe().expect("a pipe");
        let reader = reader.into();
        assert!(!is_closed(&reader));
        drop(writer);
        assert!(is_closed(&reader));
    }
}
