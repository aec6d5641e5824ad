//! What a download met.

use super::page::{Page, Style};
use crate::figures::{self, clean, milliseconds, percent, rate};
use thalweg_model::{GetLimit, GetReport, Remedy, Setting};

/// Shares of the time below this are left out.
const LEAST_SHARE: f64 = 0.05;

/// Text of `thalweg get`; `remedy` is what lets one connection do as much.
pub fn get(report: &GetReport, remedy: Option<&Remedy>, width: usize, color: bool) -> String {
    let mut page = Page::new(width, color);
    let to = report.file.as_deref().map(|file| format!("{}: ", clean(file))).unwrap_or_default();
    let head =
        format!("{to}{} in {:.1} s at {}", figures::data(report.bytes as f64), report.wall_s, rate(report.goodput_bps));
    page.line(&page.paint(&head, Style::Strong));
    if report.resumed_bytes > 0 {
        let resumed = figures::data(report.resumed_bytes as f64);
        page.sentence("", &format!("{resumed} of it were there from an earlier, interrupted download."), Style::Faint);
    }
    if let Some(checksum) = &report.checksum {
        let by = if checksum.by == "user" { "as given" } else { "as the server gives it" };
        page.sentence("", &format!("The checksum is {by}: {}", clean(&checksum.value)), Style::Good);
    }
    if let Some(limit) = report.limits.first() {
        page.gap();
        page.sentence("", &sentence(report, limit.limit), Style::Plain);
        let shares: Vec<String> = report
            .limits
            .iter()
            .filter(|one| one.share >= LEAST_SHARE)
            .map(|one| format!("{} {}", one.limit.as_str(), percent(one.share)))
            .collect();
        page.sentence("", &format!("Time by limit: {}.", shares.join(", ")), Style::Faint);
    }
    if let Some(remedy) = remedy {
        page.gap();
        page.line("What to set, so that one connection does as much");
        for change in &remedy.changes {
            let (Setting::Sysctl(name) | Setting::Route(name) | Setting::Socket(name)) = &change.setting;
            let setting = clean(name);
            page.line(&format!("  {setting}: {}", page.paint(&clean(&change.to), Style::Good)));
            if let Some(from) = &change.from {
                page.sentence("    ", &format!("was {}", clean(from)), Style::Faint);
            }
        }
        page.sentence("  ", &remedy.reason, Style::Plain);
        page.sentence(
            "  ",
            "thalweg explain tcp_rmem says more; thalweg tune plan and apply set and undo it.",
            Style::Faint,
        );
    }
    page.finish()
}

/// What limited it most, and what the ranges were for.
fn sentence(report: &GetReport, limit: GetLimit) -> String {
    let connection = &report.connection;
    let window = format!(
        "One connection's receive window of {} allows {} over the round trip of {}",
        figures::data(connection.window_bytes as f64),
        rate(connection.window_allows_bps),
        milliseconds(connection.min_rtt_ms)
    );
    let ranges = match report.ranges.most {
        0 | 1 if !report.ranges.possible => {
            "one connection, as the server sends no ranges that can be identified".to_owned()
        }
        0 | 1 => "one connection".to_owned(),
        most => format!("up to {most} ranges, {} at the end", report.ranges.last),
    };
    let widened = report.ranges.most > 1;
    let what = match limit {
        GetLimit::ReceiveWindow => {
            return format!("The receive window limited the download. {window}; it had {ranges}.");
        }
        GetLimit::Path => "The path limited the download: data queued in front of it, or was lost.",
        GetLimit::Sender => {
            "The sender limited the download: windows had room, and the path neither queued nor lost data. Its send buffer, its \
             congestion window or its program sets the rate."
        }
        GetLimit::Server => "The server limited the download: it paused for longer than two round trips.",
        GetLimit::Disk => "The disk limited the download: writing took most of the time.",
        GetLimit::RateLimit => "The rate limit that was asked for limited the download.",
        GetLimit::StartUp => {
            "The download was over before it was limited by more than its start: connections and slow start."
        }
    };
    if widened { format!("{what} {window}, so it had {ranges}.") } else { format!("{what} It had {ranges}.") }
}
