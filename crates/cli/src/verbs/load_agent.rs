//! What the clients of `thalweg load serve` share: the token, and what their failures say.

use crate::args::load_stream::TokenArgs;
use crate::failure::Failure;
use anyhow::{Context, anyhow};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use thalweg_agent::{Admission, AgentError, ServerAddress, TOKEN_CHARS_MAX, Token};
use thalweg_host::reach::ReachError;

/// Where the token may be besides a file.
const VARIABLE: &str = "THALWEG_LOAD_TOKEN";
/// Largest file that is read for a token.
const FILE_BYTES_MAX: u64 = 2 * TOKEN_CHARS_MAX as u64;

/// The token that was given, if one was.
pub(crate) fn token(args: &TokenArgs) -> Result<Option<Token>, Failure> {
    let text = match &args.token_file {
        Some(path) => {
            let mut text = String::new();
            let read = std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
            read.with_context(|| format!("cannot read the token file '{}'", path.display())).map_err(Failure::user)?;
            text
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) => text,
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(Failure::user(anyhow!("{VARIABLE} is no text")));
            }
        },
    };
    Token::new(&text).map(Some).map_err(|error| failure(error.into()))
}

/// The server, and the token that was given for it.
pub(crate) fn server(host: &str, port: u16, args: &TokenArgs) -> Result<ServerAddress, Failure> {
    Ok(ServerAddress { host: host.to_owned(), port, token: token(args)? })
}

/// Proves the token, if one was given, and lets this host's streams in for as long as it is held.
pub(crate) fn admission(
    host: &str,
    port: u16,
    args: &TokenArgs,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Admission>, Failure> {
    let server = server(host, port, args)?;
    let is_asked_for = server.token.is_some();
    is_asked_for.then(|| Admission::new(&server, stop).map_err(failure)).transpose()
}

/// A failure with its hint, and who can mend it.
pub(crate) fn failure(error: AgentError) -> Failure {
    let hint = error.hint();
    let failure = match error {
        AgentError::Stopped => return Failure::stopped(),
        AgentError::TokenText(_)
        | AgentError::Reach(ReachError::Resolve { .. })
        | AgentError::NoToken
        | AgentError::WrongToken
        | AgentError::ServerUnproven
        | AgentError::Plan(_) => Failure::user(error),
        _ => Failure::host(error),
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
