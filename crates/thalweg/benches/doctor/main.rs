//! How fast the doctor reads, beside others, on two captures that are made here, the same bytes every time.
//!
//! `cargo bench -p thalweg --bench doctor -- --write FOLDER` only makes `bulk.pcap` and `many-flows.pcap` there.
#![allow(clippy::print_stdout)]

mod captures;
mod frames;
mod side_by_side;

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (folder, only_write) = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--write"), Some(folder)) => (PathBuf::from(folder), true),
        _ => (PathBuf::from(env!("CARGO_TARGET_TMPDIR")), false),
    };
    for (name, make) in CAPTURES {
        let path = make_once(&folder, name, make).expect("a capture");
        if !only_write {
            side_by_side::compare(&path);
        }
    }
}

type Make = fn(BufWriter<File>) -> io::Result<captures::Made>;

const CAPTURES: [(&str, Make); 2] = [("bulk.pcap", captures::bulk), ("many-flows.pcap", captures::many_flows)];

/// Makes the capture unless it is there; the name is given to a whole file only.
fn make_once(folder: &Path, name: &str, make: Make) -> io::Result<PathBuf> {
    let path = folder.join(name);
    if !path.exists() {
        let partial = folder.join(format!("{name}.partial"));
        let made = make(BufWriter::with_capacity(1 << 20, File::create(&partial)?))?;
        fs::rename(&partial, &path)?;
        println!("{}: {} bytes, {} packets, {} flows", path.display(), made.bytes, made.packets, made.flows);
    }
    Ok(path)
}
