//! Whether documents are what their schemas in `docs/schema` say.

use jsonschema::Validator;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The schemas that were needed so far.
#[derive(Default)]
pub(crate) struct Schemas(HashMap<String, Validator>);

impl Schemas {
    /// Fails unless the document is what the schema that it names says.
    pub(crate) fn check(&mut self, document: &Value) {
        let name = document["schema"].as_str().expect("the name of a schema");
        let schema = self.0.entry(name.to_owned()).or_insert_with(|| read(name));
        let faults: Vec<String> =
            schema.iter_errors(document).map(|fault| format!("{}: {fault}", fault.instance_path)).collect();
        assert!(faults.is_empty(), "not as {name} says:\n{}", faults.join("\n"));
    }
}

fn read(name: &str) -> Validator {
    let file = format!("../../docs/schema/{}.json", name.replace('/', "-"));
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("docs/schema has it");
    jsonschema::draft202012::new(&serde_json::from_str(&text).expect("JSON")).expect("a schema")
}
