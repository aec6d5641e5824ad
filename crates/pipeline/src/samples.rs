//! Reading the congestion window from a run's socket samples.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use thalweg_model::{Point, Way};

/// The congestion window of the data's sender, in bytes, of its first connection, from `late_s` seconds after the samples
/// begin, and counted from there.
pub(crate) fn congestion_window(path: &Path, direction: Way, late_s: f64) -> io::Result<Vec<Point>> {
    let sender = match direction {
        Way::Down => "server",
        Way::Up => "client",
    };
    let mut file = BufReader::new(File::open(path)?);
    let mut line = String::new();
    file.read_line(&mut line)?;
    let column = |name: &str| line.trim_end().split(',').position(|word| word == name);
    let (Some(cwnd), Some(mss)) = (column("tcpi_snd_cwnd"), column("tcpi_snd_mss")) else { return Ok(Vec::new()) };
    let mut points: Vec<Point> = Vec::new();
    loop {
        line.clear();
        if file.read_line(&mut line)? == 0 {
            break;
        }
        // Most lines are of other connections: their seventy columns are not divided.
        let mut first = line.splitn(4, ',');
        let (Some(time), Some(host), Some(connection)) = (first.next(), first.next(), first.next()) else { continue };
        if host != sender || connection != "0" {
            continue;
        }
        let number = |at: usize| line.trim_end().split(',').nth(at).and_then(|word| word.parse::<f64>().ok());
        let time = time.parse::<f64>().ok();
        if let (Some(t), Some(cwnd), Some(mss)) = (time, number(cwnd), number(mss)) {
            let (t, v) = (t - late_s, cwnd * mss);
            if t < 0.0 {
                continue;
            }
            // Where nothing changes the last point of the stretch is enough.
            match points.as_mut_slice() {
                [.., a, b] if a.v == v && b.v == v => b.t = t,
                _ => points.push(Point { t, v }),
            }
        }
    }
    Ok(points)
}
