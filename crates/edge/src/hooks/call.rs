//! One call: a POST of JSON, signed where there is a secret.

use super::Event;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::sync::Arc;
use std::time::Duration;
use thalweg_model::{Secret, WebhooksConfig};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Most bytes of an answer's body that are read, so that its connection can be used again.
const BODY_MAX: u64 = 64 << 10;

/// Why a call did not end with yes.
#[derive(Debug)]
pub(super) enum Failure {
    /// The application says no, with this status.
    No(u16),
    /// There is no usable answer.
    None(String),
}

/// What calls are made with; it keeps connections.
#[derive(Debug)]
pub(super) struct Caller {
    agent: Agent,
    secret: Option<Secret>,
}

impl Caller {
    pub(super) fn new(config: &WebhooksConfig) -> Self {
        let https = Event::ALL.iter().any(|event| event.url(config).is_some_and(|url| url.starts_with("https:")));
        let roots = if https { rustls_native_certs::load_native_certs().certs } else { Vec::new() };
        let roots = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::Specific(Arc::new(roots)))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            // A hook is where it says it is: neither the environment nor an answer sends its calls elsewhere.
            .proxy(None)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_idle_connections_per_host(config.connections as usize * 2)
            .user_agent(concat!("thalweg/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Self { agent, secret: config.secret.clone() }
    }

    /// Posts `body`; all of it takes `limit` at most.
    pub(super) fn post(&self, url: &str, event: Event, body: &[u8], limit: Duration) -> Result<(), Failure> {
        let mut request = self
            .agent
            .post(url)
            .config()
            .timeout_global(Some(limit))
            .build()
            .header("Content-Type", "application/json")
            .header("X-Thalweg-Event", event.name());
        if let Some(secret) = &self.secret {
            request = request.header("X-Thalweg-Signature", signature(secret, body));
        }
        match request.send(body) {
            Ok(mut response) => {
                let status = response.status().as_u16();
                // The body is read so that the connection can be used again, and ignored.
                let _ = response.body_mut().with_config().limit(BODY_MAX).read_to_vec();
                match status {
                    200..=299 => Ok(()),
                    // Source: RFC 9110 §15.5.9, RFC 6585 §4: these ask to come again.
                    408 | 429 => Err(Failure::None(format!("status {status}"))),
                    400..=499 => Err(Failure::No(status)),
                    _ => Err(Failure::None(format!("status {status}"))),
                }
            }
            // It would repeat the URL, which may hold a password.
            Err(ureq::Error::BadUri(_)) => Err(Failure::None("its URL cannot be used".to_owned())),
            Err(ureq::Error::Timeout(_)) => Err(Failure::None("no answer within webhooks.timeout".to_owned())),
            Err(error) => Err(Failure::None(error.to_string())),
        }
    }
}

/// HMAC-SHA256 of the body, as openssl's `dgst -sha256 -hmac` prints it.
fn signature(secret: &str, body: &[u8]) -> String {
    let key = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("invariant: HMAC takes keys of any length");
    let mac = key.chain_update(body).finalize().into_bytes();
    let digits: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

/// The part of an URL that may be seen: neither password nor query.
pub(super) fn host(url: &str) -> String {
    let uri = url.parse::<Uri>().ok();
    uri.as_ref().and_then(Uri::host).unwrap_or("?").to_owned()
}

/// Whether the URLs can be called at all.
///
/// # Errors
/// The first one that cannot, by its key.
pub fn check(config: &WebhooksConfig) -> Result<(), &'static str> {
    let is_good = |url: &str| {
        let uri = url.parse::<Uri>().ok();
        uri.as_ref().and_then(Uri::authority).is_some_and(|authority| {
            let after_host = authority.as_str().rsplit(['@', ']']).next().unwrap_or_default();
            !authority.host().is_empty() && (authority.port_u16().is_some() || !after_host.contains(':'))
        })
    };
    let bad = Event::ALL.into_iter().find(|event| event.url(config).is_some_and(|url| !is_good(url)));
    bad.map_or(Ok(()), |event| Err(event.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_signed_as_openssl_does() {
        // printf '{"event":"on_play"}' | openssl dgst -sha256 -hmac a-long-secret
        let wanted = "sha256=2dd7397ae129e7607856396d69a32f6b60960225ff475fb8c17b531f575c2d39";
        assert_eq!(signature("a-long-secret", b"{\"event\":\"on_play\"}"), wanted);
    }

    #[test]
    fn what_is_shown_of_an_url_holds_no_secret() {
        assert_eq!(host("https://user:password@hooks.test:1/a?token=b"), "hooks.test");
        assert_eq!(host("no url"), "?");
        let config = |url: &str| WebhooksConfig { on_stop: Some(Secret::new(url)), ..WebhooksConfig::default() };
        assert_eq!(check(&config("http://127.0.0.1:9000/x")), Ok(()));
        assert_eq!(check(&config("http://[::1]/x?y=z")), Ok(()));
        for odd in ["http://:80/", "http://a:99999999/", "http://a b/"] {
            assert_eq!(check(&config(odd)), Err("on_stop"), "{odd}");
        }
    }
}
