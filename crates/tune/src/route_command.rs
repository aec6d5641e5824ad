//! The `ip route` command that sets attributes of a route and keeps all else of it. Source: ip-route(8).

use crate::state::Route;
use thalweg_model::RouteTarget;

/// Why a route is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// Not the whole of it is known.
    NotKnown,
    /// It goes away by itself.
    Expires,
}

impl Unwritten {
    /// In a sentence.
    pub(crate) const fn why(self) -> &'static str {
        match self {
            Self::NotKnown => {
                "Not the whole route is known: no `ip route` of the host was read, or the route has a part that is not written."
            }
            Self::Expires => {
                "The route goes away by itself, as those that a router announced, and a written one would stay."
            }
        }
    }
}

/// The words of a route that a command or a file can repeat.
pub(crate) fn words(route: &RouteTarget) -> Result<&str, Unwritten> {
    match &route.words {
        _ if route.expires => Err(Unwritten::Expires),
        Some(words) => Ok(words),
        None => Err(Unwritten::NotKnown),
    }
}

/// The command that gives the route these attributes beside those that it has.
pub(crate) fn change<'a>(
    route: &'a RouteTarget,
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<String, Unwritten> {
    let mut all = route.keep.clone();
    all.extend(attributes.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // The kernel has no metric of 0: it is one that is not there.
    all.retain(|_, value| value != "0");
    let all: Vec<String> = all.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let ip = if route.ipv6 { "ip -6" } else { "ip" };
    Ok(format!("{ip} route change {} {}", words(route)?, all.join(" ")))
}

impl Route {
    /// The route as a plan names it.
    pub(crate) fn target(&self) -> RouteTarget {
        RouteTarget {
            to: self.to.clone(),
            via: self.via.clone(),
            dev: self.dev.clone(),
            metric: self.metric,
            tos: self.tos,
            ipv6: self.ipv6,
            expires: self.expires,
            words: self.words.clone(),
            keep: self.attributes.clone(),
        }
    }
}
