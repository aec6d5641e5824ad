//! Why data was sent again: told by acknowledgements, by a timer, as a probe; and whether it was needed.

use std::collections::VecDeque;

/// Losses kept one by one; more are only counted.
const MOST_LOSSES: usize = 4_096;
/// Retransmissions watched for proof that they were not needed.
const MOST_WATCHED: usize = 1_024;

/// What made the sender send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Fast,
    Timer,
    Probe,
}

/// A loss episode's first retransmission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// Smoothed RTT before it, in nanoseconds.
    pub(crate) rtt_before: f64,
    /// Silence before it, in nanoseconds; of timers and probes.
    pub(crate) silence: u64,
    /// Packets sent again until all was repaired.
    pub(crate) packets: u64,
}

/// A recovery under way: until `point` is acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Episode {
    pub(crate) point: u64,
    pub(crate) timer: bool,
}

#[derive(Debug, Clone, Copy)]
struct Watched {
    start: u64,
    end: u64,
    at: u64,
    /// Its TSval, where the segment was the first unacknowledged one.
    tsval: Option<u32>,
    known_spurious: bool,
}

/// What is known when data is sent again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence {
    /// Nanoseconds since the sender last sent or heard of progress.
    pub(crate) silence: u64,
    pub(crate) sacked_above: bool,
    pub(crate) duplicates: u32,
    /// It is the first unacknowledged segment.
    pub(crate) is_first: bool,
    /// It is the last segment sent.
    pub(crate) is_last: bool,
    pub(crate) sack_permitted: bool,
    /// See [`crate::rtt::Rtt::shortest_timeout`].
    pub(crate) shortest_timeout: f64,
    pub(crate) rtt: f64,
}

/// Losses of one direction.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub(crate) episode: Option<Episode>,
    pub(crate) total: u64,
    pub(crate) fast: u64,
    pub(crate) timer: u64,
    pub(crate) probe: u64,
    pub(crate) spurious: u64,
    /// Times a timer fired.
    pub(crate) timeouts: u64,
    pub(crate) episodes: Vec<Loss>,
    pub(crate) timer_just_fired: bool,
    /// A probe is out and nothing was heard since.
    probing: bool,
    watched: VecDeque<Watched>,
}

impl Losses {
    /// Whether anything was sent again.
    pub(crate) const fn any(&self) -> bool {
        self.total > 0
    }

    /// Classifies a retransmission, and counts it. `next` is the recovery point of an episode it opens.
    pub(crate) fn retransmitted(&mut self, evidence: &Evidence, loss: Loss, next: u64) -> Kind {
        let kind = self.classify(evidence);
        self.total += 1;
        self.timer_just_fired = false;
        if self.episode.is_some()
            && let Some(last) = self.episodes.last_mut()
        {
            last.packets += 1;
        }
        match kind {
            Kind::Fast => {
                self.fast += 1;
                if self.episode.is_none() {
                    self.episode = Some(Episode { point: next, timer: false });
                    self.note(Loss { kind, ..loss });
                }
            }
            Kind::Probe => {
                self.probe += 1;
                self.probing = true;
                self.timer_just_fired = true;
                self.note(Loss { kind, silence: evidence.silence, ..loss });
            }
            Kind::Timer => {
                self.timer += 1;
                // Within an episode the timer fires anew only after another silence; what follows it is repair.
                let fires =
                    self.episode.is_none_or(|e| !e.timer) || evidence.silence as f64 >= evidence.shortest_timeout;
                if fires {
                    self.timeouts += 1;
                    self.timer_just_fired = true;
                    self.note(Loss { kind, silence: evidence.silence, ..loss });
                }
                self.episode = Some(Episode { point: next, timer: true });
            }
        }
        kind
    }

    fn classify(&self, evidence: &Evidence) -> Kind {
        let silent = evidence.silence as f64 >= evidence.shortest_timeout;
        match self.episode {
            Some(episode) if episode.timer => return Kind::Timer,
            // A retransmission that was lost itself: nothing but the timer sends it again after a silence.
            Some(_) => return if silent && evidence.is_first { Kind::Timer } else { Kind::Fast },
            None => {}
        }
        // RFC 6675 §2 (three segments above, or what RACK takes for it), RFC 5681 §3.2 (three duplicates).
        let told = evidence.sacked_above || evidence.duplicates >= 3;
        if told && !(silent && evidence.is_first && evidence.silence > 2 * evidence.rtt as u64 + 200_000_000) {
            return Kind::Fast;
        }
        // Linux tcp_schedule_loss_probe: SACK, not in recovery, the last segment, 2·SRTT after the last send, once.
        if evidence.sack_permitted && evidence.is_last && !self.probing && evidence.silence as f64 >= 1.5 * evidence.rtt
        {
            return Kind::Probe;
        }
        if silent {
            return Kind::Timer;
        }
        // Early retransmit, and senders with other thresholds: whatever they heard, no timer runs out this soon.
        Kind::Fast
    }

    fn note(&mut self, loss: Loss) {
        if self.episodes.len() < MOST_LOSSES {
            self.episodes.push(loss);
        }
    }

    /// Remembers a retransmission until it is acknowledged.
    pub(crate) fn watch(&mut self, start: u64, end: u64, at: u64, tsval: Option<u32>) {
        if self.watched.len() >= MOST_WATCHED {
            self.watched.pop_front();
        }
        self.watched.push_back(Watched { start, end, at, tsval, known_spurious: false });
    }

    /// A DSACK reports `[left, right)` as received twice; whether that proves a retransmission needless.
    ///
    /// Source: RFC 2883; RFC 3708 for its use as proof.
    pub(crate) fn reported_twice(&mut self, left: u64, right: u64) -> bool {
        let Some(watched) = self.watched.iter_mut().find(|w| !w.known_spurious && w.start < right && left < w.end)
        else {
            return false;
        };
        watched.known_spurious = true;
        self.spurious += 1;
        true
    }

    /// The cumulative acknowledgement reached `to`; gives the start of a retransmission now proven needless.
    ///
    /// Source: the Eifel detection algorithm, RFC 3522 §3.2: the acknowledgement echoes a time before the retransmission.
    pub(crate) fn acknowledged(&mut self, to: u64, now: u64, tsecr: Option<u32>, rtt_min: Option<u64>) -> Option<u64> {
        self.probing = false;
        let mut proven = None;
        if let Some(first) = self.watched.iter_mut().find(|w| w.start < to && w.end <= to && w.tsval.is_some() && !w.known_spurious)
            && let (Some(tsval), Some(echo)) = (first.tsval.take(), tsecr)
            && (echo.wrapping_sub(tsval) as i32) < 0
            && echo != 0
            // Without a round trip in between, the acknowledgement cannot speak of the retransmission at all.
            && now.saturating_sub(first.at) < rtt_min.map_or(0, |min| min.saturating_mul(4))
        {
            first.known_spurious = true;
            self.spurious += 1;
            proven = Some(first.start);
        }
        // A DSACK follows the acknowledgement by up to a round trip: keep the watched a while, they are bounded anyway.
        while self.watched.front().is_some_and(|w| w.end + (1 << 24) < to) {
            self.watched.pop_front();
        }
        proven
    }
}
