//! What each verb does, one file per verb.

pub(crate) mod diagnose;
pub(crate) mod explain;
pub(crate) mod fix;
pub(crate) mod get;
pub(crate) mod kernel;
pub(crate) mod lab_compare;
pub(crate) mod lab_run;
pub(crate) mod load;
pub(crate) mod load_agent;
pub(crate) mod load_stream;
pub(crate) mod load_topics;
pub(crate) mod load_transactions;
pub(crate) mod load_udp_train;
pub(crate) mod path;
mod path_control;
mod path_hosts;
mod path_program;
pub(crate) mod serve;
pub(crate) mod tune;
pub(crate) mod watch;
