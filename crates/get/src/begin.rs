//! The first request: redirects followed, and what the server can do found out.

use crate::answer::{self, First};
use crate::client::{Client, Connection, Trouble, shown};
use crate::error::GetError;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderName, RANGE};
use std::time::Duration;
use url::Url;

/// The most redirects, as browsers have it. Source: Fetch standard, HTTP-redirect fetch, step 7.
const REDIRECTS: u32 = 20;

/// The answered first request.
pub(crate) struct Begun {
    /// Where it ended up.
    pub(crate) url: Url,
    pub(crate) connection: Connection,
    pub(crate) response: Response<Incoming>,
    pub(crate) answer: First,
}

/// Why there is no answer to begin with.
pub(crate) enum NotBegun {
    Later { why: String, after: Option<Duration> },
    Fatal(GetError),
}

impl From<Trouble> for NotBegun {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Unreachable(why) => Self::Fatal(GetError::Unreachable { why }),
            Trouble::Broken(why) => Self::Later { why, after: None },
            Trouble::Fatal(error) => Self::Fatal(error),
        }
    }
}

/// Asks for an object, as a range of all of its bytes.
pub(crate) async fn begin(client: &Client, asked: &Url) -> Result<Begun, NotBegun> {
    let (mut url, mut ranged, mut redirects) = (asked.clone(), true, 0);
    loop {
        let mut connection = client.connect(&url).await?;
        let fields: &[(HeaderName, String)] = if ranged { &[(RANGE, "bytes=0-".to_owned())] } else { &[] };
        let request = client.request(&url, &connection, Some(asked), fields).map_err(NotBegun::Fatal)?;
        let response = connection.send(request).await?;
        match answer::first(response.status(), response.headers(), ranged) {
            First::Redirect(to) => {
                redirects += 1;
                url = follow(asked, &url, &to, redirects).map_err(NotBegun::Fatal)?;
            }
            First::WithoutRange => ranged = false,
            First::Later { status, after } => {
                return Err(NotBegun::Later { why: format!("the server answers with status {status}"), after });
            }
            First::Refused(status) => return Err(NotBegun::Fatal(GetError::Refused { url: shown(&url), status })),
            answer => return Ok(Begun { url, connection, response, answer }),
        }
    }
}

fn follow(asked: &Url, from: &Url, to: &str, redirects: u32) -> Result<Url, GetError> {
    let wrong = |why: String| GetError::Redirect { url: shown(asked), why };
    if redirects > REDIRECTS {
        return Err(wrong(format!("there are more than {REDIRECTS}")));
    }
    let url = from.join(to).map_err(|error| wrong(format!("one leads to what is no URL: {error}")))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => Err(wrong(format!("one leads from https to {}, which is not encrypted", shown(&url)))),
        (_, "http" | "https") => Ok(url),
        (_, other) => Err(wrong(format!("one leads to a URL of the kind {other}"))),
    }
}
