//! What can be typed after `thalweg get`.

use clap::Args as ClapArgs;
use std::path::PathBuf;
use thalweg_get::Checksum;
use thalweg_units::{Rate, Span};
use url::Url;

/// A download.
#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "Examples:\n  thalweg get https://example.org/image.iso\n  thalweg get https://example.org/image.iso --checksum sha256:HEX --limit-rate 10MB/s\n  thalweg get http://192.0.2.1/5g.bin -o /dev/null --json      measures only\n  thalweg get https://example.org/data.tar -O - | tar x\n\nIt begins with one range. While the receive window of every range is full, it adds ranges, each on a connection of its own, and keeps them only if they add goodput. An interrupted download goes on where it stopped when the same command is given again: FILE.part holds the data and FILE.part.json what of it is there.\n\nExit: 0 the file is whole, 1 the data is not what it should be, 2 the command is wrong, 3 network, server or disk failed."
)]
pub(crate) struct GetArgs {
    /// What to fetch, by http or https
    #[arg(value_parser = super::values::web_url)]
    pub(crate) url: Url,
    /// Where to store it; - is stdout, /dev/null measures only; default: the name that the server or the URL gives, in this folder
    #[arg(short, long, visible_short_alias = 'O', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replaces a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// The most ranges at a time; 1 is one connection
    #[arg(long, default_value = "16", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) max_ranges: u16,
    /// The most to receive in a second, such as 10MB/s or 50Mb/s
    #[arg(long, value_name = "RATE")]
    pub(crate) limit_rate: Option<Rate>,
    /// What the object should be; sha512 and md5 are known too
    #[arg(long, value_name = "sha256:HEX")]
    pub(crate) checksum: Option<Checksum>,
    /// Failures in a row, with longer and longer waits between, after which it gives up
    #[arg(long, default_value = "8", value_name = "N")]
    pub(crate) retries: u32,
    /// A connection that is silent for this long, also before its response begins, is replaced
    #[arg(long, default_value = "30s", value_name = "TIME")]
    pub(crate) stall: Span,
    /// Also trusts the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Also sends this header field, to the URL's own server only (repeatable)
    #[arg(short = 'H', long, value_name = "'NAME: VALUE'")]
    pub(crate) header: Vec<String>,
    /// HTTP/1.1 even if the server speaks HTTP/2
    #[arg(long)]
    pub(crate) http1: bool,
}
