//! Where metrics go, and as whose: from the command line and OpenTelemetry's variables.
//!
//! Source: OpenTelemetry specification, "OpenTelemetry Protocol Exporter" (endpoints, headers, timeout) and "Environment Variable
//! Specification" (resource).

use crate::failure::Failure;
use anyhow::anyhow;
use percent_encoding::percent_decode_str;
use std::time::Duration;
use ureq::http::{HeaderName, HeaderValue};
use url::Url;

/// Where a collector on this host listens.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";
/// What is appended to an endpoint of all signals.
const METRICS_PATH: &str = "v1/metrics";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const METRICS_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const METRICS_HEADERS: &str = "OTEL_EXPORTER_OTLP_METRICS_HEADERS";
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const METRICS_TIMEOUT: &str = "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
const METRICS_PROTOCOL: &str = "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL";
const SERVICE: &str = "OTEL_SERVICE_NAME";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// How metrics are exported. Headers and the URL's user are secrets: there is no way to print them.
pub(crate) struct Settings {
    /// Where to.
    pub(super) url: Url,
    /// Sent with each export.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// How long an export may take.
    pub(super) timeout: Duration,
    /// Whose the metrics are.
    pub(super) resource: Vec<(String, String)>,
}

impl Settings {
    /// Reads them. `endpoint` is what follows `--otlp`, empty where nothing does.
    ///
    /// # Errors
    /// What cannot be used, by the name of its variable; values of headers are not repeated.
    pub(crate) fn read(endpoint: &str, host: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        // As the specification has it, a variable without a value is none.
        let variable =
            |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let first = |names: [&'static str; 2]| names.into_iter().find_map(|name| Some((name, variable(name)?)));
        let url = if endpoint.is_empty() {
            protocol(first([METRICS_PROTOCOL, PROTOCOL]))?;
            match variable(METRICS_ENDPOINT) {
                Some(whole) => url(METRICS_ENDPOINT, &whole)?,
                None => with_path(url(ENDPOINT, &variable(ENDPOINT).unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned()))?),
            }
        } else {
            with_path(url("--otlp", endpoint)?)
        };
        let headers = match first([METRICS_HEADERS, HEADERS]) {
            Some((name, text)) => headers(name, &text)?,
            None => Vec::new(),
        };
        let timeout = match first([METRICS_TIMEOUT, TIMEOUT]) {
            Some((name, text)) => text
                .parse()
                .ok()
                .filter(|milliseconds| *milliseconds > 0)
                .map(Duration::from_millis)
                .ok_or_else(|| wrong(name, &format!("'{text}' is no number of milliseconds"), "such as 10000"))?,
            None => DEFAULT_TIMEOUT,
        };
        let mut resource = vec![
            ("service.name".to_owned(), "thalweg".to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("host.name".to_owned(), host.to_owned()),
        ];
        let given = variable(RESOURCE).map(|text| attributes(RESOURCE, &text)).transpose()?.unwrap_or_default();
        let service = variable(SERVICE).map(|name| ("service.name".to_owned(), name));
        for (key, value) in given.into_iter().chain(service) {
            resource.retain(|(known, _)| *known != key);
            resource.push((key, value));
        }
        Ok(Self { url, headers, timeout, resource })
    }

    /// Where metrics go, without what may be secret.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.url.clone();
        // Of an http URL with a host neither can fail.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_query(None);
        url.to_string()
    }
}

/// The protocol that variables ask for, which has to be one of HTTP's: collectors take JSON wherever they take protobuf.
fn protocol(found: Option<(&'static str, String)>) -> Result<(), Failure> {
    match found {
        Some((name, protocol)) if !["http/json", "http/protobuf"].contains(&protocol.as_str()) => Err(wrong(
            name,
            &format!("metrics go by http/json, and it asks for '{protocol}'"),
            "name the collector's port for HTTP: --otlp http://127.0.0.1:4318",
        )),
        _ => Ok(()),
    }
}

fn url(name: &str, text: &str) -> Result<Url, Failure> {
    let hint = "such as http://127.0.0.1:4318; a filter comes before --otlp";
    // A text that is no URL may hold a secret where one was meant to be.
    let url = Url::parse(text).map_err(|error| wrong(name, &format!("it is no URL: {error}"), hint))?;
    if !["http", "https"].contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return Err(wrong(name, "metrics go to a URL of http or https with a host", hint));
    }
    Ok(url)
}

fn with_path(mut url: Url) -> Url {
    if !url.path().trim_end_matches('/').ends_with(METRICS_PATH) {
        let path = format!("{}/{METRICS_PATH}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    url
}

fn headers(name: &str, text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let one = |(key, value): (String, String)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(key).ok()?, value))
    };
    let pairs = attributes(name, text)?;
    let count = pairs.len();
    let headers: Vec<_> = pairs.into_iter().filter_map(one).collect();
    if headers.len() < count {
        return Err(wrong(name, "one of its headers cannot be sent", "write it as NAME=VALUE,NAME=VALUE"));
    }
    Ok(headers)
}

/// `KEY=VALUE,KEY=VALUE`, values percent-encoded. Source: W3C Baggage, without properties.
fn attributes(name: &str, text: &str) -> Result<Vec<(String, String)>, Failure> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let one = |part: &str| {
        let (key, value) = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()))?;
        let value = percent_decode_str(value).decode_utf8().ok()?;
        (!key.is_empty()).then(|| (key.to_owned(), value.into_owned()))
    };
    let hint = "write it as KEY=VALUE,KEY=VALUE, values percent-encoded";
    let or_wrong = |(part, place): (&str, usize)| {
        one(part).ok_or_else(|| wrong(name, &format!("its part {place} is not KEY=VALUE"), hint))
    };
    parts.zip(1..).map(or_wrong).collect()
}

fn wrong(name: &str, what: &str, hint: &str) -> Failure {
    Failure::user(anyhow!("{name} cannot be used: {what}")).hint(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(endpoint: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        Settings::read(endpoint, "here", variable).map_err(|failure| failure.to_string())
    }

    fn target(endpoint: &str, variables: &[(&str, &str)]) -> String {
        read(endpoint, variables).map(|settings| settings.url.to_string()).unwrap_or_else(|error| error)
    }

    #[test]
    fn the_nearest_endpoint_counts() {
        let general = (ENDPOINT, "http://c:4318/base/");
        let own = (METRICS_ENDPOINT, "https://m/x");
        assert_eq!(target("", &[]), "http://localhost:4318/v1/metrics");
        assert_eq!(target("", &[general]), "http://c:4318/base/v1/metrics");
        assert_eq!(target("", &[general, own]), "https://m/x", "as it is");
        assert_eq!(target("http://127.0.0.1:1", &[general, own]), "http://127.0.0.1:1/v1/metrics");
        assert_eq!(target("http://127.0.0.1:1/v1/metrics", &[]), "http://127.0.0.1:1/v1/metrics");
        assert_eq!(target("", &[(ENDPOINT, " ")]), "http://localhost:4318/v1/metrics", "no value is none");
    }

    #[test]
    fn headers_are_decoded_and_secret() {
        let headers = (HEADERS, "api-key=a%20b%3D, x-y = z ");
        let settings = read("http://user:pass@c/?k=v", &[headers]).expect("usable");
        let sent: Vec<_> = settings.headers.iter().map(|(k, v)| (k.as_str(), v.to_str().expect("text"))).collect();
        assert_eq!(sent, [("api-key", "a b="), ("x-y", "z")]);
        assert!(settings.headers.iter().all(|(_, value)| value.is_sensitive()));
        assert_eq!(settings.shown(), "http://c/v1/metrics");
        let nearer = read("", &[headers, (METRICS_HEADERS, "a=b")]).expect("usable");
        assert_eq!(nearer.headers.len(), 1);
        for wrong in ["s3cret", "a=b,s3cret", "a b=s3cret", "a=%0As3cret", "=s3cret"] {
            let error = read("", &[(HEADERS, wrong)]).err().unwrap_or_default();
            assert!(error.contains(HEADERS) && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }

    #[test]
    fn whose_metrics_they_are_can_be_said() {
        let variables = [(RESOURCE, "service.name=a,deployment.environment=b%2Cc"), (SERVICE, "edge")];
        let resource = read("", &variables).expect("usable").resource;
        let get =
            |key: &str| resource.iter().filter(|(known, _)| known == key).map(|(_, v)| v.as_str()).collect::<Vec<_>>();
        assert_eq!((get("service.name"), get("host.name")), (vec!["edge"], vec!["here"]));
        assert_eq!(get("deployment.environment"), ["b,c"]);
    }

    #[test]
    fn what_cannot_be_used_has_one_sentence() {
        for (endpoint, variables, part) in [
            ("port:443", vec![], "http or https"),
            ("127.0.0.1:4318", vec![], "--otlp cannot be used"),
            ("http://", vec![], "no URL"),
            ("", vec![(ENDPOINT, "s3cret")], "OTEL_EXPORTER_OTLP_ENDPOINT cannot be used"),
            ("", vec![(PROTOCOL, "grpc")], "http/json"),
            ("", vec![(TIMEOUT, "soon")], "milliseconds"),
            ("", vec![(TIMEOUT, "0")], "milliseconds"),
        ] {
            let error = read(endpoint, &variables).err().unwrap_or_default();
            assert!(error.contains(part) && !error.contains("s3cret"), "{error}");
        }
        // An endpoint that was typed is one of HTTP.
        assert!(read("http://c", &[(PROTOCOL, "grpc")]).is_ok());
        assert_eq!(read("", &[(METRICS_TIMEOUT, "500"), (TIMEOUT, "1")]).expect("usable").timeout.as_millis(), 500);
    }
}
