//! Expectations as JUnit XML, which CI systems show as tests.
//!
//! A suite is a scenario on one kernel, a test case an expectation; a scenario that expects nothing gives a case for each
//! arm that ran. Source: the schema Jenkins' xUnit plugin checks, junit-10.xsd; the least that GitLab, Jenkins and GitHub
//! actions read alike.

use crate::figures::clean;
use thalweg_model::{ArmReport, FailedRun, LabReport, Outcome};

/// Writes the reports' expectations as one XML document.
pub fn junit(reports: &[LabReport]) -> String {
    let suites: Vec<Suite> = reports.iter().flat_map(suites).collect();
    let total: usize = suites.iter().map(|suite| suite.cases.len()).sum();
    let [failures, errors] =
        [Kind::Failure, Kind::Error].map(|kind| suites.iter().map(|suite| suite.count(kind)).sum::<usize>());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!(
        "<testsuites name=\"thalweg\" tests=\"{total}\" failures=\"{failures}\" errors=\"{errors}\">\n"
    ));
    for suite in &suites {
        xml.push_str(&format!(
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\">\n",
            attribute(&suite.name),
            suite.cases.len(),
            suite.count(Kind::Failure),
            suite.count(Kind::Error)
        ));
        for case in &suite.cases {
            let (class, name) = (attribute(&suite.name), attribute(&case.name));
            let Some((kind, message)) = &case.problem else {
                xml.push_str(&format!("    <testcase classname=\"{class}\" name=\"{name}\"/>\n"));
                continue;
            };
            let (tag, of) = match kind {
                Kind::Failure => ("failure", "expectation"),
                Kind::Error => ("error", "run"),
            };
            xml.push_str(&format!(
                "    <testcase classname=\"{class}\" name=\"{name}\">\n      <{tag} type=\"{of}\" message=\"{}\"/>\n    </testcase>\n",
                attribute(message)
            ));
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    problem: Option<(Kind, String)>,
}

/// What is wrong with a case.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// An expectation that is not met.
    Failure,
    /// A run that gave no result.
    Error,
}

impl Suite {
    fn count(&self, kind: Kind) -> usize {
        self.cases.iter().filter(|case| case.problem.as_ref().is_some_and(|(of, _)| *of == kind)).count()
    }
}

/// A suite for each kernel of the report, and one for the runs that gave no result, if there are any.
fn suites(report: &LabReport) -> Vec<Suite> {
    let mut kernels: Vec<&str> = Vec::new();
    for arm in &report.arms {
        if !kernels.contains(&arm.kernel.as_str()) {
            kernels.push(&arm.kernel);
        }
    }
    let on = |kernel: &str| Suite {
        name: format!("{} on Linux {kernel}", report.scenario),
        cases: if report.expect.is_empty() {
            report.arms.iter().filter(|arm| arm.kernel == kernel).map(ran).collect()
        } else {
            report.expect.iter().filter(|outcome| kernel_of(report, outcome) == Some(kernel)).map(case).collect()
        },
    };
    let unrun = report.expect.iter().filter(|outcome| kernel_of(report, outcome).is_none()).map(case);
    let without = Suite {
        name: format!("{}, runs without a result", report.scenario),
        cases: report.failed.iter().map(failed).chain(unrun).collect(),
    };
    kernels.into_iter().map(on).chain((!without.cases.is_empty()).then_some(without)).collect()
}

fn kernel_of<'a>(report: &'a LabReport, outcome: &Outcome) -> Option<&'a str> {
    let (arm, _) = outcome.metric.rsplit_once('/')?;
    report.arm(arm).map(|arm| arm.kernel.as_str())
}

fn case(outcome: &Outcome) -> Case {
    let name = format!("{} {}", outcome.metric, outcome.wanted);
    let failure = format!("measured {}, wanted {}", outcome.got, outcome.wanted);
    Case { name, problem: (!outcome.met).then_some((Kind::Failure, failure)) }
}

fn ran(arm: &ArmReport) -> Case {
    Case { name: format!("{} ran", arm.name), problem: None }
}

fn failed(run: &FailedRun) -> Case {
    Case { name: format!("{} ran with seed {}", run.arm, run.seed), problem: Some((Kind::Error, run.why.clone())) }
}

/// Text as an attribute's value. Of what XML 1.0 §2.2 forbids, control characters are gone already.
fn attribute(text: &str) -> String {
    let mut escaped = String::new();
    for c in clean(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
