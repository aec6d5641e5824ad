//! Proxies, as the environment names them.

use crate::error::GetError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use url::{Host, Url};

/// A proxy for one host.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `Proxy-Authorization`, a secret.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({}:{})", self.host, self.port)
    }
}

/// The variables that name proxies.
#[derive(Debug, Clone, Default)]
pub struct ProxySettings {
    http: Option<(&'static str, String)>,
    https: Option<(&'static str, String)>,
    exceptions: String,
}

impl ProxySettings {
    /// Reads variables by `get`. `HTTP_PROXY` is not read: a CGI program gets it from the request (CVE-2016-5385).
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| get(name).filter(|text| !text.trim().is_empty()).map(|text| (*name, text)))
        };
        Self {
            http: first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: first(&["no_proxy", "NO_PROXY"]).map(|(_, text)| text).unwrap_or_default(),
        }
    }

    /// The proxy for a URL, if there is one.
    ///
    /// # Errors
    /// When its variable makes no sense.
    pub fn of(&self, url: &Url) -> Result<Option<Proxy>, GetError> {
        let setting = if url.scheme() == "https" { &self.https } else { &self.http };
        match setting {
            Some((name, text)) if !self.excepts(url) => {
                parse(text).map(Some).map_err(|why| GetError::Proxy { name, why })
            }
            _ => Ok(None),
        }
    }

    /// Whether `no_proxy` names the host: itself, a domain it is in, an address, a network, or `*`.
    fn excepts(&self, url: &Url) -> bool {
        let Some(host) = url.host() else { return false };
        let address: Option<IpAddr> = match host {
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
            Host::Domain(_) => None,
        };
        let name = url.host_str().unwrap_or_default().to_ascii_lowercase();
        self.exceptions.split([',', ' ']).map(str::trim).filter(|one| !one.is_empty()).any(|one| {
            let (one, port) = match one.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse::<u16>().ok()),
                _ => (one, None),
            };
            if port.is_some() && port != url.port_or_known_default() {
                return false;
            }
            let one =
                one.trim_matches(['[', ']']).trim_start_matches("*.").trim_start_matches('.').to_ascii_lowercase();
            let network = || one.parse::<IpNet>().ok().or_else(|| one.parse::<IpAddr>().ok().map(IpNet::from));
            match address {
                _ if one == "*" => true,
                Some(address) => network().is_some_and(|network| network.contains(&address)),
                None => name == one || name.strip_suffix(&one).is_some_and(|rest| rest.ends_with('.')),
            }
        })
    }
}

/// Reads `http://user:password@host:port`, the scheme and the credentials optional. The reason repeats no part of it.
fn parse(text: &str) -> Result<Proxy, String> {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url: Url = whole.parse().map_err(|error| format!("{error}"))?;
    if url.scheme() != "http" {
        return Err(format!("{} proxies are not supported", url.scheme()));
    }
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it names no host")?;
    Ok(Proxy {
        host: host.trim_matches(['[', ']']).to_owned(),
        port: url.port_or_known_default().unwrap_or(80),
        authorization: basic(&url),
    })
}

/// The credentials of a URL as a field's value. Source: RFC 7617 §2.
pub fn basic(url: &Url) -> Option<String> {
    let part = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let (user, password) = (part(url.username()), part(url.password().unwrap_or_default()));
    let is_there = !url.username().is_empty() || url.password().is_some();
    is_there.then(|| format!("Basic {}", STANDARD.encode([user, password].join(&b':'))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &'static [(&'static str, &'static str)]) -> ProxySettings {
        ProxySettings::read(|name| variables.iter().find(|(one, _)| *one == name).map(|(_, text)| (*text).to_owned()))
    }

    fn host(settings: &ProxySettings, url: &str) -> Option<String> {
        settings.of(&url.parse().expect("a URL")).expect("a proxy or none").map(|proxy| proxy.host)
    }

    #[test]
    fn the_environment_chooses_by_scheme() {
        let both = settings(&[("http_proxy", "a:3128"), ("HTTPS_PROXY", "http://b"), ("HTTP_PROXY", "evil")]);
        assert_eq!(host(&both, "http://h/").as_deref(), Some("a"));
        assert_eq!(host(&both, "https://h/").as_deref(), Some("b"));
        assert_eq!(host(&settings(&[("HTTP_PROXY", "evil")]), "http://h/"), None);
    }

    #[test]
    fn exceptions_are_domains_addresses_and_networks() {
        let set = settings(&[("all_proxy", "p"), ("no_proxy", "example.org, .b.net,10.0.0.0/8,[::1],c.com:8080")]);
        for direct in [
            "http://example.org/",
            "http://x.example.org/",
            "http://a.b.net/",
            "http://10.1.2.3/",
            "http://[::1]/",
            "http://c.com:8080/",
        ] {
            assert_eq!(host(&set, direct), None, "{direct}");
        }
        for proxied in ["http://notexample.org/", "http://11.1.2.3/", "http://c.com/"] {
            assert!(host(&set, proxied).is_some(), "{proxied}");
        }
        assert_eq!(host(&settings(&[("all_proxy", "p"), ("no_proxy", "*")]), "http://any/"), None);
    }

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let proxy =
            settings(&[("http_proxy", "http://us%40er:se%3Acret@p:1")]).of(&"http://h/".parse().expect("a URL"));
        let proxy = proxy.expect("a proxy").expect("one");
        assert_eq!(proxy.authorization.as_deref(), Some("Basic dXNAZXI6c2U6Y3JldA=="));
        assert!(!format!("{proxy:?}").contains("Basic"));
        let wrong = settings(&[("http_proxy", "socks5://user:secret@p:1")]).of(&"http://h/".parse().expect("a URL"));
        let text = wrong.expect_err("no such proxy").to_string();
        assert!(text.contains("socks5") && !text.contains("secret"), "{text}");
    }
}
