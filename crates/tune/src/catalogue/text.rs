//! A setting as a page of text.

use super::entry::{Entry, Kind, Scope, show};
use super::lookup::Known;
use std::fmt::Write;
use thalweg_model::since::Release;

/// A page about a setting; `kernel` is the one whose default is pointed out.
pub fn explain(entry: &Entry, kernel: Option<Release>) -> String {
    let mut text = format!("{} ({})\n\nWhat it does\n  {}\n", entry.name, entry.kind, entry.about);
    let mut section = |title: &str, body: &str| {
        let _ = write!(text, "\n{title}\n  {body}\n");
    };
    if let Some((from, why)) = &entry.no_effect {
        section("Without effect", &format!("Since Linux {}: {why}.", show(*from)));
    }
    section("Value", &value(entry));
    section("Default", &defaults(entry, kernel));
    if entry.kind == Kind::Sysctl {
        section("Scope", &scope(entry));
    }
    if let Some(since) = entry.since {
        section("Since", &format!("Linux {}.", show(since)));
    }
    if let Some(optional) = &entry.optional {
        section("Needs", &format!("{optional}."));
    }
    section("Read by", &format!("{}.", entry.read_by));
    if let Some(cost) = &entry.cost {
        section("Cost", cost);
    }
    if !entry.verdicts.is_empty() {
        let codes: Vec<&str> = entry.verdicts.iter().map(|code| code.as_str()).collect();
        section("Answers", &format!("{} (thalweg explain CODE).", codes.join(", ")));
    }
    section("Source", &format!("{}.", entry.source));
    text
}

/// A page about a name that is no setting of mainline kernels; `None` where it is one, or nothing.
pub fn explain_known(name: &str, known: Known) -> Option<String> {
    Some(match known {
        Known::Vendor(vendor) => format!(
            "{name} (vendor)\n\nNo mainline kernel has it. It is a name of {}, where it {}.\n\nInstead\n  {}.\n",
            vendor.of, vendor.about, vendor.instead
        ),
        Known::Removed(removed) if removed.still_there => format!(
            "{name} (without effect)\n\nIt does nothing since Linux {}: {}.\n\nInstead\n  {}.\n",
            removed.until, removed.why, removed.instead
        ),
        Known::Removed(removed) => format!(
            "{name} (removed)\n\nLinux {} removed it: {}.\n\nInstead\n  {}.\n",
            removed.until, removed.why, removed.instead
        ),
        Known::Outside(outside) => {
            format!("{name} (not TCP's)\n\nIt is a setting of {}; this catalogue is about TCP.\n", outside.of)
        }
        Known::Setting(_) | Known::Mistyped(_) | Known::Unknown => return None,
    })
}

fn value(entry: &Entry) -> String {
    use super::Shape;
    let what = match entry.shape {
        Shape::Flag => "0 or 1",
        Shape::Integer => "a number",
        Shape::Bits => "a sum of bits",
        Shape::Pair => "two numbers",
        Shape::Triple => "three numbers",
        Shape::Word => "a word",
        Shape::Words => "words",
        Shape::List => "numbers and ranges, with commas",
        Shape::Mask => "processors as hexadecimal bits",
        Shape::Time => "a time",
        Shape::Text => "a text",
        Shape::Tree => "parameters of its own",
    };
    let unit = entry.unit.as_ref().map(|unit| format!(", in {unit}")).unwrap_or_default();
    let bounds = match (entry.shape, entry.range) {
        (Shape::Flag, _) | (_, None) => String::new(),
        (_, Some([least, most])) => format!(", from {least} to {most}"),
    };
    let ordered =
        if entry.ordered { "; none less than the one before it, which the kernel does not check" } else { "" };
    format!("{what}{unit}{bounds}{ordered}.")
}

fn defaults(entry: &Entry, kernel: Option<Release>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (first, value) in &entry.defaults {
        let value = if value.is_empty() { "empty" } else { value.as_str() };
        let since = if *first == (0, 0) { String::new() } else { format!(" since Linux {}", show(*first)) };
        parts.push(format!("{value}{since}"));
    }
    if let Some(varies) = &entry.varies {
        parts.push(if parts.is_empty() { varies.clone() } else { format!("({varies})") });
    }
    let list = if parts.is_empty() { "none".to_owned() } else { parts.join("; ") };
    let here = match (kernel, entry.defaults.len()) {
        (Some(kernel), 2..) => match entry.default_on(Some(kernel)) {
            Some(value) => format!(" On Linux {}: {value}.", show(kernel)),
            None => format!(" Linux {} does not have it.", show(kernel)),
        },
        _ => String::new(),
    };
    format!("{list}.{here}")
}

fn scope(entry: &Entry) -> String {
    let scope = match entry.scope {
        Scope::Namespace => "Each network namespace has its own",
        Scope::Host => "One for the whole host",
        Scope::ReadOnly => "It tells, and cannot be set",
    };
    let before = entry
        .host_before
        .map(|before| format!("; one for the whole host before Linux {}", show(before)))
        .unwrap_or_default();
    format!("{scope}{before}.")
}
