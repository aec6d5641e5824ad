//! A captured connection: fit a path and hosts to it, search for what makes it faster there, prove that.

use crate::bench::{BenchOptions, DEFAULT_KERNEL};
use crate::captured_flow;
use crate::failure::Failure;
use crate::fit::parameters::Amount;
use crate::fit::{Fit, SEEDS, fit};
use crate::fix::considerate::{Considered, considerate};
use crate::fix::other_fits::other_fits;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use crate::remedy::{AS_FOUND, figure, ratio, value};
use crate::search::{Tried, amount, longer, plans};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use thalweg_lab::Engine;
use thalweg_model::{
    Arm, CaptureFit, Change, Code, DiagnosisLine, FittedParameter, FixReport, Flow, LabReport, Remedy, Scenario,
    Series, Setting, Vantage,
};
use thalweg_units::Seed;

/// What is to be fixed.
#[derive(Debug, Clone)]
pub struct CaptureRequest<'a> {
    /// The capture.
    pub path: &'a Path,
    /// The connection's number in it; `None` is the costliest.
    pub flow: Option<u64>,
    /// The path is shared with nobody: what a remedy takes from a CUBIC flow is not weighed.
    pub own_path: bool,
    /// How the lab runs.
    pub options: BenchOptions,
}

/// What came of it.
#[derive(Debug)]
pub struct FixedCapture {
    /// The document.
    pub report: FixReport,
    /// The fitted scenario with an arm for the remedy and the verdict and goodput it has, without any name or address of the capture.
    pub scenario: Option<String>,
}

/// A connection with less payload, or over in fewer round trips, has nothing a path could be fitted to.
const PAYLOAD_LEAST: u64 = 100_000;
const ROUND_TRIPS_LEAST: f64 = 8.0;
/// More payload missing in the capture than this part, and its counts are not the connection's.
const MISSING_MOST: f64 = 0.02;
/// Others use the path up together with it for this part of the time, and its rate is not its own.
const SHARED_MOST: f64 = 0.5;

/// Fits a path to the captured connection, and searches and proves what makes it faster.
///
/// Where nothing can be fitted, searched or proven the report's notes say why: that is a result, not an error.
///
/// # Errors
/// A file that is no capture, a connection that is not in it; what the lab refuses.
pub fn capture(
    request: &CaptureRequest<'_>,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<FixedCapture, Failure> {
    let flow = captured_flow::read(request.path, request.flow)?;
    let mut report = begin(request.path, &flow);
    if let Some(why) = unfit(&flow) {
        report.notes.push(why);
        report.remedy = plans(&flow).into_iter().next();
        return Ok(finish(report, None));
    }
    let wanted = request.options.kernels.first().map_or(DEFAULT_KERNEL, String::as_str);
    let engine = Engine::Virtual(thalweg_lab::kernel::find(wanted)?);
    let lab = LabRuns { engine: &engine, jobs: request.options.jobs(), seed: Seed::new(request.options.seed), stop };
    let (flow, series, amount) = part(request.path, flow)?;
    observer.note(&format!("cause: {}; fitting a path to connection {}", flow.verdict.code(), flow.id));
    let fits = fit(&lab, &flow, &series, amount, observer)?;
    let mut accepted = fits.iter().filter(|fit| fit.model.accepted).cloned();
    let (chosen, others) = (accepted.next(), accepted.collect::<Vec<_>>());
    if let Some(capture) = &mut report.capture {
        if let Amount::Seconds(seconds) = amount {
            capture.first_s = Some(seconds);
        }
        capture.models = fits.into_iter().map(|fit| fit.model).collect();
        capture.models.sort_by_key(|model| !model.accepted);
    }
    let Some(fitted) = chosen else {
        report.notes.push(not_reproduced(&report));
        report.remedy = plans(&flow).into_iter().next();
        return Ok(finish(report, None));
    };
    let scenario = fitted.parameters.scenario("fitted")?;
    let Considered { winner, rival, rejected, tried } =
        considerate(&lab, (&fitted, &scenario), &flow, request.own_path, observer)?;
    prove(&lab, &fitted, &scenario, winner.as_ref(), &mut report, observer)?;
    report.other_fits = other_fits(&lab, (&scenario, winner.as_ref()), &others, &flow, request.own_path, observer)?;
    (report.rival, report.rejected) = (rival, rejected);
    report.search = tried.into_iter().map(|tried| tried.candidate).collect();
    if let Some(winner) = &winner {
        // The remedy first.
        report.search.sort_by_key(|candidate| candidate.name != winner.candidate.name);
    }
    let toml = bundle_scenario(&fitted, &report, winner.as_ref());
    if let Some(capture) = &mut report.capture {
        capture.scenario = Some(toml.clone());
    }
    assumptions(&fitted, &mut report);
    Ok(finish(report, Some(toml)))
}

/// The part of the connection that is reproduced, which is limited by what limits the whole: a queue that slow start overran may be all that
/// the first seconds show.
fn part(path: &Path, flow: Flow) -> Result<(Flow, Series, Amount), Failure> {
    let mut part = amount(&flow);
    loop {
        let Amount::Seconds(seconds) = part else {
            // Alone it is drawn; what it shares with others is known from all of them.
            let (_, series) = captured_flow::alone(path, &flow, None)?;
            return Ok((flow, series, part));
        };
        let (mut first, series) = captured_flow::alone(path, &flow, Some(seconds))?;
        // The longer it is seen, the better a policer is known.
        first.policer = first.policer.and(flow.policer);
        match longer(&flow, part).filter(|_| first.verdict.code() != flow.verdict.code()) {
            Some(longer) => part = longer,
            None => return Ok((first, series, part)),
        }
    }
}

/// Why no path can be fitted to the connection; `None` where one can be tried.
fn unfit(flow: &Flow) -> Option<String> {
    let bytes = flow.bytes_up.max(flow.bytes_down);
    let rtt = flow.rtt_min_ms.unwrap_or(0.0) / 1e3;
    let missing = flow.facts.missed_bytes as f64 / bytes.max(1) as f64;
    if flow.life.is_some_and(|life| life.failure.is_some()) {
        return Some(
            "The connection failed outside of its data phase: there is no transfer to make faster.".to_owned(),
        );
    }
    if !matches!(flow.vantage, Vantage::Sender | Vantage::Receiver) {
        return Some(
            "The capture was taken between the hosts, or does not tell where: what the sender saw is not in it. Capture at one of the hosts."
                .to_owned(),
        );
    }
    if bytes < PAYLOAD_LEAST || flow.phase_s < rtt * ROUND_TRIPS_LEAST {
        return Some(format!(
            "The connection is too short to fit a path to: {bytes} bytes in {:.1} round trips; {PAYLOAD_LEAST} bytes in {ROUND_TRIPS_LEAST} \
             round trips are the least.",
            flow.phase_s / rtt.max(1e-9)
        ));
    }
    if missing > MISSING_MOST {
        return Some(format!(
            "{:.0} % of the payload is not in the capture: its losses are not the connection's.",
            missing * 100.0
        ));
    }
    if let Some(shared) = flow.facts.shared_path.as_deref().filter(|shared| shared.full_share >= SHARED_MOST) {
        return Some(format!(
            "The connection shares its path with {} others of the same hosts, which use it up together for {:.0} % of the time: cross \
             traffic is not fitted yet.",
            shared.others,
            shared.full_share * 100.0
        ));
    }
    if rtt <= 0.0 {
        return Some("The capture shows no round trip.".to_owned());
    }
    match flow.verdict.code() {
        Code::NothingToGain => Some("Nothing to fit: no limit costs as much as five percent.".to_owned()),
        Code::Unknown => Some("The capture does not tell what limits the connection.".to_owned()),
        Code::Reader | Code::Application => {
            Some("A program limits the connection: no setting of TCP makes it faster, and none is searched for.".to_owned())
        }
        Code::DelayedAck | Code::IdleRestart => Some(
            "The pauses and sizes of the program's writes decide: these are not fitted yet. The remedy is planned, not proven.".to_owned(),
        ),
        Code::ReceiverDrops => {
            Some("The receiving host itself drops the packets: no setting of TCP mends that, and none is searched for.".to_owned())
        }
        code if code.is_of_life() => Some(
            "Most of the connection's time is no part of its transfer: no setting for the transfer makes it faster, and none is searched for."
                .to_owned(),
        ),
        _ => None,
    }
}

/// Which figures no model had.
fn not_reproduced(report: &FixReport) -> String {
    let models = report.capture.as_ref().map(|capture| capture.models.as_slice()).unwrap_or_default();
    let why: Vec<String> =
        models.iter().map(|model| format!("{}: {}", model.name, model.not_reproduced().join(", "))).collect();
    format!("No model reproduces the connection, so nothing is proven. Not reproduced: {}.", why.join("; "))
}

/// Runs as found and with the remedy, on paired seeds.
fn prove(
    lab: &LabRuns<'_>,
    fitted: &Fit,
    scenario: &Scenario,
    winner: Option<&Tried>,
    report: &mut FixReport,
    observer: &mut dyn Observer,
) -> Result<(), Failure> {
    let base = &scenario.arms[0].experiment;
    let mut arms = vec![Arm::new(AS_FOUND, base.clone())];
    arms.extend(winner.map(|winner| Arm::new(winner.candidate.name.clone(), winner.on(base.clone()))));
    let mut proof: LabReport = lab.report("proof", &arms, SEEDS, observer)?;
    "fitted".clone_into(&mut proof.scenario);
    proof.about = format!("The captured connection, fitted: {}", fitted.model.name);
    let (metric, _) = figure(&base.workload);
    report.before = value(&proof.arms[0], &metric).unwrap_or_default();
    if let Some(winner) = winner {
        report.after = value(&proof.arms[1], &metric);
        report.ratio = ratio(&proof.arms, &base.workload, 0, 1);
        report.remedy = Some(told(winner));
    } else {
        report.notes.push(
            "Nothing accepted that could be set is worth five percent on the fitted path and all around it.".to_owned(),
        );
    }
    report.metric = metric;
    report.proof = Some(proof);
    Ok(())
}

/// The remedy without the values that the lab's hosts had: those of the user's are not known.
fn told(winner: &Tried) -> Remedy {
    let mut remedy = winner.remedy.clone();
    remedy.changes.iter_mut().for_each(|change| change.from = None);
    remedy
}

/// What of the fit is not measured and bears on the gain.
fn assumptions(fitted: &Fit, report: &mut FixReport) {
    if fitted.parameters.rate_origin == thalweg_model::Origin::Assumed {
        report.notes.push(
            "The capture never shows the path's rate: four times the most it delivered is assumed, and the gain is bounded by that.".to_owned(),
        );
    }
    report.needs = needed(fitted, report);
    if !report.needs.is_empty() {
        report.notes.push(
            "A limit that did not hold yet leaves nothing in a capture. Besides the buffers named, no program may set less by SO_RCVBUF, SO_SNDBUF or \
             SO_MAX_PACING_RATE, and no route a smaller cwnd."
                .to_owned(),
        );
    }
    let other_end: Vec<&str> = report
        .remedy
        .iter()
        .flat_map(|remedy| &remedy.changes)
        .filter(|change| change.side != fitted.parameters.tap)
        .map(|change| change.setting.name())
        .collect();
    if !other_end.is_empty() {
        report.notes.push(format!(
            "{} is to be set on the other host than the one the capture was taken at; Linux's default is assumed there.",
            other_end.join(", ")
        ));
    }
}

/// The buffers that the gain takes at both hosts, besides those that the remedy sets.
fn needed(fitted: &Fit, report: &FixReport) -> Vec<Change> {
    let (Some(after), Some(remedy)) = (report.after.filter(|_| report.cause.code.is_host_limit()), &report.remedy)
    else {
        return Vec::new();
    };
    let is_set = |need: &Change| remedy.changes.iter().any(|one| one.is_of_same(need));
    let all = fitted.parameters.buffers_for(after);
    all.into_iter().filter(|need| !is_set(need)).collect()
}

/// The fitted scenario as a file that `thalweg lab run` holds against the capture's verdict.
fn bundle_scenario(fitted: &Fit, report: &FixReport, winner: Option<&Tried>) -> String {
    let given = fitted.parameters.list();
    let arms: Vec<(String, String)> = winner
        .iter()
        .map(|winner| (winner.candidate.name.clone(), as_toml(&winner.candidate.changes, &given)))
        .collect();
    let expect = [(format!("{AS_FOUND}/verdict"), report.cause.code.to_string())];
    let about = format!("A captured connection, fitted as {}", fitted.model.name);
    fitted.parameters.to_toml("fitted", &about, &arms, &expect)
}

/// Changes as keys of an arm, for hosts that are given these parameters: an arm can do without nothing else.
fn as_toml(changes: &[thalweg_model::Change], given: &[FittedParameter]) -> String {
    let (mut lines, mut unset) = (String::new(), Vec::new());
    for change in changes {
        let side = change.side.as_str();
        let (part, name) = match &change.setting {
            Setting::Sysctl(name) => {
                lines += &format!("{side}.sysctl.\"{name}\" = \"{}\"\n", change.to);
                continue;
            }
            Setting::Route(name) => ("route", name),
            Setting::Socket(name) => ("socket", name),
        };
        let key = format!("{side}.{part}.{name}");
        if change.to == "auto" {
            unset.extend(given.iter().any(|one| one.key == key).then(|| format!("\"{key}\"")));
        } else {
            lines += &format!("{key} = {}\n", literal(&change.to));
        }
    }
    if unset.is_empty() { lines } else { format!("unset = [{}]\n{lines}", unset.join(", ")) }
}

/// A value as TOML has it: numbers and booleans as they are.
fn literal(value: &str) -> String {
    let plain = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
    if plain { value.to_owned() } else { format!("\"{value}\"") }
}

fn begin(path: &Path, flow: &Flow) -> FixReport {
    FixReport {
        schema: "thalweg.fix/1".to_owned(),
        cause: DiagnosisLine::from(&flow.verdict),
        also: Vec::new(),
        figures: Vec::new(),
        remedy: None,
        needs: Vec::new(),
        apply: Vec::new(),
        undo: Vec::new(),
        metric: "goodput_bps".to_owned(),
        before: flow.goodput_bps,
        after: None,
        ratio: None,
        capture: Some(Box::new(CaptureFit {
            file: path.display().to_string(),
            flow: flow.id,
            client: flow.client.clone(),
            server: flow.server.clone(),
            vantage: flow.vantage,
            direction: flow.direction,
            first_s: None,
            models: Vec::new(),
            scenario: None,
        })),
        search: Vec::new(),
        rival: None,
        rejected: Vec::new(),
        other_fits: Vec::new(),
        notes: Vec::new(),
        proof: None,
    }
}

fn finish(mut report: FixReport, scenario: Option<String>) -> FixedCapture {
    if let (Some(remedy), Some(capture)) = (&report.remedy, &report.capture) {
        report.apply = thalweg_tune::between(&remedy.changes, &capture.client, &capture.server);
        report.undo = thalweg_tune::undo_between(&remedy.changes, &capture.client, &capture.server);
    }
    FixedCapture { report, scenario }
}
