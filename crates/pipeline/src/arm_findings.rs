//! What the capture of an arm shows: its costliest causes, and the connection that speaks for it.

use crate::failure::Failure;
use crate::samples;
use std::collections::BTreeMap;
use std::path::Path;
use thalweg_model::{ArmReport, Code, DiagnosisLine, Flow, Life, Series, Vantage};

/// What an arm's capture shows.
#[derive(Debug)]
pub struct ArmFindings {
    /// Causes, costliest first.
    pub lines: Vec<DiagnosisLine>,
    /// The connection that speaks for the arm.
    pub flow: Flow,
    /// Its plots.
    pub series: Series,
}

/// Reads an arm's capture; `None` where there is none, or no connection in it.
pub(crate) fn read_capture(out: &Path, arm: &ArmReport) -> Result<Option<ArmFindings>, Failure> {
    let Some(name) = &arm.capture else { return Ok(None) };
    let path = out.join(name);
    let capture = thalweg_infer::diagnose_file(&path).map_err(|error| Failure::host(format!("{error}")))?;
    let flows: Vec<(Flow, Series)> = capture.into_flows().collect();
    // Samples count from when the client began to connect, plots from the first packet where they were captured.
    let connect = flows.iter().map(|(flow, _)| flow.start).fold(f64::INFINITY, f64::min);
    let mut found = speak_for(flows);
    if let (Some(found), Some(samples)) = (&mut found, &arm.samples) {
        let late_s = found.flow.start - connect;
        found.series.cwnd_bytes = samples::congestion_window(&out.join(samples), found.flow.direction, late_s)
            .map_err(|error| Failure::host(format!("cannot read the samples '{samples}': {error}")))?;
    }
    Ok(found)
}

/// What kept connections from opening, if it is most of the time that all connections took. Of the captured ends the one that shows more of it
/// counts: a SYN that was lost on its way is in the client's capture alone.
fn late_opening(flows: &[(Flow, Series)]) -> Option<DiagnosisLine> {
    /// Most of the time.
    const MOST: f64 = 0.5;
    let ends = [true, false].map(|at_sender| {
        let seen = flows.iter().map(|(flow, _)| flow).filter(|flow| (flow.vantage == Vantage::Sender) == at_sender);
        seen.filter_map(|flow| Some((flow, flow.life?))).collect::<Vec<_>>()
    });
    // A request that was lost is in the data phase's causes already: a timer.
    let lost_s = |(flow, life): &(&Flow, Life)| match flow.verdict.code() {
        code @ (Code::Connecting | Code::AcceptQueue) => life.lost_s(code),
        _ => 0.0,
    };
    let all_s = |end: &[(&Flow, Life)]| end.iter().map(lost_s).sum::<f64>();
    let end = ends.into_iter().max_by(|a, b| all_s(a).total_cmp(&all_s(b)))?;
    let total_s: f64 = end.iter().map(|(_, life)| life.phases.total_s()).sum::<f64>().max(f64::MIN_POSITIVE);
    let longest = end.iter().max_by(|a, b| lost_s(a).total_cmp(&lost_s(b)))?;
    let share = Some(all_s(&end) / total_s).filter(|share| *share > MOST)?;
    let late = end.iter().filter(|one| lost_s(one) > 0.0).count();
    let line = DiagnosisLine::from(&longest.0.verdict);
    if end.len() == 1 {
        return Some(line);
    }
    let claim =
        format!("{late} of {} connections, {:.0} % of all connections' time: {}", end.len(), share * 100.0, line.claim);
    Some(DiagnosisLine { share, claim, gain: Some(1.0 / (1.0 - share).max(f64::MIN_POSITIVE)), ..line })
}

/// Weighs the connections seen at the sender, each by its time: the code with most time comes first, described by the longest
/// connection that has it. Waiting for the client comes last: it costs nobody but the client, as an idle control connection does.
fn speak_for(flows: Vec<(Flow, Series)>) -> Option<ArmFindings> {
    let late = late_opening(&flows);
    let at_sender = flows.iter().any(|(flow, _)| flow.vantage == Vantage::Sender);
    let seen: Vec<(Flow, Series)> =
        flows.into_iter().filter(|(flow, _)| !at_sender || flow.vantage == Vantage::Sender).collect();
    let total: f64 = seen.iter().map(|(flow, _)| flow.duration_s).sum();
    let mut by_code: BTreeMap<thalweg_model::Code, (f64, usize, usize)> = BTreeMap::new();
    for (at, (flow, _)) in seen.iter().enumerate() {
        let (time, count, longest) = by_code.entry(flow.verdict.code()).or_insert((0.0, 0, at));
        *time += flow.duration_s;
        *count += 1;
        if flow.duration_s > seen[*longest].0.duration_s {
            *longest = at;
        }
    }
    let mut ranked: Vec<(f64, usize, usize)> = by_code.into_values().collect();
    let waits = |one: &(f64, usize, usize)| seen[one.2].0.verdict.code() == Code::WaitingForClient;
    ranked.sort_by(|a, b| waits(a).cmp(&waits(b)).then(b.0.total_cmp(&a.0)).then(a.2.cmp(&b.2)));
    let count = seen.len();
    let known = late.as_ref().map(|line| line.code);
    let lines = late
        .into_iter()
        .chain(ranked.iter().filter(|(_, _, at)| Some(seen[*at].0.verdict.code()) != known).map(
            |&(time, of, longest)| {
                let line = DiagnosisLine::from(&seen[longest].0.verdict);
                if count == 1 {
                    return line;
                }
                DiagnosisLine {
                    share: line.share * time / total.max(f64::MIN_POSITIVE),
                    claim: format!("{of} of {count} connections: {}", line.claim),
                    ..line
                }
            },
        ))
        .chain((count == 1).then(|| seen[0].0.findings.iter()).into_iter().flatten().map(|f| (&f.verdict).into()))
        .collect();
    let longest = ranked.first()?.2;
    let (flow, series) = seen.into_iter().nth(longest)?;
    Some(ArmFindings { lines, flow, series })
}
