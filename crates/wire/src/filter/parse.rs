//! From text to an expression.

use super::{Expression, FilterError, Side, What, names};
use std::net::{IpAddr, Ipv4Addr};

/// Longest filter that is read, in bytes; 4,096 instructions, the most the kernel takes, are less.
const LONGEST: usize = 16 << 10;
/// Parentheses and negations in one another.
const DEEPEST: usize = 64;

const PRIMITIVES: &str = "write: host ADDRESS, net ADDRESS/BITS, port NUMBER or NAME, portrange FIRST-LAST, each with src or dst before it; tcp, ip, ip6; and, or, not, ( )";
const WORDS: [&str; 11] = ["host", "net", "port", "portrange", "src", "dst", "tcp", "ip", "ip6", "and", "or"];
const ADDRESS_HINT: &str = "an address is numbers, such as 192.0.2.1 or 2001:db8::1; names are not looked up";

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    let mut parser = Parser { text, words: words(text), next: 0, depth: 0, last: None };
    if text.len() > LONGEST {
        return Err(parser.error(0, "it is too long", "name networks in place of single addresses"));
    }
    if parser.words.is_empty() {
        return Ok(Expression::Test(Side::Either, What::Tcp));
    }
    let whole = parser.expression()?;
    match parser.peek() {
        None => Ok(whole),
        Some(")") => Err(parser.here("there is no '(' before this ')'", "remove it, or open it")),
        Some(word) => {
            let problem = format!("'{word}' where 'and' or 'or' should be");
            Err(parser.here(&problem, &suggestion(word)))
        }
    }
}

/// The kind of a value and its side, for values that come without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

struct Parser<'a> {
    text: &'a str,
    /// Each word and where it begins.
    words: Vec<(usize, &'a str)>,
    next: usize,
    depth: usize,
    last: Option<(Ends, Kind)>,
}

/// Which ends a value is about, as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Either,
    Source,
    Destination,
    Both,
}

impl Ends {
    fn test(self, what: What) -> Expression {
        let of = |side| Expression::Test(side, what);
        match self {
            Self::Either => of(Side::Either),
            Self::Source => of(Side::Source),
            Self::Destination => of(Side::Destination),
            Self::Both => Expression::All(vec![of(Side::Source), of(Side::Destination)]),
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.next).map(|(_, word)| *word)
    }

    fn take(&mut self, expected: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| expected.contains(&word));
        self.next += usize::from(found);
        found
    }

    fn error(&self, at: usize, problem: &str, hint: &str) -> FilterError {
        let at = self.text.get(..at).unwrap_or_default().chars().count();
        FilterError { text: self.text.to_owned(), at, problem: problem.to_owned(), hint: hint.to_owned() }
    }

    /// An error at the next word.
    fn here(&self, problem: &str, hint: &str) -> FilterError {
        let at = self.words.get(self.next).map_or(self.text.trim_end().len(), |(at, _)| *at);
        self.error(at, problem, hint)
    }

    fn expression(&mut self) -> Result<Expression, FilterError> {
        let mut left = self.negation()?;
        loop {
            let is_and = self.take(&["and", "&&"]);
            if !is_and && !self.take(&["or", "||"]) {
                return Ok(left);
            }
            let right = self.negation()?;
            left = match (left, is_and) {
                (Expression::All(mut parts), true) => {
                    parts.push(right);
                    Expression::All(parts)
                }
                (Expression::Any(mut parts), false) => {
                    parts.push(right);
                    Expression::Any(parts)
                }
                (left, true) => Expression::All(vec![left, right]),
                (left, false) => Expression::Any(vec![left, right]),
            };
        }
    }

    fn negation(&mut self) -> Result<Expression, FilterError> {
        let mut negated = false;
        while self.take(&["not", "!"]) {
            negated = !negated;
        }
        let inner = if self.peek() == Some("(") { self.parenthesized()? } else { self.test()? };
        Ok(if negated { Expression::Not(Box::new(inner)) } else { inner })
    }

    /// What stands in parentheses, of which the first is next.
    fn parenthesized(&mut self) -> Result<Expression, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.here("too many parentheses in one another", "write it flatter"));
        }
        let open = self.next;
        self.next += 1;
        let inner = self.expression()?;
        if !self.take(&[")"]) {
            let problem = match self.peek() {
                Some(word) => format!("'{word}' where 'and', 'or' or ')' should be"),
                None => "this '(' is never closed".to_owned(),
            };
            let at = self.words.get(self.next).unwrap_or(&self.words[open]).0;
            return Err(self.error(at, &problem, "close it with ')'"));
        }
        self.depth -= 1;
        Ok(inner)
    }

    fn test(&mut self) -> Result<Expression, FilterError> {
        // A protocol stands alone, or before what it qualifies.
        let version = match self.peek() {
            Some("tcp") => Some(What::Tcp),
            Some("ip") => Some(What::Version(4)),
            Some("ip6") => Some(What::Version(6)),
            _ => None,
        };
        if let Some(what) = version {
            self.next += 1;
            let alone = Expression::Test(Side::Either, what);
            if !self.peek().is_some_and(|word| matches!(word, "src" | "dst" | "host" | "net" | "port" | "portrange")) {
                return Ok(alone);
            }
            let rest = self.test()?;
            return Ok(if what == What::Tcp { rest } else { Expression::All(vec![alone, rest]) });
        }
        let ends = self.ends();
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            _ => None,
        };
        self.next += usize::from(kind.is_some());
        let is_qualified = ends.is_some() || kind.is_some();
        let (ends, kind) = match (ends, kind, self.last) {
            (None, None, Some(last)) => last,
            (ends, kind, _) => (ends.unwrap_or(Ends::Either), kind.unwrap_or(Kind::Host)),
        };
        self.last = Some((ends, kind));
        if is_qualified && matches!(self.peek(), Some("(" | "not" | "!")) {
            // Values in parentheses take what is before them, and so does a value after them.
            let values = self.negation()?;
            self.last = Some((ends, kind));
            return Ok(values);
        }
        let Some(word) = self.peek() else {
            return Err(self.here("it ends where something is to be tested", PRIMITIVES));
        };
        let what = match kind {
            Kind::Host if word.contains('/') => self.net(word)?,
            Kind::Host => self.host(word)?,
            Kind::Net => self.net(word)?,
            Kind::Port => {
                let port = self.port(word)?;
                What::Ports(port, port)
            }
            Kind::PortRange => {
                let Some((first, last)) = word.split_once('-') else {
                    let problem = format!("'{word}' is no range of ports");
                    return Err(self.here(&problem, "write it as FIRST-LAST, such as 8000-8080"));
                };
                let (first, last) = (self.port(first)?, self.port(last)?);
                What::Ports(first.min(last), first.max(last))
            }
        };
        self.next += 1;
        let what = if kind == Kind::Net && self.take(&["mask"]) { self.masked(what)? } else { what };
        Ok(ends.test(what))
    }

    /// "src", "dst", or the two with "or" or "and" between.
    fn ends(&mut self) -> Option<Ends> {
        let word = |n: usize| self.words.get(self.next + n).map(|(_, word)| *word);
        let (taken, ends) = match (word(0), word(1), word(2)) {
            (Some("src"), Some("or"), Some("dst")) | (Some("dst"), Some("or"), Some("src")) => (3, Ends::Either),
            (Some("src"), Some("and"), Some("dst")) | (Some("dst"), Some("and"), Some("src")) => (3, Ends::Both),
            (Some("src"), ..) => (1, Ends::Source),
            (Some("dst"), ..) => (1, Ends::Destination),
            _ => return None,
        };
        self.next += taken;
        Some(ends)
    }

    /// A network whose bits are given by the mask that comes next.
    fn masked(&mut self, what: What) -> Result<What, FilterError> {
        const HINT: &str = "write it as net 192.0.2.0 mask 255.255.255.0, or as net 192.0.2.0/24";
        let Some(word) = self.peek() else { return Err(self.here("it ends where a mask should be", HINT)) };
        let wrong = |problem: &str| self.here(&format!("'{word}' is no mask: {problem}"), HINT);
        let Ok(What::Net(IpAddr::V4(mask), _)) = self.net(word) else { return Err(wrong("it cannot be read")) };
        let (mask, bits) = (mask.to_bits(), mask.to_bits().leading_ones());
        if mask.count_ones() != bits {
            return Err(wrong("its bits have a gap"));
        }
        match what {
            What::Net(address @ IpAddr::V4(_), _) => {
                self.next += 1;
                Ok(What::Net(address, bits as u8))
            }
            _ => Err(wrong("masks are for IPv4")),
        }
    }

    fn host(&self, word: &str) -> Result<What, FilterError> {
        match word.parse::<IpAddr>() {
            Ok(address) => Ok(What::Net(address, if address.is_ipv4() { 32 } else { 128 })),
            Err(_) if matches!(word, "udp" | "icmp" | "icmp6" | "arp" | "sctp") => {
                Err(self.here(&format!("'{word}' is never TCP, which is all that is analysed"), PRIMITIVES))
            }
            Err(_) if word.starts_with(|c: char| c.is_ascii_digit()) || word.contains(':') => {
                Err(self.here(&format!("'{word}' is no address"), ADDRESS_HINT))
            }
            Err(_) => Err(self.here(&format!("'{word}' is not known"), &suggestion(word))),
        }
    }

    /// A network: ADDRESS/BITS, a whole address, or the first numbers of one, as in `net 192.168`.
    fn net(&self, word: &str) -> Result<What, FilterError> {
        const HINT: &str = "write it as ADDRESS/BITS, such as 192.0.2.0/24 or 2001:db8::/32";
        let wrong = |problem: &str| self.here(&format!("'{word}' is no network: {problem}"), HINT);
        let (address, bits) = match word.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (word, None),
        };
        let numbers: Vec<&str> = address.split('.').collect();
        let (address, whole) = match address.parse::<IpAddr>() {
            Ok(address) => (address, if address.is_ipv4() { 32 } else { 128 }),
            Err(_) if numbers.len() <= 3 && numbers.iter().all(|n| n.parse::<u8>().is_ok()) => {
                let mut octets = [0; 4];
                for (octet, number) in octets.iter_mut().zip(&numbers) {
                    *octet = number.parse().unwrap_or(0);
                }
                (IpAddr::V4(Ipv4Addr::from(octets)), numbers.len() as u8 * 8)
            }
            Err(_) => return Err(wrong("its address cannot be read")),
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        match bits.map(str::parse::<u8>) {
            None => Ok(What::Net(address, whole)),
            Some(Ok(bits)) if bits <= most => Ok(What::Net(address, bits)),
            Some(_) => Err(wrong(&format!("its bits are 0 to {most}"))),
        }
    }

    fn port(&self, word: &str) -> Result<u16, FilterError> {
        let named = || names::port(word);
        word.parse().ok().or_else(named).ok_or_else(|| {
            let hint = "a port is a number from 0 to 65535, or a name such as https or ssh";
            // Behind a port "and" may go on with another port, or begin another test.
            let turned = WORDS.iter().copied().filter(|known| is_turned(word, known));
            let meant = near(word, turned).or_else(|| near(word, names::all())).or_else(|| near(word, WORDS));
            self.here(&format!("'{word}' is no port"), &meant.unwrap_or_else(|| hint.to_owned()))
        })
    }
}

/// Splits at white space, and parentheses and `!` off.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut begin = None;
    for (at, character) in text.char_indices() {
        let is_sign = matches!(character, '(' | ')' | '!');
        if (is_sign || character.is_whitespace())
            && let Some(from) = begin.take()
        {
            found.push((from, &text[from..at]));
        }
        if is_sign {
            found.push((at, &text[at..=at]));
        } else if !character.is_whitespace() {
            begin.get_or_insert(at);
        }
    }
    if let Some(from) = begin {
        found.push((from, &text[from..]));
    }
    found
}

/// What was probably meant: a word that differs in one or two letters, else what there is.
fn suggestion(word: &str) -> String {
    if names::port(word).is_some() {
        return format!("write port {word}");
    }
    near(word, WORDS).unwrap_or_else(|| PRIMITIVES.to_owned())
}

/// Whether the two have the same letters, in another order.
fn is_turned(word: &str, known: &str) -> bool {
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.to_ascii_lowercase().chars().collect();
        letters.sort_unstable();
        letters
    };
    sorted(word) == sorted(known)
}

fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let is_near = |known: &&str| {
        let same = known.chars().filter(|c| word.contains(*c)).count();
        let is_near = known.len().abs_diff(word.len()) <= 1 && same + 1 >= known.len();
        is_near && known.chars().next() == word.chars().next()
    };
    known.into_iter().find(is_near).map(|known| format!("did you mean '{known}'?"))
}
