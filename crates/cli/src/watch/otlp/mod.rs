//! Metrics by OTLP/HTTP: a thread that posts the latest ones, and what became of that.

mod settings;

pub(crate) use settings::Settings;

use crate::failure::Failure;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// The most of an answer that is read.
const ANSWER_MAX: u64 = 64 << 10;
/// How long the last export may take once the command is over.
const LAST_EXPORT: Duration = Duration::from_secs(2);

/// Exports the latest metrics; what a collector does not take in time is replaced by what comes after it, which holds it too: sums are
/// cumulative.
pub(crate) struct OtlpExporter {
    desk: Arc<Desk>,
    settings: Arc<Settings>,
}

/// What the command and the thread share.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What is to be exported next.
    waiting: Option<Vec<u8>>,
    is_exporting: bool,
    /// Why the last export failed.
    trouble: Option<String>,
    /// It was said.
    is_said: bool,
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OtlpExporter {
    /// Begins; nothing is sent until there are metrics.
    pub(crate) fn start(settings: Settings) -> Result<Self, Failure> {
        let (settings, desk) = (Arc::new(settings), Arc::new(Desk::default()));
        let agent = agent(&settings);
        let (theirs, target) = (Arc::clone(&desk), Arc::clone(&settings));
        let run = move || work(&theirs, &target, &agent);
        std::thread::Builder::new().name("otlp".to_owned()).spawn(run).map_err(Failure::host)?;
        Ok(Self { desk, settings })
    }

    /// Where metrics go, without what may be secret.
    pub(crate) fn target(&self) -> String {
        self.settings.shown()
    }

    /// Whose the metrics are.
    pub(crate) fn resource(&self) -> &[(String, String)] {
        &self.settings.resource
    }

    /// Exports these metrics next.
    pub(crate) fn publish(&self, body: Vec<u8>) {
        self.desk.state().waiting = Some(body);
        self.desk.changed.notify_all();
    }

    /// Why metrics do not arrive, while they do not.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.desk.state().trouble.clone()
    }

    /// The same, but only once until they arrive again.
    pub(crate) fn news(&self) -> Option<String> {
        let mut state = self.desk.state();
        if state.is_said || state.trouble.is_none() {
            return None;
        }
        state.is_said = true;
        state.trouble.clone()
    }

    /// Waits, but not for long, until what was published is exported.
    pub(crate) fn finish(&self) {
        let is_busy = |state: &mut State| state.waiting.is_some() || state.is_exporting;
        let _ = self.desk.changed.wait_timeout_while(self.desk.state(), LAST_EXPORT, is_busy);
    }
}

fn agent(settings: &Settings) -> Agent {
    let roots =
        if settings.url.scheme() == "https" { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
    let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    let config = Agent::config_builder().tls_config(tls).timeout_global(Some(settings.timeout));
    // Headers with keys go where they are meant to, and nowhere else.
    let config = config.proxy(None).max_redirects(0).max_redirects_will_error(false).http_status_as_error(false);
    config.user_agent(concat!("thalweg/", env!("CARGO_PKG_VERSION"))).build().new_agent()
}

fn work(desk: &Desk, settings: &Settings, agent: &Agent) {
    loop {
        let body = {
            let mut state = desk.state();
            loop {
                if let Some(body) = state.waiting.take() {
                    state.is_exporting = true;
                    break body;
                }
                state = desk.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        };
        let exported = export(settings, agent, &body);
        let mut state = desk.state();
        state.is_exporting = false;
        state.trouble = exported.err().map(|why| format!("{} does not take the metrics: {why}", settings.shown()));
        state.is_said &= state.trouble.is_some();
        desk.changed.notify_all();
    }
}

/// Posts a body. Source: OTLP specification, "OTLP/HTTP Response".
fn export(settings: &Settings, agent: &Agent, body: &[u8]) -> Result<(), String> {
    let mut request = agent.post(settings.url.as_str()).header("Content-Type", "application/json");
    for (name, value) in &settings.headers {
        request = request.header(name, value);
    }
    let mut response = request.send(body).map_err(|error| match error {
        // It would repeat the URL, which may hold a password.
        ureq::Error::BadUri(_) => "its URL cannot be used".to_owned(),
        error => error.to_string(),
    })?;
    let status = response.status().as_u16();
    let answer = response.body_mut().with_config().limit(ANSWER_MAX).read_to_vec().unwrap_or_default();
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
    if !(200..300).contains(&status) {
        let said = said(&answer["message"]);
        return Err(format!("status {status}{said}"));
    }
    let rejected = &answer["partialSuccess"]["rejectedDataPoints"];
    // An integer of 64 bits, which may be a text.
    let count = rejected.as_str().map_or_else(|| rejected.as_u64(), |text| text.parse().ok()).unwrap_or(0);
    if count > 0 {
        return Err(format!("it rejects {count} of its points{}", said(&answer["partialSuccess"]["errorMessage"])));
    }
    Ok(())
}

/// What a collector says about it, as the end of a sentence of ours.
fn said(message: &serde_json::Value) -> String {
    const LONGEST: usize = 200;
    let text: String = message.as_str().unwrap_or_default().chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    if text.is_empty() { text } else { format!(" ({text})") }
}
