//! `thalweg load rr` and `thalweg load crr`: requests and responses.

use super::load_agent::admission;
use super::load_stream::failure;
use crate::args::load_transactions::LoadTransactionArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::stop;
use anyhow::anyhow;
use std::process::ExitCode;
use thalweg_iperf::TransactionOptions;
use thalweg_iperf::protocol::exchange::{Exchange, MAX_EXCHANGE};
use thalweg_model::SocketSettings;
use thalweg_units::Bytes;

pub(crate) fn run(connects: bool, args: &LoadTransactionArgs, output: &Output) -> Result<ExitCode, Failure> {
    let least = Exchange::least_request(connects);
    let size = |bytes: Bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX);
    let exchange = Exchange { connects, request: args.request.map_or(least, size), response: size(args.response) };
    if !exchange.is_valid() {
        let text = format!("a request can be from {least} to {MAX_EXCHANGE} bytes, and a response from 1");
        return Err(Failure::user(anyhow!(text)));
    }
    let options = TransactionOptions {
        host: args.host.clone(),
        port: args.port,
        exchange,
        streams: args.streams,
        duration: args.duration.to_duration(),
        settings: SocketSettings {
            congestion: args.congestion.clone(),
            sndbuf: args.window,
            rcvbuf: args.window,
            // A request is not held back behind the acknowledgement of what was sent before.
            nodelay: Some(true),
            ..SocketSettings::default()
        },
    };
    let stop = stop::listen()?;
    let _admission = admission(&args.host, args.port, &args.token, &stop)?;
    let report = thalweg_iperf::transact(&options, &stop).map_err(failure)?;
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::transactions(&report, output.width, output.color))?;
    }
    Ok(if report.transactions > 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
