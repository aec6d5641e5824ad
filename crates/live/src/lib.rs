//! Programs behind an emulated path in real time: frames between two TUN devices, delayed and dropped as a
//! [`thalweg_path::OneWay`] says.

mod checksum;
mod frame;

pub use frame::{Frame, Piece};
