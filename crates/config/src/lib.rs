//! Reading scenarios and a server's configuration from TOML.
//!
//! Every error names the file, the line and the key, and the nearest key or word there is. Types whose keys are their fields are
//! read by serde ([`deserialize`]); tables that no derived type describes are read key by key ([`section`]).

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]
#![forbid(unsafe_code)]

mod deserialize;
mod node;
mod scenario;
mod section;
mod serve;
mod without_effect;

pub use node::{ConfigError, nearest};
pub use scenario::{RUNS_MAX, parse_scenario};
pub use serve::{FetchSecret, SecretSource, parse_serve, read_serve};
pub use without_effect::without_effect;
