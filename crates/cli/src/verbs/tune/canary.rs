//! `thalweg tune canary`: what is attached gets a larger share of connections step by step, until it is certain that they fare worse.

use super::attach::{open, refused};
use crate::args::tune_attach::TuneCanaryArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, stop};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_host::bpf::ArmCounters;
use thalweg_model::{CanaryEffect, TuneCanary};
use thalweg_tune::canary::{Effect, Outcome, Sample, Step, effect};

/// Size of an effect on the time that matters: a tenth, which is what a larger initial window gained on average in the trials that made ten
/// segments the default (Dukkipati et al., "An Argument for Increasing TCP's Initial Congestion Window", CCR 2010).
const TIME_THAT_MATTERS: f64 = 0.1;
/// The same for the part of connections that resend: one in a hundred.
const RESENT_THAT_MATTERS: f64 = 0.01;

/// How soon Ctrl-C is seen.
const NAP: Duration = Duration::from_millis(100);

/// The figures of each step so far.
#[derive(Default)]
struct Trial {
    times: Vec<Step>,
    resent: Vec<Step>,
}

impl Trial {
    /// Takes in what was counted in the present step.
    fn step(&mut self, began: &[ArmCounters; 2], now: &[ArmCounters; 2], index: usize) {
        let arm = |at: usize| {
            let (a, b) = (&began[at], &now[at]);
            let (sum, squares) = (b.first_sum - a.first_sum, b.first_squares - a.first_squares);
            let unit = ArmCounters::UNIT_S;
            let time = Sample {
                count: (b.first - a.first) as f64,
                sum: sum as f64 * unit,
                squares: squares as f64 * unit * unit,
            };
            (time, Sample::of_share(b.first - a.first, b.first_resent - a.first_resent))
        };
        let ((time0, resent0), (time1, resent1)) = (arm(0), arm(1));
        self.times.truncate(index);
        self.resent.truncate(index);
        self.times.push([time0, time1]);
        self.resent.push([resent0, resent1]);
    }

    fn effects(&self, error: f64) -> (Option<Effect>, Option<Effect>) {
        // Two figures are judged, so each may be wrong half as often.
        let error = error / 2.0;
        let time = effect(&self.times, |mean| mean * TIME_THAT_MATTERS, error);
        (time, effect(&self.resent, |_| RESENT_THAT_MATTERS, error))
    }
}

pub(crate) fn run(args: &TuneCanaryArgs, output: &Output) -> Result<ExitCode, Failure> {
    let program = open(&args.pinned.pins, &args.name)?;
    let before = program.settings().map_err(refused)?.share;
    let stopped = stop::listen()?;
    let bar = progress::bar(output, &format!("trial of {}", args.name));
    let (mut trial, mut outcome, mut share) = (Trial::default(), Outcome::Undecided, before);
    for (index, percent) in args.steps.iter().enumerate() {
        share = *percent;
        program.set_share(share).map_err(refused)?;
        let began = program.counters().map_err(refused)?;
        let until = Instant::now() + args.step_time.to_duration();
        while Instant::now() < until && outcome != Outcome::Harm {
            if !slept((Instant::now() + args.look.to_duration()).min(until), &stopped) {
                bar.finish_and_clear();
                program.set_share(before).map_err(refused)?;
                return Err(Failure::stopped().hint(format!("the share is {before} % again, as before the trial")));
            }
            trial.step(&began, &program.counters().map_err(refused)?, index);
            let (time, resent) = trial.effects(args.error);
            outcome = Outcome::of(time.as_ref(), resent.as_ref());
            let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
            let part = 1.0 - left / args.step_time.to_duration().as_secs_f64().max(1e-3);
            progress::set(&bar, (index as f64 + part) / args.steps.len() as f64);
        }
        if outcome == Outcome::Harm {
            share = 0;
            program.set_share(share).map_err(refused)?;
            break;
        }
    }
    bar.finish_and_clear();
    report(args, &trial, outcome, share, output)?;
    Ok(ExitCode::from(u8::from(outcome == Outcome::Harm)))
}

/// Sleeps until then; false if it is to stop.
fn slept(until: Instant, stopped: &AtomicBool) -> bool {
    while Instant::now() < until {
        if stopped.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()).min(NAP));
    }
    !stopped.load(Ordering::Relaxed)
}

fn report(args: &TuneCanaryArgs, trial: &Trial, outcome: Outcome, share: u8, output: &Output) -> Result<(), Failure> {
    let (time, resent) = trial.effects(args.error);
    if output.json {
        return output.json_result(&TuneCanary {
            schema: "thalweg.tune-canary/1",
            name: args.name.clone(),
            outcome: outcome.name(),
            share_percent: share,
            steps: trial.times.len(),
            error: args.error,
            first_bytes_s: time.as_ref().map(reported),
            resent_part: resent.as_ref().map(reported),
        });
    }
    let mut lines = vec![match outcome {
        Outcome::Gain => format!("gain: with the settings the first bytes come sooner; the share is {share} %"),
        Outcome::Harm => "harm: the settings make it worse; the share is 0 % now".to_owned(),
        Outcome::Undecided => format!("undecided: no difference that is certain; the share is {share} %"),
    }];
    let certain = 100.0 * (1.0 - args.error / 2.0);
    if let Some(time) = time {
        // What rounds to nothing has no sign.
        let ms = |seconds: f64| (seconds * 1e4).round() / 10.0 + 0.0;
        lines.push(format!(
            "  to the first bytes  {:.1} ms without, {:+.1} ms with ({:+.1} to {:+.1}, {certain} %)",
            ms(time.without),
            ms(time.difference),
            ms(time.interval.0),
            ms(time.interval.1)
        ));
        lines.push(format!("  connections         {} without, {} with", time.connections[0], time.connections[1]));
    } else {
        lines.push(
            "  too few connections had their first bytes acknowledged: 30 of each share are needed in a step"
                .to_owned(),
        );
    }
    if let Some(resent) = resent {
        let percent = |part: f64| (part * 1e4).round() / 100.0 + 0.0;
        lines.push(format!(
            "  resent by then      {:.2} % without, {:+.2} points with ({:+.2} to {:+.2})",
            percent(resent.without),
            percent(resent.difference),
            percent(resent.interval.0),
            percent(resent.interval.1)
        ));
    }
    output.result(&lines.join("\n"))
}

const fn reported(effect: &Effect) -> CanaryEffect {
    let Effect { without, difference, interval: (low, high), connections } = *effect;
    let [connections_without, connections_with] = connections;
    CanaryEffect { without, difference, low, high, connections_without, connections_with }
}
