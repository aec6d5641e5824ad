//! The connections of one process, as a filter.

use crate::failure::Failure;
use anyhow::anyhow;
use std::collections::HashSet;
use thalweg_host::socket_owners::SocketOwners;
use thalweg_host::sockets;

/// Most connections that are named: a filter runs for each packet.
const MOST: usize = 16;

/// A filter for what moves data: an expression, or the number of a process, whose connections are meant that it has now.
pub(crate) fn filter_of(text: &str) -> Result<String, Failure> {
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(text.to_owned()) };
    let connections = sockets::connections().map_err(Failure::host)?;
    let mut owners = SocketOwners::default();
    owners.find(
        connections.iter().map(|connection| connection.inode).filter(|inode| *inode != 0).collect::<HashSet<_>>(),
    );
    let is_its = |inode: u32| owners.of(inode).is_some_and(|process| process.pid == pid);
    let mut all: Vec<_> = connections.iter().filter(|connection| is_its(connection.inode)).collect();
    if all.is_empty() {
        return Err(Failure::user(anyhow!("process {pid} has no connection that can be seen"))
            .hint("another user's process is seen by root only; a filter such as 'port 443' needs no process"));
    }
    // Those that move most.
    all.sort_by_key(|connection| std::cmp::Reverse(moved(connection)));
    let one = |connection: &&sockets::Connection| {
        let (address, port) = connection.remote;
        // IPv4 as it is in packets, also where a socket of IPv6 carries it.
        format!("(port {} and host {} and port {port})", connection.local.1, address.to_canonical())
    };
    Ok(all.iter().take(MOST).map(one).collect::<Vec<_>>().join(" or "))
}

fn moved(connection: &sockets::Connection) -> u64 {
    connection.info.get("tcpi_bytes_acked").saturating_add(connection.info.get("tcpi_bytes_received"))
}
