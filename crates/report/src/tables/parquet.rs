//! Parquet, by the crate's column writers: no Arrow in between.

use super::{Column, Kind, Value};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

/// Rows of a row group, which is what memory holds: as many as DuckDB gives a thread at a time, 122,880, or fewer.
/// Source: duckdb.org, "Parquet tips", row-group sizes.
const GROUP_ROWS: usize = 122_880;

pub(super) struct Writer {
    file: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<Buffer>,
    rows: usize,
}

/// The rows of one column that are not written yet.
struct Buffer {
    values: Values,
    /// For each row 1 where there is a value, else 0.
    present: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Count(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl Writer {
    pub(super) fn new(file: File, columns: &[Column]) -> Result<Self> {
        let fields = columns.iter().map(|column| Ok(Arc::new(field(column)?))).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), Arc::new(properties))?;
        let buffer = |column: &Column| Buffer {
            values: match column.kind {
                Kind::Text => Values::Text(Vec::new()),
                Kind::Count => Values::Count(Vec::new()),
                Kind::Number => Values::Number(Vec::new()),
                Kind::Flag => Values::Flag(Vec::new()),
            },
            present: Vec::new(),
        };
        Ok(Self { file, columns: columns.iter().map(buffer).collect(), rows: 0 })
    }

    pub(super) fn row(&mut self, values: &[Value<'_>]) -> Result<()> {
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value)?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.file.close().map(|_| ())
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for Buffer { values, present } in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            match values {
                Values::Text(values) => {
                    column.typed::<ByteArrayType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Count(values) => {
                    column.typed::<Int64Type>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Number(values) => {
                    column.typed::<DoubleType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Values::Flag(values) => {
                    column.typed::<BoolType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
            }
            present.clear();
            column.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl Buffer {
    fn push(&mut self, value: &Value<'_>) -> Result<()> {
        match (&mut self.values, value) {
            (_, Value::Missing) => {
                self.present.push(0);
                return Ok(());
            }
            (Values::Text(values), Value::Text(text)) => match values.last() {
                // A run's keys are in each of its rows: one copy is shared by all of them.
                Some(last) if last.data() == text.as_bytes() => {
                    let shared = last.clone();
                    values.push(shared);
                }
                _ => values.push(ByteArray::from(text.as_bytes().to_vec())),
            },
            // Parquet has no unsigned type of its own: the same bits, interpreted by the logical type.
            (Values::Count(values), Value::Count(count)) => values.push(count.cast_signed()),
            (Values::Number(values), Value::Number(number)) => values.push(*number),
            (Values::Number(values), Value::Count(count)) => values.push(*count as f64),
            (Values::Flag(values), Value::Flag(flag)) => values.push(*flag),
            (_, value) => return Err(ParquetError::General(format!("{value:?} is not of its column's kind"))),
        }
        self.present.push(1);
        Ok(())
    }
}

fn field(column: &Column) -> Result<Type> {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Count => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
        Kind::Flag => (Physical::BOOLEAN, None),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Table};
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn rows_read_back_over_several_groups() {
        let folder = tempfile::tempdir().expect("a folder");
        let columns = [
            Column::new("name", Kind::Text),
            Column::new("n", Kind::Count),
            Column::new("x", Kind::Number),
            Column::new("yes", Kind::Flag),
        ];
        let mut table = Table::create(folder.path(), "t", Format::Parquet, &columns).expect("begun");
        let rows = GROUP_ROWS as u64 + 2;
        for n in 0..rows {
            let name = if n.is_multiple_of(3) { Value::Missing } else { Value::Text("same") };
            table
                .row(&[name, Value::Count(u64::MAX - n), Value::Count(n), Value::Flag(n.is_multiple_of(2))])
                .expect("written");
        }
        assert!(table.row(&[Value::Missing]).is_err(), "too few values");
        assert!(table.row(&[Value::Flag(true), Value::Missing, Value::Missing, Value::Missing]).is_err(), "a kind");
        assert!(!folder.path().join("t.parquet").exists(), "it has its name when it is whole");
        drop(table);
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 0, "a table broken off leaves nothing");

        let mut table = Table::create(folder.path(), "t", Format::Parquet, &columns).expect("begun");
        for n in 0..rows {
            let name = if n.is_multiple_of(3) { Value::Missing } else { Value::Text("same") };
            table
                .row(&[name, Value::Count(u64::MAX - n), Value::Count(n), Value::Flag(n.is_multiple_of(2))])
                .expect("written");
        }
        assert_eq!(table.finish().expect("whole"), rows);
        let file = File::open(folder.path().join("t.parquet")).expect("there");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        assert_eq!(reader.num_row_groups(), 2);
        let last = reader.into_iter().last().expect("rows").expect("a row");
        let fields: Vec<Field> = last.get_column_iter().map(|(_, field)| field.clone()).collect();
        let n = rows - 1;
        assert_eq!(
            fields[1..],
            [Field::ULong(u64::MAX - n), Field::Double(n as f64), Field::Bool(n.is_multiple_of(2))]
        );
    }

    #[test]
    fn csv_quotes_what_it_must() {
        let folder = tempfile::tempdir().expect("a folder");
        let columns = [Column::new("a,b", Kind::Text), Column::new("n", Kind::Number)];
        let mut table = Table::create(folder.path(), "t", Format::Csv, &columns).expect("begun");
        table.row(&[Value::Text("say \"x\""), Value::Number(0.1)]).expect("written");
        table.row(&[Value::Missing, Value::Missing]).expect("written");
        table.row(&[Value::Text(""), Value::Count(7)]).expect("written");
        table.finish().expect("whole");
        let text = std::fs::read_to_string(folder.path().join("t.csv")).expect("there");
        assert_eq!(text, "\"a,b\",n\n\"say \"\"x\"\"\",0.1\n,\n\"\",7\n");
    }
}
