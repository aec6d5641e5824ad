//! Reports for a terminal: the answer first, then what it rests on.
//!
//! Every function takes the terminal's width in columns and whether it shows colour; without colour there is no escape
//! code in the text. Nothing is wider than the terminal, except commands that must stay whole to be pasted.

mod bars;
mod compare;
mod diagnose;
mod fitted;
mod fix;
mod get;
mod lab;
mod load;
mod page;
mod sparkline;
mod tune;

pub use compare::compare;
pub use diagnose::{diagnose, diagnose_capture, diagnose_flow};
pub use fix::fix;
pub use get::get;
pub use lab::lab;
pub use load::load;
pub use tune::{tune_plan, tune_show};
