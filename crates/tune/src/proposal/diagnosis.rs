//! A plan from what `thalweg diagnose --json` or `thalweg fix --json` found.

use super::draft::{Draft, Raise};
use super::{Demand, NoRoute};
use crate::state::HostState;
use serde::Deserialize;
use serde_json::Value;
use thalweg_model::{ExpectedGain, PlannedChange, Reach, Setting, Side, TunePlan, Verdict};
use thiserror::Error;

/// Why no plan can be made from a document.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DiagnosisError {
    /// It is of another kind.
    #[error("it is no document of `thalweg diagnose --json` or `thalweg fix --json`: its schema is '{0}'")]
    OtherSchema(String),
    /// It found nothing that a setting mends.
    #[error("it holds no remedy that a setting of the {0} makes")]
    NothingToSet(&'static str),
    /// It is of a fix that found nothing to set.
    #[error("the fix found nothing to set, so there is nothing to plan")]
    NothingFound,
    /// It proposes attributes of a route that the host does not have.
    #[error(transparent)]
    NoRoute(#[from] NoRoute),
}

/// Plans what a diagnosis or a fix proposes for the side `here`, with the gain that it estimates or has measured.
///
/// # Errors
/// When the document is neither, or proposes nothing for this side.
pub fn from_diagnosis(
    document: &Value,
    here: Side,
    name: &str,
    demand: &Demand,
    state: &HostState,
) -> Result<TunePlan, DiagnosisError> {
    let schema = document["schema"].as_str().unwrap_or_default();
    let mut draft = Draft::new(state, name);
    let count = match schema {
        "thalweg.diagnose/1" => diagnosed(document, here, name, demand, &mut draft),
        "thalweg.fix/1" => proven(document, here, name, demand, &mut draft),
        _ => return Err(DiagnosisError::OtherSchema(schema.to_owned())),
    };
    if count == 0 && schema == "thalweg.fix/1" && document["remedy"].is_null() && document["proof"].is_object() {
        return Err(DiagnosisError::NothingFound);
    }
    if count == 0 {
        return Err(DiagnosisError::NothingToSet(here.as_str()));
    }
    Ok(draft.finish()?)
}

/// Adds the first remedy of each connection that has changes for this side; returns how many changes there were.
fn diagnosed(document: &Value, here: Side, name: &str, demand: &Demand, draft: &mut Draft<'_>) -> usize {
    let (mut count, mut flows) = (0, 0);
    let mut best: Option<f64> = None;
    for flow in list(document, "captures").iter().flat_map(|capture| list(capture, "flows")) {
        flows += 1;
        // Remedies are alternatives, the best first.
        let added =
            list(flow, "remedies").iter().map(|remedy| add(draft, demand, remedy, here)).find(|added| *added > 0);
        let Some(added) = added else { continue };
        count += added;
        let verdict = Verdict::deserialize(&flow["verdict"]).ok();
        best = verdict.and_then(|verdict| verdict.gain_of_whole()).into_iter().chain(best).reduce(f64::max);
    }
    let how = format!("{count} changes of {flows} connections, the largest of each setting");
    draft.step("what the diagnosis proposes", how, name.to_owned());
    draft.expect(
        best.filter(|gain| *gain > 1.0).map(|ratio| ExpectedGain {
            figure: "goodput_bps".to_owned(),
            before: None,
            after: None,
            ratio,
            source: "The diagnosis estimates it for the connection with the most to gain; `thalweg fix` measures it."
                .to_owned(),
        }),
    );
    count
}

/// Adds the remedy that a fix has measured; returns how many changes there were.
fn proven(document: &Value, here: Side, name: &str, demand: &Demand, draft: &mut Draft<'_>) -> usize {
    let mut count = add(draft, demand, &document["remedy"], here);
    for need in list(document, "needs").iter().filter(|need| side(need) == Some(here)) {
        let (Some(setting), Some(to)) = (setting(need), need["to"].as_str()) else { continue };
        count += 1;
        set(draft, demand, setting, to, "The gain takes this much where the host has less.");
    }
    let proof = &document["proof"];
    let text = |key: &str| proof[key].as_str().unwrap_or("?").to_owned();
    draft.step("what the fix proposes", format!("{count} changes for this side"), name.to_owned());
    let (ratio, before, after) = (&document["ratio"], &document["before"], &document["after"]);
    draft.expect(ratio.as_f64().map(|ratio| ExpectedGain {
        figure: document["metric"].as_str().unwrap_or_default().to_owned(),
        before: before.as_f64(),
        after: after.as_f64(),
        ratio,
        source: format!(
            "Measured in the lab: scenario '{}', Linux {}, seed {}, all changes of both sides.",
            text("scenario"),
            text("kernel"),
            proof["seed"],
        ),
    }));
    if demand.to == "default" && draft.changes_a_route() {
        draft.warn("The route's attributes hold for every destination of the default route: --to PREFIX plans for a route of its own.");
    }
    count
}

/// Adds a remedy's changes for one side; returns how many there were.
fn add(draft: &mut Draft<'_>, demand: &Demand, remedy: &Value, here: Side) -> usize {
    let why = remedy["reason"].as_str().unwrap_or_default();
    let mut count = 0;
    for change in list(remedy, "changes").iter().filter(|change| side(change) == Some(here)) {
        let (Some(setting), Some(to)) = (setting(change), change["to"].as_str()) else { continue };
        count += 1;
        set(draft, demand, setting, to, why);
    }
    count
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn side(change: &Value) -> Option<Side> {
    serde_json::from_value(change["side"].clone()).ok()
}

fn setting(change: &Value) -> Option<Setting> {
    serde_json::from_value(change["setting"].clone()).ok()
}

fn set(draft: &mut Draft<'_>, demand: &Demand, setting: Setting, to: &str, why: &str) {
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
