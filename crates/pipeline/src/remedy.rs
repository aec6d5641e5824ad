//! A remedy laid over an experiment, and how much better it made it.

use thalweg_model::{Amount, ArmReport, Change, Experiment, Metric, Remedy, Setting, Side, Stream, Workload};
use thalweg_units::{Bytes, Rate, Span};

/// What gives less than this is no remedy.
pub(crate) const WORTH: f64 = 1.05;
/// The arm that repeats what is to be fixed.
pub(crate) const AS_FOUND: &str = "as found";
/// Requests that wait in a listener's Fast Open queue, as a scenario's `fastopen = true` has it.
const FAST_OPEN_QUEUE: u32 = 1024;
/// A stream of this time or more has a steady rate in every run: the first second, half a second that the rate is taken over, and the time
/// to connect. Source: `STEADY_LEAST`, crates/lab/src/guest/workloads/stream/mod.rs.
const STEADY_FROM: Span = Span::from_millis(2_000);
pub(crate) const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// The figure that says how fast a workload was, and whether more of it is better. The workload alone decides, so all arms have the same one.
pub(crate) fn figure(workload: &Workload) -> (String, bool) {
    match workload {
        Workload::Stream(stream) => (goodput(stream).to_owned(), true),
        Workload::Rr(_) | Workload::Crr(_) => ("transactions_per_s".to_owned(), true),
        Workload::Burst(burst) => (format!("time_to_bytes_ms.{}", burst.total.get()), false),
        Workload::UdpTrain(_) => ("goodput_bps".to_owned(), true),
        Workload::Topics(_) => ("latency_ms.p99".to_owned(), false),
        Workload::Mixed { .. } | Workload::Command(_) => ("duration_s".to_owned(), false),
    }
}

/// The goodput by which runs of a stream are compared: after the first second if it lasts a given time, else over all of it, which is
/// as good as the time that its bytes take.
pub(crate) fn goodput(stream: &Stream) -> &'static str {
    match stream.amount {
        Amount::Seconds(seconds) if seconds >= STEADY_FROM => "goodput_steady_bps",
        Amount::Seconds(_) | Amount::Bytes(_) => "goodput_bps",
    }
}

pub(crate) fn value(arm: &ArmReport, figure: &str) -> Option<f64> {
    Metric::find(&arm.metrics, &figure.split('.').collect::<Vec<_>>())?.value()
}

/// How many times better arm `b` is than arm `a`, whichever way better is.
pub(crate) fn ratio(arms: &[ArmReport], workload: &Workload, a: usize, b: usize) -> Option<f64> {
    let (name, more) = figure(workload);
    let (a, b) = (value(&arms[a], &name)?, value(&arms[b], &name)?);
    Some(if more { b / a } else { a / b })
}

/// The congestion control that changes choose, which makes the sender compete otherwise; `None` where they choose none.
pub(crate) fn congestion_control(changes: &[Change]) -> Option<&str> {
    let chooses = |setting: &Setting| match setting {
        Setting::Sysctl(name) => name == CONGESTION_CONTROL,
        Setting::Route(name) => name == "congctl",
        Setting::Socket(name) => name == "congestion",
    };
    changes.iter().find(|change| chooses(&change.setting)).map(|change| change.to.as_str())
}

/// Lays a change over an experiment.
pub(crate) fn apply(experiment: &mut Experiment, change: &Change) {
    let host = match change.side {
        Side::Client => &mut experiment.client,
        Side::Server => &mut experiment.server,
    };
    match (&change.setting, change.to.as_str()) {
        (Setting::Sysctl(name), value) => {
            host.sysctl.insert(name.clone(), value.to_owned());
            if name == CONGESTION_CONTROL {
                // The scenario's program would choose otherwise.
                host.socket.congestion = None;
            }
        }
        (Setting::Route(name), value) => match name.as_str() {
            "initcwnd" => host.route.initcwnd = value.parse().ok(),
            "initrwnd" => host.route.initrwnd = value.parse().ok(),
            "rto_min" => host.route.rto_min = value.parse().ok(),
            "cwnd" => host.route.cwnd = value.parse().ok(),
            "quickack" => host.route.quickack = Some(value == "1"),
            "mtu" => host.route.mtu = value.parse().ok(),
            "ssthresh" => host.route.ssthresh = value.parse().ok(),
            "advmss" => host.route.advmss = value.parse().ok(),
            "congctl" => host.route.congctl = (value != "auto").then(|| value.to_owned()),
            other => unreachable!("invariant: the planner sets no route metric '{other}'"),
        },
        (Setting::Socket(name), value) => match name.as_str() {
            "rcvbuf" => host.socket.rcvbuf = value.parse::<Bytes>().ok(),
            "sndbuf" => host.socket.sndbuf = value.parse::<Bytes>().ok(),
            "nodelay" => host.socket.nodelay = value.parse().ok(),
            "max_pacing_rate" => host.socket.max_pacing_rate = value.parse::<Rate>().ok(),
            "window_clamp" => host.socket.window_clamp = value.parse::<Bytes>().ok(),
            "notsent_lowat" => host.socket.notsent_lowat = value.parse::<Bytes>().ok(),
            "fastopen" => host.socket.fastopen = (value == "true").then_some(FAST_OPEN_QUEUE),
            "rto_min" => host.socket.rto_min = value.parse().ok(),
            "delack_max" => host.socket.delack_max = value.parse().ok(),
            other => unreachable!("invariant: the planner sets no socket option '{other}'"),
        },
    }
}

/// Of two limits with three numbers the larger of each: both are there to allow more.
fn larger(one: &str, other: &str) -> Option<String> {
    let numbers = |text: &str| text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok();
    let (one, other) = (numbers(one)?, numbers(other)?);
    let each = one.iter().zip(&other).map(|(a, b)| a.max(b).to_string()).collect::<Vec<_>>();
    (one.len() == 3 && other.len() == 3).then(|| each.join(" "))
}

/// A name that says what is set.
pub(crate) fn name(remedies: &[Remedy]) -> String {
    let mut words: Vec<String> = Vec::new();
    for change in remedies.iter().flat_map(|remedy| &remedy.changes) {
        let word = match &change.setting {
            Setting::Sysctl(key) if key == CONGESTION_CONTROL => change.to.clone(),
            Setting::Sysctl(key) => key.rsplit('.').next().unwrap_or(key).to_owned(),
            Setting::Route(key) | Setting::Socket(key) => key.clone(),
        };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" + ")
}

/// A name for each of several sets; those that set the same on different hosts say on which, what is alike even then has a number.
pub(crate) fn names(sets: &[Vec<Remedy>]) -> Vec<String> {
    let plain: Vec<String> = sets.iter().map(|set| name(set)).collect();
    let count = |name: &String| plain.iter().filter(|other| *other == name).count();
    let mut names: Vec<String> = Vec::new();
    for (set, plain_name) in sets.iter().zip(&plain) {
        let mut own = plain_name.clone();
        if count(plain_name) > 1 {
            let on = |side: Side| set.iter().flat_map(|remedy| &remedy.changes).any(|change| change.side == side);
            own += match (on(Side::Client), on(Side::Server)) {
                (true, true) => ", both hosts",
                (true, false) => ", client",
                _ => ", server",
            };
        }
        let taken = names.iter().filter(|other| *other == &own || other.starts_with(&format!("{own} ("))).count();
        names.push(if taken > 0 { format!("{own} ({})", taken + 1) } else { own });
    }
    names
}

/// Joins remedies that were laid one upon the other: a setting changed twice goes from its first value to its last.
pub(crate) fn merge(remedies: Vec<Remedy>) -> Option<Remedy> {
    let mut all = remedies.into_iter();
    let mut whole = all.next()?;
    for next in all {
        // The same setting on both hosts has one reason.
        for (text, more) in [(&mut whole.reason, &next.reason), (&mut whole.wont_help, &next.wont_help)] {
            if !text.contains(more.as_str()) {
                *text = format!("{text} {more}");
            }
        }
        let new = next.notes.into_iter().filter(|note| !whole.notes.contains(note));
        let new: Vec<String> = new.collect();
        whole.notes.extend(new);
        if next.applicability == thalweg_model::Applicability::NeedsThought {
            whole.applicability = next.applicability;
        }
        for change in next.changes {
            match whole.changes.iter_mut().find(|old| old.is_of_same(&change)) {
                Some(old) => old.to = larger(&old.to, &change.to).unwrap_or(change.to),
                None => whole.changes.push(change),
            }
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_model::{Applicability, Code};

    fn set(sides: &[Side], setting: &str) -> Vec<Remedy> {
        let change = |side: &Side| Change {
            side: *side,
            setting: Setting::Route(setting.to_owned()),
            from: None,
            to: "5ms".to_owned(),
        };
        vec![Remedy {
            code: Code::Unknown,
            reason: String::new(),
            changes: sides.iter().map(change).collect(),
            applicability: Applicability::Safe,
            wont_help: String::new(),
            notes: Vec::new(),
            commands: Vec::new(),
            kernels: None,
        }]
    }

    #[test]
    fn what_sets_the_same_says_on_which_host() {
        let (client, server) = ([Side::Client], [Side::Server]);
        let sets =
            [set(&client, "rto_min"), set(&server, "rto_min"), set(&server, "rto_min"), set(&client, "quickack")];
        assert_eq!(names(&sets), ["rto_min, client", "rto_min, server", "rto_min, server (2)", "quickack"]);
    }
}
