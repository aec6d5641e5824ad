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
mod intervals;
mod lab;
mod live_path;
mod load;
mod many;
mod page;
mod sparkline;
mod stream_load;
mod topics_load;
mod totals;
mod transactions;
mod tune;
mod udp_train;

pub use compare::compare;
pub use diagnose::{diagnose, diagnose_capture, diagnose_flow};
pub use fix::fix;
pub use get::get;
pub use intervals::intervals;
pub use lab::lab;
pub use live_path::{live_hosts, live_path, live_path_line};
pub use load::load;
pub use many::diagnose_many;
pub use stream_load::{stream_load, stream_load_head, stream_load_rows, stream_load_summary};
pub use topics_load::topics_load;
pub use transactions::transactions;
pub use tune::{tune_plan, tune_show};
pub use udp_train::udp_train;
