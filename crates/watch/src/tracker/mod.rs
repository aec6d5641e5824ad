//! What the kernel says of each socket, kept from one refresh to the next: counters become rates, clocks become limits.

mod closed;

use crate::backlog::BacklogCourse;
use crate::totals::Totals;
use closed::Closings;
pub(crate) use closed::NO_USER;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::net::SocketAddr;
use thalweg_infer::socket::{Sample, limit_now, verdict};
use thalweg_model::{
    GrowingProgram, LifeLimit, LimitLife, ReceiveSide, SendSide, SocketLimit, SocketProcess, SocketRetransmissions,
    SocketRow, SocketRtt, SocketState, TcpMemoryUse, Verdict, WatchReport,
};

/// How often the owner of a socket is searched for: a socket that is just being accepted has none yet.
const OWNER_SEARCHES: u8 = 3;
/// Samples kept of the socket that is followed.
const FOLLOWED_SAMPLES: usize = 120;
/// `TCP_INFINITE_SSTHRESH` and what the kernel gives for a round trip that it does not know (`tcp_min_rtt`): all ones.
const UNKNOWN_US: u64 = u32::MAX as u64;

/// What the kernel says of a socket at a moment.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The number of no other socket.
    pub cookie: u64,
    /// Its inode; 0 where no program holds it.
    pub inode: u32,
    /// Its user.
    pub uid: u32,
    /// The kernel's number of its state.
    pub state: u8,
    /// This host's end.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Received and not yet read, in bytes.
    pub unread: u32,
    /// Written and not yet acknowledged, in bytes.
    pub unacknowledged: u32,
    /// Packets sent and received since it was opened (`tcpi_segs_out`, `tcpi_segs_in`): if neither moves and nothing waits, nothing is new.
    pub packets: (u32, u32),
    /// The name of the congestion control.
    pub congestion_control: &'a str,
}

/// What is known of a socket beside its row.
#[derive(Debug)]
struct Track {
    sample: Sample,
    inode: u32,
    packets: (u32, u32),
    seen: u64,
    owner_searches: u8,
    /// The row shows an interval in which nothing moved.
    is_quiet: bool,
    /// It was opened in the last interval, with these counters: its sums wait until its process is known.
    opened: Option<Sample>,
    /// Its end is reported.
    is_closed: bool,
}

/// The sockets of a host. A refresh is [`Tracker::begin`], [`Tracker::observe`] for each socket, [`Tracker::end`].
#[derive(Debug)]
pub struct Tracker {
    report: WatchReport,
    tracks: Vec<Track>,
    places: HashMap<u64, usize>,
    refreshes: u64,
    gone: Vec<u32>,
    followed: Option<(u64, VecDeque<Sample>)>,
    /// Sockets with [`Track::opened`].
    opened: Vec<u64>,
    closings: Closings,
    totals: Totals,
    course: BacklogCourse,
}

impl Default for Tracker {
    fn default() -> Self {
        Self {
            report: WatchReport {
                schema: "thalweg.watch/1".to_owned(),
                at_s: 0.0,
                interval_s: 0.0,
                sockets_total: 0,
                backlog: thalweg_model::Backlog::default(),
                notes: Vec::new(),
                sockets: Vec::new(),
                closed: None,
            },
            tracks: Vec::new(),
            places: HashMap::new(),
            refreshes: 0,
            gone: Vec::new(),
            followed: None,
            opened: Vec::new(),
            closings: Closings::default(),
            totals: Totals::default(),
            course: BacklogCourse::default(),
        }
    }
}

impl Tracker {
    /// Begins a refresh at this moment, in seconds since the epoch.
    pub fn begin(&mut self, at_s: f64) {
        self.settle();
        let is_first = self.refreshes == 0;
        if is_first {
            self.closings.begin(at_s);
        }
        self.report.interval_s = if is_first { 0.0 } else { (at_s - self.report.at_s).max(0.0) };
        self.report.at_s = at_s;
        self.refreshes += 1;
        self.gone.clear();
        self.totals.begin();
    }

    /// Takes what the kernel says of a socket. `field` gives what `TCP_INFO` and `SO_MEMINFO` hold by the kernel's names; it is not asked for a
    /// socket at which nothing has happened.
    pub fn observe(&mut self, observed: &Observed<'_>, field: impl Fn(&str) -> u64) {
        let Some(state) = SocketState::of_kernel(observed.state) else { return };
        let at_s = self.report.at_s;
        let Some(&place) = self.places.get(&observed.cookie) else {
            self.open(observed, state, field);
            return;
        };
        let (track, row) = (&mut self.tracks[place], &mut self.report.sockets[place]);
        track.seen = self.refreshes;
        row.state = state;
        self.totals.count(state);
        let waits = observed.unacknowledged > 0 || observed.unread > 0;
        let is_same = track.packets == observed.packets && row.receive.unread_bytes == u64::from(observed.unread);
        let is_followed = self.followed.as_ref().is_some_and(|(id, _)| *id == observed.cookie);
        if is_same && !waits && row.send.queued_bytes == 0 && !is_followed {
            if !track.is_quiet {
                be_quiet(row);
                track.is_quiet = true;
            }
            track.sample.at_s = at_s;
            return;
        }
        track.is_quiet = false;
        track.packets = observed.packets;
        let before = track.sample;
        let now = Sample::of(at_s, &field, u64::from(observed.unread));
        track.sample = now;
        fill(row, observed, &field, &before, &now);
        if let Some((_, samples)) = self.followed.as_mut().filter(|_| is_followed) {
            if samples.len() == FOLLOWED_SAMPLES {
                samples.pop_front();
            }
            samples.push_back(now);
        }
        self.totals.add(row, &before, &now);
    }

    fn open(&mut self, observed: &Observed<'_>, state: SocketState, field: impl Fn(&str) -> u64) {
        let now = Sample::of(self.report.at_s, &field, u64::from(observed.unread));
        // One that was opened after the first refresh began within the interval, with all counters at zero.
        let before = if self.refreshes > 1 {
            Sample { at_s: self.report.at_s - self.report.interval_s, ..Sample::default() }
        } else {
            now
        };
        let mut row = new_row(observed, state);
        fill(&mut row, observed, &field, &before, &now);
        self.totals.count(state);
        self.opened.push(observed.cookie);
        self.places.insert(observed.cookie, self.tracks.len());
        self.report.sockets.push(row);
        self.tracks.push(Track {
            sample: now,
            inode: observed.inode,
            packets: observed.packets,
            seen: self.refreshes,
            owner_searches: 0,
            is_quiet: false,
            opened: Some(before),
            is_closed: false,
        });
    }

    /// Ends a refresh: forgets the sockets that were not observed, and adds up the others.
    pub fn end(&mut self, memory: Option<TcpMemoryUse>) {
        let mut place = 0;
        while place < self.tracks.len() {
            if self.tracks[place].seen == self.refreshes {
                place += 1;
                continue;
            }
            let row = self.report.sockets.swap_remove(place);
            let track = self.tracks.swap_remove(place);
            self.gone.push(track.inode);
            self.places.remove(&row.id);
            if !track.is_closed {
                self.closings.depart(row, track.sample);
            }
            if let Some(moved) = self.report.sockets.get(place) {
                self.places.insert(moved.id, place);
            }
        }
        self.report.sockets_total = self.tracks.len() as u64;
        self.report.closed = self.closings.report(self.report.interval_s);
        let queued = self.report.sockets.iter().map(|row| row.send.queued_bytes).sum();
        self.report.backlog = self.course.next(self.report.at_s, queued, memory);
        self.totals.end(&self.report);
    }

    /// What memory has come to, of the programs with the largest send queues: the process, its memory and what is left, in bytes.
    pub fn programs(&mut self, memory: impl Fn(&SocketProcess) -> Option<(u64, u64)>) {
        let growing: Vec<GrowingProgram> = self.course.programs(self.report.at_s, &self.report.sockets, memory);
        let backlog = &mut self.report.backlog;
        backlog.warnings.extend(growing.iter().map(crate::backlog::sentence));
        backlog.growing = growing;
    }

    /// Sentences about what could not be seen.
    pub fn note(&mut self, notes: Vec<String>) {
        self.report.notes = notes;
    }

    /// Inodes of the sockets whose process is not known and is worth a search; each is given a few times only.
    pub fn unowned(&mut self, is_visible: impl Fn(u32) -> bool) -> Vec<u32> {
        let both = self.tracks.iter_mut().zip(&self.report.sockets);
        let wanted = both.filter(|(track, row)| {
            row.process.is_none() && track.inode != 0 && track.owner_searches < OWNER_SEARCHES && is_visible(row.uid)
        });
        wanted
            .map(|(track, _)| {
                track.owner_searches += 1;
                track.inode
            })
            .collect()
    }

    /// Takes what was found for [`Tracker::unowned`].
    pub fn own(&mut self, owner: impl Fn(u32) -> Option<SocketProcess>) {
        for (track, row) in self.tracks.iter().zip(&mut self.report.sockets) {
            if row.process.is_none() && track.inode != 0 {
                row.process = owner(track.inode);
            }
        }
        self.settle();
    }

    /// Adds up what was opened.
    fn settle(&mut self) {
        for id in self.opened.drain(..) {
            let Some(&place) = self.places.get(&id) else { continue };
            let track = &mut self.tracks[place];
            if let Some(before) = track.opened.take() {
                self.totals.add(&self.report.sockets[place], &before, &track.sample);
            }
        }
    }

    /// Inodes of the sockets that were gone at the last [`Tracker::end`].
    pub fn gone(&self) -> &[u32] {
        &self.gone
    }

    /// Keeps samples of this socket from now on, for [`Tracker::verdict`].
    pub fn follow(&mut self, id: Option<u64>) {
        if self.followed.as_ref().map(|(id, _)| *id) != id {
            self.followed = id.map(|id| (id, VecDeque::new()));
        }
    }

    /// The doctor's verdict on the socket that is followed, since it is.
    pub fn verdict(&mut self) -> Option<Verdict> {
        verdict(self.followed.as_mut()?.1.make_contiguous())
    }

    /// The last refresh.
    pub const fn report(&self) -> &WatchReport {
        &self.report
    }

    /// What was counted since the first refresh.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}

fn new_row(observed: &Observed<'_>, state: SocketState) -> SocketRow {
    SocketRow {
        id: observed.cookie,
        process: None,
        uid: observed.uid,
        local: observed.local,
        peer: observed.peer,
        state,
        congestion_control: observed.congestion_control.to_owned(),
        rtt: SocketRtt::default(),
        send: SendSide::default(),
        receive: ReceiveSide::default(),
        retransmissions: SocketRetransmissions::default(),
        limit: SocketLimit::default(),
    }
}

fn be_quiet(row: &mut SocketRow) {
    row.send.rate_bps = 0.0;
    row.send.queued_s = Some(0.0);
    row.receive.rate_bps = 0.0;
    row.retransmissions.rate_per_s = 0.0;
    row.limit.now = None;
}

fn fill(row: &mut SocketRow, observed: &Observed<'_>, field: &impl Fn(&str) -> u64, before: &Sample, now: &Sample) {
    let seconds = now.at_s - before.at_s;
    let per_second = |amount: u64| if seconds > 0.0 { amount as f64 / seconds } else { 0.0 };
    let milliseconds = |us: u64| (us > 0 && us != UNKNOWN_US).then_some(us as f64 / 1e3);
    let smoothed_ms = milliseconds(now.rtt_us);
    row.rtt = SocketRtt {
        smoothed_ms,
        variation_ms: smoothed_ms.and(milliseconds(now.rtt_var_us)),
        min_ms: milliseconds(now.rtt_min_us),
    };
    let queued_bytes = u64::from(observed.unacknowledged);
    let drained = per_second(now.bytes_acked.saturating_sub(before.bytes_acked));
    row.send = SendSide {
        rate_bps: drained * 8.0,
        bytes: now.bytes_acked,
        delivery_rate_bps: field("tcpi_delivery_rate") as f64 * 8.0,
        delivery_rate_app_limited: field("tcpi_delivery_rate_app_limited") != 0,
        cwnd_segments: now.window,
        segment_bytes: now.segment,
        in_flight_bytes: now.in_flight * now.segment,
        peer_window_bytes: now.peer_window,
        zero_window: now.peer_window == 0 && now.unsent > 0,
        queued_bytes,
        unsent_bytes: now.unsent,
        queued_s: if queued_bytes == 0 { Some(0.0) } else { (drained > 0.0).then(|| queued_bytes as f64 / drained) },
        buffer_bytes: now.buffer,
        buffered_bytes: now.buffered,
    };
    row.receive = ReceiveSide {
        rate_bps: per_second(now.bytes_received.saturating_sub(before.bytes_received)) * 8.0,
        bytes: now.bytes_received,
        window_bytes: field("tcpi_rcv_wnd"),
        space_bytes: field("tcpi_rcv_space"),
        unread_bytes: now.unread,
        buffered_bytes: field("sk_rmem_alloc"),
        buffer_bytes: now.receive_buffer,
        out_of_order_segments: field("tcpi_rcv_ooopack"),
    };
    row.retransmissions = SocketRetransmissions {
        segments: now.sent_again,
        rate_per_s: per_second(now.sent_again.saturating_sub(before.sent_again)),
        share: now.sent_again as f64 / now.data_segments_out.max(now.sent_again).max(1) as f64,
        timeouts: now.timeouts,
        spurious_segments: now.needless,
        reordering_seen: now.overtaken,
    };
    row.limit = SocketLimit { now: limit_now(&[*before, *now]), life: life(now) };
}

/// What the kernel's clocks say since the socket was opened; the first holds the other two.
fn life(now: &Sample) -> LimitLife {
    let part = |us: u64| if now.busy_us > 0 { (us as f64 / now.busy_us as f64).min(1.0) } else { 0.0 };
    let (receive_window, send_buffer) = (part(now.window_limited_us), part(now.buffer_limited_us));
    let network = if now.busy_us > 0 { (1.0 - receive_window - send_buffer).max(0.0) } else { 0.0 };
    let named = LifeLimit::ALL.into_iter().zip([receive_window, send_buffer, network]);
    let cause = named.max_by(|(_, a), (_, b)| a.total_cmp(b)).filter(|(_, part)| *part > 0.0);
    LimitLife {
        busy_s: now.busy_us as f64 / 1e6,
        cause: cause.map(|(cause, _)| cause),
        receive_window,
        send_buffer,
        network,
    }
}

#[cfg(test)]
mod tests;
