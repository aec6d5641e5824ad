//! Who watched what, as lines of JSON in a file that is rotated: bounded on disk, and in memory where the disk is slow or full.

use crate::log::Log;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thalweg_model::{JournalConfig, LogLevel};

/// Lines that may wait for the disk.
const WAITING_MAX: usize = 1 << 16;

/// While lines are lost, the log says so this often.
const REMINDER: Duration = Duration::from_secs(60);

/// A journal, written by a thread of its own, so that no other thread waits for the disk.
#[derive(Debug)]
pub struct Journal {
    lines: Option<SyncSender<String>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Journal {
    /// Opens the file, and begins to write at its end. The log says when lines are lost, and when none are any more.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(config: &JournalConfig, log: Arc<Log>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let file = Rotated::open(config)?;
        let writer = Writer { file, lost: Arc::clone(&lost), log, failed: None };
        let thread = std::thread::Builder::new().name("journal".to_owned());
        let thread = thread.spawn(move || writer.run(&receiver))?;
        Ok(Self { lines: Some(sender), lost, thread: Some(thread) })
    }

    /// Adds a line; it is lost, and counted, when too many wait.
    pub fn write(&self, line: String) {
        if self.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lines that found no room, or that the disk refused.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The journal's thread.
#[derive(Debug)]
struct Writer {
    file: Rotated,
    lost: Arc<AtomicU64>,
    log: Arc<Log>,
    /// While lines are lost: when the log last said so.
    failed: Option<Instant>,
}

impl Writer {
    fn run(mut self, lines: &Receiver<String>) {
        for mut line in lines {
            line.push('\n');
            match self.file.write(line.as_bytes()) {
                Ok(()) => self.succeeded(),
                Err(error) => self.failed(&error),
            }
        }
    }

    fn succeeded(&mut self) {
        if self.failed.take().is_some() {
            self.report(LogLevel::Info, "journal-recovered", None);
        }
    }

    fn failed(&mut self, error: &io::Error) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        if self.failed.is_none_or(|last| last.elapsed() >= REMINDER) {
            self.failed = Some(Instant::now());
            self.report(LogLevel::Error, "journal-failed", Some(error));
        }
    }

    fn report(&self, level: LogLevel, event: &'static str, error: Option<&io::Error>) {
        self.log.event(level, event, || {
            let mut fields = vec![("path", self.file.path.display().to_string().into())];
            fields.extend(error.map(|error| ("why", error.to_string().into())));
            fields.push(("lines_lost", self.lost.load(Ordering::Relaxed).into()));
            fields
        });
    }
}

/// A file and the older ones behind it.
#[derive(Debug)]
struct Rotated {
    path: PathBuf,
    size_max: u64,
    files: u32,
    file: File,
    /// Device and inode of the file, by which it is known at its path.
    identity: (u64, u64),
    size: u64,
}

impl Rotated {
    fn open(config: &JournalConfig) -> io::Result<Self> {
        let file = append(&config.path)?;
        let (path, size_max, files) = (config.path.clone(), config.size.get(), config.files);
        let mut rotated = Self { path, size_max, files, file, identity: (0, 0), size: 0 };
        rotated.identify()?;
        Ok(rotated)
    }

    fn identify(&mut self) -> io::Result<()> {
        let facts = self.file.metadata()?;
        (self.identity, self.size) = ((facts.dev(), facts.ino()), facts.len());
        Ok(())
    }

    /// Opens the path again if the file there is another one, or gone: lines would go to a file that nobody finds.
    fn follow(&mut self) -> io::Result<()> {
        let there = fs::metadata(&self.path).map(|facts| (facts.dev(), facts.ino()));
        if there.is_ok_and(|there| there == self.identity) {
            return Ok(());
        }
        self.file = append(&self.path)?;
        self.identify()
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.follow()?;
        if self.size > 0 && self.size + line.len() as u64 > self.size_max {
            self.rotate()?;
        }
        match self.file.write_all(line) {
            Ok(()) => {
                self.size += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A line that fitted in part would spoil the next one.
                let _ = self.file.set_len(self.size);
                Err(error)
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.files).rev() {
            let from = if number == 1 { self.path.clone() } else { numbered(&self.path, number - 1) };
            match fs::rename(from, numbered(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.files == 1 {
            fs::remove_file(&self.path)?;
        }
        self.follow()
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_units::Bytes;

    #[test]
    fn no_more_than_its_files_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        for files in [1, 3] {
            let path = folder.path().join(format!("journal-{files}"));
            let config = JournalConfig { path: path.clone(), size: Bytes::new(100), files };
            for half in 0..2 {
                let journal = Journal::open(&config, Arc::new(Log::silent())).expect("open");
                (0..20).for_each(|at| journal.write(format!("{{\"line\":{:06}}}", half * 20 + at)));
                assert_eq!(journal.lost(), 0);
            }
            assert_eq!(fs::read_to_string(&path).expect("read").lines().last(), Some("{\"line\":000039}"));
            let kept: Vec<_> = (1..5).filter(|&number| numbered(&path, number).exists()).collect();
            assert_eq!(kept, (1..files).collect::<Vec<_>>());
            assert!(fs::metadata(&path).expect("there").len() <= 100);
        }
    }

    #[test]
    fn a_file_that_was_moved_or_whose_folder_vanished_is_opened_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).expect("a folder");
        let path = logs.join("journal");
        let config = JournalConfig { path: path.clone(), size: Bytes::new(1 << 20), files: 2 };
        let mut file = Rotated::open(&config).expect("open");
        file.write(b"1\n").expect("written");
        // As logrotate does.
        fs::rename(&path, logs.join("journal.old")).expect("renamed");
        file.write(b"2\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "2\n");
        fs::remove_dir_all(&logs).expect("removed");
        assert_eq!(file.write(b"3\n").expect_err("no folder").kind(), io::ErrorKind::NotFound);
        fs::create_dir(&logs).expect("a folder");
        file.write(b"4\n").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("read"), "4\n");
    }

    /// What a log wrote.
    #[derive(Clone, Default)]
    struct Seen(Arc<std::sync::Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_log_has_one_line_while_the_disk_is_full_and_one_when_there_is_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
        let seen = Seen::default();
        let log = Log::new(thalweg_model::LogConfig::default(), Box::new(seen.clone())).expect("a thread");
        let config = JournalConfig { path: path.clone(), size: Bytes::new(1 << 20), files: 2 };
        let journal = Journal::open(&config, Arc::new(log)).expect("open");
        (0..3).for_each(|_| journal.write("lost".to_owned()));
        while journal.lost() < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        fs::remove_file(&path).expect("removed");
        journal.write("kept".to_owned());
        drop(journal);
        assert_eq!(fs::read_to_string(&path).expect("read"), "kept\n");
        let has = |text: &str, event: &str| text.matches(event).count();
        let begun = Instant::now();
        loop {
            let text = String::from_utf8(seen.0.lock().expect("whole").clone()).expect("text");
            if (has(&text, "journal-failed"), has(&text, "journal-recovered")) == (1, 1) {
                assert!(text.contains("No space left") && text.contains("lines_lost=3"), "{text}");
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "{text}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        let config = JournalConfig { path: "/dev/full".into(), size: Bytes::new(1 << 20), files: 1 };
        let journal = Journal::open(&config, Arc::new(Log::silent())).expect("open");
        journal.write("x".to_owned());
        while journal.lost() == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(journal.lost(), 1);
    }
}
