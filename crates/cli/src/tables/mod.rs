//! Tables as CSV and Parquet: what `diagnose --parquet` and `lab run --export` write.

pub(crate) mod export;
mod fact_columns;
pub(crate) mod fleet;
mod flow_columns;
