//! A server: its listeners, threads, and how it ends.

use crate::api::Api;
use crate::connection_limits::ConnectionLimits;
use crate::hooks::{self, Hooks};
use crate::hub::{Hub, Signal, WORKERS_MAX};
use crate::ingest::Intake;
use crate::journal::Journal;
use crate::log::Log;
use crate::reload::merge;
use crate::routes::Routes;
use crate::shared::{Load, Shared};
use crate::tls::{Certificates, TlsError};
use crate::viewer_registry::ViewerRegistry;
use crate::worker::{Listener, Worker};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use thalweg_host::HostError;
use thalweg_host::poll::Waker;
use thalweg_host::socket::Tcp;
use thalweg_host::table;
use thalweg_model::{FrontConfig, LogLevel, ServeConfig};
use thiserror::Error;

/// Descriptors of a worker's table that are not viewers': its epoll, listeners, wakers, its pipe, the standard streams.
const OTHER_DESCRIPTORS: u64 = 128;
/// Most workers: two of the signals are the API's and the publishers'.
const MOST_WORKERS: usize = WORKERS_MAX - 2;
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
    /// The number of workers.
    #[error("workers is {0}: there can be 1 to {MOST_WORKERS}")]
    Workers(u16),
    /// A URL, by its key.
    #[error("webhooks.{0} is no URL that can be called")]
    Webhook(&'static str),
    /// The kernel gives no random numbers.
    #[error("there are no random numbers")]
    Random,
    /// A thread has ended before its time.
    #[error("the thread {0} has failed")]
    Failed(String),
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    certificates: Option<Arc<Certificates>>,
    /// Raised for as long as it runs.
    routes: Option<Routes>,
    threads: Vec<JoinHandle<Result<(), HostError>>>,
    /// Each worker has a descriptor table of its own.
    has_own_tables: bool,
    /// Where it really listens, by what for: a configured port 0 is another one here.
    pub addresses: Addresses,
    /// What the kernel refused, one sentence each; the server runs without it.
    pub refused: Vec<String>,
    /// How many connections of viewers the limit of descriptors leaves room for, in all workers together.
    pub room: u64,
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
    /// Listens, and starts the threads; nothing is said of it.
    ///
    /// # Errors
    /// What the server cannot be without, by name.
    pub fn start(config: ServeConfig) -> Result<Self, ServeError> {
        Self::start_logged(config, Arc::new(Log::silent()))
    }

    /// Listens, and starts the threads.
    ///
    /// # Errors
    /// What the server cannot be without, by name.
    pub fn start_logged(config: ServeConfig, log: Arc<Log>) -> Result<Self, ServeError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_WORKERS);
        let workers = config.workers.map_or(cores, usize::from);
        check(&config)?;
        let descriptors = table::raise_limit()?;
        let tls = config.https.as_ref().map(|tls| Certificates::load(&tls.certificate, &tls.key));
        let certificates = tls.transpose()?.map(Arc::new);
        refuse_taken(&config)?;
        let mut addresses = Addresses::default();
        let rtmp = config.rtmp.iter().map(|&at| Tcp::listen_shared(at, BACKLOG)).collect::<Result<Vec<_>, _>>()?;
        addresses.rtmp = rtmp.iter().map(Tcp::local).collect::<Result<_, _>>()?;
        let mut operators = Vec::new();
        let plain = FrontConfig { listen: config.api.listen.clone(), ..FrontConfig::default() };
        addresses.api = listen(&plain, &plain.listen, None, &mut operators, None)?;

        let journal = config.journal.as_ref().map(|journal| {
            let path = journal.path.display().to_string();
            Journal::open(journal, Arc::clone(&log)).map_err(|source| ServeError::Journal { path, source })
        });
        let journal = journal.transpose()?;
        // All are made before the first worker has its own descriptor table: they are in every table under the same number.
        let signal = || Ok::<_, HostError>(Arc::new(Signal { waker: Waker::new()?, pending: AtomicBool::new(false) }));
        // The workers', the API's and the publishers'.
        let signals = (0..workers + 2).map(|_| signal()).collect::<Result<Vec<_>, _>>()?;
        let connections = ConnectionLimits::new(config.limits.connections, config.limits.per_address);
        let (mut salt, mut process) = ([0; 32], [0; 8]);
        let random = rustls::crypto::ring::default_provider().secure_random;
        random.fill(&mut salt).and_then(|()| random.fill(&mut process)).map_err(|_| ServeError::Random)?;
        let process = u64::from_ne_bytes(process);
        let hooks = Arc::new(Hooks::new(config.webhooks.clone(), signals.clone(), Arc::clone(&log), process));
        hooks.start().map_err(ServeError::Thread)?;
        let shared = Arc::new(Shared {
            hub: Arc::new(Hub::new(config, signals, salt)),
            viewers: Arc::new(ViewerRegistry::new(workers, journal, Arc::clone(&hooks), Arc::clone(&log))),
            connections: Arc::new(connections),
            hooks,
            log,
            is_draining: AtomicBool::new(false),
            loads: (0..=workers).map(|_| Load::default()).collect(),
        });
        let mut server = Self {
            shared: Arc::clone(&shared),
            certificates,
            routes: None,
            threads: Vec::new(),
            has_own_tables: true,
            addresses,
            refused: Vec::new(),
            room: 0,
        };
        let mut gates = Vec::new();
        for number in 0..workers {
            gates.push(server.worker(number)?);
        }
        let tables = if server.has_own_tables { workers as u64 } else { 1 };
        server.room = tables * descriptors.saturating_sub(OTHER_DESCRIPTORS);
        let own = Arc::clone(&shared);
        server.thread("api".to_owned(), move || Worker::new(own, workers, operators, Some(Api::default()))?.run())?;
        let intake = Intake::new(shared, rtmp)?;
        server.thread("ingest".to_owned(), move || intake.run())?;
        for gate in gates {
            // `has_failed` reports one that has ended.
            let _ = gate.send(());
        }
        server.raise();
        server.told();
        Ok(server)
    }

    /// Raises the routes' initial windows, where that is wanted and may be.
    fn raise(&mut self) {
        let (_, config) = self.shared.hub.config.get();
        let Some(config) = &config.routes else { return };
        match Routes::raise(config) {
            Ok(routes) => {
                let names = routes.names().join(", ");
                self.shared.log.event(LogLevel::Info, "routes-raised", || vec![("routes", names.into())]);
                self.routes = Some(routes);
            }
            Err(error) => self.refused.push(format!("tcp_route: {error}")),
        }
    }

    /// Says what there is.
    fn told(&self) {
        let log = &self.shared.log;
        let workers = self.shared.loads.len() - 1;
        log.event(LogLevel::Info, "start", || {
            vec![("version", env!("CARGO_PKG_VERSION").into()), ("workers", workers.into())]
        });
        let Addresses { rtmp, http, https, api } = &self.addresses;
        for (what, at) in [("rtmp", rtmp), ("http", http), ("https", https), ("api", api)] {
            for address in at {
                let fields = || vec![("what", what.into()), ("address", address.to_string().into())];
                log.event(LogLevel::Info, "listen", fields);
            }
        }
        let (_, config) = self.shared.hub.config.get();
        for why in cautions(&config) {
            log.event(LogLevel::Warn, "configuration", || vec![("why", why.into())]);
        }
        let (wanted, room) = (u64::from(config.limits.connections), self.room);
        if wanted > room {
            let why = "limits.connections is more than the limit of descriptors allows: raise it (ulimit -Hn), or have more workers";
            let fields = || vec![("configured", wanted.into()), ("possible", room.into()), ("why", why.into())];
            log.event(LogLevel::Warn, "connections-limited", fields);
        }
        for why in &self.refused {
            log.event(LogLevel::Warn, "option-refused", || vec![("why", why.as_str().into())]);
        }
    }

    /// Starts a worker with a descriptor table and listeners of its own. It serves once the returned gate opens; if the gate is dropped,
    /// because the server cannot start, it ends.
    fn worker(&mut self, number: usize) -> Result<SyncSender<()>, ServeError> {
        let (tell, told) = sync_channel(1);
        let (gate, opens) = sync_channel(1);
        let (shared, certificates) = (Arc::clone(&self.shared), self.certificates.clone());
        let at = self.addresses.clone();
        self.thread(format!("worker-{number}"), move || {
            let mut opened = Opened { addresses: at, ..Opened::default() };
            let made = opened.open(&shared, certificates.as_ref());
            let made = made.and_then(|listeners| Ok(Worker::new(shared, number, listeners, None)?));
            let (worker, result) = match made {
                Ok(worker) => (Some(worker), Ok(opened)),
                Err(error) => (None, Err(error)),
            };
            let _ = tell.send(result);
            match (worker, opens.recv()) {
                (Some(worker), Ok(())) => worker.run(),
                _ => Ok(()),
            }
        })?;
        let opened = told.recv().map_err(|_| ServeError::Failed(format!("worker-{number}")))??;
        self.addresses = opened.addresses;
        self.has_own_tables &= opened.has_own_table;
        if number == 0 {
            self.refused = opened.refused;
        }
        Ok(gate)
    }

    fn thread(
        &mut self,
        name: String,
        run: impl FnOnce() -> Result<(), HostError> + Send + 'static,
    ) -> Result<(), ServeError> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(run).map_err(ServeError::Thread)?);
        Ok(())
    }

    /// Goes on with another configuration, and reads the certificates again. What it returns needs a restart, by its keys, and stays
    /// as it is. Streams that are there keep how they are cut and cached; sessions that were let in go on.
    ///
    /// # Errors
    /// Why the certificates cannot be used; everything stays as it is.
    pub fn reload(&self, config: ServeConfig) -> Result<Vec<String>, ServeError> {
        let log = &self.shared.log;
        let (_, present) = self.shared.hub.config.get();
        let (next, restart) = merge(&present, config);
        if let Err(key) = hooks::check(&next.webhooks) {
            let error = ServeError::Webhook(key);
            self.reload_failed(&error.to_string());
            return Err(error);
        }
        if let (Some(certificates), Some(tls)) = (&self.certificates, &next.https)
            && let Err(error) = certificates.replace(&tls.certificate, &tls.key)
        {
            self.reload_failed(&error.to_string());
            return Err(error.into());
        }
        self.shared.connections.bound(next.limits.connections, next.limits.per_address);
        if let Err(error) = self.shared.hooks.configure(next.webhooks.clone()) {
            log.event(LogLevel::Error, "webhook-threads", || vec![("why", error.to_string().into())]);
        }
        // As the former configuration has it: the next one may not want to hear of it.
        let level = if restart.is_empty() { LogLevel::Info } else { LogLevel::Warn };
        log.event(level, "reload", || match restart.is_empty() {
            true => Vec::new(),
            false => vec![("needs_restart", restart.join(",").into())],
        });
        log.configure(next.log);
        self.shared.hub.config.set(next);
        self.shared.hub.signals.iter().for_each(|signal| signal.raise());
        Ok(restart)
    }

    /// Says that there is no other configuration to go on with.
    pub fn reload_failed(&self, why: &str) {
        self.shared.log.event(LogLevel::Error, "reload-failed", || {
            vec![("why", why.into()), ("now", "everything stays as it was".into())]
        });
    }

    /// Whether a thread has ended before the server was drained.
    pub fn has_failed(&self) -> bool {
        self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Takes nothing new, lets responses on their way end, and returns when all is over.
    ///
    /// # Errors
    /// The first thread that failed.
    pub fn drain(self) -> Result<(), ServeError> {
        self.shared.log.event(LogLevel::Info, "drain", Vec::new);
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
        self.shared.viewers.close(self.shared.hub.now_ms());
        self.shared.hooks.close(self.shared.hub.config.get().1.limits.drain.to_duration());
        match &failed {
            None => self.shared.log.event(LogLevel::Info, "end", Vec::new),
            Some(error) => self.shared.log.event(LogLevel::Error, "end", || vec![("why", error.to_string().into())]),
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Looks at what the configuration says, as far as that goes without opening anything.
///
/// # Errors
/// What a server cannot be started with.
pub fn check(config: &ServeConfig) -> Result<(), ServeError> {
    match config.workers {
        Some(workers) if !(1..=MOST_WORKERS).contains(&workers.into()) => Err(ServeError::Workers(workers)),
        _ => hooks::check(&config.webhooks).map_err(ServeError::Webhook),
    }
}

/// What works, but not as somebody may expect: a sentence each.
pub fn cautions(config: &ServeConfig) -> Vec<String> {
    // FFmpeg takes what is behind the last slash as the stream's name (`rtmp_open`, libavformat/rtmpproto.c), and an ampersand ends a
    // parameter.
    let key = config.auth.publish_key.as_deref().unwrap_or_default();
    let odd = [('/', "%2F"), ('&', "%26")].into_iter().filter(|&(odd, _)| key.contains(odd));
    odd.map(|(odd, escape)| {
        format!("auth.publish_key has a '{odd}': publishers have to write it as {escape} in the URL")
    })
    .collect()
}

/// What a worker opened before it began.
#[derive(Debug, Default)]
struct Opened {
    addresses: Addresses,
    has_own_table: bool,
    refused: Vec<String>,
}

impl Opened {
    /// Opens a worker's listeners in a descriptor table of its own, at the addresses of those before it.
    fn open(&mut self, shared: &Shared, certificates: Option<&Arc<Certificates>>) -> Result<Vec<Listener>, ServeError> {
        let wakers: Vec<_> = shared.hub.signals.iter().map(|signal| signal.waker.as_fd()).collect();
        let owned = table::own(&wakers);
        self.has_own_table = owned.is_ok();
        self.refused.extend(owned.err().map(|error| error.to_string()));
        let (_, config) = shared.hub.config.get();
        let mut listeners = Vec::new();
        let at = if self.addresses.http.is_empty() { &config.http.listen } else { &self.addresses.http };
        self.addresses.http = listen(&config.http, at, None, &mut listeners, Some(&mut self.refused))?;
        if let Some(https) = &config.https {
            let at = if self.addresses.https.is_empty() { &https.front.listen } else { &self.addresses.https };
            self.addresses.https = listen(&https.front, at, certificates, &mut listeners, Some(&mut self.refused))?;
        }
        Ok(listeners)
    }
}

/// Refuses addresses at which another program listens.
fn refuse_taken(config: &ServeConfig) -> Result<(), HostError> {
    let fronts = std::iter::once(&config.http).chain(config.https.iter().map(|https| &https.front));
    let listen = fronts.flat_map(|front| &front.listen).chain(&config.rtmp).chain(&config.api.listen);
    listen.copied().try_for_each(Tcp::refuse_taken)
}

/// Opens listeners; where they are. What the kernel refuses of their options goes into `refused`.
fn listen(
    front: &FrontConfig,
    at: &[SocketAddr],
    tls: Option<&Arc<Certificates>>,
    into: &mut Vec<Listener>,
    mut refused: Option<&mut Vec<String>>,
) -> Result<Vec<SocketAddr>, ServeError> {
    let mut addresses = Vec::new();
    for &address in at {
        let socket = Tcp::listen_shared(address, BACKLOG)?;
        let errors = socket.apply_each(&front.tcp, Some(front.keepalive));
        addresses.push(socket.local()?);
        if let Some(refused) = &mut refused {
            refused.extend(errors.iter().map(|error| format!("{address}: {error}")));
        }
        into.push(Listener { socket, tls: tls.cloned(), proxy_protocol: front.proxy_protocol });
    }
    Ok(addresses)
}
