//! The documents `--json` prints; their schemas are checked in under `docs/schema`.

use serde::Serialize;

/// Why a document could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the report as JSON: {0}")]
pub struct JsonError(#[from] serde_json::Error);

/// Writes `document` as indented JSON with one newline at the end.
///
/// The same document gives the same bytes: fields keep the order of their type, maps are ordered by key, and a number
/// is written with the fewest digits that read back as itself. JSON has no infinity and no NaN; they become `null`.
///
/// # Errors
/// [`JsonError`] when a map of the document has keys that are not text; the model's types have none.
pub fn to_string(document: &impl Serialize) -> Result<String, JsonError> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_same_document_gives_the_same_bytes() {
        let document = BTreeMap::from([("b", 0.1 + 0.2), ("a", 452e6), ("c", f64::NAN)]);
        let text = to_string(&document).expect("text keys");
        assert_eq!(text, "{\n  \"a\": 452000000.0,\n  \"b\": 0.30000000000000004,\n  \"c\": null\n}\n");
    }
}
