//! `diagnose --live`: this host's own connections, from its packets or from samples of its sockets.

mod packets;
mod sockets;

pub(crate) use packets::watch;
