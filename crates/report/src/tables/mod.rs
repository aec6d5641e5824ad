//! Tables for programs that analyse: rows of named columns, written as they come, as CSV or Parquet.
//!
//! Memory is bounded: a Parquet file is written in row groups, a CSV file row by row. A file has its name only when it is
//! whole.

mod csv;
mod parquet;
mod rows;

pub use rows::{Cell, Rows};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with the columns' names at the top (RFC 4180).
    Csv,
    /// Apache Parquet, compressed by Snappy.
    Parquet,
}

impl Format {
    /// What its files' names end in.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// What a column holds; any value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers from 0 on.
    Count,
    /// Numbers.
    Number,
    /// True or false.
    Flag,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

impl Column {
    /// A column of that name and kind.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing is known.
    Missing,
    /// Text.
    Text(&'a str),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value<'_> {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Why a table could not be written.
#[derive(Debug, Error)]
#[error("cannot write the table {}: {cause}", path.display())]
pub struct TableError {
    /// Its file.
    pub path: PathBuf,
    /// Why.
    pub cause: String,
}

/// A table being written. Dropped before [`Table::finish`], it leaves nothing.
pub struct Table {
    path: PathBuf,
    partial: PathBuf,
    columns: usize,
    rows: u64,
    writer: Option<Writer>,
}

enum Writer {
    Csv(csv::Writer),
    Parquet(Box<parquet::Writer>),
}

impl Table {
    /// Begins the table `name` in `folder`.
    ///
    /// # Errors
    /// When its file cannot be made.
    pub fn create(folder: &Path, name: &str, format: Format, columns: &[Column]) -> Result<Self, TableError> {
        let path = folder.join(format!("{name}.{}", format.extension()));
        let partial = folder.join(format!("{name}.{}.partial", format.extension()));
        let begun = fs::File::create(&partial).map_err(|error| error.to_string()).and_then(|file| match format {
            Format::Csv => csv::Writer::new(file, columns).map(Writer::Csv).map_err(|error| error.to_string()),
            Format::Parquet => parquet::Writer::new(file, columns)
                .map(|writer| Writer::Parquet(Box::new(writer)))
                .map_err(|error| error.to_string()),
        });
        match begun {
            Ok(writer) => Ok(Self { path, partial, columns: columns.len(), rows: 0, writer: Some(writer) }),
            Err(cause) => {
                let _ = fs::remove_file(partial);
                Err(TableError { path, cause })
            }
        }
    }

    /// Adds a row: a value for each column, in their order.
    ///
    /// # Errors
    /// When it cannot be written, or is not of the columns' number and kinds.
    pub fn row(&mut self, values: &[Value<'_>]) -> Result<(), TableError> {
        if values.len() != self.columns {
            return Err(self.error(format!("a row of {} values for {} columns", values.len(), self.columns)));
        }
        self.rows += 1;
        let written = match &mut self.writer {
            Some(Writer::Csv(writer)) => writer.row(values).map_err(|error| error.to_string()),
            Some(Writer::Parquet(writer)) => writer.row(values).map_err(|error| error.to_string()),
            None => Ok(()),
        };
        written.map_err(|cause| self.error(cause))
    }

    /// Writes the rest and gives the file its name; returns how many rows it has.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> Result<u64, TableError> {
        let written = match self.writer.take() {
            Some(Writer::Csv(writer)) => writer.finish().map_err(|error| error.to_string()),
            Some(Writer::Parquet(writer)) => writer.finish().map_err(|error| error.to_string()),
            None => Ok(()),
        };
        let named = |()| fs::rename(&self.partial, &self.path).map_err(|error: io::Error| error.to_string());
        written.and_then(named).map_err(|cause| self.error(cause))?;
        Ok(self.rows)
    }

    fn error(&self, cause: String) -> TableError {
        TableError { path: self.path.clone(), cause }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // Not there where the table was finished.
        let _ = fs::remove_file(&self.partial);
    }
}
