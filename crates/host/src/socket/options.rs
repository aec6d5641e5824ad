//! Options of TCP sockets.
//!
//! Source: tcp(7), socket(7); linux/tcp.h; net/ipv4/tcp.c.

use super::Tcp;
use crate::error::{HostError, check};
use crate::refusal::explain;
use crate::sysctl;
use crate::tcp_info::TcpInfo;
use std::collections::BTreeMap;
use std::io;
use thalweg_model::{Setting, SocketSettings};
use thalweg_units::{Rate, Span};

const TCP_RTO_MIN_US: libc::c_int = 45;
const TCP_DELACK_MAX_US: libc::c_int = 46;
/// Of `tcpi_options`: data in the SYN was acknowledged. Source: linux/tcp.h, `TCPI_OPT_SYN_DATA`.
const OPTION_SYN_DATA: u64 = 32;
/// Bit of `net.ipv4.tcp_fastopen` that listeners need.
const FASTOPEN_LISTENERS: u32 = 2;

impl Tcp {
    /// Sets the options that are given.
    ///
    /// # Errors
    /// The option the kernel refused, by name.
    pub fn apply(&self, settings: &SocketSettings) -> Result<(), HostError> {
        let clamp = |bytes: u64| i32::try_from(bytes).unwrap_or(i32::MAX);
        if let Some(name) = &settings.congestion {
            // SAFETY: the text outlives the call and its length is given.
            let result = unsafe {
                let (text, len) = (name.as_ptr().cast(), name.len() as u32);
                libc::setsockopt(self.raw(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, text, len)
            };
            check(result, || format!("set TCP_CONGESTION to '{name}'"))
                .map_err(|error| explain(error, &Setting::Socket("congestion".to_owned()), name))?;
        }
        let force = settings.force == Some(true);
        if let Some(bytes) = settings.sndbuf {
            let option = if force { libc::SO_SNDBUFFORCE } else { libc::SO_SNDBUF };
            self.set_number(libc::SOL_SOCKET, option, clamp(bytes.get()), "SO_SNDBUF")?;
        }
        if let Some(bytes) = settings.rcvbuf {
            let option = if force { libc::SO_RCVBUFFORCE } else { libc::SO_RCVBUF };
            self.set_number(libc::SOL_SOCKET, option, clamp(bytes.get()), "SO_RCVBUF")?;
        }
        if let Some(bytes) = settings.notsent_lowat {
            self.set_number(libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, clamp(bytes.get()), "TCP_NOTSENT_LOWAT")?;
        }
        if let Some(flag) = settings.nodelay {
            self.set_number(libc::IPPROTO_TCP, libc::TCP_NODELAY, i32::from(flag), "TCP_NODELAY")?;
        }
        if let Some(rate) = settings.max_pacing_rate {
            let bytes = rate.bytes_per_second();
            // SAFETY: the number outlives the call and its length is given.
            let result = unsafe {
                let (value, len) = ((&raw const bytes).cast(), size_of::<u64>() as u32);
                libc::setsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, len)
            };
            check(result, || format!("set SO_MAX_PACING_RATE to {rate}"))?;
        }
        if let Some(bytes) = settings.window_clamp {
            self.set_number(libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp(bytes.get()), "TCP_WINDOW_CLAMP")?;
        }
        for (key, value, option, name) in [
            ("rto_min", settings.rto_min, TCP_RTO_MIN_US, "TCP_RTO_MIN_US"),
            ("delack_max", settings.delack_max, TCP_DELACK_MAX_US, "TCP_DELACK_MAX_US"),
        ] {
            if let Some(span) = value {
                self.set_number(libc::IPPROTO_TCP, option, clamp(span.as_micros()), name)
                    .map_err(|error| explain(error, &Setting::Socket(key.to_owned()), ""))?;
            }
        }
        if let Some(span) = settings.user_timeout {
            let millis = clamp(span.as_micros().div_ceil(1000));
            self.set_number(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis, "TCP_USER_TIMEOUT")?;
        }
        self.apply_quickack()
    }

    /// Sets `TCP_QUICKACK`, where it is given.
    pub(super) fn apply_quickack(&self) -> Result<(), HostError> {
        match self.quickack {
            Some(flag) => self.set_number(libc::IPPROTO_TCP, libc::TCP_QUICKACK, i32::from(flag), "TCP_QUICKACK"),
            None => Ok(()),
        }
    }

    pub(super) fn fast_open_listener(&self, settings: &SocketSettings) -> Result<(), HostError> {
        let Some(queue) = settings.fastopen else { return Ok(()) };
        let name = "net.ipv4.tcp_fastopen";
        let bits = sysctl::read(name)?;
        if queue > 0 && bits.parse::<u32>().unwrap_or(0) & FASTOPEN_LISTENERS == 0 {
            let why = format!("a listener needs 2 in {name}, which is {bits}; 3 is for both ends");
            let source = io::Error::new(io::ErrorKind::Unsupported, why);
            return Err(HostError { act: format!("set TCP_FASTOPEN to {queue}"), source });
        }
        let queue = i32::try_from(queue).unwrap_or(i32::MAX);
        self.set_number(libc::IPPROTO_TCP, libc::TCP_FASTOPEN, queue, "TCP_FASTOPEN")
    }

    pub(super) fn fast_open_client(&self, settings: &SocketSettings) -> Result<(), HostError> {
        let Some(queue) = settings.fastopen.filter(|queue| *queue > 0) else { return Ok(()) };
        self.set_number(libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1, "TCP_FASTOPEN_CONNECT")
            .map_err(|error| explain(error, &Setting::Socket("fastopen".to_owned()), &queue.to_string()))
    }

    /// The options as the kernel reports them, by their scenario names; what this kernel does not have is left out.
    ///
    /// `fastopen` is the queue of a listener; of a connection, whether the SYN carried data and the other end took it.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn read_back(&self) -> Result<BTreeMap<String, String>, HostError> {
        let mut name = [0u8; 16];
        let mut len = name.len() as libc::socklen_t;
        // SAFETY: the buffer outlives the call and its length is given.
        let result = unsafe {
            libc::getsockopt(self.raw(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_mut_ptr().cast(), &mut len)
        };
        check(result, || "read TCP_CONGESTION".to_owned())?;
        let name = String::from_utf8_lossy(&name[..len as usize]).trim_end_matches('\0').to_owned();
        let mut found = BTreeMap::from([("congestion".to_owned(), name)]);
        for (key, level, option) in [
            ("sndbuf", libc::SOL_SOCKET, libc::SO_SNDBUF),
            ("rcvbuf", libc::SOL_SOCKET, libc::SO_RCVBUF),
            ("nodelay", libc::IPPROTO_TCP, libc::TCP_NODELAY),
            ("notsent_lowat", libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
            ("window_clamp", libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP),
            ("quickack", libc::IPPROTO_TCP, libc::TCP_QUICKACK),
        ] {
            found.insert(key.to_owned(), (self.number(level, option, key)? as u32).to_string());
        }
        let millis = self.number(libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, "user_timeout")?;
        found.insert("user_timeout".to_owned(), Span::from_millis(millis as u64).to_string());
        for (key, option) in [("rto_min", TCP_RTO_MIN_US), ("delack_max", TCP_DELACK_MAX_US)] {
            match self.number(libc::IPPROTO_TCP, option, key) {
                Ok(micros) => drop(found.insert(key.to_owned(), Span::from_micros(micros as u64).to_string())),
                Err(error) if error.source.raw_os_error() == Some(libc::ENOPROTOOPT) => {}
                Err(error) => return Err(error),
            }
        }
        let fastopen = if self.number(libc::SOL_SOCKET, libc::SO_ACCEPTCONN, "SO_ACCEPTCONN")? != 0 {
            self.number(libc::IPPROTO_TCP, libc::TCP_FASTOPEN, "fastopen")?.to_string()
        } else {
            (TcpInfo::of(self)?.get("tcpi_options") & OPTION_SYN_DATA != 0).to_string()
        };
        found.insert("fastopen".to_owned(), fastopen);
        if let Some(rate) = self.max_pacing_rate()? {
            found.insert("max_pacing_rate".to_owned(), rate.to_string());
        }
        Ok(found)
    }

    /// `SO_MAX_PACING_RATE`; `None` where it is unlimited.
    fn max_pacing_rate(&self) -> Result<Option<Rate>, HostError> {
        let mut bytes = 0u64;
        let mut len = size_of::<u64>() as libc::socklen_t;
        // SAFETY: the number outlives the call and its length is given.
        let result = unsafe {
            let value = (&raw mut bytes).cast();
            libc::getsockopt(self.raw(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, &mut len)
        };
        check(result, || "read SO_MAX_PACING_RATE".to_owned())?;
        Ok((bytes != u64::MAX).then(|| Rate::from_bits_per_second(bytes.saturating_mul(8))))
    }
}
