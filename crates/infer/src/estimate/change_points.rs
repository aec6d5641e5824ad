//! Where the rate behind a queue changes: a path that slows down or becomes faster, rather than one that varies all the time.

/// A moment at which a queue stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Of the views, which.
    pub(super) view: usize,
    /// When it was, and when the round trip that it ends began.
    pub(super) at: u64,
    pub(super) since: u64,
    /// Time that it stands for, in nanoseconds.
    pub(super) nanos: f64,
    /// The logarithms of the flight and of the rate, where it shows any.
    pub(super) shows: Option<(f64, f64)>,
}

/// How long a queue stood at these, in nanoseconds.
pub(super) fn nanos(points: &[Point]) -> f64 {
    points.iter().map(|point| point.nanos).sum()
}

/// Cuts at the largest change of the mean, and what is left again, until a piece `is_one`, or what is cut off would last for less than
/// `shortest` nanoseconds.
///
/// Binary segmentation: Scott and Knott, "A cluster analysis method for grouping means in the analysis of variance", Biometrics 30 (1974).
pub(super) fn pieces(points: &[Point], is_one: impl Fn(&[Point]) -> bool, shortest: f64) -> Vec<&[Point]> {
    let mut pieces = Vec::new();
    // From the last to the first, as they are to come off it again.
    let mut uncut = vec![points];
    while let Some(piece) = uncut.pop() {
        let cut = if is_one(piece) { None } else { change(piece, shortest) };
        match cut.map(|at| piece.split_at(at)) {
            Some((earlier, later)) => uncut.extend([later, earlier]),
            None => pieces.push(piece),
        }
    }
    pieces
}

/// Where the means of what is before and behind are the farthest apart, as their squared distance weighs against what varies within them.
fn change(points: &[Point], shortest: f64) -> Option<usize> {
    let all = nanos(points);
    let (count, sum) = rates(points).fold((0.0, 0.0), |(n, sum), rate| (n + 1.0, sum + rate));
    let (mut n, mut before, mut past) = (0.0, 0.0, 0.0);
    let mut best = (0.0, None);
    for (at, point) in points.iter().enumerate() {
        let enough = n > 0.0 && n < count && past >= shortest && all - past >= shortest;
        if enough {
            let apart = before / n - (sum - before) / (count - n);
            let weight = n * (count - n) * apart * apart;
            if weight > best.0 {
                best = (weight, Some(at));
            }
        }
        past += point.nanos;
        if let Some((_, rate)) = point.shows {
            n += 1.0;
            before += rate;
        }
    }
    best.1
}

fn rates(points: &[Point]) -> impl Iterator<Item = f64> + '_ {
    points.iter().filter_map(|point| point.shows).map(|(_, rate)| rate)
}

/// A line through points, as sums.
#[derive(Debug, Default)]
pub(super) struct LineFit {
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl LineFit {
    pub(super) fn of(points: &[Point]) -> Self {
        let mut fit = Self::default();
        points.iter().filter_map(|point| point.shows).for_each(|(x, y)| fit.add(x, y));
        fit
    }

    fn add(&mut self, x: f64, y: f64) {
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    /// What `y` grows by as `x` grows by one; 0 where that does not.
    pub(super) fn slope(&self) -> f64 {
        let (over, of) = (self.n * self.xy - self.x * self.y, self.n * self.xx - self.x * self.x);
        if of > 1e-9 { over / of } else { 0.0 }
    }

    /// Standard deviation of `y`.
    pub(super) fn varies(&self) -> f64 {
        let n = self.n.max(1.0);
        (self.yy / n - (self.y / n) * (self.y / n)).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(rates: &[f64], shortest: f64) -> Vec<usize> {
        let point =
            |(view, rate): (usize, &f64)| Point { view, at: 0, since: 0, nanos: 1.0, shows: Some((0.0, *rate)) };
        let points: Vec<Point> = rates.iter().enumerate().map(point).collect();
        pieces(&points, |piece| LineFit::of(piece).varies() <= 0.2, shortest).iter().map(|piece| piece.len()).collect()
    }

    #[test]
    fn a_rate_that_changes_is_cut_where_it_does() {
        let steps = [[3.0; 20], [1.0; 20], [2.0; 20]].concat();
        assert_eq!(lengths(&steps, 8.0), [20, 20, 20]);
        assert_eq!(lengths(&steps[..40], 8.0), [20, 20]);
        assert_eq!(lengths(&steps[..20], 8.0), [20]);
    }

    #[test]
    fn nothing_shorter_is_cut_off() {
        let blip = [&[3.0; 20][..], &[1.0; 4], &[3.0; 20]].concat();
        assert!(lengths(&blip, 8.0).iter().all(|&length| length >= 8));
        let saws: Vec<f64> = (0..64).map(|n| f64::from(n % 8) / 4.0).collect();
        assert!(lengths(&saws, 8.0).iter().all(|&length| length >= 8));
        assert_eq!(lengths(&[], 8.0), [0]);
    }
}
