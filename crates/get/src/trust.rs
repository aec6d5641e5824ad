//! Which servers are trusted where the user gives certificates: those that an authority vouches for, and those whose own certificate is given.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Authorities, and certificates that are trusted as they are.
///
/// A certificate of `openssl req -x509` may sign others (CA:TRUE), and webpki takes none such for a server's, whoever trusts it. If the
/// user gives the very certificate that the server shows, that is as good as an authority's word: its name is checked then, its dates are not.
#[derive(Debug)]
pub(crate) struct Trust {
    authorities: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// # Errors
    /// When the authorities cannot be used.
    pub(crate) fn new(
        authorities: RootCertStore,
        pinned: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, rustls::client::VerifierBuilderError> {
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), provider).build()?;
        Ok(Self { authorities, pinned })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = self.authorities.verify_server_cert(own, others, name, ocsp, now);
        if judged.is_ok() || !self.pinned.iter().any(|pinned| pinned == own) {
            return judged;
        }
        rustls::client::verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
