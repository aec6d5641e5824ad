//! TLS towards servers whose certificates are trusted, or not looked at.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, InvalidMessage, SignatureScheme};
use std::sync::Arc;

/// What all TLS connections of a load share; sessions are resumed as browsers do. Trusted is what this host trusts, or, when
/// `insecure`, anyone.
pub fn config(insecure: bool) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider has what the default versions need");
    let mut config = if insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))).with_no_client_auth()
    } else {
        let mut roots = rustls::RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        builder.with_root_certificates(roots).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Why there is no TLS, in words, with what to do about it.
pub(crate) fn failure(error: &Error) -> String {
    let why = match error {
        Error::InvalidCertificate(why) => why,
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            return "the server does not speak TLS at this port: try http://".to_owned();
        }
        _ => return error.to_string(),
    };
    let why = match why {
        CertificateError::UnknownIssuer => "its issuer is unknown here",
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => "it is for another name",
        _ => "it cannot be verified",
    };
    format!("the server's certificate is not trusted, since {why}: --insecure takes any certificate")
}

/// Takes any certificate; signatures are checked, so that the handshake costs what it costs.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_to_do() {
        for (error, wanted) in [
            (Error::InvalidCertificate(CertificateError::UnknownIssuer), "--insecure"),
            (Error::InvalidCertificate(CertificateError::BadEncoding), "--insecure"),
            (Error::InvalidMessage(InvalidMessage::InvalidContentType), "http://"),
        ] {
            let text = failure(&error);
            assert!(text.contains(wanted) && !text.contains("Invalid"), "{text}");
        }
    }
}
