//! What finished runs measured, written as each ends, so that a run that was stopped can go on from there.
//!
//! A run depends on its plan and its kernel alone, so its figures are taken for those of a run with the same key. The key has both, the run's
//! place, and the version of this program.

use crate::error::LabError;
use crate::plan::Plan;
use crate::single_run::SingleRun;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The journal of a folder of results, one JSON object a line.
#[derive(Debug)]
pub struct RunJournal {
    path: PathBuf,
    /// Made with the first run: a folder where nothing succeeded stays empty.
    file: Mutex<Option<File>>,
    known: HashMap<String, SingleRun>,
}

/// A line.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    key: String,
    run: R,
}

impl RunJournal {
    /// Its name in the folder.
    pub const FILE: &str = "runs.jsonl";

    /// Begins the journal of the folder `out`, or with `resume` goes on with it.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(out: &Path, resume: bool) -> io::Result<Self> {
        let path = out.join(Self::FILE);
        let known = if resume { read(&path)? } else { HashMap::new() };
        let mut file = None;
        if known.is_empty() {
            fs::remove_file(&path)
                .or_else(|error| (error.kind() == io::ErrorKind::NotFound).then_some(()).ok_or(error))?;
        } else {
            // Rewritten: the last line of a run that was killed may be half there.
            let mut all = File::create(&path)?;
            for (key, run) in &known {
                write(&mut all, key, run)?;
            }
            file = Some(all);
        }
        Ok(Self { path, file: Mutex::new(file), known })
    }

    /// How many runs it knows from before.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// What identifies a run: its file's stem, plan and kernel.
    pub(crate) fn key(stem: &str, plan: &Plan, kernel: &str) -> String {
        let plan = serde_json::to_string(plan).expect("invariant: a plan has a JSON form");
        let mut hash = Sha256::new();
        for part in [stem, kernel, env!("CARGO_PKG_VERSION"), &plan] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The run with this key, if it is known and its files are still in the folder.
    pub(crate) fn find(&self, key: &str) -> Option<SingleRun> {
        let run = self.known.get(key)?;
        let folder = self.path.parent()?;
        let is_there = |name: &Option<String>| name.as_ref().is_none_or(|name| folder.join(name).is_file());
        (is_there(&run.capture) && is_there(&run.samples)).then(|| run.clone())
    }

    /// Adds a run.
    pub(crate) fn add(&self, key: &str, run: &SingleRun) -> Result<(), LabError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let added = match &mut *file {
            Some(file) => write(file, key, run),
            none => File::create(&self.path).and_then(|made| write(none.insert(made), key, run)),
        };
        added.map_err(|source| LabError::Write { path: self.path.clone(), source })
    }

    /// Removes it: every run gave a result.
    pub fn finish(self) {
        // Left behind it does no harm: the next run begins it anew.
        let _ = fs::remove_file(&self.path);
    }
}

fn write(file: &mut File, key: &str, run: &SingleRun) -> io::Result<()> {
    let mut line = serde_json::to_string(&Line { key: key.to_owned(), run }).map_err(io::Error::other)?;
    line.push('\n');
    file.write_all(line.as_bytes())
}

/// The lines of a journal; one that cannot be read counts for nothing, since its run can be run again.
fn read(path: &Path) -> io::Result<HashMap<String, SingleRun>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error),
    };
    let lines =
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line<SingleRun>>(line).ok());
    Ok(lines.map(|line| (line.key, line.run)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use thalweg_model::{Metric, RunFigures};

    fn run(arm: usize, capture: Option<&str>) -> SingleRun {
        let metrics = [("goodput_bps".to_owned(), Metric::One(0.1 + 0.2))].into_iter().collect();
        SingleRun {
            figures: RunFigures { arm, repeat: 0, virtual_s: 1.0 / 3.0, metrics },
            seed: 7,
            capture: capture.map(str::to_owned),
            samples: None,
            notes: vec!["a note".to_owned()],
            capture_dropped: 0,
            live: None,
            first: None,
        }
    }

    #[test]
    fn finished_runs_are_found_again_where_their_files_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let journal = RunJournal::open(folder.path(), true).expect("opened");
        journal.add("a", &run(0, None)).expect("written");
        journal.add("b", &run(1, Some("1-b.pcapng"))).expect("written");
        drop(journal);
        // Killed while it wrote a line.
        let path = folder.path().join(RunJournal::FILE);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"key\":\"c\",\"run\":{\"fig").expect("written");
        let again = RunJournal::open(folder.path(), true).expect("opened");
        assert_eq!(again.known(), 2);
        let found = again.find("a").expect("known");
        assert_eq!((&found.figures, found.notes.len()), (&run(0, None).figures, 1));
        assert!(again.find("b").is_none() && again.find("c").is_none());
        fs::write(folder.path().join("1-b.pcapng"), "").expect("written");
        assert!(again.find("b").is_some());
        again.finish();
        assert!(!path.exists());
        assert_eq!(RunJournal::open(folder.path(), false).expect("opened").known(), 0);
    }
}
