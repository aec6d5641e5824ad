//! The log's level, format and rate.

use serde::Deserialize;
use std::str::FromStr;

/// What is worth a line; each level has those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum LogLevel {
    /// A part of the server fails.
    Error,
    /// A client was refused, or something was left out.
    Warn,
    /// Publishers, and what operators did.
    Info,
    /// Viewers, too.
    Debug,
}

impl LogLevel {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

impl FromStr for LogLevel {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Error, Self::Warn, Self::Info, Self::Debug];
        all.into_iter().find(|level| level.name() == text).ok_or("it is error, warn, info or debug")
    }
}

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum LogFormat {
    /// For people.
    Text,
    /// An object of JSON each.
    Json,
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("it is text or json"),
        }
    }
}

/// Lines to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LogConfig {
    /// What is worth one.
    pub level: LogLevel,
    /// How it is written.
    pub format: LogFormat,
    /// Most lines a second of each kind of event: an attack must not fill a disk.
    pub rate: u32,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: LogLevel::Info, format: LogFormat::Text, rate: 20 }
    }
}

impl TryFrom<String> for LogLevel {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl TryFrom<String> for LogFormat {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}
