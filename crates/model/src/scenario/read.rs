//! From a TOML tree to a [`Scenario`].

use super::{Arm, Experiment, Scenario};
use crate::document::{DocumentError, Node, NodeValue, Section, nearest};
use crate::expect::Expectation;
use crate::flow::Way;
use crate::path::{Distribution, Jitter, Loss, Path, PathDirection, Queue};
use crate::settings::{HostSettings, RouteSettings, SocketSettings};
use crate::workload::{Amount, Transactions, Workload};
use units::{Bytes, Ratio, Span};

/// No path between two places on Earth takes this long; longer is a slip of the unit.
const LONGEST_DELAY: Span = Span::from_millis(60_000);

pub(super) fn scenario(mut root: Node, set: &[(String, String)]) -> Result<Scenario, DocumentError> {
    let arms = root.remove("arm");
    let expect = root.remove("expect");
    let header = Section::new(&root, "")?;
    let name = header.require("name", header.text("name")?)?.to_owned();
    let about = header.text("about")?.unwrap_or_default().to_owned();
    let kernel = header.text("kernel")?.map(str::to_owned);
    let mut base = root.clone();
    for key in ["name", "about", "kernel"] {
        base.remove(key);
    }

    let mut overlays = Vec::new();
    for (key, value) in set {
        overlays.push(overlay(key, value)?);
    }
    let overlaid = |mut node: Node| -> Result<Experiment, DocumentError> {
        overlays.iter().for_each(|over| node.overlay(over));
        experiment(&node)
    };

    let arms = match arms {
        None => vec![Arm { name: "as given".to_owned(), experiment: overlaid(base)? }],
        Some(Node { value: NodeValue::List(nodes), place }) if nodes.is_empty() => {
            return Err(DocumentError { place, problem: "the list of arms is empty".to_owned(), hint: None });
        }
        Some(Node { value: NodeValue::List(nodes), .. }) => {
            let mut arms: Vec<Arm> = Vec::new();
            for mut node in nodes {
                let name = {
                    let section = Section::new(&node, "arm")?;
                    section.require("name", section.text("name")?)?.to_owned()
                };
                if arms.iter().any(|arm| arm.name == name) {
                    return Err(node.error(format!("two arms are named '{name}'"), None));
                }
                if name.is_empty() || name.contains('/') {
                    return Err(node.error("an arm's name must not be empty or hold a '/'", None));
                }
                node.remove("name");
                let mut merged = base.clone();
                merged.overlay(&node);
                arms.push(Arm { name, experiment: overlaid(merged)? });
            }
            arms
        }
        Some(other) => return Err(other.error("arms are written as [[arm]]", None)),
    };

    Ok(Scenario { expect: expectations(expect, &arms)?, name, about, kernel, arms })
}

fn expectations(node: Option<Node>, arms: &[Arm]) -> Result<Vec<Expectation>, DocumentError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let section = Section::new(&node, "expect")?;
    let mut lines = Vec::new();
    for (key, value) in section.entries() {
        let text = section.require(key, section.text(key)?)?;
        let line = Expectation::parse(key, text).map_err(|problem| value.error(problem, None))?;
        if let Some(unknown) = line.arms().find(|name| !arms.iter().any(|arm| arm.name == **name)) {
            let hint = nearest(unknown, arms.iter().map(|arm| arm.name.as_str()))
                .map(|nearest| format!("did you mean '{nearest}'?"));
            return Err(value.error(format!("no arm is named '{unknown}'"), hint));
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Makes a tree of one leaf from `a.b."c.d"` and a value, which is taken as TOML where it is TOML and as text otherwise.
fn overlay(key: &str, value: &str) -> Result<Node, DocumentError> {
    let name = format!("--set {key}={value}");
    let quoted = format!("{key} = {value}");
    let node = Node::parse(&name, &quoted).or_else(|_| {
        let text = toml::Value::String(value.to_owned());
        Node::parse(&name, &format!("{key} = {text}"))
    });
    let mut node = node.map_err(|error| DocumentError {
        place: name.clone(),
        problem: error.problem,
        hint: Some(
            "write it as --set path.rtt=100ms; quote names that hold dots: client.sysctl.\"net.ipv4.tcp_rmem\"".into(),
        ),
    })?;
    rename(&mut node, &name);
    Ok(node)
}

fn rename(node: &mut Node, place: &str) {
    node.place = place.to_owned();
    match &mut node.value {
        NodeValue::Table(entries) => entries.iter_mut().for_each(|(_, node)| rename(node, place)),
        NodeValue::List(nodes) => nodes.iter_mut().for_each(|node| rename(node, place)),
        _ => {}
    }
}

fn experiment(node: &Node) -> Result<Experiment, DocumentError> {
    let root = Section::new(node, "")?;
    for key in ["name", "about", "kernel", "arm", "expect"] {
        root.node(key);
    }
    let path = match root.section("path")? {
        Some(section) => path(&section)?,
        None => Path::default(),
    };
    let workload = workload(&root.require("workload", root.section("workload")?)?)?;
    let side = |key: &str| root.section(key)?.map_or_else(|| Ok(HostSettings::default()), |section| host(&section));
    let experiment = Experiment { path, workload, client: side("client")?, server: side("server")? };
    root.finish()?;
    Ok(experiment)
}

fn path(section: &Section<'_>) -> Result<Path, DocumentError> {
    let mut both = PathDirection::default();
    if let Some(rtt) = section.quantity::<Span>("rtt")? {
        if section.node("delay").is_some() {
            return Err(
                section.error_at("delay", "'path.rtt' and 'path.delay' are two ways to say one thing: give one")
            );
        }
        both.delay = Span::from_nanos(rtt.as_nanos() / 2);
    }
    direction(section, &mut both)?;
    let mut path = Path { down: both.clone(), up: both, mtu: 1500 };
    if let Some(mtu) = section.quantity::<u16>("mtu")? {
        if mtu < 1280 {
            return Err(section
                .error_at("mtu", format!("'path.mtu' of {mtu} is below 1280, the least IPv6 allows (RFC 8200 §5)")));
        }
        path.mtu = mtu;
    }
    for (key, into) in [("down", &mut path.down), ("up", &mut path.up)] {
        if let Some(section) = section.section(key)? {
            direction(&section, into)?;
            section.finish()?;
        }
    }
    section.finish()?;
    Ok(path)
}

fn direction(section: &Section<'_>, into: &mut PathDirection) -> Result<(), DocumentError> {
    if let Some(delay) = section.quantity("delay")? {
        into.delay = delay;
    }
    if into.delay > LONGEST_DELAY {
        return Err(
            section.error_at("delay", format!("a one-way delay of {} is more than {LONGEST_DELAY}", into.delay))
        );
    }
    if let Some(node) = section.node("jitter") {
        into.jitter = Some(match &node.value {
            NodeValue::Table(_) => {
                let jitter = section.section("jitter")?.expect("invariant: the key was just seen");
                let distribution = match jitter.text("distribution")? {
                    None | Some("normal") => Distribution::Normal,
                    Some("uniform") => Distribution::Uniform,
                    Some(other) => return Err(unknown(&jitter, "distribution", other, &["normal", "uniform"])),
                };
                let stddev = jitter.require("stddev", jitter.quantity("stddev")?)?;
                let reorder = jitter.flag("reorder")?.unwrap_or(false);
                jitter.finish()?;
                Jitter { stddev, distribution, reorder }
            }
            _ => {
                let stddev = section.require("jitter", section.quantity("jitter")?)?;
                Jitter { stddev, distribution: Distribution::Normal, reorder: false }
            }
        });
    }
    if let Some(node) = section.node("loss") {
        into.loss = match &node.value {
            NodeValue::Table(_) => {
                let loss = section.section("loss")?.expect("invariant: the key was just seen");
                let ratio = |key: &str| -> Result<Option<Ratio>, DocumentError> { loss.quantity(key) };
                let of = match loss.text("model")? {
                    Some("random") => Loss::Random { probability: loss.require("probability", ratio("probability")?)? },
                    Some("gilbert-elliott") => Loss::GilbertElliott {
                        p: loss.require("p", ratio("p")?)?,
                        r: loss.require("r", ratio("r")?)?,
                        h: ratio("h")?.unwrap_or_default(),
                        k: ratio("k")?.or(Ratio::new(1.0)).expect("invariant: 1 is a ratio"),
                    },
                    Some(other) => return Err(unknown(&loss, "model", other, &["random", "gilbert-elliott"])),
                    None => return Err(loss.error_at("model", "'loss.model' is missing")),
                };
                loss.finish()?;
                of
            }
            _ => match section.require("loss", section.quantity::<Ratio>("loss")?)? {
                none if none.get() == 0.0 => Loss::None,
                probability => Loss::Random { probability },
            },
        };
    }
    if let Some(rate) = section.quantity::<units::Rate>("rate")? {
        if rate.bits_per_second() < 8_000 {
            return Err(
                section.error_at("rate", format!("a rate of {rate} is below 8kbit, the least the lab emulates"))
            );
        }
        into.rate = Some(rate);
    }
    if let Some(text) = section.text("queue")? {
        into.queue = queue(text).ok_or_else(|| {
            section.error_at("queue", format!("'{text}' is no queue; write \"1000 packets\", \"128KiB\" or \"20ms\""))
        })?;
    }
    Ok(())
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

fn workload(section: &Section<'_>) -> Result<Workload, DocumentError> {
    let size = |key: &str| -> Result<Option<Bytes>, DocumentError> {
        let size = section.quantity::<Bytes>(key)?;
        if size == Some(Bytes::new(0)) {
            return Err(section.error_at(key, format!("'workload.{key}' must be more than nothing")));
        }
        Ok(size)
    };
    let workload = match section.require("kind", section.text("kind")?)? {
        "stream" => {
            let direction = match section.text("direction")? {
                None | Some("down") => Way::Down,
                Some("up") => Way::Up,
                Some(other) => return Err(unknown(section, "direction", other, &["down", "up"])),
            };
            let amount = match (size("bytes")?, section.quantity::<Span>("seconds")?) {
                (Some(bytes), None) => Amount::Bytes(bytes),
                (None, Some(span)) if span > Span::ZERO => Amount::Seconds(span),
                (None, None) => return Err(section.error_at("kind", "a stream needs 'bytes' or 'seconds' (\"10s\")")),
                _ => {
                    return Err(
                        section.error_at("seconds", "a stream ends by 'bytes' or by 'seconds' (\"10s\"): give one")
                    );
                }
            };
            Workload::Stream { direction, amount }
        }
        "crr" => {
            let amount = match (section.quantity::<u32>("transactions")?, section.quantity::<Span>("seconds")?) {
                (Some(count), None) if count > 0 => Transactions::Count(count),
                (None, Some(span)) if span > Span::ZERO => Transactions::Seconds(span),
                (None, None) => return Err(section.error_at("kind", "crr needs 'transactions' or 'seconds' (\"60s\")")),
                _ => {
                    return Err(section.error_at(
                        "transactions",
                        "crr ends by 'transactions', at least 1, or by 'seconds': give one",
                    ));
                }
            };
            Workload::Crr {
                request: section.require("request", size("request")?)?,
                response: section.require("response", size("response")?)?,
                amount,
            }
        }
        "burst" => {
            let total = section.require("total", size("total")?)?;
            let keyframe = size("keyframe")?.unwrap_or(total.min(Bytes::new(117_118)));
            let marks = match section.node("marks").map(|node| (&node.value, node)) {
                None => Vec::new(),
                Some((NodeValue::List(nodes), _)) => nodes
                    .iter()
                    .map(|node| match &node.value {
                        NodeValue::Text(text) | NodeValue::Number(text) => {
                            text.parse().map_err(|error: units::ParseError| node.error(error.to_string(), None))
                        }
                        _ => Err(node.error("a mark is a size", None)),
                    })
                    .collect::<Result<_, _>>()?,
                Some((_, node)) => return Err(node.error("'workload.marks' must be a list of sizes", None)),
            };
            if let Some(late) = marks.iter().chain([&keyframe]).find(|mark| **mark > total) {
                return Err(section.error_at("total", format!("the client leaves after {total}, before it has {late}")));
            }
            Workload::Burst {
                buffered: section.require("buffered", size("buffered")?)?,
                rate: section.require("rate", section.quantity("rate")?)?,
                total,
                keyframe,
                marks,
            }
        }
        other => return Err(unknown(section, "kind", other, &["stream", "crr", "burst"])),
    };
    section.finish()?;
    Ok(workload)
}

fn host(section: &Section<'_>) -> Result<HostSettings, DocumentError> {
    let mut host = HostSettings::default();
    if let Some(sysctl) = section.section("sysctl")? {
        for (key, node) in sysctl.entries() {
            let fine = key.starts_with("net.")
                && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if !fine || key.contains("..") {
                return Err(node.error(
                    format!("'{key}' is no network sysctl"),
                    Some("quote the whole name: sysctl.\"net.ipv4.tcp_rmem\" = \"4096 131072 6291456\"".to_owned()),
                ));
            }
            host.sysctl.insert(key.clone(), sysctl.require(key, sysctl.text(key)?)?.to_owned());
        }
    }
    if let Some(route) = section.section("route")? {
        host.route = RouteSettings {
            initcwnd: route.quantity("initcwnd")?,
            initrwnd: route.quantity("initrwnd")?,
            rto_min: route.quantity("rto_min")?,
            quickack: route.flag("quickack")?,
            congctl: route.text("congctl")?.map(str::to_owned),
        };
        route.finish()?;
    }
    if let Some(socket) = section.section("socket")? {
        host.socket = SocketSettings {
            congestion: socket.text("congestion")?.map(str::to_owned),
            sndbuf: socket.quantity("sndbuf")?,
            rcvbuf: socket.quantity("rcvbuf")?,
            notsent_lowat: socket.quantity("notsent_lowat")?,
            nodelay: socket.flag("nodelay")?,
            max_pacing_rate: socket.quantity("max_pacing_rate")?,
        };
        socket.finish()?;
    }
    section.finish()?;
    Ok(host)
}

fn unknown(section: &Section<'_>, key: &str, word: &str, known: &[&str]) -> DocumentError {
    let hint = nearest(word, known.iter().copied())
        .map_or_else(|| format!("known: {}", known.join(", ")), |nearest| format!("did you mean '{nearest}'?"));
    let mut error = section.error_at(key, format!("'{word}' is no {key}"));
    error.hint = Some(hint);
    error
}
