//! `thalweg serve`: the live edge.

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use edge::server::{Addresses, ServeError, Server};
use model::ServeConfig;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(args: &ServeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let config = match &args.config {
        Some(path) => {
            let name = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| Failure::user(anyhow!("cannot read the configuration {name}: {error}")))?;
            ServeConfig::parse(&name, &text).map_err(Failure::user)?
        }
        None => ServeConfig::default(),
    };
    if args.check {
        if let Some(tls) = &config.https {
            edge::tls::Certificates::load(&tls.certificate, &tls.key).map_err(Failure::user)?;
        }
        output.result("the configuration is good");
        return Ok(ExitCode::SUCCESS);
    }
    let (is_open, is_keyed) = (config.auth.publish_key.is_none(), config.auth.play_key.is_some());
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Failure::host)?;
    let server = Server::start(config).map_err(failure)?;
    for refused in &server.refused {
        output.note(&format!("the kernel refuses an option, and the server runs without it: {refused}"));
    }
    output.result(&urls(&server.addresses, is_open, is_keyed));
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        match server.reload() {
            Ok(()) => output.note("the certificates were read again"),
            Err(error) => output.note(&format!("the former certificates stay: {error}")),
        }
    }
    output.note("ending: no new connection is taken; a second signal ends it at once");
    signal_hook::flag::register_conditional_default(SIGTERM, std::sync::Arc::new(true.into()))
        .map_err(Failure::host)?;
    signal_hook::flag::register_conditional_default(SIGINT, std::sync::Arc::new(true.into())).map_err(Failure::host)?;
    server.drain().map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

fn failure(error: ServeError) -> Failure {
    match &error {
        ServeError::Host(host) if host.source.kind() == std::io::ErrorKind::AddrInUse => {
            Failure::host(error).hint("another program listens there; choose another port in the configuration")
        }
        ServeError::Tls(_) | ServeError::Journal { .. } => Failure::user(error),
        _ => Failure::host(error),
    }
}

/// Where to publish and to play.
fn urls(addresses: &Addresses, is_open: bool, is_keyed: bool) -> String {
    let host = |address: &SocketAddr| {
        let ip = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
        if address.is_ipv6() && !address.ip().is_unspecified() { format!("[{ip}]") } else { ip }
    };
    let mut text = String::new();
    let mut line = |what: &str, scheme: &str, at: &[SocketAddr], path: &str| {
        for address in at {
            text += &format!("{what:<8} {scheme}://{}:{}{path}\n", host(address), address.port());
        }
    };
    line("publish", "rtmp", &addresses.rtmp, if is_open { "/live/NAME" } else { "/live/NAME?key=KEY" });
    for (scheme, at) in [("http", &addresses.http), ("https", &addresses.https)] {
        for path in ["/live/NAME.m3u8", "/live/NAME.flv"] {
            line("play", scheme, at, &format!("{path}{}", if is_keyed { "?token=TOKEN" } else { "" }));
        }
    }
    line("api", "http", &addresses.api, "/api/streams");
    text
}
