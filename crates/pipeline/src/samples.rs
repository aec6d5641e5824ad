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
    let mut lines = BufReader::new(File::open(path)?).lines();
    let Some(header) = lines.next().transpose()? else { return Ok(Vec::new()) };
    let column = |name: &str| header.split(',').position(|word| word == name);
    let (Some(cwnd), Some(mss)) = (column("tcpi_snd_cwnd"), column("tcpi_snd_mss")) else { return Ok(Vec::new()) };
    let mut points: Vec<Point> = Vec::new();
    for line in lines {
        let line = line?;
        let words: Vec<&str> = line.split(',').collect();
        if words.get(1) != Some(&sender) || words.get(2) != Some(&"0") {
            continue;
        }
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        if let (Some(t), Some(cwnd), Some(mss)) = (number(0), number(cwnd), number(mss)) {
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
