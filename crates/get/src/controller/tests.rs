//! The controller against a model of a path: windows, slow start, a rate, and noise.

use super::*;

/// A path with connections whose flight doubles each round trip up to the window.
struct Model {
    rtt: Duration,
    rate_bps: f64,
    window_bytes: f64,
    /// What a connection carries apart from its window, as with random losses or a slow sender.
    each_bps: f64,
    /// Goodput varies by this share from sample to sample.
    noise: f64,
    now: Duration,
    bytes: f64,
    flights: Vec<f64>,
    round: u32,
}

impl Model {
    fn new(rtt_ms: u64, rate_bps: f64, window_bytes: f64) -> Self {
        Self {
            rtt: Duration::from_millis(rtt_ms),
            rate_bps,
            window_bytes,
            each_bps: f64::INFINITY,
            noise: 0.0,
            now: Duration::ZERO,
            bytes: 0.0,
            flights: Vec::new(),
            round: 0,
        }
    }

    /// One round trip with `ranges`; returns what is measured after it.
    fn round(&mut self, ranges: usize) -> Sample {
        self.flights.resize(ranges, 0.0);
        let rtt = self.rtt.as_secs_f64();
        let most = self.window_bytes.min(self.each_bps / 8.0 * rtt);
        for flight in &mut self.flights {
            *flight = if *flight == 0.0 { 14_480.0 } else { (*flight * 2.0).min(most) };
        }
        let (sum, bdp): (f64, f64) = (self.flights.iter().sum(), self.rate_bps / 8.0 * rtt);
        self.round += 1;
        let wobble = 1.0 + self.noise * if self.round.is_multiple_of(2) { 1.0 } else { -1.0 };
        self.bytes += sum.min(bdp) * wobble;
        self.now += self.rtt;
        let full = self.flights.iter().filter(|flight| **flight >= self.window_bytes * 0.75).count();
        Sample {
            now: self.now,
            bytes: self.bytes as u64,
            ranges,
            // More in flight than the path holds is a queue.
            window_limited: if sum <= bdp * 1.25 { full } else { 0 },
            min_rtt: self.rtt,
            window_bytes: self.window_bytes as u64,
        }
    }

    /// Runs a controller for a time; returns its targets.
    fn run(&mut self, controller: &mut Controller, seconds: f64) -> Vec<usize> {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut targets = Vec::new();
        while self.now < until {
            let sample = self.round(controller.target());
            targets.push(controller.tick(&sample));
        }
        targets
    }
}

#[test]
fn a_window_limited_path_gets_the_ranges_that_its_bandwidth_delay_product_needs() {
    // 3 Gb/s and 35 ms hold 13.1 MB; with a quarter for the queue that is 6.2 windows of 2.65 MB.
    let mut path = Model::new(35, 3e9, 2.65e6);
    let mut controller = Controller::new(16);
    let targets = path.run(&mut controller, 10.0);
    assert_eq!((controller.target(), controller.needed()), (8, Some(7)));
    assert!(!targets.contains(&16), "{targets:?}");
    let climbed = targets.iter().position(|target| *target == 8).expect("8 ranges");
    assert!(climbed < 15, "it takes a slow start and not {climbed} round trips");
}

#[test]
fn a_path_that_needs_more_than_the_first_step_gets_another() {
    let mut path = Model::new(35, 6e9, 2.65e6);
    let mut controller = Controller::new(16);
    path.run(&mut controller, 10.0);
    assert_eq!((controller.target(), controller.needed()), (16, Some(13)));
}

#[test]
fn a_path_that_is_not_window_limited_keeps_one_range() {
    for (rate, each) in [(100e6, f64::INFINITY), (3e9, 20e6), (600e6, f64::INFINITY)] {
        let mut path = Model { each_bps: each, ..Model::new(35, rate, 8e6) };
        let targets = path.run(&mut Controller::new(16), 20.0);
        assert!(targets.iter().all(|target| *target == 1), "{rate} {each}: {targets:?}");
    }
}

#[test]
fn ranges_that_add_nothing_are_removed_and_not_tried_again_for_longer_and_longer() {
    // The window fills just as the path does: 95 % of it.
    let mut path = Model { noise: 0.03, ..Model::new(20, 1e9, 2.5e6 * 0.99) };
    let mut controller = Controller::new(16);
    let targets = path.run(&mut controller, 100.0);
    let tries = targets.windows(2).filter(|pair| pair[0] == 1 && pair[1] > 1).count();
    assert!((1..=5).contains(&tries), "{tries} tries in 100 s");
    let single = targets.iter().filter(|target| **target == 1).count() as f64 / targets.len() as f64;
    assert!(single > 0.9, "one range for {single} of the time");
}

#[test]
fn noise_does_not_pass_for_gain() {
    let mut path = Model { noise: 0.3, ..Model::new(35, 594e6, 2.65e6) };
    let mut controller = Controller::new(16);
    path.run(&mut controller, 30.0);
    assert_eq!(controller.target(), 1);
}

#[test]
fn it_follows_a_path_whose_rate_falls() {
    let mut path = Model::new(35, 3e9, 2.65e6);
    let mut controller = Controller::new(16);
    path.run(&mut controller, 10.0);
    path.rate_bps = 500e6;
    path.run(&mut controller, 30.0);
    assert!(controller.target() <= 2, "{}", controller.target());
}

#[test]
fn it_never_exceeds_what_it_may_or_what_the_server_takes() {
    let mut path = Model::new(35, 3e9, 1e6);
    let mut controller = Controller::new(6);
    assert!(path.run(&mut controller, 10.0).iter().all(|target| *target <= 6));
    assert_eq!(controller.target(), 6);
    controller.refused(3);
    assert!(path.run(&mut controller, 10.0).iter().all(|target| *target <= 3));
}
