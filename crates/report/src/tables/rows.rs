//! Rows of a Parquet table, read back.

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use std::fs::File;
use std::path::Path;

/// A cell that was read.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Missing,
    /// Text.
    Text(String),
    /// A whole number.
    Count(u64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
}

/// The rows of a table, of which one row group at a time is in memory.
pub struct Rows {
    /// `None` after an error: the crate's iterator would give it again for ever.
    rows: Option<RowIter<'static>>,
    columns: Vec<String>,
}

impl Rows {
    /// Opens a table; each row will have these columns, in this order.
    ///
    /// # Errors
    /// What is wrong with the file, as a sentence's end.
    pub fn open(path: &Path, columns: &[&str]) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        let reader = SerializedFileReader::new(file).map_err(|error| cause(&error))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let is_there = |name: &&str| schema.columns().iter().any(|column| column.name() == *name);
        if let Some(missing) = columns.iter().find(|name| !is_there(name)) {
            return Err(format!("it has no column '{missing}'"));
        }
        let rows = RowIter::from_file_into(Box::new(reader));
        Ok(Self { rows: Some(rows), columns: columns.iter().map(|name| (*name).to_owned()).collect() })
    }

    fn cells(&self, row: &Row) -> Vec<Cell> {
        let cell = |wanted: &String| {
            let field = row.get_column_iter().find(|(name, _)| *name == wanted).map(|(_, field)| field);
            field.map_or(Cell::Missing, of)
        };
        self.columns.iter().map(cell).collect()
    }
}

impl Iterator for Rows {
    type Item = Result<Vec<Cell>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.rows.as_mut()?.next()?;
        if row.is_err() {
            self.rows = None;
        }
        Some(row.map(|row| self.cells(&row)).map_err(|error| cause(&error)))
    }
}

fn of(field: &Field) -> Cell {
    match field {
        Field::Str(text) => Cell::Text(text.clone()),
        Field::ULong(count) => Cell::Count(*count),
        Field::Double(number) => Cell::Number(*number),
        Field::Bool(flag) => Cell::Flag(*flag),
        _ => Cell::Missing,
    }
}

fn cause(error: &ParquetError) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::super::{Column, Format, Kind, Table, Value};
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let columns = [Column::new("name", Kind::Text), Column::new("n", Kind::Count), Column::new("yes", Kind::Flag)];
        let mut table = Table::create(folder.path(), "t", Format::Parquet, &columns).expect("begun");
        table.row(&[Value::Text("one"), Value::Count(u64::MAX), Value::Flag(true)]).expect("written");
        table.row(&[Value::Missing, Value::Count(2), Value::Missing]).expect("written");
        table.finish().expect("whole");
        let path = folder.path().join("t.parquet");
        let rows: Vec<_> = Rows::open(&path, &["yes", "n", "name"]).expect("opened").collect();
        let wanted = [
            Ok(vec![Cell::Flag(true), Cell::Count(u64::MAX), Cell::Text("one".to_owned())]),
            Ok(vec![Cell::Missing, Cell::Count(2), Cell::Missing]),
        ];
        assert_eq!(rows, wanted);
        let error = Rows::open(&path, &["other"]).err();
        assert_eq!(error.as_deref(), Some("it has no column 'other'"));
    }

    #[test]
    fn damage_is_told_and_nothing_worse() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut table =
            Table::create(folder.path(), "t", Format::Parquet, &[Column::new("n", Kind::Count)]).expect("begun");
        (0..2_000).for_each(|n| table.row(&[Value::Count(n * 7)]).expect("written"));
        table.finish().expect("whole");
        let path = folder.path().join("t.parquet");
        let whole = std::fs::read(&path).expect("read");
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            std::fs::write(&path, &bytes).expect("written");
            if let Ok(rows) = Rows::open(&path, &["n"]) {
                let _ = rows.count();
            }
        }
    }
}
