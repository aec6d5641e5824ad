//! A finished connection's report, its rank among others, and which reports are kept.

pub(crate) mod facts;
pub(crate) mod failed_flow;
mod life;
mod life_causes;
pub(crate) mod ranking;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod retained;
