//! What a remedy does to a CUBIC flow on the same path.

use crate::failure::Failure;
use crate::lab_runs::LabRuns;
use crate::observer::Observer;
use thalweg_model::{Amount, Arm, Cross, CrossTraffic, Experiment, HostSettings, Metric, Rival, Stream, Way, Workload};
use thalweg_units::Span;

/// Seeds of each of the three runs.
const SEEDS: u32 = 4;
/// And where these do not agree. On a path of 60 ms, 100 Mb/s and 0.1 % of loss, four seeds from 1, 2 and 3 on say that BBR takes 7, 8 and 13 % from
/// a CUBIC flow; sixteen from each say 26 %.
const MORE_SEEDS: u32 = 16;
/// The flows' time where the workload has none.
const DURATION: Span = Span::from_millis(10_000);
/// Harm that runs of one seed and another differ by.
const NOISE: f64 = 0.05;
/// Buffers that hold no CUBIC flow back.
const BUFFER: &str = "4096 131072 67108864";

/// Runs a CUBIC flow on the path of `base` alone, beside another, and beside one that `congestion` sends. What transfers no bulk there does so
/// here for [`DURATION`]. Where the seeds do not agree on whether the remedy is accepted, more of them decide, unless it is accepted whatever they
/// say, as with `own_path`.
pub(crate) fn rival(
    lab: &LabRuns<'_>,
    base: &Experiment,
    direction: Way,
    congestion: &str,
    own_path: bool,
    observer: &mut dyn Observer,
) -> Result<Rival, Failure> {
    let mut alone = base.clone();
    if !matches!(alone.workload, Workload::Stream(_)) {
        let amount = Amount::Seconds(DURATION);
        alone.workload = Workload::Stream(Stream { direction, amount, ..Stream::default() });
    }
    for host in [&mut alone.client, &mut alone.server] {
        *host = HostSettings::default();
        for buffer in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            host.sysctl.insert(buffer.to_owned(), BUFFER.to_owned());
        }
        host.socket.congestion = Some("cubic".to_owned());
    }
    let beside = |congestion: &str| {
        let mut experiment = alone.clone();
        let traffic = CrossTraffic::Stream { congestion: Some(congestion.to_owned()) };
        experiment.cross = vec![Cross { flows: 1, direction, start: Span::ZERO, end: None, traffic }];
        experiment
    };
    let arms = [
        Arm::new("CUBIC alone", alone.clone()),
        Arm::new("beside CUBIC", beside("cubic")),
        Arm::new("beside the remedy", beside(congestion)),
    ];
    let few = weigh(lab, &arms, SEEDS, observer)?;
    if few.agree || own_path { Ok(few.rival) } else { weigh(lab, &arms, MORE_SEEDS, observer).map(|many| many.rival) }
}

struct Weighed {
    rival: Rival,
    /// Whether each seed alone says as all of them do.
    agree: bool,
}

/// Runs a CUBIC flow alone, beside another, and beside the remedy.
fn weigh(lab: &LabRuns<'_>, arms: &[Arm; 3], seeds: u32, observer: &mut dyn Observer) -> Result<Weighed, Failure> {
    let report = lab.report("beside a CUBIC flow", arms, seeds, observer)?;
    let metric = |at: usize, path: &[&str]| report.arms.get(at).and_then(|arm| Metric::find(&arm.metrics, path));
    let rate = |at, path| metric(at, path).and_then(Metric::value).unwrap_or_default();
    let own = |at| rate(at, &["goodput_bps"]);
    let [alone_bps, beside_cubic_bps, beside_remedy_bps] = [own(0), own(1), own(2)];
    let harm = |beside: f64| if alone_bps > 0.0 { ((alone_bps - beside) / alone_bps).max(0.0) } else { 0.0 };
    let (harm_of_cubic, harm_of_remedy) = (harm(beside_cubic_bps), harm(beside_remedy_bps));
    let other = rate(2, &["cross", "goodput_bps"]);
    let squares = beside_remedy_bps.powi(2) + other.powi(2);
    let jain = if squares > 0.0 { (beside_remedy_bps + other).powi(2) / (2.0 * squares) } else { 1.0 };
    let accepted = harm_of_remedy <= harm_of_cubic + NOISE;
    let values = |at| metric(at, &["goodput_bps"]).map(Metric::values).unwrap_or_default();
    let mut pairs = values(1).into_iter().zip(values(2));
    let agree = pairs.all(|(cubic, remedy)| (harm(remedy) <= harm(cubic) + NOISE) == accepted);
    let rival = Rival { alone_bps, beside_cubic_bps, beside_remedy_bps, harm_of_cubic, harm_of_remedy, jain, accepted };
    Ok(Weighed { rival, agree })
}
