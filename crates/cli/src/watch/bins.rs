//! What `watch --bursts` keeps of an interface's traffic: a record as Parquet, and a page.

use crate::failure::Failure;
use anyhow::anyhow;
use std::io::Read;
use std::path::{Path, PathBuf};
use thalweg_model::FlowProtocol;
use thalweg_pipeline::whole;
use thalweg_report::html::bursts_page;
use thalweg_report::tables::{Cell, Column, Format, Kind, Rows, Table, Value};
use thalweg_watch::{BusyBin, FlowId, MapBuilder, Port};

const INTERFACE: &str = "interface";
/// The columns of a record: a row for each bin of 100 µs in which something passed, and for each flow in it.
const COLUMNS: [(&str, Kind); 9] = [
    (INTERFACE, Kind::Text),
    ("at_ns", Kind::Count),
    ("sent", Kind::Flag),
    ("packets", Kind::Count),
    ("bytes", Kind::Count),
    ("packet_max_bytes", Kind::Count),
    ("protocol", Kind::Text),
    ("local", Kind::Text),
    ("peer", Kind::Text),
];
/// The first columns, which are those of a record without flows.
const BIN_COLUMNS: usize = 6;
/// What a Parquet file begins with. Source: apache/parquet-format, "File format".
const MAGIC: &[u8; 4] = b"PAR1";
/// How far times of bins that follow each other may be apart, back and forth: processors hand packets over in turns, and a link may rest.
const BACK_NS: u64 = 1_000_000_000;
const FORTH_NS: u64 = 86_400_000_000_000;

/// The outputs that are asked for.
pub(crate) struct Kept {
    interface: String,
    record: Option<Table>,
    page: Option<(PathBuf, MapBuilder)>,
}

impl Kept {
    /// Begins them.
    pub(crate) fn begin(
        interface: &str,
        port: Option<Port>,
        record: Option<&Path>,
        page: Option<&Path>,
    ) -> Result<Self, Failure> {
        let page = page.map(|path| (path.to_owned(), MapBuilder::new(interface, port)));
        Ok(Self { interface: interface.to_owned(), record: record.map(table).transpose()?, page })
    }

    /// Whether there is anything to be kept.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.record.is_some() || self.page.is_some()
    }

    /// Takes in bins.
    pub(crate) fn add(&mut self, bins: &[BusyBin]) -> Result<(), Failure> {
        for bin in bins {
            if let Some((_, map)) = &mut self.page {
                map.add(bin);
            }
            if let Some(table) = &mut self.record {
                let ends = bin.flow.map(|flow| [flow.local, flow.peer].map(|end| end.to_string()));
                let [local, peer] = [0, 1].map(|end: usize| ends.as_ref().map(|ends| ends[end].as_str()));
                let row = [
                    Value::Text(&self.interface),
                    bin.at_ns.into(),
                    bin.is_sent.into(),
                    bin.packets.into(),
                    bin.bytes.into(),
                    bin.packet_max_bytes.into(),
                    bin.flow.map(|flow| flow.protocol.as_str()).into(),
                    local.into(),
                    peer.into(),
                ];
                table.row(&row).map_err(Failure::host)?;
            }
        }
        Ok(())
    }

    /// Writes what is left; the files have their names from now on.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.record.map_or(Ok(0), Table::finish).map_err(Failure::host)?;
        if let Some((path, map)) = self.page {
            let (all, flows) = map.maps();
            whole::write(&path, &bursts_page(&all, &flows))?;
        }
        Ok(())
    }
}

fn table(path: &Path) -> Result<Table, Failure> {
    let is_named = path.extension().is_some_and(|found| found == Format::Parquet.extension());
    let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_named).ok_or_else(|| {
        Failure::user(anyhow!("--record writes Parquet, and '{}' is no name for that", path.display()))
            .hint("let the name end in .parquet")
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let columns = COLUMNS.map(|(name, kind)| Column::new(name, kind));
    Table::create(folder, name, Format::Parquet, &columns).map_err(Failure::host)
}

/// Whether the file is a record, by how it begins.
pub(crate) fn is_record(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == *MAGIC
}

/// A bin of a record: all of it, and the parts of flows: packets and bytes.
pub(crate) struct RecordedBin {
    pub(crate) all: BusyBin,
    pub(crate) parts: Vec<(FlowId, u64, u64)>,
}

/// The bins of a record, in order.
pub(crate) struct Record {
    path: PathBuf,
    rows: Rows,
    /// The interface of the first row.
    pub(crate) interface: String,
    /// Its flows are told apart.
    pub(crate) has_flows: bool,
    /// The first row of the next bin.
    ahead: Option<BusyBin>,
    last_ns: Option<u64>,
}

impl Record {
    /// Opens a record.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let names = COLUMNS.map(|(name, _)| name);
        let with_flows = Rows::open(path, &names);
        let has_flows = with_flows.is_ok();
        let rows = with_flows.or_else(|_| Rows::open(path, &names[..BIN_COLUMNS])).map_err(|why| wrong(path, &why))?;
        let interface = String::new();
        let mut record = Self { path: path.to_owned(), rows, interface, has_flows, ahead: None, last_ns: None };
        let Some((interface, first)) = record.row()? else { return Err(wrong(path, "nothing was recorded")) };
        (record.interface, record.ahead) = (interface, Some(first));
        Ok(record)
    }

    /// The next bin: its rows follow each other.
    pub(crate) fn next(&mut self) -> Result<Option<RecordedBin>, Failure> {
        let Some(first) = self.ahead.take() else { return Ok(None) };
        let mut bin = RecordedBin { all: BusyBin { packets: 0, bytes: 0, flow: None, ..first }, parts: Vec::new() };
        let mut row = Some(first);
        while let Some(part) = row.filter(|row| (row.at_ns, row.is_sent) == (first.at_ns, first.is_sent)) {
            bin.all.packets = bin.all.packets.saturating_add(part.packets);
            bin.all.bytes = bin.all.bytes.saturating_add(part.bytes);
            bin.all.packet_max_bytes = bin.all.packet_max_bytes.max(part.packet_max_bytes);
            bin.parts.extend(part.flow.map(|flow| (flow, part.packets, part.bytes)));
            row = self.row()?.map(|(_, bin)| bin);
        }
        self.ahead = row;
        Ok(Some(bin))
    }

    fn row(&mut self) -> Result<Option<(String, BusyBin)>, Failure> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        let cells = row.map_err(|why| wrong(&self.path, &why))?;
        match &cells[..] {
            [
                Cell::Text(interface),
                Cell::Count(at_ns),
                Cell::Flag(is_sent),
                Cell::Count(packets),
                Cell::Count(bytes),
                Cell::Count(most),
                rest @ ..,
            ] => {
                let (at_ns, is_sent, packets, bytes) = (*at_ns, *is_sent, *packets, *bytes);
                let last_ns = self.last_ns.replace(at_ns).unwrap_or(at_ns);
                if at_ns < last_ns.saturating_sub(BACK_NS) || at_ns > last_ns.saturating_add(FORTH_NS) {
                    return Err(wrong(&self.path, "its times jump"));
                }
                let bin = BusyBin {
                    at_ns,
                    is_sent,
                    packets,
                    bytes,
                    packet_max_bytes: *most,
                    overflows: false,
                    flow: self.flow(rest)?,
                };
                Ok(Some((interface.clone(), bin)))
            }
            _ => Err(wrong(&self.path, "a row has no value in one of its columns")),
        }
    }

    fn flow(&self, cells: &[Cell]) -> Result<Option<FlowId>, Failure> {
        let [Cell::Text(protocol), Cell::Text(local), Cell::Text(peer)] = cells else { return Ok(None) };
        let protocol = FlowProtocol::ALL.into_iter().find(|one| one.as_str() == protocol);
        match (protocol, local.parse(), peer.parse()) {
            (Some(protocol), Ok(local), Ok(peer)) => Ok(Some(FlowId { protocol, local, peer })),
            _ => Err(wrong(&self.path, "a row's flow has no ends")),
        }
    }
}

fn wrong(path: &Path, why: &str) -> Failure {
    Failure::user(anyhow!("cannot replay {}: {why}", path.display()))
        .hint("--replay reads what thalweg watch --json printed, and the Parquet file of --bursts --record")
}
