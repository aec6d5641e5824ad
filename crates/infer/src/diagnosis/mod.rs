//! Facts of a direction, judged by rules and ranked.

pub(crate) mod facts;
pub(crate) mod finding;
pub(crate) mod gain;
pub(crate) mod loss_cost;
pub(crate) mod no_cause;
pub(crate) mod ranking;
pub(crate) mod rules;
