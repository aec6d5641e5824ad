//! What a request asks for: names from its path and values from its query, decoded once and never a file's name.

use super::refusal::Refusal;
use std::borrow::Cow;

/// The names in a path, in order. `/live/cam.flv` has two; `/` has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    names: [Cow<'a, str>; Target::PARTS_MAX],
    count: usize,
}

impl Target<'_> {
    /// Most parts of a path.
    pub const PARTS_MAX: usize = 8;
}

impl<'a> Target<'a> {
    /// Splits a path at its slashes and decodes each name once.
    ///
    /// # Errors
    /// [`Refusal::BadTarget`] for what no name of ours can be: empty names, `.` and `..`, `%` without two hexadecimal digits,
    /// slashes, backslashes and control characters however they are written, and bytes that are not UTF-8.
    pub fn parse(path: &'a str) -> Result<Self, Refusal> {
        let mut target = Self { names: [const { Cow::Borrowed("") }; Target::PARTS_MAX], count: 0 };
        let inner = path.strip_prefix('/').ok_or(Refusal::BadTarget)?;
        if inner.is_empty() {
            return Ok(target);
        }
        for raw in inner.split('/') {
            let name = percent_decode(raw).ok_or(Refusal::BadTarget)?;
            let odd = |c: char| c.is_control() || c == '/' || c == '\\';
            if name.is_empty() || name == "." || name == ".." || name.contains(odd) || target.count == Target::PARTS_MAX
            {
                return Err(Refusal::BadTarget);
            }
            target.names[target.count] = name;
            target.count += 1;
        }
        Ok(target)
    }

    /// The names.
    pub fn names(&self) -> &[Cow<'a, str>] {
        &self.names[..self.count]
    }
}

/// The part of a target after the question mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Query<'a>(pub &'a str);

impl<'a> Query<'a> {
    /// The first value of `name`, decoded; `None` where there is none, or where it cannot be decoded.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.written(name).and_then(|value| decode(value, true))
    }

    /// The first value of `name` as it was written; `None` where there is none.
    pub fn written(&self, name: &str) -> Option<&'a str> {
        self.pairs().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// The parameters, names and values as they were written.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.0.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }

    /// The query as it was written, but for the parameters of these names.
    pub fn without(&self, names: &[&str]) -> String {
        let name = |pair: &'a str| decode(pair.split('=').next().unwrap_or_default(), true);
        let pairs = self.0.split('&').filter(|pair| name(pair).is_some_and(|name| !names.contains(&name.as_ref())));
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Decodes the percent escapes of a part of a path once; `None` for those that make no sense.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    decode(text, false)
}

/// Escapes what a part of a path or a value in a query cannot hold as it is. Source: RFC 3986 §2.3.
pub fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Decodes percent escapes, and in queries plus signs, once. Source: RFC 3986 §2.1; the WHATWG URL standard §5.1 for the plus.
fn decode(text: &str, plus: bool) -> Option<Cow<'_, str>> {
    if !text.bytes().any(|byte| byte == b'%' || plus && byte == b'+') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'%' => {
                let (digits, after) = rest.split_at_checked(2)?;
                rest = after;
                hex(digits[0])? << 4 | hex(digits[1])?
            }
            b'+' if plus => b' ',
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(path: &str) -> Option<Vec<String>> {
        Target::parse(path).ok().map(|target| target.names().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_query_is_shown_without_its_secrets() {
        let query = Query("a=1&key=x&b=%20&%6bey=y&token=z&c");
        assert_eq!(query.without(&["key", "token"]), "a=1&b=%20&c");
        assert_eq!(Query("").without(&["key"]), "");
    }

    #[test]
    fn a_path_is_split_and_decoded_once() {
        for (path, expected) in [
            ("/", vec![]),
            ("/live/cam.flv", vec!["live", "cam.flv"]),
            ("/a%20b/c", vec!["a b", "c"]),
            ("/%61pp/%e4%b8%ad", vec!["app", "中"]),
            ("/a%2562", vec!["a%62"]),
            ("/a+b", vec!["a+b"]),
            ("/...", vec!["..."]),
            ("/1/2/3/4/5/6/7/8", vec!["1", "2", "3", "4", "5", "6", "7", "8"]),
        ] {
            assert_eq!(names(path), Some(expected.into_iter().map(str::to_owned).collect()), "{path}");
        }
    }

    #[test]
    fn what_could_be_a_way_out_is_refused() {
        for path in [
            "",
            "live",
            "//",
            "/live/",
            "//live",
            "/live//cam",
            "/.",
            "/..",
            "/live/../etc/passwd",
            "/live/./cam",
            "/%2e%2e/x",
            "/%2E",
            "/live%2fcam",
            "/live%2Fcam",
            "/live%5ccam",
            "/live\\cam",
            "/a%00b",
            "/a%0ab",
            "/a%7fb",
            "/a%",
            "/a%4",
            "/a%zz",
            "/a%+1",
            "/%ff%fe",
            "/%c0%ae%c0%ae",
            "/1/2/3/4/5/6/7/8/9",
        ] {
            assert_eq!(names(path), None, "{path}");
        }
    }

    #[test]
    fn a_query_gives_first_values() {
        let query = Query("token=a%2Bb+c&x&token=2&y=&bad=%zz&=1");
        let get = |name| query.get(name).map(Cow::into_owned);
        assert_eq!(get("token"), Some("a+b c".to_owned()));
        assert_eq!(get("x"), Some(String::new()));
        assert_eq!(get("y"), Some(String::new()));
        assert_eq!((get("bad"), get("z"), get("tok")), (None, None, None));
        assert_eq!(Query("").get("a"), None);
    }

    proptest! {
        #[test]
        fn no_name_is_a_way_out(path in "/[ -~]{0,40}") {
            for name in names(&path).unwrap_or_default() {
                prop_assert!(!name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0']));
            }
        }
    }
}
