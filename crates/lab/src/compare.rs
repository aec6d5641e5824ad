//! Runs compared with each other: arms by their names, repeats by their seeds.

use crate::summary::difference;
use std::collections::{BTreeMap, HashMap};
use thalweg_model::{
    ArmComparison, ArmReport, CompareReport, ComparedReport, Difference, FigureComparison, LabReport, Metric,
};

/// Settings that differ are told one by one up to here.
const SETTINGS_TOLD: usize = 8;

/// Compares every report with the first, each with the name of its file. Which figure leads, and whether it got worse, is
/// left open.
///
/// # Panics
/// Never; without a report there is nothing in the result.
pub fn compare(reports: &[(String, LabReport)]) -> CompareReport {
    let mut compared = CompareReport {
        schema: "thalweg.compare/1".to_owned(),
        reports: Vec::new(),
        notes: Vec::new(),
        arms: Vec::new(),
    };
    for (file, report) in reports {
        compared.reports.push(ComparedReport {
            file: file.clone(),
            scenario: report.scenario.clone(),
            kernel: report.kernel.clone(),
            seed: report.seed,
            repeats: report.repeats,
        });
    }
    let Some((base, others)) = reports.split_first() else { return compared };
    let base_arms: HashMap<&str, &ArmReport> = base.1.arms.iter().map(|arm| (arm.name.as_str(), arm)).collect();
    for other in others {
        notes(base, other, &mut compared.notes);
        let mut settings = Vec::new();
        for arm in &other.1.arms {
            let Some(base_arm) = base_arms.get(arm.name.as_str()) else {
                compared.notes.push(format!("Arm '{}' is in {} alone.", arm.name, other.0));
                continue;
            };
            settings.extend(differing_settings(base_arm, arm));
            compared.arms.push(ArmComparison {
                name: arm.name.clone(),
                file: other.0.clone(),
                leading: None,
                worse_percent: 0.0,
                failed: false,
                metrics: figures(&base.1, base_arm, &other.1, arm),
            });
        }
        let there: HashMap<&str, ()> = other.1.arms.iter().map(|arm| (arm.name.as_str(), ())).collect();
        let gone = base.1.arms.iter().filter(|arm| !there.contains_key(arm.name.as_str()));
        compared.notes.extend(gone.map(|arm| format!("Arm '{}' is in {} alone.", arm.name, base.0)));
        let failed = other.1.failed.iter();
        compared.notes.extend(
            failed.map(|run| {
                format!("Arm '{}', seed {}, gave no result in {}: {}.", run.arm, run.seed, other.0, run.why)
            }),
        );
        let more = settings.len().saturating_sub(SETTINGS_TOLD);
        compared.notes.extend(settings.into_iter().take(SETTINGS_TOLD));
        if more > 0 {
            compared.notes.push(format!("{more} more settings differ."));
        }
    }
    compared
}

/// What the reports' heads say of a difference.
fn notes((a, base): &(String, LabReport), (b, other): &(String, LabReport), notes: &mut Vec<String>) {
    let pairs = [
        ("scenario", &base.scenario, &other.scenario),
        ("kernel", &base.kernel, &other.kernel),
        ("engine", &base.engine, &other.engine),
    ];
    for (what, base, other) in pairs.into_iter().filter(|(_, base, other)| base != other) {
        notes.push(format!("The {what} differs: {base} in {a}, {other} in {b}."));
    }
    if (base.seed, base.repeats) != (other.seed, other.repeats) {
        let common = seeds(base, other).map_or(0, |(.., pairs)| pairs);
        let what = match common {
            0 => "no seed is in both, so medians are compared and nothing can be said of noise".to_owned(),
            count => format!("the {count} in both are paired"),
        };
        notes.push(format!(
            "The seeds differ: {} to {} in {a}, {} to {} in {b}; {what}.",
            base.seed,
            last_seed(base),
            other.seed,
            last_seed(other)
        ));
    }
    let recorded = |report: &LabReport| {
        let arms = || report.arms.iter();
        (arms().any(|arm| arm.capture.is_some()), arms().any(|arm| arm.samples.is_some()))
    };
    let (base, other) = (recorded(base), recorded(other));
    for (what, base, other) in [("Packets were", base.0, other.0), ("Samples were", base.1, other.1)] {
        if base != other {
            let with = if base { a } else { b };
            notes.push(format!(
                "{what} recorded in {with} alone: recording moves a run by microseconds, and a lossy one altogether."
            ));
        }
    }
}

fn last_seed(report: &LabReport) -> u64 {
    report.seed.saturating_add(u64::from(report.repeats.saturating_sub(1)))
}

/// Where the seeds both reports have begin in each, and how many they are.
fn seeds(base: &LabReport, other: &LabReport) -> Option<(usize, usize, usize)> {
    let first = base.seed.max(other.seed);
    let last = last_seed(base).min(last_seed(other));
    let pairs = last.checked_sub(first)?.checked_add(1)?;
    Some(((first - base.seed) as usize, (first - other.seed) as usize, pairs as usize))
}

fn figures(
    base: &LabReport,
    base_arm: &ArmReport,
    other: &LabReport,
    arm: &ArmReport,
) -> BTreeMap<String, FigureComparison> {
    let common = seeds(base, other);
    let figure = |(name, metric): (String, &Metric)| {
        let base_metric = Metric::named(&base_arm.metrics, &name)?;
        let (base, value) = (base_metric.value()?, metric.value()?);
        let (base_values, values) = (base_metric.values(), metric.values());
        let paired = common.and_then(|(at_base, at, pairs)| {
            let base_values = base_values.get(at_base..at_base.checked_add(pairs)?)?;
            difference(values.get(at..at.checked_add(pairs)?)?, base_values)
                .map(|difference| (difference, pairs as u32))
        });
        let (difference, pairs) = paired.unwrap_or_else(|| {
            let ratio = Some(value / base).filter(|ratio| ratio.is_finite());
            (Difference { difference: value - base, ratio, ci95: None, within_noise: None }, 0)
        });
        Some((name, FigureComparison { base, value, pairs, difference }))
    };
    Metric::flatten(&arm.metrics).into_iter().filter_map(figure).collect()
}

fn differing_settings(base: &ArmReport, other: &ArmReport) -> Vec<String> {
    let lines = |arm: &ArmReport| {
        let mut lines = BTreeMap::new();
        for (side, host) in [("client", &arm.settings.client), ("server", &arm.settings.server)] {
            for (kind, map) in [("sysctl", &host.sysctl), ("route", &host.route), ("socket", &host.socket)] {
                lines.extend(map.iter().map(|(name, value)| (format!("{side} {kind} {name}"), value.clone())));
            }
        }
        for (at, line) in arm.settings.path.iter().enumerate() {
            lines.insert(format!("path, line {}", at + 1), line.clone());
        }
        lines
    };
    let (base_lines, lines) = (lines(base), lines(other));
    let names: std::collections::BTreeSet<&String> = base_lines.keys().chain(lines.keys()).collect();
    let of = |lines: &BTreeMap<String, String>, name: &String| lines.get(name).cloned().unwrap_or("not set".to_owned());
    names
        .into_iter()
        .filter(|name| base_lines.get(*name) != lines.get(*name))
        .map(|name| format!("Arm '{}': {name} is {}, was {}.", other.name, of(&lines, name), of(&base_lines, name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::Metrics;

    fn report(seed: u64, values: &[f64]) -> LabReport {
        let metric = match values {
            [one] => Metric::One(*one),
            values => Metric::Summary {
                median: values[values.len() / 2],
                min: 0.0,
                max: 9.0,
                ci95: [0.0, 9.0],
                values: values.to_vec(),
            },
        };
        let arm = ArmReport {
            name: "arm".to_owned(),
            kernel: "6.12.1".to_owned(),
            matrix: BTreeMap::new(),
            baseline: None,
            settings: Default::default(),
            metrics: Metrics::from([("x_ms".to_owned(), metric)]),
            differences: BTreeMap::new(),
            outliers: Vec::new(),
            intervals: Vec::new(),
            diagnosis: Vec::new(),
            capture: None,
            samples: None,
            live: None,
        };
        LabReport {
            schema: "thalweg.lab/1".to_owned(),
            scenario: "made up".to_owned(),
            about: String::new(),
            kernel: "6.12.1".to_owned(),
            engine: "virtual".to_owned(),
            seed,
            repeats: values.len() as u32,
            wall_s: 0.0,
            virtual_s: 1.0,
            arms: vec![arm],
            failed: Vec::new(),
            expect: Vec::new(),
            shard: None,
        }
    }

    fn compared(a: LabReport, b: LabReport) -> CompareReport {
        compare(&[("a".to_owned(), a), ("b".to_owned(), b)])
    }

    #[test]
    fn repeats_are_paired_by_their_seeds() {
        let (a, b) = (report(1, &[1.0, 2.0, 3.0, 4.0]), report(3, &[3.5, 4.5, 7.0]));
        let compared = compared(a, b);
        let figure = compared.arms[0].metrics["x_ms"];
        assert_eq!((figure.pairs, figure.difference.difference), (2, 0.5));
        assert_eq!(compared.notes, ["The seeds differ: 1 to 4 in a, 3 to 5 in b; the 2 in both are paired."]);
    }

    #[test]
    fn without_a_common_seed_nothing_is_said_of_noise() {
        let compared = compared(report(1, &[1.0, 2.0]), report(9, &[3.0, 5.0]));
        let figure = compared.arms[0].metrics["x_ms"];
        assert_eq!((figure.pairs, figure.difference.ci95, figure.difference.within_noise), (0, None, None));
        assert!(compared.notes[0].contains("no seed is in both"));
    }

    #[test]
    fn what_else_differs_is_said() {
        let (a, mut b) = (report(1, &[1.0]), report(1, &[2.0]));
        b.kernel = "6.1.9".to_owned();
        b.arms[0].settings.server.route.insert("initcwnd".to_owned(), "40".to_owned());
        b.arms[0].capture = Some("0.pcapng".to_owned());
        let mut new = b.arms[0].clone();
        new.name = "new".to_owned();
        b.arms.push(new);
        let notes = compared(a, b).notes.join("\n");
        for says in [
            "The kernel differs: 6.12.1 in a, 6.1.9 in b.",
            "Packets were recorded in b alone",
            "Arm 'new' is in b alone.",
            "Arm 'arm': server route initcwnd is 40, was not set.",
        ] {
            assert!(notes.contains(says), "{says} is not in:\n{notes}");
        }
    }

    #[test]
    fn a_report_that_contradicts_itself_is_no_reason_to_panic() {
        let (a, mut b) = (report(u64::MAX, &[1.0, 2.0]), report(u64::MAX, &[2.0]));
        b.repeats = u32::MAX;
        let figure = compared(a, b).arms[0].metrics["x_ms"];
        assert_eq!(figure.base, 2.0);
    }
}
