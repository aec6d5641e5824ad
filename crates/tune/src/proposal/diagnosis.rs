//! A plan from what `thalweg diagnose --json` or `thalweg fix --json` found.

use super::Demand;
use super::draft::{Draft, Raise};
use crate::state::HostState;
use model::{PlannedChange, Reach, Setting, Side, TunePlan};
use serde_json::Value;
use thiserror::Error;

/// Why a document is no diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DiagnosisError {
    /// It is of another kind.
    #[error("it is no document of `thalweg diagnose --json`: its schema is '{0}'")]
    OtherSchema(String),
    /// It found nothing that a setting mends.
    #[error("it holds no remedy that a setting of the {0} makes")]
    NothingToSet(&'static str),
}

/// Plans what a diagnosis proposes for the side `here`.
///
/// # Errors
/// When the document is no diagnosis, or proposes nothing for this side.
pub fn from_diagnosis(
    document: &Value,
    here: Side,
    name: &str,
    demand: &Demand,
    state: &HostState,
) -> Result<TunePlan, DiagnosisError> {
    let schema = document["schema"].as_str().unwrap_or_default();
    if schema != "thalweg.diagnose/1" {
        return Err(DiagnosisError::OtherSchema(schema.to_owned()));
    }
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let mut draft = Draft::new(state, name);
    let (mut count, mut flows) = (0, 0);
    for flow in list(document, "captures").iter().flat_map(|capture| list(capture, "flows")) {
        flows += 1;
        // Each remedy is a way of its own, the best first.
        let remedies = list(&flow, "remedies");
        let own = |remedy: &&Value| list(remedy, "changes").iter().any(|change| side(change) == Some(here));
        let Some(remedy) = remedies.iter().find(own) else { continue };
        let why = remedy["reason"].as_str().unwrap_or_default();
        for change in list(remedy, "changes").iter().filter(|change| side(change) == Some(here)) {
            let (Some(setting), Some(to)) = (setting(change), change["to"].as_str()) else { continue };
            count += 1;
            add(&mut draft, demand, setting, to, why);
        }
    }
    if count == 0 {
        return Err(DiagnosisError::NothingToSet(if here == Side::Client { "client" } else { "server" }));
    }
    let how = format!("{count} changes of {flows} connections, the largest of each setting");
    draft.step("what the diagnosis proposes", how, name.to_owned());
    Ok(draft.finish())
}

fn side(change: &Value) -> Option<Side> {
    serde_json::from_value(change["side"].clone()).ok()
}

fn setting(change: &Value) -> Option<Setting> {
    serde_json::from_value(change["setting"].clone()).ok()
}

fn add(draft: &mut Draft<'_>, demand: &Demand, setting: Setting, to: &str, why: &str) {
    let risk = "See `thalweg explain` of the setting.";
    match setting {
        Setting::Sysctl(name) => {
            let raise = if to.split_whitespace().count() == 3 { Raise::IfLower } else { Raise::Set };
            // Of three numbers the third is what is proposed; the first two stay the host's own.
            let to = if raise == Raise::IfLower { to.split_whitespace().next_back().unwrap_or(to) } else { to };
            draft.sysctl(&name, to, raise, why, risk);
        }
        Setting::Route(name) => {
            let raise = if name == "initcwnd" || name == "initrwnd" { Raise::IfLower } else { Raise::Set };
            let to = if to == "auto" { "0" } else { to };
            draft.route(demand, &name, to, raise, why, risk);
        }
        Setting::Socket(name) => draft.push(PlannedChange {
            reach: Reach::Socket,
            setting: Setting::Socket(name),
            route: None,
            from: None,
            to: to.to_owned(),
            why: why.to_owned(),
            risk: risk.to_owned(),
        }),
    }
}
