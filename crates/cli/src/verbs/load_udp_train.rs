//! `thalweg load udp-train`: the bottleneck's rate and buffer.

use super::load_agent::{failure, server};
use crate::args::load_udp_train::LoadUdpTrainArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{progress, stop};
use anyhow::anyhow;
use std::process::ExitCode;
use std::time::Duration;
use thalweg_agent::TrainOptions;
use thalweg_agent::message::{TRAIN_INTERVAL_NS_MAX, TRAIN_NS_MAX, TRAIN_SIZE_MAX, TRAIN_SIZE_MIN};
use thalweg_model::Way;

/// Ethernet, IPv4 and UDP headers, which the rate counts.
const HEADER_BYTES: u64 = 14 + 20 + 8;

pub(crate) fn run(args: &LoadUdpTrainArgs, output: &Output) -> Result<ExitCode, Failure> {
    let size = u32::try_from(args.size.get()).ok().filter(|size| (TRAIN_SIZE_MIN..=TRAIN_SIZE_MAX).contains(size));
    let size_bytes = size.ok_or_else(|| {
        Failure::user(anyhow!("the payload of a packet can be from {TRAIN_SIZE_MIN} to {TRAIN_SIZE_MAX} bytes"))
    })?;
    let interval = match args.rate.map(|rate| rate.bits_per_second()) {
        None => Duration::ZERO,
        Some(0) => return Err(Failure::user(anyhow!("--rate 0 lets nothing through"))),
        Some(bps) => {
            let bytes = u64::from(size_bytes) + HEADER_BYTES + u64::from(args.overhead);
            Duration::from_secs_f64(bytes as f64 * 8.0 / bps as f64)
        }
    };
    let longest = interval.saturating_mul(args.packets);
    if interval.as_nanos() > u128::from(TRAIN_INTERVAL_NS_MAX) || longest.as_nanos() > u128::from(TRAIN_NS_MAX) {
        let problem = anyhow!(
            "a train of {} packets at that rate takes {:.0} s, and 60 s is the most",
            args.packets,
            longest.as_secs_f64()
        );
        return Err(Failure::user(problem).hint("give fewer with --packets, or a higher --rate"));
    }
    let options = TrainOptions {
        server: server(&args.host, args.port, &args.token)?,
        way: if args.reverse { Way::Down } else { Way::Up },
        size_bytes,
        interval,
        packets_max: args.packets,
        trains: args.trains,
        overhead_bytes: args.overhead,
    };
    let stop = stop::listen()?;
    let bar = progress::bar(output, "trains");
    let report = thalweg_agent::udp_train(&options, &stop, &mut |train| bar.set_message(format!("train {train}")));
    bar.finish_and_clear();
    let report = report.map_err(failure)?;
    if output.json {
        output.json_result(&report)?;
    } else {
        output.result(&thalweg_report::terminal::udp_train(&report, output.width, output.color))?;
    }
    let has_arrived = report.losses.lost < report.losses.packets;
    Ok(if has_arrived { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
