//! The top of a page about many captures: what they have in common, and the worst connections of all.

use super::escape::escape;
use super::findings;
use crate::figures::{count, counted, data, elapsed, percent, rate, times};
use crate::many::{Many, Ranked, Total};
use thalweg_model::Code;

/// Rows of the table of hosts, and kinds of remedies.
const HOSTS: usize = 20;
const REMEDIES: usize = 10;

/// The line below the title.
pub(super) fn about(many: &Many) -> String {
    let mut facts = vec![
        counted(many.captures, "capture"),
        counted(many.packets, "packet"),
        format!("{} on the wire", data(many.bytes as f64)),
        counted(many.connections, "TCP connection"),
    ];
    if many.uncounted > 0 {
        facts.push(format!("{} counted by number only", count(many.uncounted as f64)));
    }
    let mut html = format!("<p>{}</p>", facts.join(" · "));
    for (file, why) in &many.unread {
        html.push_str(&format!("<p class=\"caution\">{}: {}</p>", escape(file), escape(why)));
    }
    for (note, captures) in many.notes() {
        let of = if captures > 1 { format!("{}: ", counted(captures, "capture")) } else { String::new() };
        html.push_str(&format!("<p class=\"faint\">{of}{}</p>", escape(note)));
    }
    html
}

/// The tables: failures, causes, hosts, the worst connections; then what to do, each remedy once.
pub(super) fn sections(many: &Many) -> String {
    let mut html = totals("Failed", &many.failures());
    html.push_str(&totals("Time lost, by cause", &many.causes()));
    let hosts = many.hosts().into_iter().take(HOSTS).map(|(address, host)| {
        let again = host.retransmits as f64 / host.packets.max(1) as f64;
        vec![
            escape(address),
            host.cause.map_or_else(|| "–".to_owned(), |(code, _)| format!("<code>{code}</code>")),
            lost(host.lost_s),
            count(host.connections as f64),
            count(host.failed as f64),
            if host.retransmits > 0 { percent(again) } else { "0".to_owned() },
        ]
    });
    let heading = ["host", "main cause", "time lost", "connections", "failed", "sent again"];
    html.push_str(&table("Hosts that lose most", &heading, hosts));
    let worst = many.worst().iter().map(|Ranked { file, flow, lost_s }| {
        vec![
            escape(file),
            format!("#{}", flow.id),
            format!("<code>{}</code>", flow.verdict.code()),
            escape(&format!("{} – {}", flow.client, flow.server)),
            lost(*lost_s),
            flow.verdict.gain.map_or_else(|| "–".to_owned(), times),
            if flow.goodput_bps > 0.0 { rate(flow.goodput_bps) } else { "–".to_owned() },
            data((flow.bytes_up + flow.bytes_down) as f64),
        ]
    });
    let heading = ["capture", "", "verdict", "connection", "time lost", "to gain", "goodput", "data"];
    html.push_str(&table("Worst connections", &heading, worst));
    html + &remedies(many)
}

fn totals(heading: &str, totals: &[(Code, &Total)]) -> String {
    let rows = totals.iter().map(|(code, total)| {
        vec![
            format!("<code>{code}</code>"),
            lost(total.lost_s),
            count(total.connections as f64),
            count(total.captures as f64),
            escape(&total.worst.name()),
        ]
    });
    table(heading, &["cause", "time lost", "connections", "captures", "worst"], rows)
}

/// A section with a table of cells that are markup already; nothing without rows.
fn table(heading: &str, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: String = rows
        .map(|cells| {
            let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr>{cells}</tr>")
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!(
        "<section><h2>{heading}</h2><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{heading}\"><table class=\"left\"><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div></section>\n"
    )
}

fn remedies(many: &Many) -> String {
    let ways: String = many
        .remedies()
        .into_iter()
        .take(REMEDIES)
        .map(|advice| {
            let connections = counted(advice.connections, "connection");
            let lost = lost(advice.lost_s);
            format!(
                "<p><code>{}</code> · {connections} with {lost} lost; the figures are of {}</p>{}",
                advice.remedy.code,
                escape(&advice.of),
                findings::remedies(std::slice::from_ref(&advice.remedy))
            )
        })
        .collect();
    if ways.is_empty() { ways } else { format!("<section><h2>What to do</h2>{ways}</section>\n") }
}

/// Seconds lost; nothing lost is no figure.
fn lost(seconds: f64) -> String {
    if seconds > 0.0 { elapsed(seconds) } else { "–".to_owned() }
}
