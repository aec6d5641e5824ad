//! The page in a real browser: every plot has drawn, no script failed, and no name became markup.
//!
//! Needs Chromium (Debian package `chromium`). Without it the test says so and passes, except where `CI=true`.

mod common;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use thalweg_report::html::{ArmPlots, Page, page};

#[test]
fn a_page_loads_nothing_and_keeps_names_as_text() {
    let arm = ArmPlots { name: common::HOSTILE.to_owned(), ..ArmPlots::default() };
    let notes = vec![common::HOSTILE.to_owned()];
    let html = page(&Page { title: common::HOSTILE.to_owned(), notes, arms: vec![arm], ..Page::default() });
    assert!(!html.contains("<img"), "markup in a name or a note");
    assert!(html.contains("<p class=\"faint\">"), "the note is there");
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
    assert!(dom.contains("There are no samples of the congestion window"), "a sentence names an empty series");
    assert!(!dom.contains("<img"), "a name became markup");
    assert!(dom.contains("of 118,943 retransmissions"), "marks that stand for a part say so");
    assert_eq!(dom.matches("class=\"pin\"").count(), 2, "two facts of the sample have a time");
    if let Some(folder) = std::env::var_os("THALWEG_SCREENSHOTS") {
        std::fs::copy(&file, PathBuf::from(folder).join("page.html")).expect("the folder takes a copy");
    }
}

/// A wheel, a drag, keys and clicks as a reader would use them, and what they do to the time in view.
#[test]
fn a_reader_can_zoom_go_back_and_hide_a_line() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = sample(folder.path());
    let html = std::fs::read_to_string(&file).expect("the page");
    let reader = format!("<script>{READER}</script></body>");
    let html = html.replace("</head>", FRAMES).replace("</body>", &reader);
    std::fs::write(&file, html).expect("a page with a reader");
    let dom = dump(&chromium, &file, folder.path());
    assert!(!dom.contains("data-error"), "a script failed: {}", attribute(&dom, "data-error").unwrap_or_default());
    let seen = |name: &str| {
        attribute(&dom, &format!("data-{name}")).unwrap_or_else(|| panic!("no data-{name}: the reader stopped"))
    };
    let view = |name: &str| -> (f64, f64) {
        let text = seen(name);
        let (from, to) = text.split_once(' ').expect("from and to");
        (from.parse().expect("a time"), to.parse().expect("a time"))
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let all = view("all");
    assert!(near(all.0, 0.0) && all.1 > 1.0, "at first all is in view: {all:?}");

    // The drag goes from a quarter to half of the axis.
    let dragged = view("dragged");
    assert!((dragged.0 - all.1 * 0.25).abs() < all.1 * 0.01, "{dragged:?} of {all:?}");
    assert!((dragged.1 - all.1 * 0.5).abs() < all.1 * 0.01, "{dragged:?} of {all:?}");
    assert_eq!(view("beside"), dragged, "arms share the time axis");
    assert_eq!(view("restored"), all, "a double click shows all");

    // Scrolling past a plot moves the page; only with Ctrl it zooms, about the pointer.
    assert_eq!(view("scrolled"), all);
    assert_eq!(seen("scroll-kept"), "true", "the page did not scroll");
    let wheeled = view("wheeled");
    assert!(wheeled.1 - wheeled.0 < (all.1 - all.0) * 0.9, "{wheeled:?}");
    let under = |view: (f64, f64)| view.0 + (view.1 - view.0) * 0.5;
    // Pointers are at whole pixels.
    assert!((under(wheeled) - under(all)).abs() < all.1 * 0.002, "the time under the pointer stays there: {wheeled:?}");

    let keyed = view("keyed");
    assert!(keyed.1 - keyed.0 < all.1 * 0.6, "plus zooms: {keyed:?}");
    assert_eq!(view("escaped"), all, "Escape shows all");
    assert!(seen("cursor").contains(" s"), "the cursor's time is printed: {}", seen("cursor"));
    assert!(seen("value").contains("iB"), "and the value under it: {}", seen("value"));
    assert_eq!(seen("past"), "", "no value past the connection's end");
    assert_eq!(seen("moved"), "0", "nothing moves when values appear");

    assert!(seen("pinned").starts_with("fact 1 · 1.250"), "a fact's number goes to its place: {}", seen("pinned"));

    let pixels = |name: &str| seen(name).parse::<u64>().expect("a count");
    assert!(pixels("hidden") < pixels("whole"), "a hidden line is not drawn");
    assert_eq!(seen("pressed"), "false");
    assert_eq!(pixels("again"), pixels("whole"), "and comes back");
    assert_eq!(seen("above"), "↑ receive window up to 954 MiB", "a line that leaves the plot is named");
}

/// Under a virtual-time budget Chromium shows about one frame in all; timers do run.
const FRAMES: &str = "<script>window.requestAnimationFrame = (draw) => setTimeout(draw, 16);</script></head>";
/// Uses the first plot of the first arm and writes down what came of it.
const READER: &str = r#"
const seen = document.documentElement.dataset;
window.addEventListener("unhandledrejection", (event) => { seen.error = String(event.reason); });
const frame = () => new Promise((next) => setTimeout(next, 60));
const box = document.querySelector(".box"), canvas = box.querySelector("canvas");
const edge = canvas.getBoundingClientRect(), left = edge.left + 64, right = edge.right - 8;
const at = (part) => ({ clientX: left + (right - left) * part, clientY: edge.top + 60, button: 0, bubbles: true, cancelable: true, pointerId: 1, pointerType: "pen" });
const view = (arm = 0) => { const { from, to } = window.thalweg.groups[arm].view; return `${from} ${to}`; };
const pointer = (kind, part) => box.dispatchEvent(new PointerEvent(`pointer${kind}`, at(part)));
const key = (name) => box.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const wheel = (ctrlKey) => box.dispatchEvent(new WheelEvent("wheel", { ...at(0.5), deltaY: -100, ctrlKey }));
(async () => {
  await frame();
  seen.all = view();
  pointer("down", 0.25); pointer("move", 0.4); pointer("move", 0.5); pointer("up", 0.5);
  await frame();
  seen.dragged = view();
  seen.beside = view(1);
  box.dispatchEvent(new MouseEvent("dblclick", at(0.5)));
  await frame();
  seen.restored = view();
  seen.scrollKept = wheel(false);
  seen.scrolled = view();
  wheel(true);
  seen.wheeled = view();
  key("0");
  key("+");
  seen.keyed = view();
  key("Escape");
  seen.escaped = view();
  const second = document.querySelectorAll(".key")[1], before = second.getBoundingClientRect().left;
  pointer("move", 0.2);
  await frame();
  seen.cursor = document.querySelector(".at").textContent;
  seen.value = document.querySelector(".key output").textContent;
  seen.moved = second.getBoundingClientRect().left - before;
  // The short arm is over here.
  pointer("move", 0.9);
  await frame();
  seen.past = document.querySelector(".key output").textContent;
  pointer("leave", 0.5);
  await frame();
  document.querySelector("button.pin").click();
  await frame();
  seen.pinned = document.querySelector(".at").textContent;
  pointer("leave", 0.5);
  await frame();
  const window_line = [...document.querySelectorAll(".key")].find((each) => each.textContent.includes("receive window"));
  seen.whole = canvas.dataset.pixels;
  window_line.click();
  await frame();
  seen.hidden = canvas.dataset.pixels;
  seen.pressed = window_line.getAttribute("aria-pressed");
  window_line.click();
  await frame();
  seen.again = canvas.dataset.pixels;
  // A window that is small at first and then far above the flight.
  const plot = window.thalweg.groups[0].plots[0], write = CanvasRenderingContext2D.prototype.fillText;
  plot.lines.find((line) => line.key === "window").data = [[0, 1], [1000, 1e9]];
  CanvasRenderingContext2D.prototype.fillText = function (text, ...place) { if (text.startsWith("↑")) seen.above = text; write.call(this, text, ...place); };
  plot.draw();
})();
"#;

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
            retransmits: Some(118_943),
            ..ArmPlots::default()
        },
        ArmPlots { name: common::HOSTILE.to_owned(), ..ArmPlots::default() },
    ];
    let html =
        page(&Page { title: "slow-download: the receive window".to_owned(), fix: Some(&fix), arms, ..Page::default() });
    let file = folder.join("page.html");
    std::fs::write(&file, html).expect("a file in the temporary folder");
    file
}

#[test]
fn a_missing_chromium_fails_on_ci_and_is_said_aloud_elsewhere() {
    let mut said = Vec::new();
    assert_eq!(browser(Some("/nowhere".into()), None, &mut said), Ok(None));
    assert!(String::from_utf8_lossy(&said).starts_with("SKIPPED: chromium is not installed"));
    let mut said = Vec::new();
    assert!(browser(Some("/nowhere".into()), Some("true"), &mut said).is_err());
    assert!(browser(None, Some("true"), &mut said).is_err());
    assert!(said.is_empty());
}

/// Chromium's path; `None`, said aloud, where there is none.
fn chromium() -> Option<PathBuf> {
    let ci = std::env::var("CI").ok();
    // The harness holds back what a passing test prints with `print!`, but not what is written to the stream itself.
    browser(std::env::var_os("PATH"), ci.as_deref(), &mut std::io::stderr().lock()).expect("a browser where CI=true")
}

/// Chromium in the folders of `path`. Where there is none, says through `aloud` that a test is skipped, or fails when `ci`.
fn browser(path: Option<OsString>, ci: Option<&str>, aloud: &mut dyn Write) -> Result<Option<PathBuf>, String> {
    let found = path.and_then(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file())
    });
    if found.is_some() {
        return Ok(found);
    }
    let absent = "chromium is not installed (Debian package chromium)";
    if ci == Some("true") {
        return Err(absent.to_owned());
    }
    writeln!(aloud, "SKIPPED: {absent}; the page's plots were not looked at").map_err(|error| error.to_string())?;
    Ok(None)
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
