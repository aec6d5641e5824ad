//! The folder that a run's results go to.

use crate::failure::Failure;
use crate::whole;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a name that a folder's name has: with a number behind them they fit in NAME_MAX, 255 (limits.h).
const NAME_BYTES_MAX: usize = 200;

/// A scenario's name as a folder's: without what would lead elsewhere, and no longer than a file's name may be.
pub fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for c in name.chars().map(|c| if c == '/' || c.is_control() { '-' } else { c }) {
        if folder.len() + c.len_utf8() > NAME_BYTES_MAX {
            break;
        }
        folder.push(c);
    }
    if matches!(folder.as_str(), "." | "..") { folder.replace('.', "-") } else { folder }
}

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
            let path = parent.join(format!("{}-{number}", folder_name(name)));
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

#[cfg(test)]
mod tests {
    use super::folder_name;

    #[test]
    fn a_name_leads_nowhere_else_and_fits() {
        for (name, folder) in [
            ("a b", "a b"),
            ("漢", "漢"),
            ("a/b", "a-b"),
            ("../../x", "..-..-x"),
            ("/etc", "-etc"),
            ("..", "--"),
            ("a\tb", "a-b"),
        ] {
            assert_eq!(folder_name(name), folder);
        }
        assert_eq!(folder_name(&"x".repeat(400)).len(), 200);
        assert_eq!(folder_name(&"漢".repeat(400)).len(), 198, "between characters");
    }
}
