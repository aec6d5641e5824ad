//! `thalweg load topics`: a scenario's topics between two hosts.

use super::load_agent::{failure, server};
use crate::args::load_topics::LoadTopicsArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, scenarios, stop};
use anyhow::anyhow;
use std::process::ExitCode;
use thalweg_agent::message::{
    MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, MESSAGES_MAX, PERIOD_MIN, TOPICS_MAX, TOPICS_SPAN_MAX, TopicPlan, TopicsPlan,
};
use thalweg_agent::{NamedTopic, TopicsOptions};
use thalweg_model::{HostName, Scenario, Size, Topics, Way, Workload};
use thalweg_units::Span;

/// How long, where nothing says it.
const DURATION: Span = Span::from_millis(10_000);

pub(crate) fn run(args: &LoadTopicsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (mut topics, span, notes) = match &args.scenario {
        Some(name) => of_scenario(&scenarios::find(name, &[])?, args)?,
        None => (of_options(args), DURATION, Vec::new()),
    };
    if args.deadline.is_some() {
        topics.iter_mut().for_each(|topic| topic.deadline = args.deadline);
    }
    let options = TopicsOptions {
        server: server(&args.host, args.port, &args.token)?,
        topics,
        span: args.duration.unwrap_or(span),
        congestion: args.congestion.clone(),
        notes,
    };
    check(&options)?;
    let stop = stop::listen()?;
    let bar = progress::bar(output, "messages");
    let report = thalweg_agent::topics(&options, &stop, &mut |done| progress::set(&bar, done));
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::topics_load(&report, output.width, output.color))?;
    }
    if report.duration_s < options.span.as_secs_f64() {
        return Err(Failure::stopped());
    }
    let in_time = report.topics.iter().all(|topic| topic.late + topic.lost == 0);
    Ok(if in_time { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What a plan may not be, in words.
fn check(options: &TopicsOptions) -> Result<(), Failure> {
    let topics = options.topics.iter().map(|topic| topic.plan).collect();
    let plan = TopicsPlan { topics, span: options.span, seed: 1, congestion: options.congestion.clone() };
    plan.check().map_err(|error| {
        let bounds = format!(
            "at most {TOPICS_MAX} topics, of {MESSAGE_BYTES_MIN} bytes to {} MiB each {PERIOD_MIN} or more, for up to {TOPICS_SPAN_MAX} and \
             {MESSAGES_MAX} messages",
            MESSAGE_BYTES_MAX >> 20
        );
        Failure::user(anyhow!("these topics cannot be run: {error}")).hint(bounds)
    })
}

/// Equal topics.
fn of_options(args: &LoadTopicsArgs) -> Vec<NamedTopic> {
    let plan = TopicPlan {
        way: if args.reverse { Way::Down } else { Way::Up },
        period: args.period,
        phase: Span::ZERO,
        size: Size::Fixed { bytes: args.size },
        priority: 0,
    };
    let name = |number: u16| if args.topics == 1 { "topic".to_owned() } else { format!("topic{number}") };
    (1..=args.topics).map(|number| NamedTopic { name: name(number), plan, deadline: None }).collect()
}

/// The topics of a scenario that are between the two hosts, and for how long they run.
fn of_scenario(scenario: &Scenario, args: &LoadTopicsArgs) -> Result<(Vec<NamedTopic>, Span, Vec<String>), Failure> {
    let mut scenario = scenario.clone();
    scenarios::keep(&mut scenario, args.arm.as_slice())?;
    let workload = scenario.arms.first().map(|arm| &arm.experiment.workload);
    let mut parts: Vec<(Span, &Topics)> = Vec::new();
    let mut others = 0;
    match workload {
        Some(Workload::Topics(topics)) => parts.push((Span::ZERO, topics)),
        Some(Workload::Mixed { parts: all }) => {
            for part in all {
                match &part.workload {
                    Workload::Topics(topics) => parts.push((part.start, topics)),
                    _ => others += 1,
                }
            }
        }
        _ => {}
    }
    if parts.is_empty() {
        let problem = anyhow!("'{}' has no workload of kind \"topics\"", scenario.name);
        return Err(Failure::user(problem).hint("thalweg load topics HOST topics-meet runs a built-in one"));
    }
    let (mut topics, mut elsewhere, mut waiting) = (Vec::new(), 0, 0);
    for (start, part) in &parts {
        for topic in &part.topics {
            let goes = |from: HostName, to: HostName| topic.publisher == from && topic.subscribers.contains(&to);
            let way = match (goes(args.this, args.peer), goes(args.peer, args.this)) {
                (true, _) => Way::Up,
                (_, true) => Way::Down,
                _ => {
                    elsewhere += 1;
                    continue;
                }
            };
            waiting += usize::from(!topic.after.is_empty());
            let plan = TopicPlan {
                way,
                period: topic.period,
                phase: *start + topic.phase + topic.compute,
                size: topic.size,
                priority: topic.priority,
            };
            topics.push(NamedTopic { name: topic.name.clone(), plan, deadline: topic.deadline });
        }
    }
    if topics.is_empty() {
        let problem = anyhow!("'{}' has no topic between {} and {}", scenario.name, args.this, args.peer);
        return Err(Failure::user(problem).hint("--as and --peer say which of its hosts the two are"));
    }
    let span = parts.iter().map(|(start, part)| *start + part.seconds).max().unwrap_or(DURATION);
    let mut notes = Vec::new();
    if elsewhere > 0 {
        notes.push(format!("{elsewhere} topics of the scenario are between other hosts and were left out"));
    }
    if waiting > 0 {
        notes.push(format!(
            "{waiting} topics wait for others in the scenario; here they are published by the period of those"
        ));
    }
    if others > 0 {
        notes.push(format!("{others} parts of the scenario are no topics and were left out"));
    }
    notes.push("the settings of the scenario's hosts are not applied".to_owned());
    Ok((topics, span, notes))
}
