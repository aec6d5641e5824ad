//! The name under which an object is stored: from the server or the URL, and never a way out of the folder.

use percent_encoding::percent_decode_str;
use url::Url;

/// The longest name of a file, in bytes, with room for the endings of the files beside it. Source: NAME_MAX, include/uapi/linux/limits.h.
const LONGEST: usize = 255 - ".part.json.new".len();
/// The name of an object without one.
const NAMELESS: &str = "download";

/// The name for an object: what the server proposes, or the last segment of the URL's path.
pub fn choose(disposition: Option<&str>, url: &Url) -> String {
    let from_url = || {
        let last = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
        safe(&percent_decode_str(last).decode_utf8_lossy())
    };
    disposition.and_then(proposed).and_then(|name| safe(&name)).or_else(from_url).unwrap_or_else(|| NAMELESS.to_owned())
}

/// The file name of a `Content-Disposition`. Source: RFC 6266 §4.3, RFC 8187 §3.2.
pub fn proposed(field: &str) -> Option<String> {
    let parameters = parameters(field);
    let find =
        |wanted: &str| parameters.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value);
    if let Some(extended) = find("filename*") {
        let mut parts = extended.splitn(3, '\'');
        let (charset, _language, value) = (parts.next()?, parts.next(), parts.next());
        if let (true, Some(value)) = (charset.eq_ignore_ascii_case("utf-8"), value)
            && let Ok(text) = percent_decode_str(value).decode_utf8()
        {
            return Some(text.into_owned());
        }
    }
    find("filename").cloned()
}

/// `name=value` after each semicolon, quotes taken away.
fn parameters(field: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut chars = field.chars().skip_while(|c| *c != ';').skip(1).peekable();
    while chars.peek().is_some() {
        let name: String = chars.by_ref().take_while(|c| *c != '=').collect();
        let mut value = String::new();
        let mut quoted = false;
        while let Some(c) = chars.next() {
            match c {
                '"' => quoted = !quoted,
                '\\' if quoted => value.extend(chars.next()),
                ';' if !quoted => break,
                other => value.push(other),
            }
        }
        found.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    found
}

/// The last part of a name, without what a terminal or a file system takes amiss; `None` if nothing is left.
///
/// Leading dots become underscores: a server does not choose names that `ls` hides or that shells read.
fn safe(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let clean: String = last.chars().filter(|c| !c.is_control() && !is_bidirectional(*c)).collect();
    let clean = clean.trim();
    let dots = clean.len() - clean.trim_start_matches('.').len();
    if dots == clean.len() {
        return None;
    }
    let mut name = "_".repeat(dots.min(1)) + &clean[dots..];
    if name.starts_with('-') {
        // Commands would take it for an option.
        name.replace_range(..1, "_");
    }
    while name.len() > LONGEST {
        name.pop();
    }
    Some(name)
}

/// Characters that reorder the text around them, so that a name looks like another.
fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(disposition: &str) -> String {
        choose(Some(disposition), &"http://h/from-url.iso".parse().expect("a URL"))
    }

    #[test]
    fn the_server_proposes_and_the_url_stands_in() {
        assert_eq!(of("attachment; filename=\"a b.iso\""), "a b.iso");
        assert_eq!(of("attachment; filename=a.iso; filename*=UTF-8''%e2%82%ac.iso"), "€.iso");
        assert_eq!(of("attachment; filename*=KOI8-R''x; filename=\"a\\\"b;c\""), "a\"b;c");
        assert_eq!(of("inline"), "from-url.iso");
        assert_eq!(choose(None, &"http://h/a%20b.iso?x=/y".parse().expect("a URL")), "a b.iso");
        assert_eq!(choose(None, &"http://h/".parse().expect("a URL")), "download");
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert_eq!(of("attachment; filename=\"../../etc/passwd\""), "passwd");
        assert_eq!(of("attachment; filename=\"C:\\\\x\\\\evil.exe\""), "evil.exe");
        assert_eq!(of("attachment; filename=\"..\""), "from-url.iso");
        assert_eq!(of("attachment; filename=.bashrc"), "_bashrc");
        assert_eq!(of("attachment; filename=-rf"), "_rf");
        assert_eq!(of("attachment; filename=\"a\u{202e}gpj.exe\u{1b}[2J\""), "agpj.exe[2J");
        assert_eq!(choose(None, &"http://h/a/..%2f..%2fx".parse().expect("a URL")), "x");
    }

    proptest! {
        #[test]
        fn any_field_gives_a_plain_name(field in "\\PC*", path in "\\PC*") {
            let mut url: Url = "http://h/".parse().expect("a URL");
            url.set_path(&path);
            let name = choose(Some(&format!("attachment; filename{field}")), &url);
            prop_assert!(!name.is_empty() && name.len() <= LONGEST);
            let forbidden = ['/', '\0', '\n', '\u{1b}'];
            prop_assert!(!name.contains(forbidden) && !name.starts_with(['.', '-']));
        }
    }
}
