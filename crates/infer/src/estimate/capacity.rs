//! The path's rate: one table of methods in order of precedence.
//!
//! | method | when it applies | what it gives |
//! |---|---|---|
//! | policer | a token bucket explains the losses | at most what the bucket refills at |
//! | standing queue | a queue never emptied, at one rate, and nothing came faster without it | at most its rate |
//! | blurred trains | delays that vary bunch packets up, and no train rate dominates | at most the median train rate |
//! | compressed trains | trains come many times as fast as anything over a round trip, and delays vary by more than they take | at most the plateau |
//! | busy bottleneck | a queue stood nearly always, at rates that change | the mean rate |
//! | trains | segments sent back to back, ACKs not bunched on their way | their rate, or the plateau if that is higher |
//! | plateau | a queue stood while data came at the largest rate over a round trip | that rate |
//!
//! The first method of the lower three that applies measures the rate; those of the upper four that apply bound it from above. Without any of the lower three, a policer's rate is the path's.

use crate::estimate::round_trips::{PLATEAU, RoundTrips};
use crate::estimate::token_bucket::PolicerBucket;

/// The rates that a phase shows before its losses are judged, in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownRates {
    /// Mean over the phase.
    pub(crate) mean: f64,
    /// Largest over a round trip.
    pub(crate) plateau: Option<f64>,
    /// Of trains of segments.
    pub(crate) trains: Option<f64>,
    /// Of the bottleneck that was never idle.
    busy: Option<f64>,
    standing: Option<f64>,
    /// The trains' rate and the plateau before other methods bound them.
    unbounded: (Option<f64>, Option<f64>),
}

impl ShownRates {
    pub(crate) fn of(rounds: &RoundTrips<'_>, mean: f64) -> Self {
        let sender = rounds.sender;
        // Away from the sender data shows itself how fast it comes; an ACK that closes a gap covers much at once.
        let arrives = sender.observers.packet_trains.fastest().filter(|_| !sender.is_exact());
        let arrives = arrives.map_or(f64::INFINITY, |fastest| fastest.max(mean));
        let largest = rounds.plateau(mean).map(|plateau| plateau.min(arrives));
        let trains = sender.observers.train_rate().filter(|&trains| !rounds.bunched(trains, largest));
        // Faster moments are the bottleneck's own; on average it delivers no more.
        let busy = largest.filter(|largest| rounds.busy && mean < PLATEAU * largest).map(|_| mean);
        let standing = rounds.standing.filter(|standing| standing.always).map(|standing| standing.rate);
        let at_most = standing.map_or(f64::INFINITY, |rate| rate.max(mean));
        Self {
            mean,
            plateau: busy.or(largest).map(|plateau| plateau.min(at_most)),
            trains: trains.map(|trains| trains.min(standing.unwrap_or(f64::INFINITY))),
            busy,
            standing: standing.map(|_| at_most),
            unbounded: (trains, largest),
        }
    }

    /// The rate that a policer lets payload through at for as long as one likes, or what came through if that is more.
    pub(crate) fn policed(&self, bucket: PolicerBucket, mss: u64) -> f64 {
        bucket.payload_rate(mss).max(self.mean)
    }

    /// The path's rate by the table, in bytes per second, and whether delays that vary blur the trains; then it is a lower bound.
    pub(crate) fn capacity(&self, rounds: &RoundTrips<'_>, bucket: Option<PolicerBucket>) -> (Option<f64>, bool) {
        let sender = rounds.sender;
        let (trains, plateau) = self.unbounded;
        let policed = bucket.map(|bucket| self.policed(bucket, sender.space.mss));
        let varies = || rounds.jitter().max(sender.rtt.variation);
        let blurred = sender.observers.packet_trains.blurred(sender.space.mss, varies);
        let compressed =
            || plateau.filter(|&plateau| trains.is_some_and(|trains| rounds.are_compressed(trains, plateau)));
        let blurred = blurred.map(|rate| rate.max(self.plateau.unwrap_or(0.0))).or_else(compressed);
        let trains = trains.map(|rate| rate.max(plateau.unwrap_or(0.0)));
        let queued = plateau.filter(|_| rounds.ack_wait.is_some() || rounds.queued_at_plateau(plateau));
        let at_most = [policed, self.standing, blurred].into_iter().flatten().fold(f64::INFINITY, f64::min);
        let measured = self.busy.or(trains).or(queued).map(|rate| rate.min(at_most));
        // A policer's rate is known even if nothing else shows any.
        (measured.or(policed), blurred.is_some())
    }
}
