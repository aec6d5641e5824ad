//! Applications that decide who may publish and play, and that are notified of what ended.

use super::secret::{FetchSecret, Secret, secret};
use super::{at_least, set};
use crate::document::{DocumentError, Section};
use thalweg_units::Span;

/// Webhooks: an URL for each event, and how they are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhooksConfig {
    /// Asked whether somebody may publish.
    pub on_publish: Option<Secret>,
    /// Asked whether somebody may play.
    pub on_play: Option<Secret>,
    /// Notified of a viewer that has gone.
    pub on_stop: Option<Secret>,
    /// Notified that a stream is no longer published.
    pub on_unpublish: Option<Secret>,
    /// What bodies are signed with.
    pub secret: Option<Secret>,
    /// Time for one attempt.
    pub timeout: Span,
    /// Attempts after the first one.
    pub retries: u32,
    /// Time before the second attempt; twice as long before each one after it.
    pub backoff: Span,
    /// Without an answer, admit rather than refuse.
    pub fail_open: bool,
    /// How long an answer to `on_play` is good for the same viewer of the same stream.
    pub cache: Span,
    /// Answers that are kept at a time.
    pub cache_size: u32,
    /// Questions that wait at a time, and the same number of notices. A question that finds no room counts as unanswered; a notice is
    /// dropped.
    pub queue: u32,
    /// Questions that are asked at the same time, and as many notices.
    pub connections: u32,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            on_publish: None,
            on_play: None,
            on_stop: None,
            on_unpublish: None,
            secret: None,
            timeout: Span::from_millis(2_000),
            retries: 2,
            backoff: Span::from_millis(200),
            fail_open: false,
            cache: Span::from_millis(10_000),
            cache_size: 10_000,
            queue: 1_000,
            connections: 4,
        }
    }
}

impl WebhooksConfig {
    /// The longest that an answer may take: all attempts and what is between them.
    pub fn patience(&self) -> Span {
        let waits_us = (0..self.retries).map(|number| self.pause(number).as_micros()).sum::<u64>();
        Span::from_micros(self.timeout.as_micros() * (u64::from(self.retries) + 1) + waits_us)
    }

    /// The time before attempt `number` is repeated, counted from 0.
    pub fn pause(&self, number: u32) -> Span {
        Span::from_micros(self.backoff.as_micros() << number.min(10))
    }

    pub(super) fn read(&mut self, section: &Section<'_>, fetch: &FetchSecret<'_>) -> Result<(), DocumentError> {
        for (key, place) in [
            ("on_publish", &mut self.on_publish),
            ("on_play", &mut self.on_play),
            ("on_stop", &mut self.on_stop),
            ("on_unpublish", &mut self.on_unpublish),
        ] {
            *place = url(section, key)?;
        }
        self.secret = secret(section, "secret", fetch)?;
        set(&mut self.timeout, super::time(section, "timeout")?);
        set(&mut self.retries, section.quantity("retries")?);
        if self.retries > 10 {
            return Err(section.error_at("retries", "retries is more than 10"));
        }
        set(&mut self.backoff, section.quantity("backoff")?);
        match section.text("fail")? {
            None | Some("closed") => {}
            Some("open") => self.fail_open = true,
            Some(other) => {
                return Err(section.error_at("fail", format!("fail is 'open' or 'closed', not '{other}'")));
            }
        }
        set(&mut self.cache, section.quantity("cache")?);
        set(&mut self.cache_size, section.quantity("cache_size")?);
        set(&mut self.queue, at_least(section, "queue", 1)?);
        set(&mut self.connections, at_least(section, "connections", 1)?);
        if self.connections > 64 {
            return Err(section.error_at("connections", "connections is more than 64"));
        }
        section.finish()
    }
}

/// An URL. It may hold a password, so that errors do not repeat it.
fn url(section: &Section<'_>, key: &str) -> Result<Option<Secret>, DocumentError> {
    let Some(text) = section.text(key)? else { return Ok(None) };
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if host.rsplit('@').next().unwrap_or_default().is_empty() || text.contains(odd) {
        return Err(section.error_at(key, format!("{key} is no URL such as http://127.0.0.1:9000/hook")));
    }
    Ok(Some(Secret::new(text)))
}
