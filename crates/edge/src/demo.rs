//! A publisher of our own: the built-in stream, sent to a server as any encoder sends, so that a first run needs no other program.

use crate::http::percent_encode;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use thalweg_media::demo::Demo;
use thalweg_media::flv::{self, FlvReader};
use thalweg_media::rtmp::{Publisher, PublisherEvent};

/// A server that does not answer for so long does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How far ahead of its time media is sent: a picture.
const AHEAD_MS: u64 = 40;
/// The random bytes of a handshake only distinguish its two senders; they are not secret.
const RANDOM: [u8; 1536] = [0x5a; 1536];

/// Publishes the built-in stream as `app`/`name`, at its pace, until `stop`; `key` is the publish key where one is asked for.
///
/// # Errors
/// When the server refuses it, or the connection breaks.
pub fn publish(to: SocketAddr, app: &str, name: &str, key: Option<&str>, stop: &AtomicBool) -> io::Result<()> {
    let mut socket = TcpStream::connect_timeout(&to, PATIENCE)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let name = key.map_or_else(|| name.to_owned(), |key| format!("{name}?key={}", percent_encode(key)));
    let mut session = Publisher::new(RANDOM, app, &name);
    let mut buffer = [0; 4096];
    'asking: loop {
        flush(&mut socket, &mut session)?;
        let got = socket.read(&mut buffer)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut input = &buffer[..got];
        while let Some(event) = session.handle(&mut input).map_err(io::Error::other)? {
            match event {
                PublisherEvent::Published => break 'asking,
                PublisherEvent::Refused { description, .. } => return Err(io::Error::other(description)),
                _ => {}
            }
        }
    }
    let (mut demo, mut reader, mut bytes) = (Demo::new(), FlvReader::new(1 << 20), Vec::new());
    flv::write_header(true, true, &mut bytes);
    demo.configs().iter().for_each(|config| flv::write_config(config, 0, &mut bytes));
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let due = Duration::from_millis(demo.due_ms().saturating_sub(AHEAD_MS));
        sleep(due.saturating_sub(begun.elapsed()));
        if let Some(unit) = demo.next() {
            flv::write_unit(&unit, None, &mut bytes);
        }
        let mut input = &bytes[..];
        while let Some(tag) = reader.read(&mut input).map_err(io::Error::other)? {
            session.tag(&tag);
        }
        bytes.clear();
        flush(&mut socket, &mut session)?;
        listen(&mut socket, &mut session)?;
    }
    session.end();
    flush(&mut socket, &mut session)
}

/// Takes what the server said meanwhile, acknowledgements and pings.
fn listen(socket: &mut TcpStream, session: &mut Publisher) -> io::Result<()> {
    let mut buffer = [0; 4096];
    socket.set_nonblocking(true)?;
    let got = socket.read(&mut buffer);
    socket.set_nonblocking(false)?;
    let got = match got {
        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
        got => got?,
    };
    let mut input = &buffer[..got];
    while let Some(event) = session.handle(&mut input).map_err(io::Error::other)? {
        if let PublisherEvent::Refused { description, .. } = event {
            return Err(io::Error::other(description));
        }
    }
    Ok(())
}

fn flush(socket: &mut TcpStream, session: &mut Publisher) -> io::Result<()> {
    socket.write_all(session.output())?;
    session.sent(session.output().len());
    Ok(())
}
