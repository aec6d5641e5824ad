//! Programs behind an emulated path in real time: frames between two TUN devices, delayed and dropped as a
//! [`thalweg_path::OneWay`] says.

mod address;
mod busy_poll;
mod capture;
mod carrier;
mod carriers;
mod checksum;
pub mod control;
mod crew;
mod direction;
mod entered;
mod error;
mod frame;
mod frame_pool;
mod handle;
mod lateness;
mod live_path;
mod outside;
mod per_way;
mod program;
mod relays;
mod report;
mod resolver;
mod site;
mod switch_wire;
mod tcp_settings;
mod wire;

pub use address::{Family, far, near};
pub use carriers::Carriers;
pub use direction::{Lost, Progress};
pub use entered::{EnterError, Entered};
pub use error::{LiveError, no_tun};
pub use frame::{Frame, Piece};
pub use handle::Handle;
pub use lateness::Lateness;
pub use live_path::{Asked, End, Ended, LivePath};
pub use per_way::PerWay;
pub use program::Program;
pub use report::{report, switch_verdict, verdict};
pub use switch_wire::{Plug, SwitchProgress, SwitchWire};
pub use thalweg_host::confined::Signal;
pub use wire::Wire;
