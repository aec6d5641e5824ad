//! A type's schema that takes what the type prints and no more: no unknown field, no negative size or time, no null where a field is left
//! out instead.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

type Object = Map<String, Value>;

/// The schema of a document.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    let types = schema["$defs"].as_object().cloned().unwrap_or_default();
    each(&mut schema, &mut |object| join_parts(object, &types));
    each(&mut schema, &mut bound);
    each(&mut schema, &mut fields);
    each(&mut schema, &mut describe);
    close(&mut schema, false);
    drop_unused(&mut schema);
    schema
}

/// Applies `change` to every schema in a schema, the outer ones first.
fn each(value: &mut Value, change: &mut impl FnMut(&mut Object)) {
    match value {
        Value::Object(object) => {
            change(object);
            for (key, inner) in object.iter_mut() {
                match inner {
                    // Its members have names of the documents, not of JSON Schema.
                    Value::Object(named) if key == "properties" || key == "$defs" => {
                        named.values_mut().for_each(|inner| each(inner, change));
                    }
                    inner => each(inner, change),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        _ => {}
    }
}

/// A variant that refers to a type and adds a tag becomes one object, so that it can be closed.
fn join_parts(object: &mut Object, types: &Object) {
    let Some(name) = object.get("$ref").and_then(Value::as_str).filter(|_| object.contains_key("properties")) else {
        return;
    };
    let part = types[name.trim_start_matches("#/$defs/")].as_object().expect("a type").clone();
    object.remove("$ref");
    for (key, value) in part {
        match (object.get_mut(&key), value) {
            (Some(Value::Object(ours)), Value::Object(theirs)) => ours.extend(theirs),
            (Some(Value::Array(ours)), Value::Array(theirs)) => ours.extend(theirs),
            (_, value) => drop(object.insert(key, value)),
        }
    }
    join_parts(object, types);
}

/// No number is negative, unless its field says `minimum = null`. How many bits a type has is nothing that JSON knows.
fn bound(object: &mut Object) {
    object.remove("format");
    let is_number = object.get("type").is_some_and(|of| match of {
        Value::Array(types) => types.contains(&json!("number")),
        of => of == "number",
    });
    if object.get("minimum").is_some_and(Value::is_null) {
        object.remove("minimum");
        if let Some(Value::Object(items)) = object.get_mut("items") {
            items.insert("minimum".to_owned(), Value::Null);
        }
    } else if is_number && !object.contains_key("exclusiveMinimum") {
        object.entry("minimum").or_insert(json!(0));
    }
}

/// A field that is left out without a value is never null, and one that names the document has that name.
fn fields(object: &mut Object) {
    let required: BTreeSet<String> = object
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (name, field) in properties {
        let Value::Object(field) = field else { continue };
        let text = field.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        if name == "schema" {
            *field = Map::from_iter([("const".to_owned(), json!(text.trim_matches(['`', '.'])))]);
        } else if !required.contains(name) {
            without_null(field);
            let text = text.strip_prefix("`None`").map_or(text.clone(), |rest| format!("Left out{rest}"));
            if !text.is_empty() {
                field.insert("description".to_owned(), json!(text.replace("`None`", "left out")));
            }
        }
    }
}

fn without_null(field: &mut Object) {
    if let Some(Value::Array(types)) = field.get_mut("type") {
        types.retain(|of| of != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            field.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(variants)) = field.get_mut("anyOf") {
        variants.retain(|variant| variant["type"] != "null");
        if let [Value::Object(one)] = variants.as_slice() {
            let one = one.clone();
            field.remove("anyOf");
            field.extend(one);
        }
    }
}

/// The comment of a type or a field, in the words of JSON: on one line, without links.
fn describe(object: &mut Object) {
    let Some(text) = object.get("description").and_then(Value::as_str) else { return };
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("`None`", "`null`").replace("[`", "`").replace("`]", "`");
    let text = text.strip_suffix('.').filter(|one| !one.contains(". ")).unwrap_or(&text);
    object.insert("description".to_owned(), json!(text));
}

/// No object has other fields than those of its type. One that is divided by variants is closed as a whole.
fn close(value: &mut Value, part: bool) {
    match value {
        Value::Object(object) => {
            let fields = object.contains_key("properties");
            let divided = ["oneOf", "anyOf"].iter().any(|key| object.contains_key(*key));
            if fields && !part {
                let key = if divided { "unevaluatedProperties" } else { "additionalProperties" };
                object.insert(key.to_owned(), json!(false));
            }
            for (key, inner) in object.iter_mut() {
                match inner {
                    Value::Object(named) if key == "properties" || key == "$defs" => {
                        named.values_mut().for_each(|inner| close(inner, false));
                    }
                    inner => close(inner, (fields || part) && ["oneOf", "anyOf"].contains(&key.as_str())),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, part)),
        _ => {}
    }
}

/// Removes the types that nothing refers to any more.
fn drop_unused(schema: &mut Value) {
    loop {
        let text = schema.to_string();
        let Some(types) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
        let before = types.len();
        types.retain(|name, _| text.contains(&format!("\"#/$defs/{name}\"")));
        if types.len() == before {
            return;
        }
    }
}
