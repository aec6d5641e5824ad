//! TLS: certificates that can be replaced while connections go on, and tickets that make the next handshake short.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ProducesTickets;
use rustls::{InconsistentKeys, ServerConfig, ServerConnection};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Plaintext of a TLS record, such that the record is no more than 16 KiB: allocators keep one byte more in 20.
pub(crate) const RECORD_BYTES: usize = (16 << 10) - 29;

/// Why there is no TLS with these files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read, or holds something else.
    #[error("https.{key}: cannot use {path}: {why}", why = unreadable(source, key))]
    File {
        /// The key in the configuration.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// The two do not belong together, or are of a kind that is not served.
    #[error("https.certificate: cannot use {path} with its key: {why}", why = unfit(source))]
    Pair {
        /// The certificate's file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
}

/// Why a file cannot be used.
fn unreadable(error: &pem::Error, key: &str) -> String {
    match error {
        pem::Error::NoItemsFound => format!("it holds no {key} in PEM"),
        pem::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Why a certificate and a key cannot be used together.
fn unfit(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            "the key is that of another certificate".to_owned()
        }
        rustls::Error::InvalidCertificate(_) => "the certificate makes no sense".to_owned(),
        error => error.to_string(),
    }
}

/// The certificates of a listener.
#[derive(Debug)]
pub struct Certificates {
    tickets: Arc<dyn ProducesTickets>,
    present: RwLock<Arc<ServerConfig>>,
}

impl Certificates {
    /// Reads a chain and its key, PEM both.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let pair = |source| TlsError::Pair { path: certificate.to_owned(), source };
        let tickets = rustls::crypto::ring::Ticketer::new().map_err(pair)?;
        let present = RwLock::new(read(certificate, key, &tickets)?);
        Ok(Self { tickets, present })
    }

    /// Reads these files in place of the former ones; connections that are there keep what they have, and so do all where the files
    /// cannot be used. Tickets stay good.
    ///
    /// # Errors
    /// Why they cannot be used.
    pub fn replace(&self, certificate: &Path, key: &Path) -> Result<(), TlsError> {
        let new = read(certificate, key, &self.tickets)?;
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The server's side of a new connection.
    pub fn accept(&self) -> Option<ServerConnection> {
        let config = Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner));
        ServerConnection::new(config).ok()
    }
}

fn read(certificate: &Path, key: &Path, tickets: &Arc<dyn ProducesTickets>) -> Result<Arc<ServerConfig>, TlsError> {
    let unusable = |source| TlsError::File { key: "certificate", path: certificate.to_owned(), source };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(unusable)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(unusable)?;
    if chain.is_empty() {
        return Err(unusable(pem::Error::NoItemsFound));
    }
    let secret = PrivateKeyDer::from_pem_file(key);
    let secret = secret.map_err(|source| TlsError::File { key: "key", path: key.to_owned(), source })?;
    let pair = |source| TlsError::Pair { path: certificate.to_owned(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(pair)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.ticketer = Arc::clone(tickets);
    // With a record's own head.
    config.max_fragment_size = Some(RECORD_BYTES + 5);
    // One ticket is what a player needs; each costs its connection some memory and a few hundred bytes.
    config.send_tls13_tickets = 1;
    // Tickets hold the state; nothing is remembered here.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(Arc::new(config))
}
