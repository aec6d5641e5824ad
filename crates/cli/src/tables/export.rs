//! `lab run --export`: a run's figures, flows, samples and packets as tables.

use super::flow_columns;
use crate::failure::Failure;
use anyhow::anyhow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use thalweg_lab::{LabArm, SingleRun};
use thalweg_model::Metric;
use thalweg_report::tables::{Column, Format, Kind, Table, Value};
use thalweg_wire::{Decoded, Flags, Segment};

/// The columns that identify a run, in every table.
const KEYS: [(&str, Kind); 4] =
    [("scenario", Kind::Text), ("arm", Kind::Text), ("kernel", Kind::Text), ("seed", Kind::Count)];

/// The runs that are exported.
#[derive(Debug)]
pub(crate) struct Export<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) arms: &'a [LabArm],
    pub(crate) runs: &'a [SingleRun],
    /// Where captures and samples are, and the tables go.
    pub(crate) folder: &'a Path,
    pub(crate) format: Format,
}

impl Export<'_> {
    /// Writes the four tables; those of captures and samples that were not made are empty.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        self.runs()?;
        self.flows()?;
        self.samples()?;
        self.packets()
    }

    fn table(&self, name: &str, columns: Vec<Column>) -> Result<Table, Failure> {
        let all: Vec<Column> = KEYS.iter().map(|(name, kind)| Column::new(*name, *kind)).chain(columns).collect();
        Table::create(self.folder, name, self.format, &all).map_err(Failure::host)
    }

    fn keys<'b>(&'b self, run: &SingleRun) -> Vec<Value<'b>> {
        let LabArm { arm, engine } = &self.arms[run.figures.arm];
        vec![self.scenario.into(), arm.name.as_str().into(), engine.release().into(), run.seed.into()]
    }

    /// One row for each run; a column for each key of the matrix and for each figure any run has.
    fn runs(&self) -> Result<(), Failure> {
        let matrix: Vec<&str> = self
            .arms
            .first()
            .map(|arm| arm.arm.matrix.iter().map(|(key, _)| key.as_str()).collect())
            .unwrap_or_default();
        let number = |key: &str| {
            let mut values = self.arms.iter().flat_map(|arm| &arm.arm.matrix).filter(|(other, _)| other == key);
            values.all(|(_, value)| value.parse::<f64>().is_ok())
        };
        let numbers: Vec<bool> = matrix.iter().map(|key| number(key)).collect();
        let figures: BTreeSet<String> =
            self.runs.iter().flat_map(|run| Metric::flatten(&run.figures.metrics)).map(|(name, _)| name).collect();
        let mut columns = vec![
            Column::new("own_arm", Kind::Text),
            Column::new("repeat", Kind::Count),
            Column::new("virtual_s", Kind::Number),
            Column::new("capture", Kind::Text),
            Column::new("samples", Kind::Text),
        ];
        for (key, number) in matrix.iter().zip(&numbers) {
            let kind = if *number { Kind::Number } else { Kind::Text };
            columns.push(Column::new(format!("matrix_{}", key.replace(['.', '-'], "_")), kind));
        }
        columns.extend(figures.iter().map(|name| Column::new(name.replace('.', "_"), Kind::Number)));
        let mut table = self.table("runs", columns)?;
        for run in self.runs {
            let arm = &self.arms[run.figures.arm].arm;
            let mut row = self.keys(run);
            row.push(arm.own.as_str().into());
            row.push(u64::from(run.figures.repeat).into());
            row.push(run.figures.virtual_s.into());
            row.push(run.capture.as_deref().into());
            row.push(run.samples.as_deref().into());
            for (key, number) in matrix.iter().zip(&numbers) {
                let value = arm.matrix.iter().find(|(other, _)| other == key).map(|(_, value)| value.as_str());
                row.push(match value {
                    Some(value) if *number => value.parse::<f64>().ok().into(),
                    value => value.into(),
                });
            }
            let flat: HashMap<String, &Metric> = Metric::flatten(&run.figures.metrics).into_iter().collect();
            row.extend(figures.iter().map(|name| Value::from(flat.get(name).and_then(|metric| metric.value()))));
            table.row(&row).map_err(Failure::host)?;
        }
        table.finish().map(|_| ()).map_err(Failure::host)
    }

    /// One row for each connection at each end.
    fn flows(&self) -> Result<(), Failure> {
        let mut table = self.table("flows", flow_columns::columns("end"))?;
        for (run, path) in self.captures() {
            let capture = thalweg_infer::diagnose_file(&path).map_err(|error| Failure::host(anyhow!("{error}")))?;
            let flows = &capture.report.flows;
            let begin = flows.iter().map(|flow| flow.start).fold(f64::INFINITY, f64::min);
            for flow in flows {
                let (mut row, claim) = (self.keys(run), flow.verdict.claim());
                row.extend(flow_columns::values(flow, &claim, begin));
                table.row(&row).map_err(Failure::host)?;
            }
        }
        table.finish().map(|_| ()).map_err(Failure::host)
    }

    /// Every line of the `tcp_info` samples.
    fn samples(&self) -> Result<(), Failure> {
        let files: Vec<(&SingleRun, PathBuf)> =
            self.runs.iter().filter_map(|run| Some((run, self.folder.join(run.samples.as_ref()?)))).collect();
        let open = |path: &Path| File::open(path).map(|file| BufReader::with_capacity(1 << 18, file).lines());
        let failed = |path: &Path, error: std::io::Error| {
            Failure::host(anyhow!("cannot read the samples '{}': {error}", path.display()))
        };
        // Kernels may differ in what they tell: a column is there where any file has it.
        let mut names: Vec<String> = Vec::new();
        for (_, path) in &files {
            let header =
                open(path).and_then(|mut lines| lines.next().transpose()).map_err(|error| failed(path, error))?;
            for name in header.iter().flat_map(|header| header.split(',')) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        let kind = |name: &str| match name {
            "time_s" => Kind::Number,
            "host" => Kind::Text,
            _ => Kind::Count,
        };
        let columns = names.iter().map(|name| Column::new(name.as_str(), kind(name))).collect();
        let mut table = self.table("samples", columns)?;
        for (run, path) in &files {
            let mut lines = open(path).map_err(|error| failed(path, error))?;
            let header = lines.next().transpose().map_err(|error| failed(path, error))?.unwrap_or_default();
            let header: Vec<&str> = header.split(',').collect();
            let places: Vec<Option<usize>> =
                names.iter().map(|name| header.iter().position(|word| word == name)).collect();
            for line in lines {
                let line = line.map_err(|error| failed(path, error))?;
                let words: Vec<&str> = line.split(',').collect();
                let mut row = self.keys(run);
                for (name, place) in names.iter().zip(&places) {
                    let word = place.and_then(|place| words.get(place).copied()).filter(|word| !word.is_empty());
                    row.push(match kind(name) {
                        Kind::Text => word.into(),
                        Kind::Number => word.and_then(|word| word.parse::<f64>().ok()).into(),
                        _ => word.and_then(|word| word.parse::<u64>().ok()).into(),
                    });
                }
                table.row(&row).map_err(Failure::host)?;
            }
        }
        table.finish().map(|_| ()).map_err(Failure::host)
    }

    /// Every TCP packet at each end.
    fn packets(&self) -> Result<(), Failure> {
        let columns = [
            ("number", Kind::Count),
            ("time_s", Kind::Number),
            ("end", Kind::Text),
            ("direction", Kind::Text),
            ("client", Kind::Text),
            ("server", Kind::Text),
            ("seq", Kind::Count),
            ("ack", Kind::Count),
            ("len", Kind::Count),
            ("flags", Kind::Text),
            ("window", Kind::Count),
        ];
        let columns = columns.into_iter().map(|(name, kind)| Column::new(name, kind)).collect();
        let mut table = self.table("packets", columns)?;
        for (run, path) in self.captures() {
            let broken =
                |error: String| Failure::host(anyhow!("cannot read the capture '{}': {error}", path.display()));
            let file = File::open(&path).map_err(|error| broken(error.to_string()))?;
            let mut capture = thalweg_wire::Capture::new(file).map_err(|error| broken(error.to_string()))?;
            let keys = self.keys(run);
            let mut begin = None;
            let mut connections = Connections::default();
            let mut ends: Vec<String> = Vec::new();
            loop {
                let packet = capture.next().map_err(|error| broken(error.to_string()))?;
                let Some(packet) = packet else { break };
                let (number, at, interface) = (packet.number, packet.at, packet.interface as usize);
                let decoded = thalweg_wire::decode(packet.link, packet.bytes, packet.original_len);
                let begin = *begin.get_or_insert(at);
                if ends.len() <= interface {
                    let name = |one: &thalweg_wire::Interface| one.name.clone().unwrap_or_default();
                    ends = capture.interfaces().iter().map(name).collect();
                }
                let Decoded::Tcp(segment) = decoded else { continue };
                let (told, flags) = (connections.tell(&segment), flags(segment.tcp.flags));
                let mut row = keys.clone();
                row.extend([
                    number.into(),
                    at.seconds_since(begin).into(),
                    ends.get(interface).map(String::as_str).into(),
                    if told.from_client { "up" } else { "down" }.into(),
                    Value::Text(&told.client),
                    Value::Text(&told.server),
                    u64::from(segment.tcp.seq.get()).into(),
                    segment.tcp.flags.has(Flags::ACK).then_some(u64::from(segment.tcp.ack.get())).into(),
                    u64::from(segment.payload_len).into(),
                    Value::Text(&flags),
                    told.window.into(),
                ]);
                table.row(&row).map_err(Failure::host)?;
            }
        }
        table.finish().map(|_| ()).map_err(Failure::host)
    }

    fn captures(&self) -> impl Iterator<Item = (&SingleRun, PathBuf)> {
        self.runs.iter().filter_map(|run| Some((run, self.folder.join(run.capture.as_ref()?))))
    }
}

/// The connections of a capture: who connected, and how windows are scaled.
#[derive(Debug, Default)]
struct Connections(HashMap<(SocketAddr, SocketAddr), Connection>);

#[derive(Debug)]
struct Connection {
    client: SocketAddr,
    /// As the tables have them, shared by all of a connection's rows.
    names: (Rc<str>, Rc<str>),
    /// The client's and the server's window scale; `None` until their SYNs were seen, or where they had none.
    scales: (Option<u8>, Option<u8>),
}

/// What a packet is within its connection.
struct Told {
    from_client: bool,
    client: Rc<str>,
    server: Rc<str>,
    /// The window it offers, in bytes.
    window: u64,
}

impl Connections {
    fn tell(&mut self, segment: &Segment) -> Told {
        let source = SocketAddr::new(segment.ip.source, segment.tcp.source_port);
        let destination = SocketAddr::new(segment.ip.destination, segment.tcp.destination_port);
        let (syn, ack) = (segment.tcp.flags.has(Flags::SYN), segment.tcp.flags.has(Flags::ACK));
        let connection = self.0.entry((source.min(destination), source.max(destination))).or_insert_with(|| {
            // Without its SYN, the side with the higher port is taken for the client, as ephemeral ports are high.
            let source_connects = if syn { !ack } else { source.port() > destination.port() };
            let (client, server) = if source_connects { (source, destination) } else { (destination, source) };
            let names = (client.to_string().into(), server.to_string().into());
            Connection { client, names, scales: (None, None) }
        });
        let from_client = source == connection.client;
        if syn {
            let scale = segment.tcp.options.window_scale;
            *(if from_client { &mut connection.scales.0 } else { &mut connection.scales.1 }) = scale;
        }
        let scale = match connection.scales {
            // A SYN's own window is never scaled, and others only where both sides offered to (RFC 7323 §2.2).
            (Some(client), Some(server)) if !syn => {
                if from_client {
                    client
                } else {
                    server
                }
            }
            _ => 0,
        };
        Told {
            from_client,
            client: Rc::clone(&connection.names.0),
            server: Rc::clone(&connection.names.1),
            window: u64::from(segment.tcp.window) << scale,
        }
    }
}

/// The control bits by name: `SYN ACK`.
fn flags(flags: Flags) -> String {
    let names = [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
    ];
    names.into_iter().filter(|(bit, _)| flags.has(*bit)).map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}
