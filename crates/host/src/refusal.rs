//! What to say when this kernel is too old for a setting.

use crate::error::HostError;
use std::io;
use thalweg_model::{Setting, since};

/// Adds to an error about `setting` which kernel is the first that has it, where the running one is older.
pub(crate) fn explain(error: HostError, setting: &Setting, value: &str) -> HostError {
    let uname = rustix::system::uname();
    let running = uname.release().to_string_lossy();
    match (since::release(&running), since::first_kernel(setting, value)) {
        (Some(kernel), Some(first)) if kernel < first => {
            let why = format!("this is Linux {running}; {}", since::sentence(first));
            HostError { act: error.act, source: io::Error::new(error.source.kind(), why) }
        }
        _ => error,
    }
}
