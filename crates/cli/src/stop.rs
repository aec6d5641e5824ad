//! Ctrl-C and SIGTERM: a flag that long work looks at.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Begins to listen; the first signal sets the flag, a second one ends the process as usual.
///
/// # Errors
/// When no handler can be installed.
pub(crate) fn listen() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        // Registered first, so it acts only when the flag is already set: on the second signal.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag)).map_err(Failure::host)?;
        signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(Failure::host)?;
    }
    Ok(flag)
}
