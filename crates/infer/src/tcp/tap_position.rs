//! Where the tap is: by the two halves of the handshake or, without one, by timestamp echoes.

use crate::tcp::connection::Connection;
use crate::tcp::packet::Packet;
use crate::tcp::receiver_view::timestamp_rtt::EchoSample;
use crate::tcp::rtt_estimator::RttEstimator;
use thalweg_model::Vantage;

impl Connection {
    /// Places the tap once the handshake's times are known.
    pub(super) fn place(&mut self) {
        let (Some(to_server), Some(to_client)) = (self.opening.to_server, self.opening.to_client) else { return };
        let total = to_server + to_client;
        for (side, beyond) in [to_client, to_server].into_iter().enumerate() {
            self.sides[side].sender.rtt.handshake = Some(total);
            // A tenth of the round trip is what a busy host takes to answer a SYN; nearer is "at" that host.
            if beyond > total / 10 {
                self.sides[side].beyond = beyond;
                self.sides[side].sender.times_acks = false;
                // Until echoes of timestamps tell more, the handshake's is the round trip.
                self.sides[side].sender.rtt.sample(total);
            }
        }
    }

    /// Corrects the round trip of a sender that is not at the tap, where its data answered an edge of the window sooner than the handshake
    /// was answered: the third packet of that came late. `packet` carries data of `side`.
    pub(super) fn window_round_trip(&mut self, side: usize, now: u64, packet: &Packet) {
        let Some(least) = self.sides[side].edges.sent(now, packet.seq.add(packet.payload_len)) else { return };
        let near = self.opening.to(1 - side).unwrap_or(0);
        let this = &mut self.sides[side];
        // Below three quarters: round trips vary by as much from packet to packet.
        if this.beyond == 0 || this.sender.times_acks || least >= this.beyond / 4 * 3 {
            return;
        }
        let sooner = this.beyond - least;
        for ack in &mut this.on_the_way {
            ack.now = ack.now.saturating_sub(sooner);
        }
        this.beyond = least.max(1);
        this.sender.rtt = RttEstimator::default();
        this.sender.rtt.handshake = Some(least + near);
        this.sender.rtt.sample(least + near);
    }

    /// Round trips from timestamp echoes, for senders that are not at the tap.
    pub(super) fn timestamps(&mut self, side: usize, now: u64, packet: &Packet) {
        let Some((tsval, tsecr)) = packet.timestamps else { return };
        let near = self.opening.to(1 - side);
        let this = &mut self.sides[side];
        let has_echo = packet.payload_len > 0 && tsecr != 0;
        let end = packet.seq.add(packet.payload_len);
        let echoed = has_echo.then(|| this.echo.echoed(now, tsecr, end)).flatten();
        this.sender.remote.flights = echoed.and_then(|echoed| echoed.flights);
        if let Some(EchoSample { round_trip, .. }) = echoed {
            let near = near.unwrap_or(0);
            if !this.sender.times_acks {
                this.sender.echo_sample(now, round_trip + near, tsval);
            } else if this.beyond == 0
                && self.opening.to_client.is_none()
                && this.echo.samples >= 8
                && this.sender.rtt.samples >= 8
                && let (Some(far), Some(acked)) = (this.echo.min, this.sender.rtt.min)
                && far > 4 * acked.max(50_000)
            {
                // No handshake in the capture, but echoes take far longer than acknowledgements: the tap is at the receiver.
                this.beyond = far;
                this.sender.times_acks = false;
                this.sender.rtt = RttEstimator::default();
            }
        }
        self.sides[1 - side].echo.sent(now, tsval, packet.ack);
    }
}

/// Where the tap is, seen from side `main`, by the two halves of the handshake or, without one, by timestamp echoes.
pub(crate) fn vantage(connection: &Connection, main: usize) -> Vantage {
    /// One half of the round trip this many times the other puts the tap at an end.
    const FAR: u64 = 4;
    /// Below it both halves are a host's own answering time, and say nothing.
    const FLOOR_NS: u64 = 100_000;
    let opening = &connection.opening;
    let halves = [opening.to_client, opening.to_server];
    if let (Some(near), Some(far)) = (halves[main], halves[1 - main]) {
        return match (near.max(far) > FLOOR_NS, near.saturating_mul(FAR) < far, far.saturating_mul(FAR) < near) {
            (true, true, _) => Vantage::Sender,
            (true, _, true) => Vantage::Receiver,
            (true, ..) => Vantage::Middle,
            (false, ..) => Vantage::Unknown,
        };
    }
    let side = &connection.sides[main];
    if !side.sender.times_acks {
        return Vantage::Receiver;
    }
    // Acknowledgements that take longer than any echo: the sender is near.
    match (side.echo.min, side.sender.rtt.min) {
        (Some(echo), Some(acked)) if acked > FLOOR_NS && echo.saturating_mul(FAR) < acked => Vantage::Sender,
        _ => Vantage::Unknown,
    }
}
