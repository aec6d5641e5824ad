//! The `[path]` of a scenario.

use super::{Files, unknown};
use crate::node::{ConfigError, Node, NodeValue};
use crate::section::Section;
use thalweg_model::{
    AckFilter, Chance, Counted, Discipline, Distribution, Jitter, Loss, Path, PathDirection, Policer, Queue, Reorder,
    Step, Trace,
};
use thalweg_units::{Bytes, Rate, Ratio, Span};

/// The longest tick that a lab kernel may have: PIE's timer runs in whole ones.
const SHORTEST_TUPDATE: Span = Span::from_millis(1);
/// No path between two places on Earth takes this long; longer is a slip of the unit.
const LONGEST_DELAY: Span = Span::from_millis(60_000);
const SLOWEST_RATE: u64 = 8_000;
/// An Ethernet header, which queues count.
const LINK_HEADER_BYTES: u64 = 14;
/// Entries of a netem table. Source: net/sched/sch_netem.c, `NETEM_DIST_MAX`.
const TABLE_MAX: usize = 16_384;
/// Delivery opportunities of a trace: 20 minutes of 1 Gb/s would be more; Mahimahi's own have some 100,000.
const OPPORTUNITIES_MAX: usize = 1_000_000;

pub(super) fn read(section: &Section<'_>, files: Files<'_>) -> Result<Path, ConfigError> {
    let mut both = PathDirection::default();
    if let Some(rtt) = section.quantity::<Span>("rtt")? {
        if section.node("delay").is_some() {
            return Err(
                section.error_at("delay", "'path.rtt' and 'path.delay' are two ways to say one thing: give one")
            );
        }
        both.delay = Span::from_nanos(rtt.as_nanos() / 2);
    }
    direction(section, &mut both, files)?;
    let mut path = Path { down: both.clone(), up: both, ..Path::default() };
    if let Some(mtu) = section.read::<u16>("mtu")? {
        if mtu < 1280 {
            return Err(section
                .error_at("mtu", format!("'path.mtu' of {mtu} is below 1280, the least IPv6 allows (RFC 8200 §5)")));
        }
        path.mtu = mtu;
    }
    path.offloads = section.flag("offloads")?.unwrap_or(false);
    for (key, into) in [("down", &mut path.down), ("up", &mut path.up)] {
        if let Some(section) = section.section(key)? {
            direction(&section, into, files)?;
            section.finish()?;
        }
    }
    section.finish()?;
    for (key, direction) in [("down", &path.down), ("up", &path.up)] {
        let node = |name: &str| {
            let whole = section.value_or_table(name);
            section.node(key).and_then(|node| node.get(name)).unwrap_or(whole)
        };
        if let Queue::Bytes(bytes) = direction.queue {
            holds_a_frame(node("queue"), "a queue", bytes, path.mtu)?;
        }
        if let Some(policer) = direction.policer {
            holds_a_frame(node("policer").at("burst"), "a policer's burst", policer.burst, path.mtu)?;
        }
    }
    Ok(path)
}

/// Refuses bytes of which a full frame is more: every frame would be dropped.
pub(super) fn holds_a_frame(node: &Node, what: &str, bytes: Bytes, mtu: u16) -> Result<(), ConfigError> {
    let frame = Bytes::new(u64::from(mtu) + LINK_HEADER_BYTES);
    if bytes >= frame {
        return Ok(());
    }
    let problem =
        format!("{what} of {bytes} drops every full frame, which has {} bytes at an MTU of {mtu}", frame.get());
    Err(node.error(problem, Some(format!("give \"{}B\" or more", frame.get()))))
}

fn direction(section: &Section<'_>, into: &mut PathDirection, files: Files<'_>) -> Result<(), ConfigError> {
    if let Some(delay) = section.quantity("delay")? {
        into.delay = delay;
    }
    if into.delay > LONGEST_DELAY {
        let key = if section.node("delay").is_some() { "delay" } else { "rtt" };
        return Err(section
            .error_at(key, format!("'path.{key}': a one-way delay of {} is more than {LONGEST_DELAY}", into.delay)));
    }
    if let Some(node) = section.node("jitter") {
        into.jitter = jitter(section, node, files)?;
    }
    if let Some(node) = section.node("loss") {
        into.loss = loss(section, node)?;
    }
    if section.node("duplicate").is_some() {
        into.duplicate = chance(section, "duplicate")?;
    }
    if section.node("corrupt").is_some() {
        into.corrupt = chance(section, "corrupt")?;
    }
    if let Some(node) = section.node("reorder") {
        into.reorder = chance(section, "reorder")?.map(|chance| Reorder { chance, gap: 1 });
        if let (Some(reorder), NodeValue::Table(_)) = (&mut into.reorder, &node.value) {
            let table = Section::new(node, "path.reorder")?;
            if let Some(gap) = table.read("gap")? {
                reorder.gap = gap;
            }
        }
    }
    if let Some(most) = section.read("black_hole")? {
        into.black_hole = Some(most);
    }
    if let Some(policer) = section.read::<Policer>("policer")? {
        check_rate(section.value_or_table("policer").at("rate"), policer.rate)?;
        into.policer = Some(policer);
    }
    if let Some(rate) = rate(section, "rate")? {
        (into.rate, into.trace) = (Some(rate), None);
    }
    if let Some(node) = section.node("trace") {
        if section.node("rate").is_some() {
            return Err(node.error("a trace gives the rate: 'path.trace' and 'path.rate' exclude each other", None));
        }
        (into.rate, into.trace) = (None, Some(trace(node, files)?));
    }
    if let Some(overhead) = section.read("overhead")? {
        into.overhead = overhead;
    }
    if let Some(burst) = section.quantity("burst")? {
        into.burst = Some(burst);
    }
    if let Some(text) = section.text("queue")? {
        into.queue = queue(text).ok_or_else(|| {
            section.error_at("queue", format!("'{text}' is no queue; write \"1000 packets\", \"128KiB\" or \"20ms\""))
        })?;
    }
    if let Some(node) = section.node("discipline") {
        into.discipline = discipline(section, node)?;
    }
    if let Some(limit) = section.read("delay_limit")? {
        if limit == 0 {
            return Err(section.error_at("delay_limit", "a delay that holds no packet lets none pass: give 1 or more"));
        }
        into.delay_limit = Some(limit);
    }
    if let Some(ecn) = section.flag("ecn")? {
        into.ecn = ecn;
    }
    if let Some(node) = section.node("step") {
        into.steps = steps(node)?;
    }
    check_together(section, into)
}

/// Refuses what excludes each other.
fn check_together(section: &Section<'_>, into: &PathDirection) -> Result<(), ConfigError> {
    let is_correlated = into.jitter.as_ref().is_some_and(|jitter| jitter.correlation > Ratio::ZERO);
    if into.trace.is_some() && (into.discipline != Discipline::Fifo || !into.steps.is_empty()) {
        return Err(section.error_at("trace", "a trace has a first-in first-out queue and no steps"));
    }
    if into.delay_limit.is_some() && is_correlated {
        let why = "'path.delay_limit' is netem's, and a correlated jitter is not";
        return Err(section.error_at("delay_limit", format!("{why}: give one of them")));
    }
    if into.reorder.is_some() && is_correlated {
        let why = "'path.reorder' lets packets skip netem's delay, and a correlated jitter is not netem's";
        return Err(section.error_at("reorder", format!("{why}: give one of them")));
    }
    if into.rate.is_none() && into.steps.iter().any(|step| step.rate.is_some()) {
        return Err(section.error_at("step", "a step changes the rate of a direction that has none to begin with"));
    }
    Ok(())
}

fn rate(section: &Section<'_>, key: &str) -> Result<Option<Rate>, ConfigError> {
    let rate = section.quantity::<Rate>(key)?;
    rate.map_or(Ok(()), |rate| check_rate(section.value_or_table(key), rate))?;
    Ok(rate)
}

fn check_rate(node: &Node, rate: Rate) -> Result<(), ConfigError> {
    if rate.bits_per_second() < SLOWEST_RATE {
        return Err(node.error(format!("a rate of {rate} is below 8kbit, the least the lab emulates"), None));
    }
    Ok(())
}

fn jitter(section: &Section<'_>, node: &Node, files: Files<'_>) -> Result<Option<Jitter>, ConfigError> {
    const KNOWN: [&str; 5] = ["normal", "uniform", "pareto", "paretonormal", "table"];
    let jitter = match &node.value {
        NodeValue::Table(_) => {
            let jitter = Section::new(node, "path.jitter")?;
            let file = jitter.text("file")?;
            let distribution = match (jitter.text("distribution")?, file) {
                (None | Some("table"), Some(name)) => {
                    let text = files(name).map_err(|error| {
                        jitter.error_at("file", format!("cannot read the delay table '{name}': {error}"))
                    })?;
                    Distribution::Table(table(&text).map_err(|problem| {
                        jitter.error_at("file", format!("'{name}' is no delay table of netem: {problem}"))
                    })?)
                }
                (Some("table"), None) => {
                    return Err(jitter.error_at("distribution", "a table is read from a file: give 'path.jitter.file'"));
                }
                (Some(_), Some(_)) => {
                    return Err(jitter.error_at("file", "a delay table replaces the distribution: give one"));
                }
                (None | Some("normal"), None) => Distribution::Normal,
                (Some("uniform"), None) => Distribution::Uniform,
                (Some("pareto"), None) => Distribution::Pareto,
                (Some("paretonormal"), None) => Distribution::ParetoNormal,
                (Some(other), None) => return Err(unknown(&jitter, "distribution", other, &KNOWN)),
            };
            let stddev = jitter.require("stddev", jitter.quantity("stddev")?)?;
            let correlation: Ratio = jitter.quantity("correlation")?.unwrap_or_default();
            let reorder = jitter.flag("reorder")?.unwrap_or(false);
            jitter.finish()?;
            Jitter { stddev, distribution, reorder, correlation }
        }
        _ => {
            let stddev = section.require("jitter", section.quantity("jitter")?)?;
            Jitter { stddev, distribution: Distribution::Normal, reorder: false, correlation: Ratio::ZERO }
        }
    };
    if jitter.stddev > LONGEST_DELAY {
        return Err(node.error(format!("a jitter of {} is more than {LONGEST_DELAY}", jitter.stddev), None));
    }
    Ok((jitter.stddev > Span::ZERO).then_some(jitter))
}

/// Reads a table as iproute2's `.dist` files are: numbers apart by white space, lines with `#` left out.
fn table(text: &str) -> Result<Vec<i16>, String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let entries: Vec<i16> = lines
        .flat_map(str::split_whitespace)
        .map(|word| word.parse().map_err(|_| format!("'{word}' is no number of 16 bits")))
        .collect::<Result<_, _>>()?;
    match entries.len() {
        0 => Err("it is empty".to_owned()),
        TABLE_MAX.. => Err(format!("it has more than {} entries", TABLE_MAX - 1)),
        _ => Ok(entries),
    }
}

fn loss(section: &Section<'_>, node: &Node) -> Result<Loss, ConfigError> {
    let NodeValue::Table(_) = &node.value else {
        return match section.require("loss", section.quantity::<Ratio>("loss")?)? {
            none if none.get() == 0.0 => Ok(Loss::None),
            probability => Ok(Loss::random(probability)),
        };
    };
    let loss = Section::new(node, "path.loss")?;
    let ratio = |key: &str| -> Result<Option<Ratio>, ConfigError> { loss.quantity(key) };
    let of = match loss.text("model")? {
        Some("random") => Loss::Random(Chance {
            probability: loss.require("probability", ratio("probability")?)?,
            correlation: ratio("correlation")?.unwrap_or_default(),
        }),
        Some("gilbert-elliott") => Loss::GilbertElliott {
            p: loss.require("p", ratio("p")?)?,
            r: loss.require("r", ratio("r")?)?,
            h: ratio("h")?.unwrap_or_default(),
            k: ratio("k")?.or(Ratio::new(1.0)).expect("invariant: 1 is a ratio"),
        },
        Some("list") => {
            let (segments, packets) = (numbers(&loss, "segments")?, numbers(&loss, "packets")?);
            match (segments, packets) {
                (Some(numbers), None) => Loss::List { of: Counted::Segments, numbers },
                (None, Some(numbers)) => Loss::List { of: Counted::Packets, numbers },
                _ => {
                    let error = node.error("a list of losses has 'segments' or 'packets': give one", None);
                    return Err(loss.missing(&["segments", "packets"], error));
                }
            }
        }
        Some(other) => return Err(unknown(&loss, "model", other, &["random", "gilbert-elliott", "list"])),
        None => return loss.require("model", None),
    };
    loss.finish()?;
    Ok(of)
}

/// A list of whole numbers from 1 up, put in order.
fn numbers(section: &Section<'_>, key: &str) -> Result<Option<Vec<u64>>, ConfigError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    let wrong = |node: &Node| node.error(format!("'{key}' is a list of numbers from 1 up, such as [3, 17]"), None);
    let NodeValue::List(nodes) = &node.value else { return Err(wrong(node)) };
    let mut numbers = Vec::new();
    for node in nodes {
        match &node.value {
            NodeValue::Number(text) => match text.parse::<u64>() {
                Ok(number) if number > 0 => numbers.push(number),
                _ => return Err(wrong(node)),
            },
            _ => return Err(wrong(node)),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    if numbers.is_empty() { Err(wrong(node)) } else { Ok(Some(numbers)) }
}

/// `"1%"`, or a table of probability and correlation; `None` where it never happens.
fn chance(section: &Section<'_>, key: &str) -> Result<Option<Chance>, ConfigError> {
    let Some(node) = section.node(key) else { return Ok(None) };
    let chance = match &node.value {
        NodeValue::Table(_) => {
            let table = Section::new(node, &format!("path.{key}"))?;
            let chance = Chance {
                probability: table.require("probability", table.quantity("probability")?)?,
                correlation: table.quantity("correlation")?.unwrap_or_default(),
            };
            if key == "reorder" {
                table.node("gap");
            }
            table.finish()?;
            chance
        }
        _ => Chance::of(section.require(key, section.quantity(key)?)?),
    };
    Ok((chance.probability.get() > 0.0).then_some(chance))
}

fn trace(node: &Node, files: Files<'_>) -> Result<Trace, ConfigError> {
    let opportunities_ms: Vec<u32> = match &node.value {
        NodeValue::Text(name) => {
            let text =
                files(name).map_err(|error| node.error(format!("cannot read the trace '{name}': {error}"), None))?;
            let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
            lines
                .map(|line| {
                    line.trim().parse().map_err(|_| {
                        node.error(format!("'{name}' is no trace of Mahimahi's: '{line}' is no millisecond"), None)
                    })
                })
                .collect::<Result<_, _>>()?
        }
        NodeValue::List(nodes) => nodes
            .iter()
            .map(|node| match &node.value {
                NodeValue::Number(text) => {
                    text.parse().map_err(|_| node.error(format!("'{text}' is no millisecond"), None))
                }
                _ => Err(node.error("a trace is a list of milliseconds", None)),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(node.error("a trace is the name of a file, or a list of milliseconds", None)),
    };
    if opportunities_ms.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(node.error("a trace's milliseconds must not go back", None));
    }
    match (opportunities_ms.last(), opportunities_ms.len()) {
        (None | Some(0), _) => Err(node.error("a trace must hold a millisecond above 0: its last is its period", None)),
        (_, count) if count > OPPORTUNITIES_MAX => {
            Err(node.error(format!("a trace may have {OPPORTUNITIES_MAX} opportunities, this has {count}"), None))
        }
        _ => Ok(Trace { opportunities_ms }),
    }
}

fn queue(text: &str) -> Option<Queue> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let queue = match words.as_slice() {
        [number, "packet" | "packets"] => Queue::Packets(number.parse().ok()?),
        _ => match text.parse::<Span>() {
            Ok(span) => Queue::Time(span),
            Err(_) if text.trim().parse::<u64>().is_ok() => return None,
            Err(_) => Queue::Bytes(text.parse().ok()?),
        },
    };
    let empty = matches!(queue, Queue::Packets(0) | Queue::Time(Span::ZERO)) || queue == Queue::Bytes(Bytes::new(0));
    (!empty).then_some(queue)
}

fn discipline(section: &Section<'_>, node: &Node) -> Result<Discipline, ConfigError> {
    const KNOWN: [&str; 6] = ["fifo", "red", "codel", "fq_codel", "pie", "cake"];
    let table = match &node.value {
        NodeValue::Table(_) => Some(Section::new(node, "path.discipline")?),
        _ => None,
    };
    let kind = match &table {
        Some(table) => table.require("kind", table.text("kind")?)?,
        None => section.require("discipline", section.text("discipline")?)?,
    };
    let span = |key: &str, usual: Span| -> Result<Span, ConfigError> {
        Ok(table.as_ref().map(|table| table.quantity(key)).transpose()?.flatten().unwrap_or(usual))
    };
    // The kernel's own: codel_params_init, fq_codel_init, pie_params_init, cake_init.
    let (target, interval, pies) = (Span::from_millis(5), Span::from_millis(100), Span::from_millis(15));
    let discipline = match kind {
        "fifo" => Discipline::Fifo,
        "codel" => Discipline::Codel { target: span("target", target)?, interval: span("interval", interval)? },
        "fq_codel" => Discipline::FqCodel {
            target: span("target", target)?,
            interval: span("interval", interval)?,
            flows: table.as_ref().map(|table| table.read("flows")).transpose()?.flatten().unwrap_or(1024),
        },
        "pie" => pie(node, span("target", pies)?, span("tupdate", pies)?)?,
        "cake" => Discipline::Cake {
            rtt: span("rtt", interval)?,
            ack_filter: table.as_ref().map(ack_filter).transpose()?.unwrap_or_default(),
        },
        "red" => {
            let Some(table) = &table else {
                let hint = "discipline = { kind = \"red\", min = \"30KB\", max = \"90KB\", probability = \"2%\" }";
                return Err(node.error("red needs 'min' and 'max'", Some(hint.to_owned())));
            };
            let (min, max) =
                (table.require("min", table.quantity("min")?)?, table.require("max", table.quantity("max")?)?);
            if min >= max {
                return Err(table.error_at("min", format!("red's 'min' of {min} must be below its 'max' of {max}")));
            }
            let usual = Ratio::new(0.02).expect("invariant: 2 % is a ratio");
            Discipline::Red { min, max, probability: table.quantity("probability")?.unwrap_or(usual) }
        }
        other => return Err(unknown(table.as_ref().unwrap_or(section), "discipline", other, &KNOWN)),
    };
    if let Some(table) = &table {
        table.finish()?;
    }
    Ok(discipline)
}

fn pie(node: &Node, target: Span, tupdate: Span) -> Result<Discipline, ConfigError> {
    if tupdate < SHORTEST_TUPDATE {
        return Err(
            node.error(format!("pie's 'tupdate' of {tupdate} is below {SHORTEST_TUPDATE}, a tick of the kernel"), None)
        );
    }
    Ok(Discipline::Pie { target, tupdate })
}

fn ack_filter(table: &Section<'_>) -> Result<AckFilter, ConfigError> {
    match table.node("ack_filter").map(|node| &node.value) {
        None => Ok(AckFilter::Off),
        Some(NodeValue::Text(text)) if text == "aggressive" => Ok(AckFilter::Aggressive),
        _ => match table.flag("ack_filter") {
            Ok(Some(true)) => Ok(AckFilter::On),
            Ok(_) => Ok(AckFilter::Off),
            Err(_) => Err(table.error_at("ack_filter", "'ack_filter' is true, false or \"aggressive\"")),
        },
    }
}

fn steps(node: &Node) -> Result<Vec<Step>, ConfigError> {
    let NodeValue::List(nodes) = &node.value else {
        return Err(node.error("steps are written as [[path.step]]", None));
    };
    let mut steps: Vec<Step> = Vec::new();
    for node in nodes {
        let section = Section::new(node, "path.step")?;
        let loss = section.node("loss").map(|of| loss(&section, of)).transpose()?;
        if matches!(loss, Some(Loss::List { .. })) {
            return Err(section.error_at("loss", "a list of losses is for the whole run, not for a step"));
        }
        let step = Step {
            at: section.require("at", section.quantity("at")?)?,
            rate: rate(&section, "rate")?,
            delay: section.quantity("delay")?,
            loss,
        };
        section.finish()?;
        if step.rate.is_none() && step.delay.is_none() && step.loss.is_none() {
            return Err(node.error("a step changes 'rate', 'delay' or 'loss'", None));
        }
        if steps.last().is_some_and(|last| last.at >= step.at) {
            return Err(section.error_at("at", "a step must come after the one before it"));
        }
        steps.push(step);
    }
    Ok(steps)
}
