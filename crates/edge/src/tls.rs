//! TLS: certificates that can be replaced while connections go on, and tickets that make the next handshake short.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ProducesTickets;
use rustls::{ServerConfig, ServerConnection};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;

/// Plaintext of a TLS record, such that the record is no more than 16 KiB: allocators keep one byte more in 20.
pub(crate) const RECORD_BYTES: usize = (16 << 10) - 29;

/// Why there is no TLS with these files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read, or holds something else.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The two do not belong together, or are of a kind that is not served.
    #[error("cannot use the certificate {path} with its key: {source}")]
    Pair {
        /// The certificate's file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
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
    let file = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate).map_err(file(certificate))?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(file(certificate))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(file(key))?;
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
