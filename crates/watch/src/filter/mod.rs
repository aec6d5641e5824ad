//! Which sockets are wanted: `port:443 state:established proc:nginx cause:receive-window peer:10.0.0.0/8 rtt:>100ms`.
//!
//! Terms are joined by spaces, and all must hold. A term is NAME:VALUE; of several values with commas one must hold. A minus before a term
//! negates it.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use thalweg_model::{LifeLimit, LimitName, SocketRow, SocketState};
use thalweg_units::{Bytes, Rate, Ratio, Span};
use thiserror::Error;

/// Names of terms, with an example of each.
pub(crate) const NAMES: [(&str, &str); 18] = [
    ("port", "port:443"),
    ("local-port", "local-port:8000-8100"),
    ("peer-port", "peer-port:443"),
    ("local", "local:192.0.2.1"),
    ("peer", "peer:10.0.0.0/8"),
    ("state", "state:established"),
    ("proc", "proc:nginx"),
    ("pid", "pid:4711"),
    ("uid", "uid:33"),
    ("cgroup", "cgroup:*nginx*"),
    ("cc", "cc:bbr"),
    ("cause", "cause:receive-window"),
    ("life", "life:send-buffer"),
    ("rtt", "rtt:>100ms"),
    ("min-rtt", "min-rtt:<5ms"),
    ("retrans", "retrans:>1%"),
    ("rate", "rate:>10mbit"),
    ("backlog", "backlog:>1MiB"),
];

/// Why a filter cannot be read.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("{what}")]
pub struct FilterError {
    what: String,
    /// What to write instead.
    pub hint: String,
}

/// Terms that all must hold; without any, every socket is wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    text: String,
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq)]
struct Term {
    is_negated: bool,
    /// One of them must hold.
    tests: Vec<Test>,
}

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Port(End, u16, u16),
    Address(End, IpNet),
    State(SocketState),
    /// `None`: nothing limits it, since it sends nothing.
    Cause(Option<LimitName>),
    Life(LifeLimit),
    Text(TextOf, Pattern),
    Number(NumberOf, u32),
    Measure(Measure, Comparison, f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Either,
    Local,
    Peer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextOf {
    Process,
    Cgroup,
    CongestionControl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberOf {
    Pid,
    Uid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    RttMs,
    MinRttMs,
    RetransmittedShare,
    RateBps,
    QueuedBytes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    More,
    AtLeast,
    Less,
    AtMost,
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let terms = text.split_whitespace().map(term).collect::<Result<_, _>>()?;
        Ok(Self { text: text.trim().to_owned(), terms })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Filter {
    /// Whether every socket is wanted.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether this socket is wanted.
    #[must_use]
    pub fn wants(&self, row: &SocketRow) -> bool {
        self.terms.iter().all(|term| term.is_negated != term.tests.iter().any(|test| test.holds(row)))
    }
}

impl Test {
    fn holds(&self, row: &SocketRow) -> bool {
        let ends = |end: End| match end {
            End::Either => (Some(row.local), Some(row.peer)),
            End::Local => (Some(row.local), None),
            End::Peer => (None, Some(row.peer)),
        };
        match self {
            Self::Port(end, first, last) => {
                let (a, b) = ends(*end);
                a.into_iter().chain(b).any(|at| (*first..=*last).contains(&at.port()))
            }
            Self::Address(end, net) => {
                let (a, b) = ends(*end);
                a.into_iter().chain(b).any(|at| net.contains(&at.ip()))
            }
            Self::State(state) => row.state == *state,
            Self::Cause(cause) => row.limit.now.map(|now| now.cause) == *cause,
            Self::Life(cause) => row.limit.life.cause == Some(*cause),
            Self::Text(of, pattern) => match of {
                TextOf::Process => row.process.as_ref().is_some_and(|process| pattern.matches(&process.name)),
                TextOf::Cgroup => row.process.as_ref().is_some_and(|process| pattern.matches(&process.cgroup)),
                TextOf::CongestionControl => pattern.matches(&row.congestion_control),
            },
            Self::Number(NumberOf::Pid, number) => row.process.as_ref().is_some_and(|process| process.pid == *number),
            Self::Number(NumberOf::Uid, number) => row.uid == *number,
            Self::Measure(measure, comparison, limit) => {
                measure.of(row).is_some_and(|value| comparison.holds(value, *limit))
            }
        }
    }
}

impl Measure {
    fn of(self, row: &SocketRow) -> Option<f64> {
        match self {
            Self::RttMs => row.rtt.smoothed_ms,
            Self::MinRttMs => row.rtt.min_ms,
            Self::RetransmittedShare => Some(row.retransmissions.share),
            Self::RateBps => Some(row.send.rate_bps.max(row.receive.rate_bps)),
            Self::QueuedBytes => Some(row.send.queued_bytes as f64),
        }
    }

    /// Reads a value in its unit, and says how one is written.
    fn read(self, text: &str) -> Result<f64, String> {
        let span = || text.parse::<Span>().map(Span::as_millis_f64).map_err(|error| error.to_string());
        match self {
            Self::RttMs | Self::MinRttMs => span(),
            Self::RetransmittedShare => match text.parse::<Ratio>().map(Ratio::get) {
                Ok(1.0) if !text.contains('%') => Err(format!("'{text}' can be 1 % or all: write 1% or 100%")),
                share => share.map_err(|error| error.to_string()),
            },
            Self::RateBps => {
                text.parse::<Rate>().map(|rate| rate.bits_per_second() as f64).map_err(|error| error.to_string())
            }
            Self::QueuedBytes => {
                text.parse::<Bytes>().map(|bytes| bytes.get() as f64).map_err(|error| error.to_string())
            }
        }
    }
}

impl Comparison {
    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::More => value > limit,
            Self::AtLeast => value >= limit,
            Self::Less => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

/// A text in which `*` stands for any characters; capitals do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern(Vec<String>);

impl Pattern {
    fn new(text: &str) -> Self {
        Self(text.to_lowercase().split('*').map(str::to_owned).collect())
    }

    fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let [first, middle @ .., last] = self.0.as_slice() else { return self.0.first() == Some(&text) };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            let Some(at) = rest.find(part.as_str()) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

fn term(word: &str) -> Result<Term, FilterError> {
    let (is_negated, body) = word.strip_prefix('-').map_or((false, word), |body| (true, body));
    let Some((name, values)) = body.split_once(':') else {
        let name = nearest(body, NAMES.iter().map(|(name, _)| *name));
        let example = NAMES.iter().find(|(one, _)| Some(*one) == name).map_or("port:443", |(_, example)| example);
        let hint = format!("a term is a name, a colon and a value, such as {example}");
        return Err(FilterError { what: format!("'{word}' is no term of a filter"), hint });
    };
    let name = name.to_lowercase();
    let tests = values.split(',').map(|value| test(&name, value)).collect::<Result<_, _>>()?;
    Ok(Term { is_negated, tests })
}

fn test(name: &str, value: &str) -> Result<Test, FilterError> {
    let example = NAMES.iter().find(|(known, _)| *known == name).map(|(_, example)| *example);
    let Some(example) = example else {
        let known = NAMES.map(|(name, _)| name);
        return Err(FilterError { what: format!("a filter has no '{name}'"), hint: suggested(name, &known) });
    };
    let wrong = || FilterError { what: format!("'{value}' is no value for {name}"), hint: format!("write {example}") };
    if value.is_empty() {
        return Err(wrong());
    }
    let word = |known: &[&'static str]| {
        let found = known.iter().position(|one| one.eq_ignore_ascii_case(value));
        found.ok_or_else(|| FilterError { what: format!("'{value}' is no {name}"), hint: suggested(value, known) })
    };
    let text = |of| Ok(Test::Text(of, Pattern::new(value)));
    let number = |of| value.parse().map(|number| Test::Number(of, number)).map_err(|_| wrong());
    let ports = |end| {
        let (first, last) = value.split_once('-').unwrap_or((value, value));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Test::Port(end, first, last)),
            _ => Err(wrong()),
        }
    };
    let address = |end| {
        // As the table shows an address before a port.
        let value = value.strip_prefix('[').and_then(|value| value.strip_suffix(']')).unwrap_or(value);
        let net = value.parse::<IpNet>().ok().or_else(|| value.parse::<IpAddr>().ok().map(IpNet::from));
        net.map(|net| Test::Address(end, net)).ok_or_else(wrong)
    };
    match name {
        "port" => ports(End::Either),
        "local-port" => ports(End::Local),
        "peer-port" => ports(End::Peer),
        "local" => address(End::Local),
        "peer" => address(End::Peer),
        // As ss(8) prints it.
        "state" if value.eq_ignore_ascii_case("estab") => Ok(Test::State(SocketState::Established)),
        "state" if ["listen", "time-wait"].iter().any(|state| value.eq_ignore_ascii_case(state)) => Err(FilterError {
            what: format!("sockets in state {value} are not shown, as they carry no data"),
            hint: format!(
                "ss -tn state {} lists them",
                if value.eq_ignore_ascii_case("listen") { "listening" } else { "time-wait" }
            ),
        }),
        "state" => Ok(Test::State(SocketState::ALL[word(&SocketState::ALL.map(SocketState::as_str))?])),
        "proc" => text(TextOf::Process),
        "cgroup" => text(TextOf::Cgroup),
        "cc" => text(TextOf::CongestionControl),
        "pid" => number(NumberOf::Pid),
        "uid" => number(NumberOf::Uid),
        "cause" => {
            let known = [&LimitName::ALL.map(LimitName::as_str)[..], &["idle"]].concat();
            Ok(Test::Cause(LimitName::ALL.get(word(&known)?).copied()))
        }
        "life" => Ok(Test::Life(LifeLimit::ALL[word(&LifeLimit::ALL.map(LifeLimit::as_str))?])),
        "rtt" => measure(Measure::RttMs, value, example),
        "min-rtt" => measure(Measure::MinRttMs, value, example),
        "retrans" => measure(Measure::RetransmittedShare, value, example),
        "rate" => measure(Measure::RateBps, value, example),
        _ => measure(Measure::QueuedBytes, value, example),
    }
}

fn measure(measure: Measure, value: &str, example: &str) -> Result<Test, FilterError> {
    let signs =
        [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::More), ("<", Comparison::Less)];
    let Some((sign, comparison)) = signs.into_iter().find(|(sign, _)| value.starts_with(sign)) else {
        return Err(FilterError {
            what: format!("'{value}' is not compared with anything"),
            hint: format!("begin it with > or <: {example}"),
        });
    };
    let limit = measure
        .read(&value[sign.len()..])
        .map_err(|error| FilterError { what: error, hint: format!("write {example}") })?;
    Ok(Test::Measure(measure, comparison, limit))
}

/// The nearest of the words that are known, or all of them.
pub(crate) fn suggested(word: &str, known: &[&str]) -> String {
    nearest(word, known.iter().copied())
        .map_or_else(|| format!("known: {}", known.join(", ")), |nearest| format!("did you mean '{nearest}'?"))
}

fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests;
