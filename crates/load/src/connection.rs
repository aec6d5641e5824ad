//! A player's connection: plain or TLS, never waiting.

use crate::tls::failure;
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use thalweg_host::socket::Tcp;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    tcp: Tcp,
    tls: Option<Box<ClientConnection>>,
    connected: bool,
    /// What is still to be sent.
    output: Vec<u8>,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// So many bytes.
    Bytes(usize),
    /// Nothing more for now.
    Nothing,
    /// The end.
    End,
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp.as_fd()
    }
}

/// A socket as TLS wants it.
struct Raw<'a>(&'a Tcp);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.receive(into).map_err(|error| error.source)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes).map_err(|error| error.source)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn open(
        from: Option<IpAddr>,
        to: SocketAddr,
        tls: Option<ClientConnection>,
        rcvbuf: Option<usize>,
        fastopen: bool,
    ) -> io::Result<Self> {
        let tcp = Tcp::connect_from(from, to, rcvbuf, fastopen).map_err(|error| error.source)?;
        // A SYN that carries data leaves with the first write, which must not wait until there is a connection.
        Ok(Self { tcp, tls: tls.map(Box::new), connected: fastopen, output: Vec::new() })
    }

    /// Sends `request` as soon as that goes.
    pub(crate) fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.writer().write_all(request)?,
            None => self.output.extend_from_slice(request),
        }
        self.flush()
    }

    /// Sends what is to be sent, as far as the kernel takes it. Call it when the socket has become writable.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.connected {
            match self.tcp.is_connected() {
                Ok(true) => self.connected = true,
                Ok(false) => return Ok(()),
                Err(error) => return Err(error.source),
            }
        }
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                match tls.write_tls(&mut Raw(&self.tcp)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
            return Ok(());
        }
        while !self.output.is_empty() {
            match self.tcp.send(&self.output).map_err(|error| error.source)? {
                Some(sent) => drop(self.output.drain(..sent)),
                None => break,
            }
        }
        Ok(())
    }

    /// Reads what came.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        if !self.connected {
            return Ok(Got::Nothing);
        }
        let Some(tls) = &mut self.tls else {
            return Ok(match self.tcp.receive(into).map_err(|error| error.source)? {
                Some(0) => Got::End,
                Some(count) => Got::Bytes(count),
                None => Got::Nothing,
            });
        };
        loop {
            match tls.reader().read(into) {
                Ok(0) => return Ok(Got::End),
                Ok(count) => return Ok(Got::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Servers that close without saying so in TLS are many; what is cut shows in the answer.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Got::End),
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut Raw(&self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Got::Nothing),
                Err(error) => return Err(error),
            }
            tls.process_new_packets().map_err(|error| io::Error::other(failure(&error)))?;
            while tls.wants_write() {
                match tls.write_tls(&mut Raw(&self.tcp)) {
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
