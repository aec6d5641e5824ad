//! Loss keeps the congestion window below what the path holds, or a sender that knows only loss fills a queue: a congestion
//! control that reads neither as the path's size.

use crate::facts::{CONGESTION_CONTROL, Facts, sysctl};
use crate::{advice, human, noted, remedy};
use thalweg_model::{Applicability, Code, Remedy};

/// Before it BBR is paced only by the fq queueing discipline. Source: Linux 4.13, `sk_pacing_status`, tcp_bbr.c.
const PACES_ITSELF: (u32, u32) = (4, 13);

/// What there is to do about losses, wherever they are.
pub(crate) const VANISH: &str = "On the path: find where packets vanish and mend that: ethtool -S and interface counters of each hop, a cable, \
                                 a radio, a ring that is too short.";

pub(crate) fn plan(code: Code, facts: &Facts<'_>) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = bbr(code, facts).into_iter().collect();
    if code == Code::RandomLoss && facts.sends_with_bbr(facts.sender()) {
        remedies.extend(crate::buffers::through_losses(facts));
    }
    remedies.push(advice(code, &elsewhere(code, facts)));
    remedies
}

/// BBR at the sender, or at who fills the queue of the other direction; `None` where it sends with BBR already.
pub(crate) fn bbr(code: Code, facts: &Facts<'_>) -> Option<Remedy> {
    let other_way = code == Code::Bufferbloat && facts.acks_wait;
    let side = if other_way { facts.receiver() } else { facts.sender() };
    if facts.sends_with_bbr(side) {
        return None;
    }
    let mut change = facts.set(side, sysctl(CONGESTION_CONTROL), "bbr").into_iter().collect::<Vec<_>>();
    if let (Some(change), Some(chosen)) = (change.first_mut(), facts.congestion_control(side)) {
        change.from = Some(chosen.clone());
    }
    let reason = match code {
        Code::Bufferbloat if other_way => {
            "Send what goes the other way with BBR, if this host is who sends it: BBR keeps in flight what the path holds and little more, \
             where CUBIC fills the queue that these acknowledgements wait in."
        }
        Code::Bufferbloat => {
            "Send with BBR: it keeps in flight what the path holds and little more, where CUBIC fills whatever queue there is."
        }
        Code::Reordering => {
            "Send with BBR: it does not shrink its window for what it takes for a loss, and so loses little by being wrong."
        }
        Code::InitialWindow => {
            "Send with BBR: it doubles its rate until more of it brings no more through, where CUBIC stops as soon as round trips are an eighth \
             longer (HyStart), which delays that vary make them as well as a queue, and creeps up from there."
        }
        Code::Policer => {
            "Or send with BBR: it notices a policer and paces at its rate, after some loss (tcp_bbr.c, lt_bw)."
        }
        _ => {
            "Send with BBR: it models the path's rate and round trip and keeps sending at that rate through a loss, where \
             CUBIC gives up 30 % of its window at each."
        }
    };
    let wont_help = "The other direction, whose sender chooses for itself; a path whose rate is used up; and a program that chooses its \
                     congestion control by TCP_CONGESTION.";
    // It shares a full queue with CUBIC flows otherwise than CUBIC does (Ware et al., IMC 2019).
    let bbr = remedy(code, reason.to_owned(), change, Applicability::NeedsThought, wont_help);
    let bbr = noted(
        bbr,
        &["Against CUBIC flows in a shallow shared queue BBR v1 takes more than its share and retransmits more."],
    );
    let unpaced = facts.kernel.is_none_or(|kernel| kernel < PACES_ITSELF);
    let fq = "Before Linux 4.13 it also needs the fq queueing discipline on the sender's device.";
    Some(if unpaced { noted(bbr, &[fq]) } else { bbr })
}

/// What there is to do outside of the hosts.
fn elsewhere(code: Code, facts: &Facts<'_>) -> String {
    let bdp = facts.bdp().map(|bdp| format!(", {}", human(bdp))).unwrap_or_default();
    match code {
        Code::CongestionLoss => format!(
            "On the path: a queue at the bottleneck that holds what the path does{bdp}, so that a window cut by a loss still \
             fills it; AQM there keeps it short."
        ),
        Code::Bufferbloat if facts.acks_wait => {
            "On the path: AQM (fq_codel, CAKE) where the queue of the other direction stands, most often in \
            the access router in front of a slow uplink, shaped to just below its rate; or send less that way."
                .to_owned()
        }
        Code::Bufferbloat => format!(
            "On the path: AQM at the bottleneck (fq_codel, CAKE), or a queue of no more than the path holds{bdp}."
        ),
        _ => VANISH.to_owned(),
    }
}
