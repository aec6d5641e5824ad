//! The parts of a run that was divided over machines, joined into the report one machine would have given.

use crate::exits::check;
use crate::summary::{compare_arms, summarize};
use std::collections::HashMap;
use thalweg_model::{ArmReport, Expectation, LabReport, Metrics, RunFigures, Shard};
use thiserror::Error;

/// Why parts make no whole.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JoinError {
    /// A report is of a whole run.
    #[error("{0} is no part of a divided run, and the others are")]
    Whole(String),
    /// Two parts are of different runs.
    #[error("{one} and {other} are not parts of one run: their {what} differ")]
    Different {
        /// The first.
        one: String,
        /// The other.
        other: String,
        /// In what.
        what: &'static str,
    },
    /// A part is there twice.
    #[error("{one} and {other} are the same part")]
    Twice {
        /// The first.
        one: String,
        /// The other.
        other: String,
    },
    /// Parts are not there.
    #[error("of {of} parts these are missing: {missing}")]
    Missing {
        /// How many there should be.
        of: u32,
        /// Which are not there.
        missing: String,
    },
    /// A part does not hold what its place among the parts says.
    #[error("{name} does not hold the runs of its part: {problem}")]
    Damaged {
        /// The report.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

/// Joins parts, each with the name errors call it by. The result differs from one machine's report in `wall_s` alone, which
/// is the parts' sum.
///
/// # Errors
/// [`JoinError`] when they are not all the parts of one run.
pub fn join(parts: Vec<(String, LabReport)>) -> Result<LabReport, JoinError> {
    let parts = sorted(parts)?;
    let Some(((_, first, head), _)) = parts.split_first() else {
        return Err(JoinError::Missing { of: 0, missing: "all".to_owned() });
    };
    let repeats = first.repeats as usize;
    let runs = figures(&parts, head.arms.len().saturating_mul(repeats))?;
    let mut heads: HashMap<(u32, &str), &ArmReport> = HashMap::new();
    for (_, report, shard) in &parts {
        heads.extend(report.arms.iter().map(|arm| ((shard.index, arm.name.as_str()), arm)));
    }

    let mut arms = Vec::new();
    for (at, of_arm) in runs.chunks(repeats).enumerate() {
        let name = &head.arms[at];
        // What is told of the first repeat is in the part that ran it.
        let part = (at * repeats) % head.of as usize;
        let Some(told) = heads.get(&(part as u32 + 1, name.as_str())) else {
            return Err(damaged(&parts[part].0, format!("it does not tell of arm '{name}'")));
        };
        let metrics: Vec<Metrics> = of_arm.iter().map(|run| run.metrics.clone()).collect();
        arms.push(ArmReport { metrics: summarize(metrics), ..(*told).clone() });
    }
    compare_arms(&mut arms, first.seed);
    let mut expect = Vec::new();
    for line in &head.expect {
        let names = head.arms.iter().map(String::as_str);
        let line =
            Expectation::parse(&line.metric, &line.wanted, names).map_err(|problem| damaged(&parts[0].0, problem))?;
        expect.push(check(&line, &arms));
    }
    Ok(LabReport {
        wall_s: parts.iter().map(|(_, report, _)| report.wall_s).sum(),
        virtual_s: runs.iter().map(|run| run.virtual_s).sum(),
        arms,
        expect,
        shard: None,
        ..first.clone()
    })
}

/// The parts in their order, after a look that they are all there and of one run.
fn sorted(parts: Vec<(String, LabReport)>) -> Result<Vec<(String, LabReport, Shard)>, JoinError> {
    let mut sorted: Vec<(String, LabReport, Shard)> = Vec::new();
    for (name, mut report) in parts {
        match report.shard.take() {
            Some(shard) => sorted.push((name, report, shard)),
            None => return Err(JoinError::Whole(name)),
        }
    }
    sorted.sort_by_key(|(.., shard)| shard.index);
    let Some(((name, first, head), rest)) = sorted.split_first() else { return Ok(sorted) };
    if first.repeats == 0 || head.of == 0 || head.arms.is_empty() {
        return Err(damaged(name, "it tells of no run at all".to_owned()));
    }
    for (other, report, shard) in rest {
        let alike = [
            ("scenarios", report.scenario == first.scenario && report.about == first.about),
            ("kernels", report.kernel == first.kernel),
            ("engines", report.engine == first.engine),
            ("seeds", report.seed == first.seed),
            ("repeats", report.repeats == first.repeats),
            ("numbers of parts", shard.of == head.of),
            ("arms", shard.arms == head.arms),
            ("expectations", shard.expect == head.expect),
        ];
        if let Some((what, _)) = alike.into_iter().find(|(_, same)| !same) {
            return Err(JoinError::Different { one: name.clone(), other: other.clone(), what });
        }
    }
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0].2.index == pair[1].2.index) {
        return Err(JoinError::Twice { one: twice[0].0.clone(), other: twice[1].0.clone() });
    }
    let there: Vec<u32> = sorted.iter().map(|(.., shard)| shard.index).collect();
    let missing: Vec<String> =
        (1..=head.of).filter(|index| !there.contains(index)).take(20).map(|index| index.to_string()).collect();
    if !missing.is_empty() || there.len() != head.of as usize {
        return Err(JoinError::Missing { of: head.of, missing: missing.join(", ") });
    }
    Ok(sorted)
}

/// The figures of every run in the order of arms and repeats.
fn figures<'a>(parts: &'a [(String, LabReport, Shard)], count: usize) -> Result<Vec<&'a RunFigures>, JoinError> {
    let there: usize = parts.iter().map(|(.., shard)| shard.runs.len()).sum();
    if there != count {
        return Err(damaged(&parts[0].0, format!("{there} runs are in all parts, and {count} make the whole")));
    }
    let mut runs: Vec<Option<&'a RunFigures>> = vec![None; count];
    for (name, report, shard) in parts {
        let mine = (shard.index as usize - 1..count).step_by(shard.of as usize);
        if shard.runs.len() != mine.len() {
            return Err(damaged(name, format!("{} runs, and {} belong to it", shard.runs.len(), mine.len())));
        }
        for (place, run) in mine.zip(&shard.runs) {
            if (run.arm, run.repeat as usize) != (place / report.repeats as usize, place % report.repeats as usize) {
                return Err(damaged(name, format!("repeat {} of arm {} is another part's", run.repeat, run.arm)));
            }
            runs[place] = Some(run);
        }
    }
    Ok(runs.into_iter().flatten().collect())
}

fn damaged(name: &str, problem: String) -> JoinError {
    JoinError::Damaged { name: name.to_owned(), problem }
}

#[cfg(test)]
mod tests;
