//! What a scenario knows of its path, held against what the capture of it looks like.

use super::work::dropped;
use thalweg_model::{
    ArmReport, Cause, Code, CongestionLosses, DiagnosisLine, Experiment, Loss, QueueDrops, Verdict, Way,
};

/// Puts right the causes that the path cannot have: a policer, or losses by chance, where the scenario has none. Such losses are those of the queue
/// if that dropped packets; else the line goes.
pub(super) fn as_the_path_is(lines: &mut Vec<DiagnosisLine>, experiment: &Experiment, way: Way, arm: &ArmReport) {
    let path = experiment.path.direction(way);
    let by_chance =
        path.loss != Loss::None || path.corrupt.is_some() || path.reorder.is_some() || path.jitter.is_some();
    let changes = path.trace.is_some() || !path.steps.is_empty();
    let dropped = dropped(way, arm);
    for line in lines.iter_mut() {
        let cannot_be = match line.code {
            Code::Policer => path.policer.is_none() && !changes,
            Code::RandomLoss => !by_chance && path.policer.is_none() && !changes && dropped > 0.0,
            _ => false,
        };
        if cannot_be && dropped > 0.0 {
            let drops = CongestionLosses::Counted(QueueDrops { packets: dropped as u64 });
            *line = (&Verdict::new(Cause::CongestionLoss(drops), line.share, line.gain)).into();
        }
    }
    lines.retain(|line| line.code != Code::Policer || path.policer.is_some() || changes);
    let mut known: Vec<Code> = Vec::new();
    lines.retain(|line| {
        line.code != Code::CongestionLoss || !std::mem::replace(&mut known, vec![line.code]).contains(&line.code)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lines(codes: &[Code]) -> Vec<DiagnosisLine> {
        let line = |code: &Code| DiagnosisLine { code: *code, share: 0.9, gain: Some(2.0), claim: "seen".to_owned() };
        codes.iter().map(line).collect()
    }

    fn codes_of(path: &str, dropped: f64, seen: &[Code]) -> Vec<Code> {
        let text = format!(
            "name = \"s\"\n[path]\nrtt = \"40ms\"\nrate = \"20mbit\"\n{path}\n[workload]\nkind = \"stream\"\nseconds = \"3s\"\n"
        );
        let scenario = thalweg_config::parse_scenario("s", &text, &[], &|_| Err(std::io::ErrorKind::NotFound.into()))
            .expect("a scenario");
        let arm = json!({"name": "a", "kernel": "6.12", "baseline": null, "diagnosis": [], "capture": null, "samples": null,
                         "metrics": {"dropped_packets": {"down_bottleneck": dropped}},
                         "settings": {"client": {"sysctl": {}, "route": {}, "socket": {}}, "server": {"sysctl": {}, "route": {}, "socket": {}}, "path": []}});
        let mut lines = lines(seen);
        as_the_path_is(
            &mut lines,
            &scenario.arms[0].experiment,
            Way::Down,
            &serde_json::from_value(arm).expect("an arm"),
        );
        lines.iter().map(|line| line.code).collect()
    }

    #[test]
    fn a_path_has_no_policer_and_no_chance_that_the_scenario_does_not_give_it() {
        let seen = [Code::Policer, Code::RandomLoss, Code::ReceiveWindow];
        assert_eq!(codes_of("queue = \"20KB\"", 40.0, &seen), [Code::CongestionLoss, Code::ReceiveWindow]);
        assert_eq!(codes_of("queue = \"20KB\"", 0.0, &seen), [Code::RandomLoss, Code::ReceiveWindow]);
        assert_eq!(codes_of("loss = \"1%\"", 40.0, &seen[1..]), seen[1..]);
    }
}
