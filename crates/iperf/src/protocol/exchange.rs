//! Transactions: an addition to iperf3's protocol. A connection begins with a cookie that no client of iperf3 sends, and that says how large
//! requests and responses are.

use super::{COOKIE_LEN, Cookie};

/// Largest request and response in bytes.
pub const MAX_EXCHANGE: u32 = 1 << 30;
/// What a server sends in place of a response to a client that has not proved its token.
pub const NOT_ADMITTED: u8 = b'!';
/// How cookies begin: of connections with many transactions, and of those with one.
const MARKS: [(&str, bool); 2] = [("thalweg.rr-1.", false), ("thalweg.crr1.", true)];

/// What a connection exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// One transaction, after which the server closes; the cookie is the first part of the request.
    pub connects: bool,
    /// Bytes of a request; with `connects` at least those of the cookie.
    pub request: u32,
    /// Bytes of a response, of which the first is the digit 0.
    pub response: u32,
}

impl Exchange {
    /// The smallest request in bytes.
    pub const fn least_request(connects: bool) -> u32 {
        if connects { COOKIE_LEN as u32 } else { 1 }
    }

    /// Whether the sizes are in their ranges.
    pub const fn is_valid(&self) -> bool {
        self.request >= Self::least_request(self.connects)
            && self.request <= MAX_EXCHANGE
            && self.response >= 1
            && self.response <= MAX_EXCHANGE
    }

    /// The cookie that says it.
    pub fn cookie(&self) -> Cookie {
        let mark = MARKS[usize::from(self.connects)].0;
        let text = format!("{mark}{:08x}{:08x}.......\0", self.request, self.response);
        let mut cookie = [0; COOKIE_LEN];
        cookie.copy_from_slice(text.as_bytes());
        Cookie(cookie)
    }

    /// What a cookie says; `None` for those of iperf3, and where a size is out of its range.
    pub fn of_cookie(cookie: &Cookie) -> Option<Self> {
        let text = std::str::from_utf8(&cookie.0).ok()?;
        let (mark, connects) = MARKS.into_iter().find(|(mark, _)| text.starts_with(mark))?;
        let size = |at: usize| u32::from_str_radix(text.get(mark.len() + at..mark.len() + at + 8)?, 16).ok();
        Some(Self { connects, request: size(0)?, response: size(8)? }).filter(Self::is_valid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cookie_says_what_is_exchanged(connects: bool, request in 0..=MAX_EXCHANGE + 1, response in 0..=MAX_EXCHANGE + 1) {
            let exchange = Exchange { connects, request, response };
            let cookie = exchange.cookie();
            prop_assert!(cookie.is_valid());
            prop_assert_eq!(Exchange::of_cookie(&cookie), Some(exchange).filter(Exchange::is_valid));
        }

        #[test]
        fn no_cookie_of_iperf3_does(random: [u8; 36], bytes in prop::collection::vec(any::<u8>(), COOKIE_LEN)) {
            prop_assert_eq!(Exchange::of_cookie(&Cookie::of_random(random)), None);
            let mut any = [0; COOKIE_LEN];
            any.copy_from_slice(&bytes);
            let _ = Exchange::of_cookie(&Cookie(any));
        }
    }
}
