//! The schemas of `docs/schema` are what the types of the documents say.
//!
//! `./x schemas` writes them again, which is this test with `THALWEG_WRITE_SCHEMAS` set.

mod strict;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use thalweg_apply::{Journal, TuneLog, TuneRollback};
use thalweg_model::*;
use thalweg_path::DropReason;
use thalweg_tune::catalogue::SettingsReport;
use thalweg_tune::show::CODES;

/// Every document that `--json` prints, by its name.
fn documents() -> BTreeMap<&'static str, Value> {
    let mut all = BTreeMap::from([
        ("thalweg.bursts/1", strict::schema::<BurstsReport>()),
        ("thalweg.code/1", strict::schema::<CodePage>()),
        ("thalweg.codes/1", strict::schema::<CodeList>()),
        ("thalweg.compare/1", strict::schema::<CompareReport>()),
        ("thalweg.diagnose/1", strict::schema::<DiagnoseReport>()),
        ("thalweg.fix/1", strict::schema::<FixReport>()),
        ("thalweg.get/1", strict::schema::<GetReport>()),
        ("thalweg.hosts/1", strict::schema::<LiveHostsReport>()),
        ("thalweg.kernel-build/1", strict::schema::<BuiltKernel>()),
        ("thalweg.kernels/1", strict::schema::<KernelList>()),
        ("thalweg.lab/1", strict::schema::<LabReport>()),
        ("thalweg.load/1", strict::schema::<LoadReport>()),
        ("thalweg.load-stream/1", strict::schema::<StreamLoadReport>()),
        ("thalweg.load-topics/1", strict::schema::<TopicsReport>()),
        ("thalweg.load-transactions/1", strict::schema::<TransactionReport>()),
        ("thalweg.load-udp-train/1", strict::schema::<UdpTrainReport>()),
        ("thalweg.path/1", strict::schema::<LivePathReport>()),
        ("thalweg.paths/1", strict::schema::<PathList>()),
        ("thalweg.scenarios/1", strict::schema::<ScenarioList>()),
        ("thalweg.settings/1", strict::schema::<SettingsReport>()),
        ("thalweg.tune-attached/1", strict::schema::<TuneAttached>()),
        ("thalweg.tune-canary/1", strict::schema::<TuneCanary>()),
        ("thalweg.tune-congestion/1", strict::schema::<TuneCongestion>()),
        ("thalweg.tune-detached/1", strict::schema::<TuneDetached>()),
        ("thalweg.tune-journal/1", strict::schema::<Journal>()),
        ("thalweg.tune-log/1", strict::schema::<TuneLog>()),
        ("thalweg.tune-plan/1", strict::schema::<TunePlan>()),
        ("thalweg.tune-rollback/1", strict::schema::<TuneRollback>()),
        ("thalweg.tune-show/1", strict::schema::<TuneShow>()),
        ("thalweg.watch/1", strict::schema::<WatchReport>()),
    ]);
    // Names that crates above `model` know.
    for name in ["thalweg.path/1", "thalweg.paths/1"] {
        let drops = property(all.get_mut(name), "LiveDirection", "dropped_packets");
        drops["propertyNames"] = json!({"enum": DropReason::ALL.map(DropReason::name).as_slice()});
    }
    property(all.get_mut("thalweg.tune-show/1"), "TuneFinding", "code")["enum"] =
        json!(CODES.map(|(code, _)| code).as_slice());
    all
}

/// A property of a type in a schema.
fn property<'a>(schema: Option<&'a mut Value>, of: &str, name: &str) -> &'a mut Value {
    schema.and_then(|schema| schema.pointer_mut(&format!("/$defs/{of}/properties/{name}"))).expect("the property")
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// `thalweg.lab/1` is in `thalweg.lab-1.json`.
fn file_name(name: &str) -> String {
    name.replace('/', "-") + ".json"
}

/// A schema as a file: what it is about comes first, the types it refers to come last.
#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    draft: &'a Value,
    title: &'a str,
    description: &'a Value,
    r#type: &'a Value,
    properties: &'a Value,
    required: &'a Value,
    #[serde(rename = "additionalProperties")]
    additional: &'a Value,
    #[serde(rename = "$defs", skip_serializing_if = "Value::is_null")]
    types: &'a Value,
}

fn text(name: &str, schema: &Value) -> String {
    let file = File {
        draft: &schema["$schema"],
        title: name,
        description: &schema["description"],
        r#type: &schema["type"],
        properties: &schema["properties"],
        required: &schema["required"],
        additional: &schema["additionalProperties"],
        types: &schema["$defs"],
    };
    let shown = ["$schema", "title", "description", "type", "properties", "required", "additionalProperties", "$defs"];
    let other: Vec<&String> =
        schema.as_object().expect("an object").keys().filter(|key| !shown.contains(&key.as_str())).collect();
    assert!(other.is_empty(), "{name} has a root with {other:?}");
    serde_json::to_string_pretty(&file).expect("JSON") + "\n"
}

#[test]
fn the_files_are_what_the_types_say() {
    let folder = docs().join("schema");
    let write = std::env::var_os("THALWEG_WRITE_SCHEMAS").is_some();
    let documents = documents();
    let mut stale = Vec::new();
    for (name, schema) in &documents {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name} is not a schema of draft 2020-12");
        assert_eq!(schema["properties"]["schema"]["const"], **name, "{name} does not name itself");
        let (path, text) = (folder.join(file_name(name)), text(name, schema));
        if write {
            fs::write(&path, &text).expect("written");
        } else if fs::read_to_string(&path).ok() != Some(text) {
            stale.push(file_name(name));
        }
    }
    assert!(stale.is_empty(), "these schemas are not what the types say: {stale:?}\n\nhint: ./x schemas writes them");
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .expect("docs/schema")
        .flatten()
        .map(|file| file.file_name().into_string().expect("a name"))
        .collect();
    let known: BTreeSet<String> = documents.keys().map(|name| file_name(name)).collect();
    assert_eq!(there, known, "docs/schema holds one file for each document");
}

#[test]
fn the_book_lists_every_document() {
    let page = fs::read_to_string(docs().join("json.md")).expect("docs/json.md");
    for name in documents().keys() {
        let link = format!("[`{name}`](schema/{})", file_name(name));
        assert!(page.contains(&link), "docs/json.md does not list {link}");
    }
}

/// The keywords of strictness come from the types and the documentation of their fields.
#[test]
fn schemas_say_as_much_as_types_and_comments_do() {
    #[derive(Serialize, JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Sample {
        /// `thalweg.sample/1`.
        schema: String,
        /// Time, in
        /// seconds; `None` before the first [`Sample`].
        time_s: Option<f64>,
        /// `None` if it is not known.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u16>,
        #[schemars(extend("minimum" = null))]
        ends: [f64; 2],
        seen: Seen,
    }
    #[derive(Serialize, JsonSchema)]
    #[serde(tag = "by")]
    #[allow(dead_code, reason = "only its schema is looked at")]
    enum Seen {
        /// A place.
        At(Place),
        Nowhere,
    }
    #[derive(Serialize, JsonSchema)]
    struct Place {
        line: u32,
    }
    let place = json!({
        "description": "A place", "type": "object", "additionalProperties": false, "required": ["by", "line"],
        "properties": {"by": {"type": "string", "const": "At"}, "line": {"type": "integer", "minimum": 0}},
    });
    let nowhere = json!({
        "type": "object", "additionalProperties": false, "required": ["by"],
        "properties": {"by": {"type": "string", "const": "Nowhere"}},
    });
    let wanted = json!({
        "$schema": SchemaSettings::draft2020_12().meta_schema,
        "title": "Sample", "type": "object", "additionalProperties": false,
        "required": ["schema", "time_s", "ends", "seen"],
        "properties": {
            "schema": {"const": "thalweg.sample/1"},
            "time_s": {
                "description": "Time, in seconds; `null` before the first `Sample`",
                "type": ["number", "null"], "minimum": 0,
            },
            "size": {"description": "Left out if it is not known", "type": "integer", "minimum": 0, "maximum": 65535},
            "ends": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
            "seen": {"$ref": "#/$defs/Seen"},
        },
        "$defs": {"Seen": {"oneOf": [place, nowhere]}},
    });
    assert_eq!(strict::schema::<Sample>(), wanted);
}
