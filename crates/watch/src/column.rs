//! The columns of the table: names, texts, and what they sort by.

use crate::tracker::NO_USER;
use std::cmp::Ordering;
use std::str::FromStr;
use thalweg_model::SocketRow;
use thalweg_units::figures;

/// A column; its name is what `--sort` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The program's name.
    Process,
    /// Its number.
    Pid,
    /// The socket's user.
    Uid,
    /// The program's control group.
    Cgroup,
    /// This host's end.
    Local,
    /// The other end.
    Peer,
    /// The state.
    State,
    /// The congestion control.
    Cc,
    /// Rate of both directions; a column to sort by.
    Rate,
    /// Rate sent.
    Send,
    /// Rate received.
    Receive,
    /// Smoothed round trip.
    Rtt,
    /// Least round trip.
    MinRtt,
    /// Congestion window.
    Cwnd,
    /// Bytes in flight.
    Flight,
    /// The peer's window.
    PeerWindow,
    /// This end's window.
    ReceiveWindow,
    /// What the program reads in a round trip.
    ReceiveSpace,
    /// The receive buffer's memory.
    ReceiveMemory,
    /// Received and not read.
    Unread,
    /// Segments that came out of order.
    OutOfOrder,
    /// Part of the segments that was sent again.
    Retrans,
    /// Segments sent again.
    Retransmitted,
    /// Segments sent again per second.
    RetransmittedPerSecond,
    /// Segments sent again in vain.
    Spurious,
    /// Reordering seen.
    Reordering,
    /// The limit of the last interval.
    Cause,
    /// The limit of its life.
    Life,
    /// The send queue.
    Backlog,
    /// How long that takes to drain.
    Drain,
}

/// What a column is: its name, its title, its width, whether it is a text.
struct Shape(&'static str, &'static str, usize, bool);

impl Column {
    /// Every column, in the order of a table that shows all.
    pub const ALL: [Self; 30] = [
        Self::Process,
        Self::Pid,
        Self::Uid,
        Self::Cgroup,
        Self::Local,
        Self::Peer,
        Self::State,
        Self::Cc,
        Self::Rate,
        Self::Send,
        Self::Receive,
        Self::Cause,
        Self::Life,
        Self::Backlog,
        Self::Drain,
        Self::Rtt,
        Self::MinRtt,
        Self::Cwnd,
        Self::Flight,
        Self::PeerWindow,
        Self::Retrans,
        Self::Retransmitted,
        Self::RetransmittedPerSecond,
        Self::Spurious,
        Self::Reordering,
        Self::ReceiveWindow,
        Self::ReceiveSpace,
        Self::ReceiveMemory,
        Self::Unread,
        Self::OutOfOrder,
    ];

    const fn shape(self) -> Shape {
        match self {
            Self::Process => Shape("process", "PROCESS", 15, true),
            Self::Pid => Shape("pid", "PID", 7, false),
            Self::Uid => Shape("uid", "UID", 5, false),
            Self::Cgroup => Shape("cgroup", "CGROUP", 32, true),
            Self::Local => Shape("local", "LOCAL", 21, true),
            Self::Peer => Shape("peer", "PEER", 21, true),
            Self::State => Shape("state", "STATE", 11, true),
            Self::Cc => Shape("cc", "CC", 6, true),
            Self::Rate => Shape("rate", "RATE", 9, false),
            Self::Send => Shape("send", "SEND", 9, false),
            Self::Receive => Shape("receive", "RECEIVE", 9, false),
            Self::Rtt => Shape("rtt", "RTT", 8, false),
            Self::MinRtt => Shape("min-rtt", "MIN RTT", 8, false),
            Self::Cwnd => Shape("cwnd", "CWND", 6, false),
            Self::Flight => Shape("flight", "FLIGHT", 9, false),
            Self::PeerWindow => Shape("peer-window", "PEER WND", 9, false),
            Self::ReceiveWindow => Shape("receive-window", "RCV WND", 9, false),
            Self::ReceiveSpace => Shape("receive-space", "RCV SPACE", 9, false),
            Self::ReceiveMemory => Shape("receive-memory", "RMEM/RCVBUF", 19, false),
            Self::Unread => Shape("unread", "UNREAD", 9, false),
            Self::OutOfOrder => Shape("out-of-order", "OOO", 7, false),
            Self::Retrans => Shape("retrans", "RETR %", 7, false),
            Self::Retransmitted => Shape("retransmitted", "RETR", 7, false),
            Self::RetransmittedPerSecond => Shape("retransmitted-per-second", "RETR/S", 7, false),
            Self::Spurious => Shape("spurious", "DSACK", 6, false),
            Self::Reordering => Shape("reordering", "REORD", 6, false),
            Self::Cause => Shape("cause", "LIMITED NOW BY", 23, true),
            Self::Life => Shape("life", "OVER ITS LIFE", 20, true),
            Self::Backlog => Shape("backlog", "BACKLOG", 9, false),
            Self::Drain => Shape("drain", "DRAINS IN", 9, false),
        }
    }

    /// What `--sort` takes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.shape().0
    }

    /// The head of the column.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.shape().1
    }

    /// Its width on a screen.
    pub(crate) const fn width(self) -> usize {
        self.shape().2
    }

    /// Whether it is a text, which stands on the left and sorts from A.
    pub(crate) const fn is_text(self) -> bool {
        self.shape().3
    }

    /// Whether of a text that is too long the end is what matters.
    pub(crate) const fn keeps_end(self) -> bool {
        matches!(self, Self::Local | Self::Peer | Self::Cgroup)
    }

    /// The text for a socket; empty where there is nothing to say.
    #[must_use]
    pub fn text(self, row: &SocketRow) -> String {
        let process = row.process.as_ref();
        let count = |number: u64| if number == 0 { String::new() } else { figures::count(number as f64) };
        let bytes = |number: u64| if number == 0 { String::new() } else { figures::bytes(number as f64) };
        let rate = |bps: f64| if bps > 0.0 { figures::rate(bps) } else { String::new() };
        let ms = |value: Option<f64>| value.map(figures::milliseconds).unwrap_or_default();
        match self {
            Self::Process => process.map_or_else(|| "-".to_owned(), |process| clean(&process.name)),
            Self::Pid => process.map(|process| process.pid.to_string()).unwrap_or_default(),
            Self::Uid => {
                if row.uid == NO_USER {
                    String::new()
                } else {
                    row.uid.to_string()
                }
            }
            Self::Cgroup => process.map(|process| clean(&process.cgroup)).unwrap_or_default(),
            Self::Local => row.local.to_string(),
            Self::Peer => row.peer.to_string(),
            Self::State => row.state.to_string(),
            Self::Cc => clean(&row.congestion_control),
            Self::Rate => rate(row.send.rate_bps + row.receive.rate_bps),
            Self::Send => rate(row.send.rate_bps),
            Self::Receive => rate(row.receive.rate_bps),
            Self::Rtt => ms(row.rtt.smoothed_ms),
            Self::MinRtt => ms(row.rtt.min_ms),
            Self::Cwnd => count(row.send.cwnd_segments),
            Self::Flight => bytes(row.send.in_flight_bytes),
            Self::PeerWindow => {
                if row.send.zero_window {
                    "closed".to_owned()
                } else {
                    bytes(row.send.peer_window_bytes)
                }
            }
            Self::ReceiveWindow => bytes(row.receive.window_bytes),
            Self::ReceiveSpace => bytes(row.receive.space_bytes),
            Self::ReceiveMemory => {
                let [held, most] =
                    [row.receive.buffered_bytes, row.receive.buffer_bytes].map(|n| figures::bytes(n as f64));
                format!("{held}/{most}")
            }
            Self::Unread => bytes(row.receive.unread_bytes),
            Self::OutOfOrder => count(row.receive.out_of_order_segments),
            Self::Retrans => {
                let share = row.retransmissions.share;
                if share > 0.0 { figures::fine_percent(share) } else { String::new() }
            }
            Self::Retransmitted => count(row.retransmissions.segments),
            Self::RetransmittedPerSecond => {
                let rate = row.retransmissions.rate_per_s;
                if rate > 0.0 { figures::digits(rate) } else { String::new() }
            }
            Self::Spurious => count(row.retransmissions.spurious_segments),
            Self::Reordering => count(row.retransmissions.reordering_seen),
            Self::Cause => limit_now(row),
            Self::Life => {
                let life = row.limit.life;
                let part = life.receive_window.max(life.send_buffer).max(life.network);
                life.cause.map(|cause| format!("{} {}", cause.as_str(), figures::percent(part))).unwrap_or_default()
            }
            Self::Backlog => bytes(row.send.queued_bytes),
            Self::Drain => match row.send.queued_s {
                None => "never".to_owned(),
                Some(seconds) if row.send.queued_bytes > 0 => figures::elapsed(seconds),
                Some(_) => String::new(),
            },
        }
    }

    /// The order of two sockets: texts from A, figures from the largest, the same by age.
    pub(crate) fn compare(self, a: &SocketRow, b: &SocketRow) -> Ordering {
        let by_text = |of: fn(&SocketRow) -> &str| of(a).cmp(of(b));
        let order = match self {
            Self::Process => by_text(|row| row.process.as_ref().map_or("", |process| &process.name)),
            Self::Cgroup => by_text(|row| row.process.as_ref().map_or("", |process| &process.cgroup)),
            Self::Local => a.local.cmp(&b.local),
            Self::Peer => a.peer.cmp(&b.peer),
            Self::State => a.state.cmp(&b.state),
            Self::Cc => a.congestion_control.cmp(&b.congestion_control),
            // What limits nothing comes last.
            Self::Cause => {
                let name = |row: &SocketRow| row.limit.now.map_or("~", |now| now.cause.as_str());
                name(a).cmp(name(b))
            }
            Self::Life => {
                let name = |row: &SocketRow| row.limit.life.cause.map_or("~", thalweg_model::LifeLimit::as_str);
                name(a).cmp(name(b))
            }
            _ => self.figure(b).total_cmp(&self.figure(a)),
        };
        order.then(a.id.cmp(&b.id))
    }

    fn figure(self, row: &SocketRow) -> f64 {
        let (send, receive, again) = (&row.send, &row.receive, &row.retransmissions);
        match self {
            Self::Pid => row.process.as_ref().map_or(0.0, |process| f64::from(process.pid)),
            Self::Uid => f64::from(row.uid),
            Self::Rate => send.rate_bps + receive.rate_bps,
            Self::Send => send.rate_bps,
            Self::Receive => receive.rate_bps,
            Self::Rtt => row.rtt.smoothed_ms.unwrap_or(0.0),
            Self::MinRtt => row.rtt.min_ms.unwrap_or(0.0),
            Self::Cwnd => send.cwnd_segments as f64,
            Self::Flight => send.in_flight_bytes as f64,
            Self::PeerWindow => send.peer_window_bytes as f64,
            Self::ReceiveWindow => receive.window_bytes as f64,
            Self::ReceiveSpace => receive.space_bytes as f64,
            Self::ReceiveMemory => receive.buffered_bytes as f64,
            Self::Unread => receive.unread_bytes as f64,
            Self::OutOfOrder => receive.out_of_order_segments as f64,
            Self::Retrans => again.share,
            Self::Retransmitted => again.segments as f64,
            Self::RetransmittedPerSecond => again.rate_per_s,
            Self::Spurious => again.spurious_segments as f64,
            Self::Reordering => again.reordering_seen as f64,
            Self::Backlog => send.queued_bytes as f64,
            Self::Drain => send.queued_s.unwrap_or(f64::INFINITY),
            Self::Process
            | Self::Cgroup
            | Self::Local
            | Self::Peer
            | Self::State
            | Self::Cc
            | Self::Cause
            | Self::Life => 0.0,
        }
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|column| column.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("there is no such column\n\nhint: {}", crate::filter::suggested(text, &known)))
    }
}

/// A text without control characters: a program chooses its name, and a terminal obeys them.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { '?' } else { one }).collect()
}

fn limit_now(row: &SocketRow) -> String {
    let now = row.limit.now.map(|now| format!("{} {}", now.cause.as_str(), figures::percent(now.share)));
    now.unwrap_or_default()
}

/// Columns that are shown together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnSet {
    /// What each socket does, and what limits it.
    Overview,
    /// The sending side.
    Send,
    /// The receiving side.
    Receive,
    /// Whose sockets they are.
    Who,
    /// Every column.
    All,
}

impl ColumnSet {
    /// Every set, in the order in which they follow each other.
    pub const EACH: [Self; 5] = [Self::Overview, Self::Send, Self::Receive, Self::Who, Self::All];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Who => "who",
            Self::All => "all",
        }
    }

    /// Its columns.
    #[must_use]
    pub const fn columns(self) -> &'static [Column] {
        use Column::*;
        match self {
            Self::Overview => &[Process, Pid, Local, Peer, State, Send, Receive, Rtt, Retrans, Cause, Backlog, Drain],
            Self::Send => &[
                Process,
                Peer,
                Send,
                Rtt,
                MinRtt,
                Cwnd,
                Flight,
                PeerWindow,
                Retransmitted,
                RetransmittedPerSecond,
                Spurious,
                Reordering,
                Cause,
                Life,
                Backlog,
                Drain,
            ],
            Self::Receive => {
                &[Process, Local, Peer, Receive, ReceiveWindow, ReceiveSpace, ReceiveMemory, Unread, OutOfOrder, Rtt]
            }
            Self::Who => &[Process, Pid, Uid, Cgroup, Local, Peer, State, Cc],
            Self::All => &Column::ALL,
        }
    }

    /// The columns for a screen of this width: of those that do not fit, the ones that say least are left out.
    pub(crate) fn fitting(self, width: usize) -> Vec<Column> {
        const LEAST_FIRST: [Column; 14] = [
            Column::State,
            Column::Pid,
            Column::Local,
            Column::MinRtt,
            Column::Reordering,
            Column::Spurious,
            Column::Receive,
            Column::RetransmittedPerSecond,
            Column::Life,
            Column::Drain,
            Column::Retrans,
            Column::Retransmitted,
            Column::Backlog,
            Column::Flight,
        ];
        let mut columns = self.columns().to_vec();
        let needs = |columns: &[Column]| columns.iter().map(|column| column.width() + 1).sum::<usize>();
        for least in LEAST_FIRST {
            // Who asks for all gets as many as fit, from the left.
            if needs(&columns) <= width + 1 || self == Self::All {
                break;
            }
            columns.retain(|column| *column != least);
        }
        columns
    }
}

impl FromStr for ColumnSet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::EACH.map(Self::name);
        let found = Self::EACH.into_iter().find(|set| set.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("there are no such columns\n\nhint: {}", crate::filter::suggested(text, &known)))
    }
}
