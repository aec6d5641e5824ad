//! Divides the whole life of a connection, first packet to last, among its phases.
//!
//! Every interval between two packets belongs to one phase. The packet that ends an interval decides in case of doubt: a silence after a
//! response is time of the client if the client ends it, and part of the transfer if the server goes on.

mod end;

use crate::event::packet::Packet;
use end::ConnectionEnd;
use thalweg_units::SeqNum;
use thalweg_wire::{Flags, Message, Response};

/// A request is at most this long, in bytes: an initial window of ten segments (RFC 6928). More is an upload.
const REQUEST_MAX: u64 = 14_600;
/// And comes in at most this many pieces, each sent after the ones before it were acknowledged. More are messages that nothing answers.
/// `messages_that_nothing_answers_are_no_requests` holds it.
const REQUEST_MAX_WRITES: u32 = 3;
/// SYN-ACKs after the final ACK of the handshake from which on a lost ACK is no explanation. `lost_syn_acks_are_time_of_connecting_at_either_end`
/// holds it.
const LATE_SYN_ACKS: u32 = 2;
/// One is enough if the client had sent this many packets: the ACK, the request and a copy of it. All of them would have to be lost.
/// `a_syn_ack_after_the_request_is_a_full_accept_queue` holds it.
const SENT_BEFORE_LATE_SYN_ACK: u32 = 3;

/// A part of a connection's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// From the first SYN to the ACK of the SYN-ACK.
    Connecting,
    /// The client holds the connection for open, and the listener's accept queue has no place for it.
    AcceptQueue,
    /// A request is not acknowledged.
    Request,
    /// A request is acknowledged and no byte of the response has come.
    Server,
    /// No request is outstanding.
    Client,
    /// Data flows.
    Transfer,
    /// After the first FIN or RST.
    Close,
    /// From the ClientHello to the end of the TLS handshake.
    Tls,
}

/// One side's sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
struct Half {
    /// Of its latest SYN, if it is the client.
    isn: Option<SeqNum>,
    /// After the last byte sent.
    end: Option<SeqNum>,
    /// After the last byte that the other side acknowledged.
    acked: Option<SeqNum>,
    fins: u32,
    /// The window that it advertised last, as its packet had it.
    window: Option<u16>,
}

impl Half {
    /// Whether the segment up to `end` holds something that was not sent before.
    fn is_new(&self, end: SeqNum) -> bool {
        self.end.is_none_or(|sent| end.since(sent) > 0)
    }

    fn is_all_acknowledged(&self) -> bool {
        self.end.is_none_or(|end| self.acked.is_some_and(|acked| acked.since(end) >= 0))
    }
}

/// What was sent last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Exchange {
    #[default]
    Nothing,
    /// A request of this many bytes, on which was spent so much of [`Phase::Request`], [`Phase::Server`] and [`Phase::Client`].
    Request {
        bytes: u64,
        spent: [u64; 3],
        /// Time in which it was not acknowledged, if it was sent again.
        lost: Option<u64>,
        /// Acknowledged writes in a row that were not answered.
        writes: u32,
    },
    Upload,
    Response,
    /// Messages of another protocol than HTTP, to which the server switched (RFC 9110 §7.8): each side sends when it likes, and none is a request.
    Messages,
}

/// Accumulates the phases of one connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConnectionPhases {
    spent: [u64; 8],
    at: u64,
    sides: [Half; 2],
    exchange: Exchange,
    /// The first packet is a SYN or SYN-ACK, and the handshake is not over.
    opening: bool,
    begun: bool,
    /// The server answered the SYN with an ACK that is no SYN-ACK.
    is_challenged: bool,
    /// Latest SYN and SYN-ACK.
    syn_at: Option<u64>,
    syn_ack_at: Option<u64>,
    round_trip: Option<u64>,
    /// The part of it between the tap and the server.
    to_server: Option<u64>,
    /// The client's packets after the handshake, and SYN-ACKs after it.
    sent_after_open: u32,
    late_syn_ack: u32,
    requests_resent: u64,
    /// Time of requests that were sent again and are over.
    lost: u64,
    /// The server acknowledged or sent something beyond its SYN.
    served: bool,
    /// The server has sent data.
    is_answering: bool,
    /// The capture goes on after the last packet, and a request waits.
    waits_to_end: bool,
    /// Requests that got a response.
    answered: u32,
    /// Of [`Phase::Client`], what no request followed yet.
    unasked: u64,
    /// And what acknowledgements that say nothing new ended: if the server goes on, it was part of the transfer.
    undecided: u64,
    is_tls_handshake: bool,
    /// Of [`Phase::Tls`], time in which the client, or the server, had all that the other one had sent, and had not answered.
    tls_waits: [u64; 2],
    pub(crate) end: ConnectionEnd,
}

impl ConnectionPhases {
    /// Takes the next packet in; times must not go back. The time before it belongs to a TLS handshake or not.
    pub(crate) fn packet(&mut self, now: u64, packet: &Packet, is_tls_handshake: bool) {
        let gap = now.saturating_sub(self.at);
        self.at = now;
        if !self.begun {
            (self.begun, self.opening) = (true, packet.flags.has(Flags::SYN));
        }
        self.is_tls_handshake = is_tls_handshake;
        self.note_resent_request(packet);
        self.charge(gap, packet);
        if packet.flags.has(Flags::RST) {
            self.reset(packet);
            return;
        }
        let is_again = self.is_again(packet);
        self.end.packet(now, packet, gap, is_again);
        if packet.flags.has(Flags::SYN) {
            self.syn(packet);
        }
        self.data(packet);
        if packet.flags.has(Flags::ACK) {
            self.acknowledgement(packet);
        }
    }

    /// The capture goes on for `quiet` nanoseconds after the last packet: how much of that the server is waited for. It has acknowledged a request, and
    /// has not sent a byte since the connection was opened; later the client's last words may ask for nothing, and so may those of a client that
    /// went on without an answer, as one that publishes does.
    pub(crate) fn quiet(&mut self, quiet: u64) -> u64 {
        let is_over = self.end.reset.is_some() || self.sides.iter().any(|side| side.fins > 0);
        let has_beginning = !self.opening && self.syn_at.or(self.syn_ack_at).is_some();
        let is_one = matches!(self.exchange, Exchange::Request { writes: 0, .. });
        let is_asked = is_one && !self.is_answering && self.sides[0].is_all_acknowledged();
        if is_over || !has_beginning || !is_asked {
            return 0;
        }
        self.waits_to_end = quiet > 0;
        self.add(Phase::Server, quiet);
        quiet
    }

    /// Whether the server is waited for beyond the last packet.
    pub(crate) const fn waits_to_end(&self) -> bool {
        self.waits_to_end
    }

    /// Seconds of the phase.
    pub(crate) fn seconds(&self, phase: Phase) -> f64 {
        let full = !self.served && self.is_queue_full();
        let spent = |phase: Phase| self.spent[phase as usize];
        let nanos = match phase {
            Phase::AcceptQueue if full => {
                spent(Phase::AcceptQueue) + spent(Phase::Request) + spent(Phase::Server) + spent(Phase::Client)
            }
            Phase::Request | Phase::Server | Phase::Client if full => 0,
            phase => spent(phase),
        };
        nanos as f64 / 1e9
    }

    /// Times the first segment of a request that was not acknowledged, or the last, was sent again.
    pub(crate) const fn requests_resent(&self) -> u64 {
        self.requests_resent
    }

    /// Seconds in which requests that were sent again were not acknowledged.
    pub(crate) fn lost_requests(&self) -> f64 {
        let current = if let Exchange::Request { lost: Some(lost), .. } = self.exchange { lost } else { 0 };
        if !self.served && self.is_queue_full() { 0.0 } else { (self.lost + current) as f64 / 1e9 }
    }

    /// Whether the handshake is not over.
    pub(crate) const fn is_opening(&self) -> bool {
        self.opening
    }

    /// Requests that got a response.
    pub(crate) const fn answered(&self) -> u32 {
        self.answered
    }

    /// Seconds of [`Phase::Client`] that a request ended. What passed after the last one delayed nothing.
    pub(crate) fn before_requests(&self) -> f64 {
        (self.seconds(Phase::Client) - self.unasked as f64 / 1e9).max(0.0)
    }

    /// Seconds of [`Phase::Tls`] in which this side had all that the other one had sent, and had not answered.
    pub(crate) fn tls_wait(&self, side: usize) -> f64 {
        self.tls_waits[side] as f64 / 1e9
    }

    /// Whether a request waits for its response.
    pub(crate) const fn is_asked(&self) -> bool {
        matches!(self.exchange, Exchange::Request { .. })
    }

    /// FINs that `side` sent again.
    pub(crate) fn fins_resent(&self, side: usize) -> u32 {
        self.sides[side].fins.saturating_sub(1)
    }

    /// Charges the interval that ends with the packet.
    fn charge(&mut self, gap: u64, packet: &Packet) {
        let flags = packet.flags;
        let has_data = packet.payload_len > 0 && !packet.is_alert();
        let [client, server] = &self.sides;
        let fins = [client.fins > 0, server.fins > 0];
        // A client that is refused may try again.
        if self.opening {
            return self.add(Phase::Connecting, gap);
        }
        if self.end.reset.is_some() || fins == [true; 2] || fins != [false; 2] && !has_data {
            return self.add(Phase::Close, gap);
        }
        let asks = packet.side() == 0 && has_data && client.is_new(packet.seq.add(packet.payload_len));
        match self.exchange {
            Exchange::Nothing if packet.side() == 1 && has_data => self.add(Phase::Server, gap),
            Exchange::Nothing => self.add(Phase::Client, gap),
            Exchange::Request { lost, .. } if !client.is_all_acknowledged() => {
                // What acknowledges a request comes a round trip after it, or as much later as the server took (RFC 9293 §3.8.6.3: it may wait
                // for data to send along). What answered soonest, the SYN or a request, tells the round trip between the tap and the server. An
                // acknowledgement without data may come after twice that: round trips vary by as much. One of nothing new answers no request.
                let mut on_the_way = gap;
                let is_answer = has_data || client.acked.is_none_or(|acked| packet.ack.since(acked) > 0);
                if packet.side() == 1 && is_answer && lost.is_none() && !flags.has(Flags::RST) {
                    let least = self.to_server.map_or(gap, |least| least.min(gap));
                    self.to_server = Some(least);
                    on_the_way = if has_data { least } else { gap.min(2 * least) };
                }
                self.add(Phase::Request, on_the_way);
                self.add(Phase::Server, gap - on_the_way);
            }
            Exchange::Request { .. } if asks => self.add(Phase::Client, gap),
            Exchange::Request { .. } => self.add(Phase::Server, gap),
            // The server has all of it, and takes its time to answer.
            Exchange::Upload if packet.side() == 1 && has_data && client.is_all_acknowledged() => {
                self.add(Phase::Server, gap);
            }
            Exchange::Upload | Exchange::Messages => self.add(Phase::Transfer, gap),
            // The next response of a pipeline, or the one after an interim response.
            Exchange::Response if responses_in(packet) > Some(0) && server.is_all_acknowledged() => {
                self.add(Phase::Server, gap);
            }
            Exchange::Response if !self.is_tls_handshake && self.says_nothing(packet) => {
                self.add(Phase::Client, gap);
                self.undecided += gap;
            }
            Exchange::Response => {
                // Into a closed window it asks for room.
                let [own, other] = [&self.sides[packet.side()], &self.sides[1 - packet.side()]];
                let is_probe = packet.payload_len <= 1
                    && own.end.is_some_and(|end| packet.seq.add(1) == end)
                    && other.window != Some(0);
                let ends = packet.is_alert() || flags.has(Flags::FIN) || flags.has(Flags::RST);
                let is_idle = asks || is_probe || ends && client.window != Some(0);
                let acknowledges = packet.side() == 0
                    && flags.has(Flags::ACK)
                    && server.end.is_none_or(|end| packet.ack.since(end) >= 0);
                let transfer = match (is_idle, server.is_all_acknowledged()) {
                    (true, true) => 0,
                    (true, false) if acknowledges => gap.min(self.round_trip.unwrap_or(gap)),
                    // Part of the response is missing to the end.
                    (true, false) | (false, _) => gap,
                };
                self.add(Phase::Transfer, transfer);
                self.add(Phase::Client, gap - transfer);
            }
        }
    }

    /// Whether the packet acknowledges nothing new, where all is acknowledged, and gives no more room: it ends no wait.
    fn says_nothing(&self, packet: &Packet) -> bool {
        let [own, other] = [&self.sides[packet.side()], &self.sides[1 - packet.side()]];
        let is_pure = packet.payload_len == 0 && packet.flags.0 & (Flags::SYN | Flags::FIN | Flags::RST) == 0;
        let is_new = other.acked.is_none_or(|acked| packet.ack.since(acked) > 0);
        let gives_room = own.window.is_none_or(|window| packet.window > window);
        let is_shut = packet.window == 0 || self.sides.iter().any(|side| side.window == Some(0));
        is_pure && !is_new && !gives_room && !is_shut && self.sides.iter().all(Half::is_all_acknowledged)
    }

    fn add(&mut self, phase: Phase, nanos: u64) {
        // A ClientHello that is lost is a request that is lost.
        let is_resent = matches!(self.exchange, Exchange::Request { lost: Some(_), .. });
        if self.is_tls_handshake && !is_resent {
            match phase {
                Phase::Client => self.tls_waits[0] += nanos,
                Phase::Server => self.tls_waits[1] += nanos,
                _ => {}
            }
        }
        let phase = match phase {
            Phase::Request | Phase::Server | Phase::Client | Phase::Transfer if self.is_tls_handshake && !is_resent => {
                Phase::Tls
            }
            phase => phase,
        };
        self.spent[phase as usize] += nanos;
        if phase == Phase::Client {
            self.unasked += nanos;
        }
        if let Exchange::Request { spent, lost, .. } = &mut self.exchange
            && let Some(place) = REQUEST_PHASES.iter().position(|one| *one == phase)
        {
            spent[place] += nanos;
            *lost = lost.map(|lost| if phase == Phase::Request { lost + nanos } else { lost });
        }
    }

    fn reset(&mut self, packet: &Packet) {
        // The client's answer to a challenge ACK, RFC 5961 §4.
        if self.opening && packet.side() == 0 && self.syn_ack_at.is_none() && self.is_challenged {
            self.end.challenged += 1;
            self.is_challenged = false;
            return;
        }
        let interrupts = match self.exchange {
            Exchange::Nothing => packet.side() == 1 && !self.opening,
            Exchange::Request { .. } | Exchange::Upload => packet.side() == 1,
            // Into a window that stays closed it sends in vain, and gives up. A response that comes before the whole request cuts that off.
            Exchange::Response | Exchange::Messages => {
                let is_done = self.sides.iter().all(Half::is_all_acknowledged);
                packet.side() == 1 && !is_done && self.sides[0].window != Some(0)
            }
        };
        // Whoever asks after the other side's FIN has not closed: the reset is the only answer.
        let [own, other] = [&self.sides[packet.side()], &self.sides[1 - packet.side()]];
        let is_closing = other.fins > 0 || own.fins > 0 && !self.is_asked();
        self.end.reset(self.at, packet, interrupts && !is_closing, self.to_server);
    }

    /// Whether the packet repeats data that was not acknowledged, or is a keep-alive.
    fn is_again(&self, packet: &Packet) -> bool {
        let own = &self.sides[packet.side()];
        let controls = packet.flags.0 & (Flags::SYN | Flags::RST | Flags::FIN) != 0;
        if packet.payload_len == 0 {
            return !controls && own.end.is_some_and(|end| packet.seq.add(1) == end);
        }
        !packet.flags.has(Flags::SYN) && !own.is_new(packet.seq.add(packet.payload_len))
    }

    fn syn(&mut self, packet: &Packet) {
        if !packet.flags.has(Flags::ACK) {
            self.syn_at = Some(self.at);
            self.is_challenged = false;
        } else if self.opening {
            self.syn_ack_at = Some(self.at);
        } else if self.sent_after_open >= SENT_BEFORE_LATE_SYN_ACK {
            self.late_syn_ack += LATE_SYN_ACKS;
        } else {
            self.late_syn_ack += 1;
        }
    }

    /// Takes in what the packet sends: the handshake may end with it, and an exchange go on.
    fn data(&mut self, packet: &Packet) {
        let (is_syn, is_fin) = (packet.flags.has(Flags::SYN), packet.flags.has(Flags::FIN));
        let has_data = packet.payload_len > 0 && !packet.is_alert();
        if self.opening
            && !is_syn
            && packet.side() == 1
            && !has_data
            && self.syn_ack_at.is_none()
            && self.syn_at.is_some()
        {
            self.is_challenged = true;
        }
        if self.opening && !is_syn && (packet.side() == 0 || has_data) {
            self.opening = false;
            self.round_trip = self.syn_at.zip(self.syn_ack_at).map(|(syn, _)| self.at - syn);
            self.to_server = self.syn_at.zip(self.syn_ack_at).map(|(syn, answer)| answer.saturating_sub(syn));
        }
        if packet.side() == 0 && !is_syn && !self.opening {
            self.sent_after_open = self.sent_after_open.saturating_add(1);
        }
        let end = packet.seq.add(packet.payload_len + u32::from(is_syn) + u32::from(is_fin));
        let is_new = self.sides[packet.side()].is_new(end);
        if has_data && !is_syn {
            self.exchange(packet, is_new);
        }
        let own = &mut self.sides[packet.side()];
        own.fins += u32::from(is_fin);
        if is_syn && !packet.flags.has(Flags::ACK) && own.isn != Some(packet.seq) {
            (own.isn, own.end) = (Some(packet.seq), Some(end));
        }
        if is_new && (packet.payload_len > 0 || is_syn || is_fin) {
            own.end = Some(end);
        }
    }

    /// Notes that the packet repeats the request that is on its way: the time before it was lost, too.
    fn note_resent_request(&mut self, packet: &Packet) {
        let is_again = packet.side() == 0 && self.is_again(packet) && packet.payload_len > 0;
        if let Exchange::Request { lost, .. } = &mut self.exchange
            && is_again
        {
            lost.get_or_insert(0);
        }
    }

    fn exchange(&mut self, packet: &Packet, is_new: bool) {
        if packet.side() == 1 {
            if self.exchange == Exchange::Nothing && self.late_syn_ack > 0 && !self.served && !self.is_queue_full() {
                // The client's ACK was lost: the server could not speak before its SYN-ACK was answered again.
                self.spent[Phase::Connecting as usize] += std::mem::take(&mut self.spent[Phase::Client as usize]);
                self.unasked = 0;
            }
            self.serve();
            self.is_answering = true;
            let undecided = std::mem::take(&mut self.undecided);
            self.spent[Phase::Client as usize] -= undecided;
            self.spent[Phase::Transfer as usize] += undecided;
            self.unasked -= undecided;
            let is_asked = matches!(self.exchange, Exchange::Request { .. } | Exchange::Upload);
            self.answered += responses_in(packet).unwrap_or_else(|| u32::from(is_asked));
            if let Exchange::Request { lost: Some(lost), .. } = self.exchange {
                self.lost += lost;
            }
            let is_switched = self.exchange == Exchange::Messages || switches(packet);
            self.exchange = if is_switched { Exchange::Messages } else { Exchange::Response };
            self.end.sent_data(packet.side());
            return;
        }
        if is_new {
            (self.unasked, self.undecided) = (0, 0);
        }
        let client = &self.sides[0];
        let is_taken = client.is_all_acknowledged();
        let end = packet.seq.add(packet.payload_len);
        let is_first = client.acked.is_some_and(|acked| packet.seq.since(acked) <= 0 && end.since(acked) > 0);
        let is_last = client.end == Some(end) && !client.is_all_acknowledged();
        match &mut self.exchange {
            Exchange::Request { .. } if !is_new => self.requests_resent += u64::from(is_first || is_last),
            Exchange::Request { bytes, spent, writes, .. } => {
                *bytes += u64::from(packet.payload_len);
                *writes += u32::from(is_taken);
                if *bytes > REQUEST_MAX || *writes > REQUEST_MAX_WRITES {
                    // What was taken for a request is an upload: its time is that of a transfer.
                    for (phase, spent) in REQUEST_PHASES.iter().zip(*spent) {
                        self.spent[*phase as usize] -= spent;
                        self.spent[Phase::Transfer as usize] += spent;
                    }
                    self.exchange = Exchange::Upload;
                }
            }
            Exchange::Nothing | Exchange::Response if is_new => {
                let bytes = u64::from(packet.payload_len);
                self.exchange = Exchange::Request { bytes, spent: [0; 3], lost: None, writes: 0 };
            }
            Exchange::Nothing | Exchange::Response | Exchange::Upload | Exchange::Messages => {}
        }
    }

    fn acknowledgement(&mut self, packet: &Packet) {
        self.sides[packet.side()].window = Some(packet.window);
        let other = &mut self.sides[1 - packet.side()];
        if other.acked.is_none_or(|acked| packet.ack.since(acked) > 0) {
            let beyond_syn = other.acked.is_some() && !packet.flags.has(Flags::SYN);
            other.acked = Some(packet.ack);
            if packet.side() == 1 && beyond_syn {
                self.serve();
            }
        }
    }

    /// The server has the connection: what passed before was spent in its queue if that was full.
    fn serve(&mut self) {
        if !self.served && self.is_queue_full() {
            for phase in REQUEST_PHASES {
                self.spent[Phase::AcceptQueue as usize] += std::mem::take(&mut self.spent[phase as usize]);
            }
            if let Exchange::Request { spent, lost, .. } = &mut self.exchange {
                (*spent, *lost) = ([0; 3], lost.map(|_| 0));
            }
        }
        self.served = true;
    }

    const fn is_queue_full(&self) -> bool {
        self.late_syn_ack >= LATE_SYN_ACKS
    }
}

/// Final responses of HTTP/1 that begin in the packet, if its payload begins with one or with an interim one.
fn responses_in(packet: &Packet) -> Option<u32> {
    packet.message()?.final_responses()
}

/// Whether the server goes on in another protocol.
fn switches(packet: &Packet) -> bool {
    let is_switch = |response: &Response| response.status == Response::SWITCHING_PROTOCOLS;
    matches!(packet.message().map(|message| &**message), Some(Message::Responses(all)) if all.iter().any(is_switch))
}

/// Phases whose time is moved if a request turns out to be something else.
const REQUEST_PHASES: [Phase; 3] = [Phase::Request, Phase::Server, Phase::Client];

#[cfg(test)]
mod tests;
