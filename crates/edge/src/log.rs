//! The log: a line for each event, written by a thread of its own, with a bound on lines per second.

use crate::http::rfc3339;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use thalweg_model::{LogConfig, LogFormat, LogLevel};

/// Lines that may wait for the reader.
const WAITING_MAX: usize = 4_096;
/// How long the last lines are waited for.
const FAREWELL: Duration = Duration::from_secs(1);

/// The fields of an event. No key, token or query string belongs here.
pub type Fields = Vec<(&'static str, Value)>;

/// Takes events without blocking; lines that find no room are counted.
#[derive(Debug)]
pub struct Log {
    config: RwLock<LogConfig>,
    kinds: Mutex<HashMap<&'static str, Kind>>,
    lines: Option<SyncSender<String>>,
    over: Mutex<Option<Receiver<()>>>,
    lost: AtomicU64,
}

/// Lines of one kind of event.
#[derive(Debug, Default)]
struct Kind {
    second: u64,
    written: u32,
    /// Left out since the last line.
    left_out: u64,
}

impl Log {
    /// Writes to `sink`.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn new(config: LogConfig, mut sink: Box<dyn Write + Send>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<String>(WAITING_MAX);
        let (done, over) = sync_channel(1);
        let write = move || {
            for line in receiver {
                // The reader may have gone; then the line is lost.
                let _ = sink.write_all(line.as_bytes()).and_then(|()| sink.flush());
            }
            let _ = done.send(());
        };
        std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
        Ok(Self::with(config, Some(sender), Some(over)))
    }

    /// Writes nothing.
    pub fn silent() -> Self {
        Self::with(LogConfig::default(), None, None)
    }

    fn with(config: LogConfig, lines: Option<SyncSender<String>>, over: Option<Receiver<()>>) -> Self {
        Self {
            config: RwLock::new(config),
            kinds: Mutex::default(),
            lines,
            over: Mutex::new(over),
            lost: AtomicU64::new(0),
        }
    }

    /// Takes another configuration.
    pub fn configure(&self, config: LogConfig) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Lines that the reader did not take in time.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes an event; `fields` is called only if the level asks for the line.
    pub fn event(&self, level: LogLevel, name: &'static str, fields: impl FnOnce() -> Fields) {
        let Some(lines) = &self.lines else { return };
        let config = *self.config.read().unwrap_or_else(PoisonError::into_inner);
        if level > config.level {
            return;
        }
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        let Some(left_out) = self.admit(name, now_ms / 1_000, config.rate) else { return };
        let mut fields = fields();
        if left_out > 0 {
            fields.push(("left_out", left_out.into()));
        }
        if lines.try_send(line(config.format, now_ms, level, name, fields)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether there may be another line of this kind, and how many were left out before it.
    fn admit(&self, name: &'static str, second: u64, rate: u32) -> Option<u64> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.entry(name).or_default();
        if kind.second != second {
            (kind.second, kind.written) = (second, 0);
        }
        if kind.written >= rate {
            kind.left_out += 1;
            return None;
        }
        kind.written += 1;
        Some(std::mem::take(&mut kind.left_out))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(over) = self.over.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = over.recv_timeout(FAREWELL);
        }
    }
}

fn line(format: LogFormat, now_ms: u64, level: LogLevel, name: &str, fields: Fields) -> String {
    let time = rfc3339(now_ms);
    let mut text = match format {
        LogFormat::Text => {
            let mut text = format!("{time} {:<5} {name}", level.name());
            for (key, value) in fields {
                let _ = match value.as_str() {
                    Some(plain) if is_plain(plain) => write!(text, " {key}={plain}"),
                    _ => write!(text, " {key}={value}"),
                };
            }
            text
        }
        LogFormat::Json => {
            let mut text = format!("{{\"time\":\"{time}\",\"level\":\"{}\",\"event\":\"{name}\"", level.name());
            for (key, value) in fields {
                let _ = write!(text, ",\"{key}\":{value}");
            }
            text.push('}');
            text
        }
    };
    text.push('\n');
    text
}

/// Whether a text stands for itself where fields are divided by spaces.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// A sink that can be looked at.
    #[derive(Debug, Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(config: LogConfig, events: impl FnOnce(&Log)) -> Vec<String> {
        let seen = Seen::default();
        let log = Log::new(config, Box::new(seen.clone())).expect("a thread");
        events(&log);
        drop(log);
        let bytes = seen.0.lock().expect("whole").clone();
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_line_is_read_by_people_and_machines() {
        let events = |log: &Log| {
            log.event(LogLevel::Info, "publish", || {
                vec![("stream", "live/cam".into()), ("agent", "a \"b\"\nc".into())]
            });
            log.event(LogLevel::Debug, "play", || panic!("nobody wants it"));
        };
        let text = logged(LogConfig::default(), events);
        assert_eq!(text.len(), 1, "{text:?}");
        assert!(text[0].ends_with(r#" info  publish stream=live/cam agent="a \"b\"\nc""#), "{text:?}");
        let json = logged(LogConfig { format: LogFormat::Json, ..LogConfig::default() }, events);
        let read: Value = serde_json::from_str(&json[0]).expect("JSON");
        assert_eq!((read["event"].as_str(), read["agent"].as_str()), (Some("publish"), Some("a \"b\"\nc")));
        assert!(read["time"].as_str().is_some_and(|time| time.ends_with('Z') && time.len() == 24), "{read}");
    }

    #[test]
    fn an_attack_gets_few_lines() {
        let lines = logged(LogConfig { rate: 5, ..LogConfig::default() }, |log| {
            for number in 0..10_000 {
                log.event(LogLevel::Warn, "refused", || vec![("number", number.into())]);
            }
            log.event(LogLevel::Warn, "other", Vec::new);
            std::thread::sleep(Duration::from_millis(1_001));
            log.event(LogLevel::Warn, "refused", Vec::new);
        });
        assert!((7..=12).contains(&lines.len()), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(" other")), "each kind has its own");
        let left_out = lines.last().and_then(|line| line.split("left_out=").nth(1)).expect("a count");
        assert!(left_out.parse::<u32>().is_ok_and(|count| count > 9_900), "{lines:?}");
    }

    #[test]
    fn nobody_waits_for_a_reader_that_sleeps() {
        #[derive(Debug)]
        struct Stuck;
        impl Write for Stuck {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                std::thread::sleep(Duration::from_secs(600));
                Ok(1)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let begun = std::time::Instant::now();
        let log = Log::new(LogConfig { rate: u32::MAX, ..LogConfig::default() }, Box::new(Stuck)).expect("a thread");
        (0..2 * WAITING_MAX).for_each(|_| log.event(LogLevel::Info, "x", Vec::new));
        assert!(log.lost() >= WAITING_MAX as u64 - 1);
        drop(log);
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
