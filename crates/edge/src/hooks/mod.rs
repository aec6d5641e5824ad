//! Webhooks: an application decides who may publish and play, and is notified of what ended. Threads of their own make the calls, so
//! that no other thread waits for the network.

mod cache;
mod call;
mod queue;

use crate::hub::{Cell, Signal};
use crate::log::Log;
use cache::Cache;
pub use call::check;
use call::{Caller, Failure};
use queue::Queue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thalweg_model::{LogLevel, WebhooksConfig};

/// What an application is asked or notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// May this be published?
    Publish,
    /// May this be played?
    Play,
    /// A viewer has gone.
    Stop,
    /// A stream is no longer published.
    Unpublish,
}

impl Event {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Publish, Self::Play, Self::Stop, Self::Unpublish];

    /// Its name, as in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Publish => "on_publish",
            Self::Play => "on_play",
            Self::Stop => "on_stop",
            Self::Unpublish => "on_unpublish",
        }
    }

    fn url(self, config: &WebhooksConfig) -> Option<&str> {
        match self {
            Self::Publish => config.on_publish.as_deref(),
            Self::Play => config.on_play.as_deref(),
            Self::Stop => config.on_stop.as_deref(),
            Self::Unpublish => config.on_unpublish.as_deref(),
        }
    }
}

/// The outcome of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered with yes, or taken.
    Accepted,
    /// It was answered with no.
    Denied,
    /// No answer came.
    Failed,
    /// It found no room.
    Dropped,
    /// The answer was known.
    Cached,
}

impl Outcome {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Accepted, Self::Denied, Self::Failed, Self::Dropped, Self::Cached];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::Cached => "cached",
        }
    }
}

/// Who waits for an answer: a thread's connection, and the number that it is asked under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiter {
    /// The thread, by the number of its signal.
    pub thread: usize,
    /// The connection.
    pub token: u64,
    /// Distinguishes the questions of one connection.
    pub number: u64,
}

/// What follows from a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The application allows it, no application is asked, or none answers and `webhooks.fail` is `open`.
    Allowed,
    /// The application answers with no.
    Denied,
    /// No application answers, and `webhooks.fail` is `closed`.
    Unanswered,
}

impl Verdict {
    const fn of(is_yes: bool) -> Self {
        if is_yes { Self::Allowed } else { Self::Denied }
    }

    const fn without_answer(config: &WebhooksConfig) -> Self {
        if config.fail_open { Self::Allowed } else { Self::Unanswered }
    }
}

/// An answer that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Whose.
    pub waiter: Waiter,
    /// What follows.
    pub verdict: Verdict,
}

#[derive(Debug)]
struct Question {
    event: Event,
    body: Vec<u8>,
    waiter: Waiter,
    /// What the answer is remembered under.
    known_as: Option<cache::Key>,
    until: Instant,
}

#[derive(Debug)]
struct Notice {
    event: Event,
    body: Vec<u8>,
}

/// The webhooks of a server.
#[derive(Debug)]
pub struct Hooks {
    config: Cell<(WebhooksConfig, Caller)>,
    questions: Queue<Question>,
    notices: Queue<Notice>,
    cache: Mutex<Cache>,
    answers: Vec<Mutex<Vec<Answer>>>,
    signals: Vec<Arc<Signal>>,
    threads: AtomicUsize,
    numbers: AtomicU64,
    /// Distinguishes the events of this process from those of others.
    process: u64,
    counts: [[AtomicU64; 5]; 4],
    log: Arc<Log>,
}

impl Hooks {
    /// Those of a configuration. The threads of `signals` are woken when an answer is there. `process` is a random number: with it, ids
    /// of events are not those of another process.
    pub fn new(config: WebhooksConfig, signals: Vec<Arc<Signal>>, log: Arc<Log>, process: u64) -> Self {
        let caller = Caller::new(&config);
        Self {
            config: Cell::new((config, caller)),
            questions: Queue::default(),
            notices: Queue::default(),
            cache: Mutex::default(),
            answers: signals.iter().map(|_| Mutex::default()).collect(),
            signals,
            threads: AtomicUsize::new(0),
            numbers: AtomicU64::new(0),
            process,
            counts: Default::default(),
            log,
        }
    }

    /// Starts the threads that the configuration asks for and that are not there yet.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn start(self: &Arc<Self>) -> std::io::Result<()> {
        let (_, config) = self.config.get();
        let config = &config.0;
        if Event::ALL.iter().all(|event| event.url(config).is_none()) {
            return Ok(());
        }
        while self.threads.load(Ordering::Relaxed) < config.connections as usize {
            let (asks, tells) = (Arc::clone(self), Arc::clone(self));
            std::thread::Builder::new().name("hook-ask".to_owned()).spawn(move || asks.answer_all())?;
            std::thread::Builder::new().name("hook-tell".to_owned()).spawn(move || tells.tell_all())?;
            self.threads.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Goes on with another configuration. Answers that are remembered are forgotten.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn configure(self: &Arc<Self>, config: WebhooksConfig) -> std::io::Result<()> {
        if self.config.get().1.0 == config {
            return Ok(());
        }
        let caller = Caller::new(&config);
        self.config.set((config, caller));
        *self.cache() = Cache::default();
        self.start()
    }

    /// Whether an event has a hook.
    pub fn has(&self, event: Event) -> bool {
        event.url(&self.config.get().1.0).is_some()
    }

    /// The longest that an answer may take.
    pub fn patience(&self) -> Duration {
        self.config.get().1.0.patience().to_duration()
    }

    /// Asks, unless the answer is known: `fields` is what is asked, and `known_by` what makes the same question. `None`: the answer
    /// comes to the waiter.
    pub fn ask(&self, event: Event, waiter: Waiter, mut fields: Value, known_by: Option<&str>) -> Option<Verdict> {
        let (_, held) = self.config.get();
        let config = &held.0;
        if event.url(config).is_none() {
            return Some(Verdict::Allowed);
        }
        let known_as = known_by.filter(|_| config.cache.as_micros() > 0).map(|by| Sha256::digest(by).into());
        if let Some(is_yes) = known_as.and_then(|key| self.cache().get(&key, Instant::now())) {
            self.count(event, Outcome::Cached);
            return Some(Verdict::of(is_yes));
        }
        let until = Instant::now() + config.patience().to_duration();
        self.complete(event, &mut fields);
        let question = Question { event, body: fields.to_string().into_bytes(), waiter, known_as, until };
        if self.questions.push(question, config.queue as usize) {
            return None;
        }
        self.count(event, Outcome::Dropped);
        self.log.event(LogLevel::Warn, "webhook-dropped", || vec![("event", event.name().into())]);
        Some(Verdict::without_answer(config))
    }

    /// Queues a notice.
    pub fn tell(&self, event: Event, mut fields: Value) {
        let (_, held) = self.config.get();
        let config = &held.0;
        if event.url(config).is_none() {
            return;
        }
        self.complete(event, &mut fields);
        if !self.notices.push(Notice { event, body: fields.to_string().into_bytes() }, config.queue as usize) {
            self.count(event, Outcome::Dropped);
            self.log.event(LogLevel::Warn, "webhook-dropped", || vec![("event", event.name().into())]);
        }
    }

    fn complete(&self, event: Event, fields: &mut Value) {
        fields["event"] = json!(event.name());
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        fields["id"] = json!(format!("{:016x}-{number}", self.process));
    }

    /// The answers that came for a thread.
    pub fn answers(&self, thread: usize) -> Vec<Answer> {
        let held = self.answers.get(thread).map(|answers| answers.lock().unwrap_or_else(PoisonError::into_inner));
        held.map(|mut answers| std::mem::take(&mut *answers)).unwrap_or_default()
    }

    /// How often an event had this outcome.
    pub fn counted(&self, event: Event, outcome: Outcome) -> u64 {
        self.counts[event as usize][outcome as usize].load(Ordering::Relaxed)
    }

    /// The server ends: pending notices have this time, and are dropped then.
    pub fn close(&self, within: Duration) {
        self.questions.close();
        let left = self.notices.drain(within);
        if left > 0 {
            self.log.event(LogLevel::Warn, "webhook-dropped", || vec![("notices", left.into())]);
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, event: Event, outcome: Outcome) {
        self.counts[event as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn answer_all(&self) {
        while let Some(question) = self.questions.pop() {
            let (_, held) = self.config.get();
            let config = &held.0;
            let Question { event, body, waiter, known_as, until } = question;
            let verdict = match self.attempts(event, &body, Some(until)) {
                Ok(is_yes) => {
                    if let Some(key) = known_as {
                        let until = Instant::now() + config.cache.to_duration();
                        self.cache().put(key, is_yes, until, config.cache_size as usize);
                    }
                    Verdict::of(is_yes)
                }
                Err(()) => Verdict::without_answer(config),
            };
            if let (Some(answers), Some(signal)) = (self.answers.get(waiter.thread), self.signals.get(waiter.thread)) {
                answers.lock().unwrap_or_else(PoisonError::into_inner).push(Answer { waiter, verdict });
                signal.raise();
            }
            self.questions.done();
        }
    }

    fn tell_all(&self) {
        while let Some(Notice { event, body }) = self.notices.pop() {
            let _ = self.attempts(event, &body, None);
            self.notices.done();
        }
    }

    /// Calls until somebody answers, as often as is configured; whether the answer was yes.
    fn attempts(&self, event: Event, body: &[u8], until: Option<Instant>) -> Result<bool, ()> {
        let (_, held) = self.config.get();
        let (config, caller) = &*held;
        // Its URL was removed since.
        let Some(url) = event.url(config) else { return Err(()) };
        let mut number = 0;
        let why = loop {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break "it waited for its turn for too long".to_owned();
            }
            match caller.post(url, event, body, config.timeout.to_duration().min(left)) {
                Ok(()) => {
                    self.count(event, Outcome::Accepted);
                    return Ok(true);
                }
                Err(Failure::No(status)) if until.is_some() => {
                    self.count(event, Outcome::Denied);
                    self.log.event(LogLevel::Debug, "webhook-denied", || {
                        vec![("event", event.name().into()), ("status", status.into())]
                    });
                    return Ok(false);
                }
                // A notice that was rejected will be rejected again.
                Err(Failure::No(status)) => break format!("status {status}"),
                Err(Failure::None(why)) if number >= config.retries => break why,
                Err(Failure::None(_)) => {}
            }
            let pause = config.pause(number).to_duration();
            std::thread::sleep(pause.min(left));
            number += 1;
        };
        self.count(event, Outcome::Failed);
        self.log.event(LogLevel::Warn, "webhook-failed", || {
            vec![
                ("event", event.name().into()),
                ("host", call::host(url).into()),
                ("attempts", (number + 1).into()),
                ("why", why.into()),
            ]
        });
        Err(())
    }
}

/// A secret's SHA-256 in hexadecimal: an application can compare it without learning the secret.
pub fn digest(secret: &str) -> String {
    Sha256::digest(secret).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_events_have_the_same_id() {
        let hooks = |process| Hooks::new(WebhooksConfig::default(), Vec::new(), Arc::new(Log::silent()), process);
        let (one, other) = (hooks(1), hooks(2));
        let id = |hooks: &Hooks| {
            let mut fields = json!({});
            hooks.complete(Event::Stop, &mut fields);
            fields["id"].as_str().expect("a text").to_owned()
        };
        let ids = [id(&one), id(&one), id(&other), id(&other)];
        assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), 4, "{ids:?}");
    }
}
