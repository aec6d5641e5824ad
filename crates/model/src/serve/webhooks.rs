//! Applications that decide who may publish and play, and that are notified of what ended.

use super::secret::Secret;
use serde::{Deserialize, Deserializer, de};
use thalweg_units::Span;

/// Webhooks: an URL for each event, and how they are called.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
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
    #[serde(rename = "fail", deserialize_with = "fails_open")]
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
}

/// Reads `fail = "open"` or `"closed"`.
fn fails_open<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "closed" => Ok(false),
        "open" => Ok(true),
        other => Err(de::Error::custom(format!("fail is 'open' or 'closed', not '{other}'"))),
    }
}
