//! Text as HTML and JSON as script content, so that nothing in it is taken for markup.

use crate::figures::clean;

/// Escapes `text` for use between tags and in quoted attributes; what could turn a line around is replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Makes JSON safe inside a `<script>` element: neither `</script>` nor `<!--` can stand in it.
///
/// JSON has `<`, `>` and `&` only inside strings, where an escape means the same.
///
/// Source: HTML Living Standard §4.12.1.3, restrictions for contents of script elements.
pub(super) fn script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(escape("<img src=x onerror='a()'>&\""), "&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;");
        assert_eq!(script("[\"</script><!--&\"]"), "[\"\\u003c/script\\u003e\\u003c!--\\u0026\"]");
    }
}
