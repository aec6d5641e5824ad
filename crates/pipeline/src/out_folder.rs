//! The folder that a run's results go to.

use crate::failure::Failure;
use crate::whole;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder that results go to; taken back if it was made and stays empty.
#[derive(Debug)]
pub struct OutFolder {
    path: PathBuf,
    made: bool,
    /// The folder it is in, if that was made for it.
    parent: Option<&'static Path>,
}

impl OutFolder {
    /// Makes `given`, or a fresh folder for `name` in `thalweg-runs` of the current folder.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn prepare(given: Option<&Path>, name: &str) -> Result<Self, Failure> {
        let cannot = |path: &Path, error: io::Error| {
            Failure::user(format!("cannot make the folder {}: {error}", path.display()))
                .hint("choose another by --out DIR")
        };
        if let Some(path) = given {
            let made = !path.exists();
            fs::create_dir_all(path).map_err(|error| cannot(path, error))?;
            return Ok(Self { path: path.to_owned(), made, parent: None });
        }
        let parent = Path::new("thalweg-runs");
        let fresh = !parent.exists();
        fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
        for number in 1u32.. {
            let path = parent.join(format!("{name}-{number}"));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, made: true, parent: fresh.then_some(parent) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot(&path, error)),
            }
        }
        unreachable!("invariant: a free number is found long before they run out")
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file whole or not at all; returns its path.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.path.join(name);
        whole::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for OutFolder {
    fn drop(&mut self) {
        if self.made {
            // Fails unless they are empty, which is what is wanted.
            let _ = fs::remove_dir(&self.path);
            let _ = self.parent.map(fs::remove_dir);
        }
    }
}
