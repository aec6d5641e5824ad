//! `thalweg fix CAPTURE` on captures of random slow transfers, held against the path they ran on and the best of a grid search there.
//!
//!     THALWEG_FIX=0..40 cargo test --release -p thalweg --test fix_random -- --ignored --nocapture
//!
//! runs the held-out captures; `tuning 0..12` those to work with. Needs the lab kernel 6.12.

#![allow(clippy::print_stdout)]

mod common;
mod slow;

use common::{lab_in, run, texts, thalweg};
use serde_json::Value;
use slow::disguise::{disguise, survivors};
use slow::{Draw, Slow};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a transfer may be held by.
const CAUSES: [&str; 9] = ["window", "scale", "buffer", "asked", "clamp", "paced", "loss", "policer", "queue"];
/// Each capture is drawn from a seed of its own; these are for the result, the others are to work with.
const HELD_OUT: u64 = 6_900_000;
const TUNING: u64 = 1_900_000;
/// Captures of a run that asks for no others.
const CAPTURES: usize = 40;
/// A transfer that no setting makes this much faster is drawn again.
const SLOW: f64 = 1.15;
/// A cause stands from this on, as a verdict does.
const STANDS: f64 = 1.05;
const CAPTURE_SECONDS: u32 = 30;
/// Seconds of the runs that a transfer is drawn by.
const DRAWN_SECONDS: f64 = 8.0;
/// What a fix of a capture may take on two processors.
const LONGEST: Duration = Duration::from_secs(60);

/// What became of one capture; `None` is a figure that was not fitted.
#[derive(Default)]
struct Outcome {
    cause: bool,
    rtt: Option<bool>,
    rate: Option<bool>,
    loss: Option<bool>,
    /// The proven gain, part of that of the grid's best arm, and the remedy's goodput on the true path, part of the best arm's.
    proven: Option<f64>,
    reached: f64,
    took: Duration,
    processors: Duration,
    bundle: Option<bool>,
}

/// The captures that the environment asks for: their first seed, and their numbers.
fn asked() -> (u64, Range<usize>) {
    let Ok(text) = std::env::var("THALWEG_FIX") else { return (HELD_OUT, 0..CAPTURES) };
    let (first, range) = text.strip_prefix("tuning ").map_or((HELD_OUT, text.as_str()), |range| (TUNING, range));
    let ends = range.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    (first, ends.unwrap_or_else(|| panic!("THALWEG_FIX is '{text}': not '0..40' or 'tuning 0..12'")))
}

/// A transfer of this number that some setting makes faster, and those of its causes that stand.
fn drawn(seed: u64, number: usize) -> (Slow, Vec<&'static str>) {
    let mut draw = Draw(seed + number as u64);
    loop {
        let slow = Slow::draw(&mut draw, number, &CAUSES);
        let each: String = slow.causes.iter().map(|cause| slow.without(cause)).collect();
        let arms = goodputs(&truth(&slow, DRAWN_SECONDS, &each));
        let (found, best) = (of(&arms, AS_FOUND), best(&arms));
        let lifted: Vec<f64> = slow.causes.iter().map(|cause| of(&arms, &format!("without {cause}"))).collect();
        // A cause stands if the transfer is faster without it, or slower than it could be with nothing else lifted.
        let stands = |at: usize| {
            let alone = lifted[at] >= found * STANDS;
            alone || lifted.iter().enumerate().all(|(other, rate)| other == at || best >= rate * STANDS)
        };
        let standing: Vec<&'static str> =
            slow.causes.iter().enumerate().filter(|(at, _)| stands(*at)).map(|(_, cause)| *cause).collect();
        if best >= found * SLOW && !standing.is_empty() {
            return (slow, standing);
        }
    }
}

const AS_FOUND: &str = "as found";
const REMEDY: &str = "remedy";

/// The transfer as found, the grid, and other arms, for so many seconds.
fn truth(slow: &Slow, seconds: f64, others: &str) -> String {
    format!("{}[[arm]]\nname = \"{AS_FOUND}\"\n{}{others}", slow.scenario("truth", seconds), slow.grid())
}

fn of(arms: &[(String, f64)], name: &str) -> f64 {
    arms.iter().find(|arm| arm.0 == name).map_or(0.0, |arm| arm.1)
}

/// The best arm of the grid.
fn best(arms: &[(String, f64)]) -> f64 {
    let grid = arms.iter().filter(|(name, _)| name != REMEDY && !name.starts_with("without "));
    grid.map(|arm| arm.1).fold(0.0, f64::max)
}

/// The steady goodput of every arm.
fn goodputs(text: &str) -> Vec<(String, f64)> {
    let folder = tempfile::tempdir().expect("a folder");
    let repeats = if text.contains("loss =") { "3" } else { "1" };
    let report = lab_in(
        folder.path(),
        text,
        &["--kernel", "6.12", "--repeat", repeats, "--capture", "off", "--samples", "off", "-q"],
    );
    let arms = report["arms"].as_array().expect("arms").iter();
    arms.map(|arm| {
        let metric = &arm["metrics"]["goodput_steady_bps"];
        let steady = metric["median"].as_f64().or_else(|| metric.as_f64()).unwrap_or_default();
        (arm["name"].as_str().expect("a name").to_owned(), steady)
    })
    .collect()
}

/// The verdicts that name a cause. Seen from the receiver a clamp and a small send buffer look alike: both hold the flight.
fn named(cause: &str, tap: &str) -> &'static [&'static str] {
    match (cause, tap) {
        ("window" | "asked", _) => &["receive-window"],
        ("scale", _) => &["window-scaling-missing"],
        ("buffer", "server") => &["send-buffer"],
        ("clamp", "server") => &["congestion-window-clamp"],
        ("buffer" | "clamp", _) => &["send-buffer", "congestion-window-clamp"],
        ("paced", _) => &["pacing-rate"],
        ("policer", _) => &["policer"],
        ("queue", _) => &["congestion-loss"],
        _ => &["random-loss"],
    }
}

/// The value of a fitted parameter of the accepted model, and whether it was assumed.
fn parameter<T: std::str::FromStr>(fix: &Value, key: &str) -> Option<(T, bool)> {
    let model = &fix["capture"]["models"][0];
    let list = model["parameters"].as_array().filter(|_| model["accepted"] == true)?;
    let one = list.iter().find(|one| one["key"] == key)?;
    let text = one["value"].as_str()?.trim_matches('"');
    // A policer's rate is within its table.
    let text = text.strip_prefix("{ rate = \"").map_or(text, |rest| rest.split('"').next().unwrap_or_default());
    Some((text.parse().ok()?, one["origin"] == "assumed"))
}

/// Captures, fixes, and holds what came of it against the truth.
fn fixed(number: usize, seed: u64) -> Outcome {
    let (slow, binds) = drawn(seed, number);
    let tap = if (number / 2).is_multiple_of(2) { "server" } else { "client" };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    let options = ["--kernel", "6.12", "--capture", tap, "--samples", "off", "-q"];
    lab_in(path, &slow.scenario("slow", CAPTURE_SECONDS.into()), &options);
    let capture = "out/0-as-given.pcapng";
    disguise(&path.join(capture));
    let (began, before) = (Instant::now(), processor_time());
    let words =
        ["fix", capture, "--kernel", "6.12", "--json", "--out", "fix", "--own-path", "--bundle", "bundle", "-q"];
    let output = thalweg(path, &words).output().expect("the program starts");
    let (took, processors) = (began.elapsed(), processor_time().saturating_sub(before));
    let (out, err) = texts(&output);
    if !matches!(output.status.code(), Some(0 | 1)) {
        println!("{number}: {}: FAILED: {err}", slow.causes.join(" + "));
        return Outcome { took, processors, ..Outcome::default() };
    }
    let fix: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{number}: {error}\n{out}\n{err}"));
    let code = fix["cause"]["code"].as_str().unwrap_or_default();
    let rate_key = if slow.causes.contains(&"policer") { "path.down.policer" } else { "path.down.rate" };
    let rtt = parameter::<thalweg_units::Span>(&fix, "path.rtt").map(|(rtt, _)| rtt.as_millis_f64() / slow.rtt_ms);
    let rate = parameter::<thalweg_units::Rate>(&fix, rate_key);
    let shown = rate.map(|(rate, assumed)| (rate.bits_per_second() as f64 / slow.rate_bps, assumed));
    let loss = parameter::<thalweg_units::Ratio>(&fix, "path.down.loss").map(|(loss, _)| loss.get());
    let changes = fix["remedy"]["changes"].as_array().cloned().unwrap_or_default();
    // A gain depends on how long a transfer takes: the truth is that of the part which was fitted.
    let seconds = fix["capture"]["first_s"].as_f64().unwrap_or(f64::from(CAPTURE_SECONDS));
    let is_mended = !changes.is_empty() && !fix["ratio"].is_null();
    // Where the search found nothing to set, what is proven is that it stays as it is.
    let is_searched = fix["capture"]["models"][0]["accepted"] == true && changes.is_empty();
    let ratio = fix["ratio"].as_f64().or_else(|| is_searched.then_some(1.0));
    let needs = fix["needs"].as_array().cloned().unwrap_or_default();
    let remedy = if is_mended { slow.with(&[changes.clone(), needs].concat()) } else { String::new() };
    let arms = goodputs(&truth(&slow, seconds, &remedy));
    let (found, best) = (of(&arms, AS_FOUND), best(&arms));
    let after = of(&arms, if is_mended { REMEDY } else { AS_FOUND });
    let packets = packets(path, capture);
    let interval = binomial(slow.loss, packets);
    let within = |ratio: f64| (ratio - 1.0).abs() <= 0.1;
    let outcome = Outcome {
        cause: binds.iter().any(|cause| named(cause, tap).contains(&code)),
        rtt: rtt.map(within),
        rate: shown.map(|(ratio, _)| within(ratio)),
        loss: (slow.loss > 0.0).then_some(loss).flatten().map(|loss| (loss - slow.loss).abs() <= interval),
        proven: ratio.map(|ratio| ratio / (best / found)),
        reached: after / best,
        took,
        processors,
        bundle: fix["ratio"].is_number().then(|| reproduced(path)),
    };
    println!(
        "{number}: {} at the {tap}, {:.1} ms, {:.1} Mb/s{}: {code}{}; RTT {}, rate {}{}, loss {}; {:.1} -> {:.1} Mb/s, grid {:.1}: \
         proven {}, reached {:.3}; {}; bundle {:?}; {:.0} s, {:.0} s of processors",
        slow.causes
            .iter()
            .map(|cause| if binds.contains(cause) { (*cause).to_owned() } else { format!("({cause})") })
            .collect::<Vec<_>>()
            .join(" + "),
        slow.rtt_ms,
        slow.rate_bps / 1e6,
        if slow.loss > 0.0 { format!(", {:.3} %", slow.loss * 100.0) } else { String::new() },
        if outcome.cause { "" } else { " WRONG" },
        share(rtt),
        share(shown.map(|(ratio, _)| ratio)),
        if shown.is_some_and(|(_, assumed)| assumed) { " (assumed)" } else { "" },
        loss.map_or("-".to_owned(), |loss| format!("{:.3} % +- {:.3}", loss * 100.0, interval * 100.0)),
        found / 1e6,
        after / 1e6,
        best / 1e6,
        share(outcome.proven),
        outcome.reached,
        changes.iter().map(change).collect::<Vec<_>>().join(", "),
        outcome.bundle,
        took.as_secs_f64(),
        processors.as_secs_f64(),
    );
    if outcome.reached < 0.9 || !outcome.cause || outcome.proven.is_none_or(|part| part < 0.9) {
        explain(&slow, &fix);
    }
    outcome
}

/// What there is to know of one that came out wrong.
fn explain(slow: &Slow, fix: &Value) {
    for note in fix["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        println!("    {note}");
    }
    for model in fix["capture"]["models"].as_array().into_iter().flatten() {
        let outside = model["checks"].as_array().into_iter().flatten().filter(|check| check["inside"] == false);
        for check in outside {
            println!(
                "    {}: {} {} is not within {} and {}",
                model["name"], check["figure"], check["capture"], check["least"], check["most"]
            );
        }
    }
    println!("    {}", slow.scenario("slow", CAPTURE_SECONDS.into()).replace('\n', "; "));
}

fn change(change: &Value) -> String {
    let name = change["setting"].as_object().and_then(|all| all.values().next()).and_then(Value::as_str);
    format!("{} {}", name.unwrap_or_default(), change["to"].as_str().unwrap_or_default())
}

fn share(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

/// Data packets of the capture's longest connection.
fn packets(path: &Path, capture: &str) -> f64 {
    let output = thalweg(path, &["diagnose", capture, "--json"]).output().expect("the program starts");
    let found: Value = serde_json::from_str(&texts(&output).0).expect("JSON");
    let flows = found["captures"][0]["flows"].as_array().expect("flows");
    flows.iter().filter_map(|flow| flow["packets_down"].as_f64()).fold(1.0, f64::max)
}

/// Half of the 95 % interval of a part of so many, by the normal approximation.
fn binomial(part: f64, of: f64) -> f64 {
    1.96 * (part * (1.0 - part) / of).sqrt()
}

/// What the program and its guests have taken of the processors, which other work on them does not change much.
fn processor_time() -> Duration {
    /// A tick of the kernel's accounting on every architecture that Rust's tier 1 has. Source: proc_pid_stat(5), `_SC_CLK_TCK`.
    const TICK_MS: u64 = 10;
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    // cutime and cstime, the 16th and 17th field.
    Duration::from_millis(fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() * TICK_MS)
}

/// Whether the bundle has the verdict and the goodput it says, and nothing of the capture.
fn reproduced(path: &Path) -> bool {
    let left = survivors(&path.join("bundle"));
    assert!(left.is_empty(), "{left:?}");
    let words = ["lab", "run", "bundle/fitted.toml", "--kernel", "6.12", "--out", "again", "-q"];
    thalweg(path, &words).output().expect("the program starts").status.success()
}

#[test]
#[ignore = "an hour on two processors; its result is in docs/fix.md"]
fn random_captures_are_fitted_and_mended() {
    let (seed, numbers) = asked();
    let all: Vec<Outcome> = numbers.map(|number| fixed(number, seed)).collect();
    let count = |what: &dyn Fn(&Outcome) -> Option<bool>| {
        let told: Vec<bool> = all.iter().filter_map(what).collect();
        (told.iter().filter(|right| **right).count(), told.len())
    };
    let cause = count(&|one| Some(one.cause));
    let reached = count(&|one| Some(one.reached >= 0.9));
    let figures = [
        ("cause right", cause),
        ("RTT within 10 %", count(&|one| one.rtt)),
        ("rate within 10 %", count(&|one| one.rate)),
        ("loss within its interval", count(&|one| one.loss)),
        ("proven gain at least 90 % of the best arm's", count(&|one| Some(one.proven? >= 0.9))),
        ("the remedy reaches 90 % of the best arm", reached),
        ("within 60 s", count(&|one| Some(one.took <= LONGEST))),
        ("within 120 s of processor time", count(&|one| Some(one.processors <= LONGEST * 2))),
        ("bundle reproduced", count(&|one| one.bundle)),
    ];
    figures.iter().for_each(|(name, (right, of))| println!("{name}: {right} of {of}"));
    assert!(cause.0 * 40 >= cause.1 * 38, "cause right: {} of {}", cause.0, cause.1);
}

#[test]
fn nothing_of_a_disguised_capture_is_overlooked() {
    let folder = tempfile::tempdir().expect("a folder");
    let slow = Slow::draw(&mut Draw(1), 0, &["window"]);
    lab_in(folder.path(), &slow.scenario("slow", 1.0), &["--kernel", "6.12", "--capture", "server", "-q"]);
    let out = folder.path().join("out");
    assert!(survivors(&out).is_empty());
    disguise(&out.join("0-as-given.pcapng"));
    let all = survivors(&out).join(" ");
    assert!(all.contains("hardware address") && all.contains("pcapng: address"), "{all}");
    run(folder.path(), &["diagnose", "out/0-as-given.pcapng"], 1);
}
