//! Expectations as JUnit XML: a run that gave no result is an error, and what was expected of it a failure.

mod common;

use thalweg_model::{FailedRun, Outcome};
use thalweg_report::junit::junit;

#[test]
fn a_run_without_a_result_is_an_error_and_what_was_expected_of_it_a_failure() {
    let mut report = common::lab();
    let met = report.expect.len();
    let failures = report.expect.iter().filter(|outcome| !outcome.met).count() + 1;
    report.failed.push(FailedRun { arm: "gone".to_owned(), seed: 1, why: "connect: timed out <110>".to_owned() });
    report.expect.push(Outcome {
        metric: "gone/duration_s".to_owned(),
        wanted: ">= 1".to_owned(),
        got: "no result of arm 'gone'".to_owned(),
        met: false,
    });
    let xml = junit(&[report]);
    let head = format!("<testsuites name=\"thalweg\" tests=\"{}\" failures=\"{failures}\" errors=\"1\">", met + 2);
    assert!(xml.contains(&head), "{xml}");
    for line in [
        "<testcase classname=\"slow-download, runs without a result\" name=\"gone ran with seed 1\">",
        "<error type=\"run\" message=\"connect: timed out &lt;110&gt;\"/>",
        "<failure type=\"expectation\" message=\"measured no result of arm &apos;gone&apos;, wanted &gt;= 1\"/>",
    ] {
        assert!(xml.contains(&line.replace("&apos;", "'")), "{line} is not in\n{xml}");
    }
    let mut report = common::lab();
    report.expect.clear();
    report.failed.push(FailedRun { arm: "gone".to_owned(), seed: 1, why: "killed".to_owned() });
    assert!(junit(&[report]).contains("failures=\"0\" errors=\"1\""));
}
