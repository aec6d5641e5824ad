//! `thalweg serve`: the live edge.

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::output::Output;
use anyhow::anyhow;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use thalweg_config::SecretSource;
use thalweg_edge::log::Log;
use thalweg_edge::server::{Addresses, ServeError, Server};
use thalweg_model::{LogLevel, RoutesConfig, ServeConfig};

/// Serves until SIGTERM or Ctrl-C.
pub(crate) fn run(args: &ServeArgs, output: &Output) -> Result<ExitCode, Failure> {
    let config = configuration(args)?;
    if args.check {
        check(&config)?;
        thalweg_edge::server::cautions(&config).iter().for_each(|caution| output.note(caution));
        output.result("the configuration is good")?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.undo {
        let state = config.routes.map_or_else(|| RoutesConfig::STATE.into(), |routes| routes.state);
        let done = thalweg_edge::routes::undo(&state).map_err(Failure::host)?;
        output.result(&format!("{done} routes have their former initial windows"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (is_open, is_keyed) = (config.auth.publish_key.is_none(), config.auth.play_key.is_some());
    let publish_key = config.auth.publish_key.as_ref().map(|key| key.as_str().to_owned());
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Failure::host)?;
    let log = Arc::new(Log::new(config.log, Box::new(io::stderr())).map_err(Failure::host)?);
    let server = Server::start_logged(config, Arc::clone(&log)).map_err(failure)?;
    let name = if args.demo { "demo" } else { "NAME" };
    // Who serves goes on where nobody reads what is printed.
    let _ = output.result(&urls(&server.addresses, name, is_open, is_keyed));
    let demo = args.demo.then(|| demo(&server.addresses, publish_key)).transpose()?;
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        match configuration(args) {
            Ok(config) => drop(server.reload(config)),
            Err(failure) => server.reload_failed(&failure.to_string()),
        }
    }
    // How it ends from here on is our doing.
    let had_ended = demo.as_ref().is_some_and(|(_, thread)| thread.is_finished());
    if let Some((stop, _)) = &demo {
        stop.store(true, Ordering::Relaxed);
    }
    // What reads stderr while the server runs reads the log's format.
    log.event(LogLevel::Info, "signal", || vec![("now", "the server ends; a second signal ends it at once".into())]);
    signal_hook::flag::register_conditional_default(SIGTERM, Arc::new(true.into())).map_err(Failure::host)?;
    signal_hook::flag::register_conditional_default(SIGINT, Arc::new(true.into())).map_err(Failure::host)?;
    server.drain().map_err(failure)?;
    if let Some((_, thread)) = demo
        && let Ok(Err(error)) = thread.join()
        && had_ended
    {
        log.event(LogLevel::Error, "demo-ended", || vec![("why", error.to_string().into())]);
    }
    Ok(ExitCode::SUCCESS)
}

/// What the file and the options say; what is wrong with it has no secret in it.
fn configuration(args: &ServeArgs) -> Result<ServeConfig, Failure> {
    let mut config = match &args.config {
        Some(path) => {
            let name = path.display().to_string();
            let bytes = std::fs::read(path)
                .map_err(|error| Failure::user(anyhow!("cannot read the configuration {name}: {error}")))?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Failure::user(anyhow!("the configuration {name} is no text of UTF-8")).hint("name a TOML file")
            })?;
            thalweg_config::read_serve(&name, &text, &fetch).map_err(Failure::user)?
        }
        None => ServeConfig::default(),
    };
    config.log.level = args.log_level.unwrap_or(config.log.level);
    config.log.format = args.log_format.unwrap_or(config.log.format);
    Ok(config)
}

/// A secret from where it is kept.
fn fetch(source: &SecretSource) -> Result<String, String> {
    match source {
        SecretSource::File(path) => std::fs::read_to_string(path)
            .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
            .map_err(|error| format!("{}: {error}", path.display())),
        SecretSource::Env(name) => std::env::var(name).map_err(|error| format!("{name}: {error}")),
    }
}

/// Looks at what the configuration names.
fn check(config: &ServeConfig) -> Result<(), Failure> {
    if let Some(tls) = &config.https {
        thalweg_edge::tls::Certificates::load(&tls.certificate, &tls.key).map_err(Failure::user)?;
    }
    thalweg_edge::server::check(config).map_err(Failure::user)?;
    if let Some(journal) = &config.journal {
        let folder = journal.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unusable = |why: &dyn std::fmt::Display| {
            Failure::user(anyhow!("the journal cannot be written in {}: {why}", folder.display()))
        };
        rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .map_err(|error| unusable(&error))?;
        if journal.path.exists() {
            std::fs::OpenOptions::new().append(true).open(&journal.path).map_err(|error| unusable(&error))?;
        }
    }
    Ok(())
}

type Demo = (Arc<AtomicBool>, JoinHandle<io::Result<()>>);

/// Publishes the built-in stream to this server.
fn demo(addresses: &Addresses, key: Option<String>) -> Result<Demo, Failure> {
    let &to = addresses.rtmp.first().ok_or_else(|| {
        Failure::user(anyhow!("there is nowhere to publish the built-in stream to")).hint("give rtmp.listen an address")
    })?;
    let to = reachable(to);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let run = move || thalweg_edge::demo::publish(to, "live", "demo", key.as_deref(), &stopped);
    let thread = std::thread::Builder::new().name("demo".to_owned()).spawn(run).map_err(Failure::host)?;
    Ok((stop, thread))
}

fn failure(error: ServeError) -> Failure {
    match &error {
        ServeError::Host(host) if host.source.kind() == std::io::ErrorKind::AddrInUse => {
            Failure::host(error).hint("another program listens there; choose another port in the configuration")
        }
        ServeError::Tls(_) | ServeError::Journal { .. } | ServeError::Workers(_) => Failure::user(error),
        _ => Failure::host(error),
    }
}

/// Where to publish and to play.
fn urls(addresses: &Addresses, name: &str, is_open: bool, is_keyed: bool) -> String {
    let mut text = String::new();
    let mut line = |what: &str, scheme: &str, at: &[SocketAddr], path: &str| {
        for address in at {
            text += &format!("{what:<8} {scheme}://{}{path}\n", reachable(*address));
        }
    };
    line("publish", "rtmp", &addresses.rtmp, if is_open { "/live/NAME" } else { "/live/NAME?key=KEY" });
    for (scheme, at) in [("http", &addresses.http), ("https", &addresses.https)] {
        for kind in ["m3u8", "flv"] {
            line("play", scheme, at, &format!("/live/{name}.{kind}{}", if is_keyed { "?token=TOKEN" } else { "" }));
        }
    }
    line("api", "http", &addresses.api, "/api/streams");
    text
}

/// An address that this host reaches a listener at: the loopback address of the same family for one that listens at all addresses.
/// A listener at `[::]` takes IPv6 only.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_has_addresses_that_answer() {
        let at = |text: &str| vec![text.parse().expect("an address")];
        let addresses =
            Addresses { rtmp: at("[::]:1936"), http: at("0.0.0.0:80"), https: at("192.0.2.1:443"), api: at("[::1]:1") };
        let text = urls(&addresses, "NAME", true, false);
        for url in ["rtmp://[::1]:1936/", "http://127.0.0.1:80/", "https://192.0.2.1:443/", "http://[::1]:1/api"] {
            assert!(text.contains(url), "{url} is not in\n{text}");
        }
    }
}
