//! The page of an interface's traffic: a row for each second, a point for each millisecond, its colour the rate.

use super::document;
use super::escape::escape;
use crate::figures::{bytes, counted, data, percent, rate};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thalweg_model::{BurstCell, BurstMap, BurstMapRow};

/// Indices of the palette: nothing passed; from the least to the most; the port's buffer overflowed.
const EMPTY: u8 = 0;
const FIRST_COLOR: u8 = 1;
const LAST_COLOR: u8 = 254;
const OVERFLOW: u8 = 255;
const OVERFLOW_RGB: [u8; 3] = [230, 30, 30];
/// Points of the scale between which colours are mixed: dark is little, light is much, in grey as well. Source: matplotlib, "viridis".
const SCALE: [[u8; 3]; 5] = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
/// Rows between two times at the side.
const ROWS_PER_TIME: usize = 10;
/// Flows that have maps of their own, those with most bytes.
const FLOWS_MAX: usize = 16;
/// Pixels that all rows are to have on the screen, and the least and the most of one.
const MAP_PX: usize = 240;
const ROW_PX: (usize, usize) = (4, 16);

/// Writes the page: the maps of an interface, and below them those of its flows, which have their names in place of the interface's. It loads nothing,
/// and needs no script: the maps are images in it.
pub fn bursts_page(map: &BurstMap, flows: &[BurstMap]) -> String {
    let title = format!("Milliseconds of {}", map.interface);
    let mut body = format!("<header><h1>{}</h1>", escape(&title));
    let mut note = |text: &str| body.push_str(&format!("<p class=\"faint\">{}</p>", escape(text)));
    note(&format!(
        "{} from {} on; bytes count from the IP header on",
        counted(map.rows.len() as u64, "second"),
        clock(map.first_s)
    ));
    if map.dropped_rows > 0 {
        note(&format!("the latest of {}", counted(map.rows.len() as u64 + map.dropped_rows, "second")));
    }
    if let Some(port) = map.port {
        note(&format!(
            "held against a port of {} with a buffer of {}",
            rate(port.rate_bps),
            bytes(port.buffer_bytes as f64)
        ));
    }
    body.push_str("</header>\n<main>\n");
    let all = map.rows.iter().flat_map(|row| row.sent.iter().chain(&row.received));
    let most = all.map(|cell| rate_of(*cell)).fold(map.port.map_or(0.0, |port| port.rate_bps), f64::max);
    body.push_str(&section("sent", map, most, sent));
    body.push_str(&section("received", map, most, received));
    if !flows.is_empty() {
        let shown = flows.len().min(FLOWS_MAX);
        let count = if shown < flows.len() {
            format!("{shown} of {}", counted(flows.len() as u64, "flow"))
        } else {
            counted(shown as u64, "flow")
        };
        body.push_str(&format!("<h1>{count}, by bytes</h1>\n"));
    }
    for flow in flows.iter().take(FLOWS_MAX) {
        for (name, of) in [("sent", sent as fn(&BurstMapRow) -> &Vec<BurstCell>), ("received", received)] {
            if flow.rows.iter().any(|row| of(row).iter().any(|cell| cell.bytes > 0)) {
                body.push_str(&section(&format!("{}, {name}", flow.interface), flow, most, of));
            }
        }
    }
    body.push_str("</main>\n");
    document(&title, &body, "")
}

const fn sent(row: &BurstMapRow) -> &Vec<BurstCell> {
    &row.sent
}

const fn received(row: &BurstMapRow) -> &Vec<BurstCell> {
    &row.received
}

/// One direction: its figures and its map. Colours are of rates up to `most`.
fn section(name: &str, map: &BurstMap, most: f64, of: fn(&BurstMapRow) -> &Vec<BurstCell>) -> String {
    let name = &escape(name);
    let cells: Vec<BurstCell> = map.rows.iter().flat_map(|row| of(row).iter().copied()).collect();
    let sum: f64 = cells.iter().map(|cell| f64::from(cell.bytes)).sum();
    if sum == 0.0 {
        return format!("<section><h2>{name}</h2><p>Nothing.</p></section>\n");
    }
    let busy = cells.iter().filter(|cell| cell.bytes > 0).count();
    let over = cells.iter().filter(|cell| cell.overflows).count();
    let fullest = cells.iter().map(|cell| rate_of(*cell)).fold(0.0, f64::max);
    let mean = sum * 8.0 / map.rows.len() as f64;
    let mut text = format!(
        "<section><h2>{name}</h2><p>{}, {} on average, {} in the fullest millisecond; ",
        data(sum),
        rate(mean),
        rate(fullest)
    );
    text += &format!("something passed in {} of the milliseconds.", percent(busy as f64 / cells.len() as f64));
    if map.port.is_some() {
        text += &match over {
            0 => " The port holds all of it.".to_owned(),
            _ => format!(
                " <span class=\"bad\">The port's buffer overflowed in {}.</span>",
                counted(over as u64, "millisecond")
            ),
        };
    }
    text += "</p>\n<div class=\"map\">";
    let row_px = (MAP_PX / map.rows.len().max(1)).clamp(ROW_PX.0, ROW_PX.1);
    let height = map.rows.len() * row_px;
    text += &format!("<div class=\"map-times\" style=\"height:{height}px\">");
    for row in (0..map.rows.len()).step_by(ROWS_PER_TIME) {
        text += &format!("<span style=\"top:{}px\">{}</span>", row * row_px, clock(map.first_s + row as u64));
    }
    let width = map.rows.first().map_or(0, |row| of(row).len());
    let alt = format!("Rate of what was {name} in each millisecond, a row for each second");
    let pixels: Vec<u8> = cells.iter().map(|cell| color(*cell, most)).collect();
    text += &format!(
        "</div><img alt=\"{alt}\" style=\"height:{height}px\" src=\"data:image/png;base64,{}\">",
        image(width, &pixels)
    );
    text += "<span></span><div class=\"map-axis\"><span>0 ms</span><span>250</span><span>500</span><span>750</span><span>1,000 ms</span></div></div>\n";
    text += &legend(most, map.port.is_some());
    text += "</section>\n";
    text
}

/// What the colours mean.
fn legend(most: f64, has_port: bool) -> String {
    let parts: Vec<u8> = (FIRST_COLOR..=LAST_COLOR).collect();
    let mut text = format!(
        "<div class=\"map-legend\"><span>{}</span><img alt=\"\" src=\"data:image/png;base64,{}\"><span>{}</span>",
        rate(0.0),
        image(parts.len(), &parts),
        rate(most)
    );
    text += &format!("<small>the middle is {}</small>", rate(most / 4.0));
    if has_port {
        text += "<i></i><small>the buffer overflowed</small>";
    }
    text + "</div>"
}

fn rate_of(cell: BurstCell) -> f64 {
    f64::from(cell.bytes) * 8.0 * 1e3
}

/// Its colour: by the root of the rate, so that small ones remain distinct.
fn color(cell: BurstCell, most: f64) -> u8 {
    match cell {
        BurstCell { overflows: true, .. } => OVERFLOW,
        BurstCell { bytes: 0, .. } => EMPTY,
        _ => FIRST_COLOR + ((rate_of(cell) / most).sqrt().min(1.0) * f64::from(LAST_COLOR - FIRST_COLOR)) as u8,
    }
}

/// Pixels as PNG, in base64.
fn image(width: usize, pixels: &[u8]) -> String {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, (pixels.len() / width.max(1)) as u32);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette());
    // Only the first colour is transparent.
    encoder.set_trns(vec![0]);
    encoder.set_compression(png::Compression::High);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    written.expect("invariant: memory takes what is written, and the pixels are as many as the size says");
    STANDARD.encode(file)
}

fn palette() -> Vec<u8> {
    let mut colors = vec![0; 3];
    let steps = f64::from(LAST_COLOR - FIRST_COLOR);
    for index in 0..=(LAST_COLOR - FIRST_COLOR) {
        let at = f64::from(index) / steps * (SCALE.len() - 1) as f64;
        let (from, part) = ((at as usize).min(SCALE.len() - 2), at.fract());
        let part = if at as usize > from { 1.0 } else { part };
        let [low, high] = [SCALE[from], SCALE[from + 1]];
        colors.extend(
            (0..3).map(|of| (f64::from(low[of]) + part * (f64::from(high[of]) - f64::from(low[of]))).round() as u8),
        );
    }
    colors.extend(OVERFLOW_RGB);
    colors
}

/// The time of day in UTC.
fn clock(second: u64) -> String {
    format!("{:02}:{:02}:{:02} UTC", second / 3_600 % 24, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::MapPort;

    #[test]
    fn a_map_is_an_image_with_a_point_for_each_millisecond() {
        let mut rows = vec![BurstMapRow::new(1_000), BurstMapRow::new(1_000)];
        rows[0].sent[3] = BurstCell { bytes: 125_000, overflows: false };
        rows[1].sent[999] = BurstCell { bytes: 250_000, overflows: true };
        let port = Some(MapPort { rate_bps: 1e9, buffer_bytes: 131_072 });
        let map = BurstMap { interface: "<eth0>".to_owned(), first_s: 86_399, rows, dropped_rows: 0, port };
        let flow = BurstMap { interface: "tcp <a> b".to_owned(), ..map.clone() };
        let page = bursts_page(&map, &vec![flow; 17]);
        assert!(page.contains("<h1>16 of 17 flows, by bytes</h1>"), "{page}");
        assert_eq!(page.matches("<h2>tcp &lt;a&gt; b, sent</h2>").count(), 16);
        assert!(!page.contains("b, received"), "what is empty has no map");
        assert!(page.contains("&lt;eth0&gt;") && !page.contains("<eth0>"), "names are escaped");
        assert!(page.contains("23:59:59 UTC") && page.contains("2.00 Gb/s in the fullest millisecond"), "{page}");
        assert!(page.contains("overflowed in 1 millisecond.") && page.contains("<h2>received</h2><p>Nothing.</p>"));
        let begin = page.find("base64,").expect("an image") + "base64,".len();
        let end = begin + page[begin..].find('"').expect("its end");
        let file = STANDARD.decode(&page[begin..end]).expect("base64");
        let mut decoder = png::Decoder::new(std::io::Cursor::new(file));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().expect("a PNG");
        let mut pixels = vec![0; 2_000];
        let info = reader.next_frame(&mut pixels).expect("its pixels");
        assert_eq!((info.width, info.height), (1_000, 2));
        assert_eq!((pixels[3], pixels[1_999], pixels[4]), (color(map.rows[0].sent[3], 2e9), OVERFLOW, EMPTY));
        assert_eq!(color(map.rows[0].sent[3], 2e9), 1 + (253.0 * 0.5f64.sqrt()) as u8);
    }

    #[test]
    fn the_palette_has_a_colour_for_each_index() {
        let colors = palette();
        assert_eq!(colors.len(), 3 * 256);
        assert_eq!(colors[3..6], SCALE[0]);
        assert_eq!(colors[254 * 3..255 * 3], SCALE[4]);
    }
}
