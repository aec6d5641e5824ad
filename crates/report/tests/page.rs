//! The page in a real browser: every plot has drawn, no script failed, and no name became markup.
//!
//! Needs Chromium (Debian package `chromium`). Without it the test says so and passes, except where `CI=true`.

mod common;

use report::html::{ArmPlots, Page, page};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_page_loads_nothing_and_keeps_names_as_text() {
    let arm = ArmPlots { name: common::HOSTILE.to_owned(), ..ArmPlots::default() };
    let html = page(&Page { title: common::HOSTILE.to_owned(), arms: vec![arm], ..Page::default() });
    assert!(!html.contains("<img"), "markup in a name");
    assert!(!html.contains("<!--"), "a comment could swallow the page");
    assert_eq!(html.matches("</script>").count(), 5, "one for the data, four for the scripts");
    assert!(html.contains("default-src 'none'"));
    for outside in ["http://", "https://", "url(", "@import", "innerHTML", "src="] {
        assert!(!html.replace("img src=x", "").contains(outside), "{outside} in the page");
    }
}

#[test]
fn every_plot_draws_in_chromium() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = sample(folder.path());
    let dom = dump(&chromium, &file, folder.path());
    assert!(!dom.contains("data-error"), "a script failed: {}", attribute(&dom, "data-error").unwrap_or_default());
    // Three arms with five plots each; the third has neither series nor plots, the second no congestion window.
    assert_eq!(attribute(&dom, "data-plots").as_deref(), Some("9"));
    let pixels: Vec<u64> =
        dom.split("data-pixels=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
    assert_eq!(pixels.len(), 9);
    assert!(pixels.iter().all(|drawn| *drawn > 200), "a plot is empty: {pixels:?}");
    assert!(dom.contains("There are no samples of the congestion window"), "an empty series is told in a sentence");
    assert!(!dom.contains("<img"), "a name became markup");
    if let Some(folder) = std::env::var_os("THALWEG_SCREENSHOTS") {
        std::fs::copy(&file, PathBuf::from(folder).join("page.html")).expect("the folder takes a copy");
    }
}

fn sample(folder: &Path) -> PathBuf {
    let (lab, fix) = (common::lab(), common::fix());
    let flow = &common::diagnose().captures[0].flows[0];
    let mut second = common::series(9e6, 0.0357, 120e6, true);
    second.cwnd_bytes.clear();
    let arms = vec![
        ArmPlots::of_flow("as found", flow, common::series(2.5e6, 0.0357, 250e6, false)),
        ArmPlots {
            name: "receive-window".to_owned(),
            series: second,
            verdict: Some(lab.arms[1].diagnosis[0].clone()),
            limits: None,
        },
        ArmPlots { name: common::HOSTILE.to_owned(), ..ArmPlots::default() },
    ];
    let html = page(&Page { title: "slow-download: the receive window".to_owned(), lab: None, fix: Some(&fix), arms });
    let file = folder.join("page.html");
    std::fs::write(&file, html).expect("a file in the temporary folder");
    file
}

/// Chromium's path; `None`, said aloud, where there is none.
#[allow(clippy::print_stderr, reason = "a skipped test must say so")]
fn chromium() -> Option<PathBuf> {
    let found = std::env::var_os("PATH").and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file())
    });
    if found.is_none() {
        assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "chromium is not installed (Debian package chromium)");
        eprintln!("SKIPPED: chromium is not installed (Debian package chromium); the page's plots were not looked at");
    }
    found
}

fn dump(chromium: &Path, file: &Path, folder: &Path) -> String {
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--window-size=1200,900", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}#check", file.display()))
        .output()
        .expect("chromium starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn attribute(dom: &str, name: &str) -> Option<String> {
    Some(dom.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.to_owned())
}
