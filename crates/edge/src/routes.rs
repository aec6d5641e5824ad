//! Initial windows of this host's routes while the server runs: raised at start, put back at its end, and after one that it did
//! not live to see by the next start, since a file says what to put back.

use rustix::fs::FlockOperation;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thalweg_host::HostError;
use thalweg_host::route::Route;
use thalweg_model::RoutesConfig;
use thiserror::Error;

/// Why routes stay as they are.
#[derive(Debug, Error)]
pub enum RoutesError {
    /// The file that says what to put back.
    #[error("cannot keep what to put back in {path}: {source}")]
    State {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is held by a server that runs.
    #[error("another server has set them, and holds {0}")]
    Held(PathBuf),
    /// It is of a network namespace that this is not.
    #[error("{0} is of another network namespace: put them back there, or remove it")]
    Elsewhere(PathBuf),
    /// It holds something else.
    #[error("{0} does not say what to put back")]
    Odd(PathBuf),
    /// The kernel refuses.
    #[error(transparent)]
    Host(#[from] HostError),
    /// There are none.
    #[error("no route leads past the neighbours")]
    None,
}

/// Raised routes. They are put back when it goes.
#[derive(Debug)]
pub struct Routes {
    state: State,
    pairs: Vec<Pair>,
}

/// A route as it was and as it is.
#[derive(Debug)]
struct Pair {
    was: Route,
    is: Route,
}

/// The file, held for as long as somebody may have to put back what it says.
#[derive(Debug)]
struct State {
    path: PathBuf,
    file: File,
}

impl Routes {
    /// Raises the initial windows of the routes that lead past the neighbours; what a server left that was killed is put back first.
    ///
    /// # Errors
    /// Why none is raised; those that were are put back.
    pub fn raise(config: &RoutesConfig) -> Result<Self, RoutesError> {
        let mut state = State::open(&config.state)?;
        put_back(&state.read()?)?;
        let routes = Route::leading_away()?;
        if routes.is_empty() {
            state.remove();
            return Err(RoutesError::None);
        }
        let pair = |was: Route| Pair { is: was.with(config.initcwnd, config.initrwnd), was };
        let mut raised = Self { state, pairs: routes.into_iter().map(pair).collect() };
        raised.state.write(&raised.pairs)?;
        raised.pairs.iter().try_for_each(|pair| pair.is.replace())?;
        Ok(raised)
    }

    /// Their names, as `ip route` has them.
    pub fn names(&self) -> Vec<String> {
        self.pairs.iter().map(|pair| pair.is.to_string()).collect()
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        // Where it fails the file stays, and says what is to be put back.
        if put_back(&self.pairs).is_ok() {
            self.state.remove();
        }
    }
}

/// Puts back what a server left that was killed; how many routes that were.
///
/// # Errors
/// Why they stay as they are.
pub fn undo(path: &Path) -> Result<usize, RoutesError> {
    if !path.exists() {
        return Ok(0);
    }
    let mut state = State::open(path)?;
    let done = put_back(&state.read()?)?;
    state.remove();
    Ok(done)
}

/// Puts back those that nobody has changed since.
fn put_back(pairs: &[Pair]) -> Result<usize, RoutesError> {
    if pairs.is_empty() {
        return Ok(0);
    }
    let now = Route::leading_away()?;
    let ours: Vec<_> = pairs.iter().filter(|pair| now.iter().any(|route| route.is_still(&pair.is))).collect();
    ours.iter().try_for_each(|pair| pair.was.replace())?;
    Ok(ours.len())
}

impl State {
    fn open(path: &Path) -> Result<Self, RoutesError> {
        let failed = |source| RoutesError::State { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        // Others could have anything put back that they wrote there.
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path: path.to_owned(), file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(RoutesError::Held(path.to_owned())),
            Err(error) => Err(failed(error.into())),
        }
    }

    fn failed(&self, source: io::Error) -> RoutesError {
        RoutesError::State { path: self.path.clone(), source }
    }

    fn read(&mut self) -> Result<Vec<Pair>, RoutesError> {
        let mut text = String::new();
        self.file.read_to_string(&mut text).map_err(|source| self.failed(source))?;
        let mut lines = text.lines();
        match lines.next() {
            None => return Ok(Vec::new()),
            Some(name) if name == namespace().map_err(|source| self.failed(source))? => {}
            Some(_) => return Err(RoutesError::Elsewhere(self.path.clone())),
        }
        let lines: Vec<&str> = lines.collect();
        let pair = |two: &[&str]| match two {
            [was, is] => Some(Pair { was: Route::parse(was)?, is: Route::parse(is)? }),
            _ => None,
        };
        let pairs: Option<Vec<Pair>> = lines.chunks(2).map(pair).collect();
        pairs.ok_or_else(|| RoutesError::Odd(self.path.clone()))
    }

    /// Is on the disk when it returns: whoever finds a raised route finds this.
    fn write(&mut self, pairs: &[Pair]) -> Result<(), RoutesError> {
        let mut text = namespace().map_err(|source| self.failed(source))? + "\n";
        for pair in pairs {
            text += &format!("{}\n{}\n", pair.was.to_text(), pair.is.to_text());
        }
        let mut write = || {
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(text.as_bytes())?;
            self.file.sync_all()
        };
        write().map_err(|source| RoutesError::State { path: self.path.clone(), source })
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The network namespace by its number.
fn namespace() -> io::Result<String> {
    std::fs::read_link("/proc/thread-self/ns/net").map(|name| name.display().to_string())
}
