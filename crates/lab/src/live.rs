//! Which scenarios can be run in real time.

use std::collections::BTreeSet;
use thalweg_model::{Amount, Arm, Experiment, Scenario, Transactions, Way, Workload};
use thalweg_path::OneWay;
use thalweg_units::{Seed, Span};
use thiserror::Error;

/// The longest time that a workload may state.
const SECONDS_MAX: Span = Span::from_millis(120_000);

/// Why an arm cannot be run in real time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("arm '{arm}' cannot be run in real time: {why}\n\nhint: {hint}")]
pub struct NotLive {
    arm: String,
    /// One sentence.
    pub why: String,
    hint: &'static str,
}

/// Why the first arm that cannot be run in real time cannot, before anything is made for it.
///
/// # Errors
/// [`NotLive`].
pub fn check_live(scenario: &Scenario) -> Result<(), NotLive> {
    for arm in &scenario.arms {
        let refused = |(why, hint)| NotLive { arm: arm.name.clone(), why, hint };
        check(&arm.experiment).map_err(refused)?;
    }
    Ok(())
}

/// Why the path of this arm cannot be emulated in real time, whatever its workload.
///
/// # Errors
/// [`NotLive`].
pub fn check_live_path(arm: &Arm) -> Result<(), NotLive> {
    check_path(&arm.experiment).map_err(|(why, hint)| NotLive { arm: arm.name.clone(), why, hint })
}

/// Sysctls that no arm has otherwise than another, where there are several: what the arms are not about.
pub(crate) fn alike(experiments: &[&Experiment]) -> BTreeSet<String> {
    let [first, others @ ..] = experiments else { return BTreeSet::new() };
    if others.is_empty() {
        return BTreeSet::new();
    }
    let of =
        |one: &Experiment, name: &str| [one.client.sysctl.get(name), one.server.sysctl.get(name)].map(|v| v.cloned());
    let names = first.client.sysctl.keys().chain(first.server.sysctl.keys());
    names.filter(|name| others.iter().all(|other| of(other, name) == of(first, name))).cloned().collect()
}

fn check(experiment: &Experiment) -> Result<(), (String, &'static str)> {
    check_path(experiment)?;
    check_workload(&experiment.workload)
}

fn check_path(experiment: &Experiment) -> Result<(), (String, &'static str)> {
    const VIRTUAL: &str = "without --live the virtual lab runs it";
    for way in [Way::Down, Way::Up] {
        let path = &experiment.path;
        OneWay::<()>::new(path.direction(way), path.mtu, Seed::new(0)).map_err(|error| {
            let text = error.to_string();
            (text.lines().next().unwrap_or_default().to_owned(), VIRTUAL)
        })?;
    }
    Ok(())
}

fn check_workload(workload: &Workload) -> Result<(), (String, &'static str)> {
    match workload {
        Workload::Mixed { parts } => parts.iter().try_for_each(|part| check_workload(&part.workload)),
        other => match stated(other) {
            Some(time) if time > SECONDS_MAX => Err((
                format!("its workload takes {time}, and {SECONDS_MAX} is the most"),
                "shorten it by --set workload.seconds=10s, or run it without --live, where time costs less",
            )),
            _ => Ok(()),
        },
    }
}

/// The time that a workload says it takes.
fn stated(workload: &Workload) -> Option<Span> {
    match workload {
        Workload::Stream(stream) => match stream.amount {
            Amount::Seconds(span) => Some(span),
            Amount::Bytes(_) => None,
        },
        Workload::Rr(exchange) | Workload::Crr(exchange) => match exchange.amount {
            Transactions::Seconds(span) => Some(span),
            Transactions::Count(_) => None,
        },
        Workload::Topics(topics) => Some(topics.seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        let text = format!("name = \"x\"\n[workload]\nkind = \"stream\"\nbytes = 1\n{text}");
        thalweg_config::parse_scenario("x.toml", &text, &[], &|_| Err(std::io::ErrorKind::NotFound.into()))
            .expect("valid")
    }

    #[test]
    fn arms_are_about_the_sysctls_they_differ_in() {
        let common = "[client.sysctl]\n\"net.ipv4.tcp_sack\" = 1\n\"net.ipv4.tcp_ecn\" = 0\n[[arm]]\nname = \"a\"\n";
        let two = scenario(&format!("{common}[[arm]]\nname = \"b\"\nserver.sysctl.\"net.ipv4.tcp_ecn\" = 1\n"));
        let experiments: Vec<&Experiment> = two.arms.iter().map(|arm| &arm.experiment).collect();
        assert_eq!(alike(&experiments), BTreeSet::from(["net.ipv4.tcp_sack".to_owned()]));
        assert!(alike(&experiments[..1]).is_empty(), "of one arm each may be what it is about");
    }

    #[test]
    fn workloads_are_refused_by_the_time_they_state_and_by_their_parts() {
        let why = |text: &str| {
            let text = format!("name = \"x\"\n{text}");
            let read = |_: &str| Err(std::io::ErrorKind::NotFound.into());
            let scenario = thalweg_config::parse_scenario("x.toml", &text, &[], &read).expect("valid");
            check_live(&scenario).err().map(|error| error.to_string())
        };
        assert_eq!(why("[workload]\nkind = \"stream\"\nseconds = \"120s\"\n"), None);
        let long = why("[workload]\nkind = \"rr\"\nrequest = 1\nresponse = 1\nseconds = \"121s\"\n");
        assert!(long.is_some_and(|why| why.contains("its workload takes 121s, and 120s is the most\n\nhint: ")));
        let part =
            "[workload]\nkind = \"mixed\"\n[[workload.part]]\nname = \"p\"\nkind = \"stream\"\nseconds = \"500s\"\n";
        assert!(why(part).is_some_and(|why| why.contains("500s")));
    }
}
