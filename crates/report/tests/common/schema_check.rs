//! Whether a schema takes a document, and nothing that has more or less.

use serde_json::{Value, json};

/// A schema, ready to be held against documents.
pub(crate) fn validator(schema: &str) -> jsonschema::Validator {
    let schema = serde_json::from_str(schema).expect("the schema is JSON");
    assert!(jsonschema::draft202012::meta::is_valid(&schema), "not a schema of draft 2020-12");
    jsonschema::draft202012::new(&schema).expect("the schema can be used")
}

/// The schema takes the document, and no other that has more or less at one of these places.
pub(crate) fn holds(schema: &jsonschema::Validator, document: &Value, places: &[&str]) {
    let errors: Vec<String> = schema.iter_errors(document).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    for place in places {
        let mut more = document.clone();
        more.pointer_mut(place).expect("there")["x"] = json!(1);
        assert!(!schema.is_valid(&more), "takes an unknown field at '{place}'");
        let known: Vec<String> =
            document.pointer(place).and_then(Value::as_object).expect("an object").keys().cloned().collect();
        for key in known {
            let mut less = document.clone();
            less.pointer_mut(place).and_then(Value::as_object_mut).expect("an object").remove(&key);
            assert!(!schema.is_valid(&less), "does not miss '{place}/{key}'");
        }
    }
}
