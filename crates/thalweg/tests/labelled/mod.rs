//! The labelled set: transfers drawn from a seed, each with a limiter that arithmetic gives, run in the lab and judged from both ends.
#![allow(dead_code, unreachable_pub)]

pub mod causes;
mod tally;

pub use causes::Made;
pub use tally::Tally;

use crate::common::{texts, thalweg, two_at_a_time};
use serde_json::Value;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs handed to the lab at once.
const BATCH: usize = 50;

/// Draws a transfer; `None` where another limiter could be said to hold it as well.
type Make = fn(&mut Draw) -> Option<Made>;

/// Every cause, with how many in a hundred are of it.
#[rustfmt::skip]
const CAUSES: [(&str, u32, Make); 18] = [
    ("receive-window", 9, causes::receive_window),
    ("window-scaling-missing", 5, causes::window_scaling_missing),
    ("reader", 5, causes::reader),
    ("send-buffer", 9, causes::send_buffer),
    ("cwnd-clamp", 5, causes::cwnd_clamp),
    ("initial-window", 7, causes::initial_window),
    ("random-loss", 9, causes::random_loss),
    ("congestion-loss", 6, causes::congestion_loss),
    ("policer", 7, causes::policer),
    ("timeout", 6, causes::timeout),
    ("path-rate", 7, causes::path_rate),
    ("bufferbloat", 4, causes::bufferbloat),
    ("application", 6, causes::application),
    ("short", 3, causes::short),
    ("idle-restart", 3, causes::idle_restart),
    ("delayed-ack", 3, causes::delayed_ack),
    ("black-hole", 3, causes::black_hole),
    ("reordering", 3, causes::reordering),
];

/// Random numbers by SplitMix64: the same seed draws the same transfers, whatever else changes.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub struct Draw(u64);

impl Draw {
    /// Those of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform.
    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.unit()
    }

    /// Uniform in the logarithm.
    pub fn spread(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.unit())
    }

    /// True with this probability.
    pub fn chance(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    /// One of these.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[(self.next() % of.len() as u64) as usize]
    }
}

/// A transfer of the set.
pub struct Case {
    /// Its cause's generator, and its seed.
    pub name: String,
    /// Its cause's generator.
    pub cause: &'static str,
    /// The kernel it runs on.
    pub kernel: &'static str,
    /// What it is.
    pub made: Made,
}

/// Seeds to work with.
pub const DEVELOPMENT: Range<u64> = 0..500;

/// What `THALWEG_LABELLED` asks for: all of a range, and where it asks for nothing every so many-th of the development range; and the folder that
/// keeps what is recorded.
pub struct Asked {
    /// The transfers to judge.
    pub seeds: Vec<u64>,
    /// A whole range: `development` or `held-out`.
    pub range: Option<String>,
    /// `THALWEG_LABELLED_FOLDER`, or one that goes away.
    pub folder: PathBuf,
    _temporary: TempDir,
}

/// Reads the environment.
pub fn asked(held_out: Range<u64>, every: usize) -> Asked {
    let range = std::env::var("THALWEG_LABELLED").ok();
    let seeds = match range.as_deref() {
        None => DEVELOPMENT.step_by(every).collect(),
        Some("development") => DEVELOPMENT.collect(),
        Some("held-out") => held_out.collect(),
        Some(other) => {
            let ends = other.split_once("..").map(|(from, to)| (from.parse::<u64>(), to.parse::<u64>()));
            let Some((Ok(from), Ok(to))) = ends else {
                panic!(
                    "THALWEG_LABELLED is '{other}': neither 'development', 'held-out' nor a range as '1600000..1600550'"
                )
            };
            (from..to).collect()
        }
    };
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = std::env::var_os("THALWEG_LABELLED_FOLDER").map_or(temporary.path().to_owned(), PathBuf::from);
    fs::create_dir_all(&folder).expect("a folder");
    Asked { seeds, range, folder, _temporary: temporary }
}

/// The transfer of a seed: its cause follows from the seed's place in a hundred, so every hundred seeds hold all causes alike.
pub fn case(seed: u64) -> Case {
    let mut place = (seed % 100) as u32;
    let (cause, _, make) = CAUSES
        .iter()
        .find(|(_, part, _)| {
            let found = place < *part;
            place = place.wrapping_sub(*part);
            found
        })
        .expect("invariant: the parts add up to a hundred");
    let mut draw = Draw(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d);
    let kernel = if draw.chance(0.2) { "6.1" } else { "6.12" };
    let made = std::iter::repeat_with(|| make(&mut draw)).flatten().next().expect("invariant: an endless iterator");
    let name = format!("{cause}-{seed}");
    Case { name, cause, kernel, made }
}

/// What is recorded of a run, and the file that it is in.
pub struct Recorded {
    /// What the lab is asked for.
    pub args: [&'static str; 4],
    /// The file's name in the run's folder.
    pub file: &'static str,
}

/// Captures at both ends.
pub const CAPTURES: Recorded = Recorded { args: ["--capture", "both", "--samples", "off"], file: "0-as-given.pcapng" };
/// What kernels say of sockets, as often as `diagnose --live` asks.
pub const SAMPLES: Recorded = Recorded { args: ["--capture", "off", "--samples", "97ms"], file: "0-as-given.csv" };

/// Runs what of `cases` has no such file in `folder` yet, or one of another scenario than it is now.
pub fn run(folder: &Path, cases: &[Case], recorded: &Recorded) {
    let made = |case: &Case| recorded.path(folder, case);
    for case in cases {
        let was = fs::read_to_string(folder.join(format!("{}.toml", case.name)));
        if was.is_ok_and(|was| was != text(case)) {
            let _ = fs::remove_file(made(case));
        }
    }
    for kernel in ["6.12", "6.1"] {
        let wanted: Vec<&Case> = cases.iter().filter(|case| case.kernel == kernel && !made(case).is_file()).collect();
        for batch in wanted.chunks(BATCH) {
            let mut args = vec!["lab", "run", "--out", "out", "-q"];
            args.extend(engine(kernel));
            args.extend(recorded.args);
            let files: Vec<String> = batch.iter().map(|case| format!("{}.toml", case.name)).collect();
            for (case, file) in batch.iter().zip(&files) {
                fs::write(folder.join(file), text(case)).expect("written");
                args.push(file);
            }
            if batch.len() == 1 {
                // A single scenario's results are in the folder itself.
                *args.iter_mut().find(|arg| **arg == "out").expect("an argument") = "out/";
            }
            let single = format!("out/{}", batch[0].name);
            if batch.len() == 1 {
                *args.iter_mut().find(|arg| **arg == "out/").expect("an argument") = &single;
            }
            let output = thalweg(folder, &args).output().expect("the program starts");
            let (_, err) = texts(&output);
            assert!(output.status.success(), "{args:?}: {err}");
        }
    }
}

/// What the lab is asked to run on: this lab kernel in virtual time, or by `THALWEG_LABELLED_LIVE` this host's in real time; where that is
/// `offloads`, segments stay together from host to host.
fn engine(kernel: &'static str) -> Vec<&'static str> {
    match std::env::var("THALWEG_LABELLED_LIVE").as_deref() {
        Err(_) => vec!["--kernel", kernel],
        Ok("offloads") => vec!["--live", "--set", "path.offloads=true"],
        Ok(_) => vec!["--live"],
    }
}

fn text(case: &Case) -> String {
    format!("name = \"{}\"\n{}", case.name, case.made.text)
}

impl Case {
    /// The same with this congestion control, unless the transfer has one of its own.
    pub fn with(mut self, control: &str) -> Self {
        let text = &mut self.made.text;
        if !text.contains("congestion = ") {
            let sender = if text.contains("direction = \"up\"") { "client" } else { "server" };
            let table = format!("[{sender}.socket]\n");
            let line = format!("congestion = \"{control}\"\n");
            match text.find(&table) {
                Some(at) => text.insert_str(at + table.len(), &line),
                None => text.push_str(&(table + &line)),
            }
        }
        self
    }
}

impl Recorded {
    /// The file of a case.
    pub fn path(&self, folder: &Path, case: &Case) -> PathBuf {
        folder.join("out").join(&case.name).join(self.file)
    }
}

/// Whether what the lab measured contradicts the label's arithmetic: the goodput, or the kernel's own counters.
pub fn contradicts(folder: &Path, case: &Case) -> bool {
    let report = fs::read(folder.join("out").join(&case.name).join("report.json")).expect("a report");
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let figure = |name: &str| report["arms"][0]["metrics"][name].as_f64();
    let (least, most) = case.made.goodput;
    let goodput = figure("goodput_steady_bps").or_else(|| figure("goodput_bps"));
    let counted = case.made.counted.and_then(|name| Some(figure(name)? / figure("busy_ms")?));
    goodput.is_some_and(|goodput| goodput < least || goodput > most) || counted.is_some_and(|part| part < 0.5)
}

/// Judges all captures, and counts.
pub fn judge(folder: &Path, cases: &[Case]) -> Tally {
    let mut tally = Tally::default();
    let (refused, judged): (Vec<&Case>, Vec<&Case>) = cases.iter().partition(|case| contradicts(folder, case));
    tally.refused = refused.into_iter().map(|case| case.name.clone()).collect();
    let found = two_at_a_time(judged, |case| (case, diagnosed(folder, &CAPTURES.path(folder, case))));
    found.iter().for_each(|(case, flows)| tally.count_both(case, flows));
    tally
}

/// The flows that the program finds in a capture.
pub fn diagnosed(folder: &Path, capture: &Path) -> Vec<Value> {
    let output =
        thalweg(folder, &["diagnose", &capture.display().to_string(), "--json"]).output().expect("the program starts");
    let (out, err) = texts(&output);
    // Exit 1: a problem was found; 0: none that a setting mends.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}: {err}", capture.display());
    let mut found: Value = serde_json::from_str(&out).expect("JSON");
    let Value::Array(flows) = found["captures"][0]["flows"].take() else { panic!("no flows") };
    flows
}

/// The flow that is the transfer itself, among those of a vantage.
pub fn transfer<'a>(flows: &'a [Value], vantage: &str) -> Option<&'a Value> {
    // A clamp needs a small connection before it.
    let largest = |wanted: &dyn Fn(&Value) -> bool| {
        let seen = flows.iter().filter(|flow| wanted(flow));
        seen.max_by_key(|flow| flow["bytes_up"].as_u64().max(flow["bytes_down"].as_u64()))
    };
    let sender = largest(&|flow| flow["vantage"] == "sender");
    let there = largest(&|flow| flow["vantage"] == vantage);
    // Where nothing of the transfer came, that end's view does not tell which end it is.
    let other = || largest(&|flow| sender.is_some_and(|sender| flow["interface"] != sender["interface"]));
    if vantage == "receiver" { there.or_else(other) } else { sender }
}
