//! The first request: redirects followed, and what the server can do found out.

use crate::answer::{self, First};
use crate::client::{Client, Connection, RequestError, shown};
use crate::error::GetError;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::{HeaderName, RANGE};
use std::time::Duration;
use url::Url;

/// The most redirects, as browsers have it. Source: Fetch standard, HTTP-redirect fetch, step 7.
const MAX_REDIRECTS: u32 = 20;

/// The answered first request.
pub(crate) struct FirstResponse {
    /// Where it ended up.
    pub(crate) url: Url,
    pub(crate) connection: Connection,
    pub(crate) response: Response<Incoming>,
    pub(crate) answer: First,
}

/// Why there is no answer to begin with.
pub(crate) enum NoResponse {
    Later { why: String, after: Option<Duration> },
    Fatal(GetError),
}

impl From<RequestError> for NoResponse {
    fn from(trouble: RequestError) -> Self {
        match trouble {
            RequestError::Unreachable(why) => Self::Fatal(GetError::Unreachable { why }),
            RequestError::Broken(why) => Self::Later { why, after: None },
            RequestError::Fatal(error) => Self::Fatal(error),
        }
    }
}

/// Asks for an object; if `ranged`, as a range of all of its bytes.
pub(crate) async fn begin(client: &Client, asked: &Url, mut ranged: bool) -> Result<FirstResponse, NoResponse> {
    let (mut url, mut redirects) = (asked.clone(), 0);
    loop {
        let mut connection = client.connect(&url).await?;
        let fields: &[(HeaderName, String)] = if ranged { &[(RANGE, "bytes=0-".to_owned())] } else { &[] };
        let request = client.request(&url, &connection, Some(asked), fields).map_err(NoResponse::Fatal)?;
        let response = connection.send(request).await?;
        match answer::first(response.status(), response.headers(), ranged) {
            First::Redirect(to) => {
                redirects += 1;
                url = follow(asked, &url, &to, redirects).map_err(NoResponse::Fatal)?;
            }
            First::WithoutRange => ranged = false,
            First::Later { status, after } => {
                return Err(NoResponse::Later { why: format!("the server answers with status {status}"), after });
            }
            First::Refused(status) => return Err(NoResponse::Fatal(GetError::Refused { url: shown(&url), status })),
            answer => return Ok(FirstResponse { url, connection, response, answer }),
        }
    }
}

fn follow(asked: &Url, from: &Url, to: &str, redirects: u32) -> Result<Url, GetError> {
    let wrong = |why: String| GetError::Redirect { url: shown(asked), why };
    if redirects > MAX_REDIRECTS {
        return Err(wrong(format!("there are more than {MAX_REDIRECTS}")));
    }
    let url = from.join(to).map_err(|error| wrong(format!("one leads to what is no URL: {error}")))?;
    match (from.scheme(), url.scheme()) {
        ("https", "http") => Err(wrong(format!("one leads from https to {}, which is not encrypted", shown(&url)))),
        (_, "http" | "https") => Ok(url),
        (_, other) => Err(wrong(format!("one leads to a URL of the kind {other}"))),
    }
}
