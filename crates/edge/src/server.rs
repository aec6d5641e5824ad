//! A server: its listeners, threads, and how it ends.

use crate::api::Api;
use crate::clerk::Clerk;
use crate::hub::{Hub, Signal, WORKERS_MAX};
use crate::ingest::Intake;
use crate::journal::Journal;
use crate::tls::{Certificates, TlsError};
use crate::worker::{Crowd, Listener, Load, Shared, Worker};
use host::HostError;
use host::poll::Waker;
use host::socket::{KeepAlive, Tcp};
use model::{FrontConfig, ServeConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use thiserror::Error;
use units::Span;

/// Connections that wait to be taken, for each listener.
const BACKLOG: u16 = 4_096;

/// Why a server cannot be.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The kernel refuses a listener or a descriptor.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The journal's file.
    #[error("cannot open the journal {path}: {source}")]
    Journal {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A thread has ended before its time.
    #[error("the thread {0} has failed")]
    Failed(String),
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    certificates: Option<Arc<Certificates>>,
    threads: Vec<JoinHandle<Result<(), HostError>>>,
    /// Where it really listens, by what for: a configured port 0 is another one here.
    pub addresses: Addresses,
    /// What the kernel refused, one sentence each; the server runs without it.
    pub refused: Vec<String>,
}

/// Where a server listens.
#[derive(Debug, Clone, Default)]
pub struct Addresses {
    /// Publishers.
    pub rtmp: Vec<SocketAddr>,
    /// Viewers.
    pub http: Vec<SocketAddr>,
    /// Viewers, over TLS.
    pub https: Vec<SocketAddr>,
    /// Operators.
    pub api: Vec<SocketAddr>,
}

impl Server {
    /// Listens, and starts the threads.
    ///
    /// # Errors
    /// What the server cannot be without, by name.
    pub fn start(config: ServeConfig) -> Result<Self, ServeError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let workers = config.workers.map_or(cores, usize::from).clamp(1, WORKERS_MAX - 1);
        let mut refused = Vec::new();
        let tls = config.https.as_ref().map(|tls| Certificates::load(&tls.certificate, &tls.key));
        let certificates = tls.transpose()?.map(Arc::new);
        let mut fronts: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut addresses = Addresses::default();
        for front in &mut fronts {
            let first = addresses.http.is_empty();
            let at = if first { config.http.listen.clone() } else { addresses.http.clone() };
            addresses.http = listen(&config.http, &at, None, front, first.then_some(&mut refused))?;
            if let Some(https) = &config.https {
                let at = if first { https.front.listen.clone() } else { addresses.https.clone() };
                let certificates = certificates.as_ref();
                addresses.https = listen(&https.front, &at, certificates, front, first.then_some(&mut refused))?;
            }
        }
        let rtmp = config.rtmp.iter().map(|&at| Tcp::listen_shared(at, BACKLOG)).collect::<Result<Vec<_>, _>>()?;
        addresses.rtmp = rtmp.iter().map(Tcp::local).collect::<Result<_, _>>()?;
        let mut operators = Vec::new();
        let plain = FrontConfig { listen: config.api.listen.clone(), ..FrontConfig::default() };
        addresses.api = listen(&plain, &plain.listen, None, &mut operators, None)?;

        let journal = config.journal.as_ref().map(|journal| {
            let path = journal.path.display().to_string();
            Journal::open(journal).map_err(|source| ServeError::Journal { path, source })
        });
        let journal = journal.transpose()?;
        let signal = || Ok::<_, HostError>(Arc::new(Signal { waker: Waker::new()?, pending: AtomicBool::new(false) }));
        let signals = (0..=workers).map(|_| signal()).collect::<Result<Vec<_>, _>>()?;
        let crowd = Crowd::new(config.limits.connections, config.limits.per_address);
        let api = Api::new(config.api.token.clone());
        let shared = Arc::new(Shared {
            hub: Arc::new(Hub::new(config, signals)),
            clerk: Arc::new(Clerk::new(workers, journal)),
            crowd: Arc::new(crowd),
            is_draining: AtomicBool::new(false),
            loads: (0..=workers).map(|_| Load::default()).collect(),
        });
        let mut server = Self { shared: Arc::clone(&shared), certificates, threads: Vec::new(), addresses, refused };
        for (number, front) in fronts.into_iter().enumerate() {
            let worker = Worker::new(Arc::clone(&shared), number, front, None)?;
            server.thread(format!("worker-{number}"), move || worker.run())?;
        }
        let operators = Worker::new(Arc::clone(&shared), workers, operators, Some(api))?;
        server.thread("api".to_owned(), move || operators.run())?;
        let intake = Intake::new(shared, rtmp)?;
        server.thread("ingest".to_owned(), move || intake.run())?;
        Ok(server)
    }

    fn thread(
        &mut self,
        name: String,
        run: impl FnOnce() -> Result<(), HostError> + Send + 'static,
    ) -> Result<(), ServeError> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(run).map_err(ServeError::Thread)?);
        Ok(())
    }

    /// Reads the certificates again.
    ///
    /// # Errors
    /// Why they cannot be used; the former ones stay.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.certificates.as_ref().map_or(Ok(()), |certificates| certificates.reload())
    }

    /// Whether a thread has ended though nobody asked for it.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Takes nothing new, lets responses on their way end, and returns when all is over.
    ///
    /// # Errors
    /// The first thread that failed.
    pub fn drain(self) -> Result<(), ServeError> {
        self.shared.is_draining.store(true, Ordering::Release);
        self.shared.hub.signals.iter().for_each(|signal| signal.raise());
        let mut failed = None;
        for thread in self.threads {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed = Some(ServeError::Host(error)),
                Err(_) => failed = Some(ServeError::Failed(name)),
            }
        }
        self.shared.clerk.close();
        failed.map_or(Ok(()), Err)
    }
}

/// Opens listeners; where they are. What the kernel refuses of their options goes into `refused`.
fn listen(
    front: &FrontConfig,
    at: &[SocketAddr],
    tls: Option<&Arc<Certificates>>,
    into: &mut Vec<Listener>,
    mut refused: Option<&mut Vec<String>>,
) -> Result<Vec<SocketAddr>, ServeError> {
    let keep_alive = KeepAlive { idle: Span::from_millis(30_000), interval: Span::from_millis(10_000), count: 3 };
    let mut addresses = Vec::new();
    for &address in at {
        let socket = Tcp::listen_shared(address, BACKLOG)?;
        let errors = socket.apply_each(&front.tcp, Some(keep_alive));
        addresses.push(socket.local()?);
        if let Some(refused) = &mut refused {
            refused.extend(errors.iter().map(|error| format!("{address}: {error}")));
        }
        into.push(Listener { socket, tls: tls.cloned(), proxy_protocol: front.proxy_protocol });
    }
    Ok(addresses)
}
