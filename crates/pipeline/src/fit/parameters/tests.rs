//! Tests of a model's parameters as a scenario.

use super::*;
use thalweg_model::{Loss, Queue, Workload};

pub(crate) fn parameters(loss_model: LossModel) -> Parameters {
    let buffer = |bytes: f64| Buffer { bytes, fixed: false, origin: Origin::Assumed };
    Parameters {
        loss_model,
        direction: Way::Down,
        tap: Side::Server,
        rtt_s: 0.0357,
        rate_bps: 49_876_543.0,
        rate_origin: Origin::Measured,
        queue_bytes: 151_400.0,
        queue_origin: Origin::Calibrated,
        loss: 0.002_345_6,
        burst_packets: 4.0,
        jitter_s: 0.001,
        policer: Some((10e6, 30_000.0)).filter(|_| loss_model == LossModel::Policer),
        mtu: 1500,
        receive: buffer(6e6),
        send: buffer(4e6),
        first_window: 64_256,
        initcwnd: Some(10),
        clamp: Some(40.0),
        pacing_bps: Some(8.4e6),
        congestion: "cubic",
        congestion_origin: Origin::Assumed,
        window_scaling: true,
        sack: true,
        timestamps: true,
        amount: Amount::Seconds(2.5),
    }
}

#[test]
fn every_model_reads_back_as_it_was_written() {
    for model in [LossModel::Queue, LossModel::Random, LossModel::Bursts, LossModel::Policer] {
        let scenario = parameters(model).scenario("fitted").unwrap_or_else(|error| panic!("{}: {error}", model.name()));
        let path = &scenario.arms[0].experiment.path;
        assert_eq!(path.rtt(), Span::from_micros(35_700), "{}", model.name());
        assert_eq!(path.down.rate, Some(Rate::from_bits_per_second(49_880_000)), "four digits");
        assert_eq!(path.down.queue, Queue::Bytes(Bytes::new(151_400)));
        assert_eq!(path.up.rate, None, "acknowledgements meet no bottleneck");
        let lost = match (&path.down.loss, model) {
            (Loss::None, LossModel::Queue | LossModel::Policer) => true,
            (Loss::Random(chance), LossModel::Random) => (chance.probability.get() - 0.002_346).abs() < 1e-9,
            // In the long run p / (p + r) is lost.
            (Loss::GilbertElliott { p, r, .. }, LossModel::Bursts) => {
                (p.get() / (p.get() + r.get()) - 0.002_345_6).abs() < 1e-5 && (r.get() - 0.25).abs() < 1e-9
            }
            _ => false,
        };
        assert!(lost, "{}: {:?}", model.name(), path.down.loss);
        assert_eq!(path.down.policer.is_some(), model == LossModel::Policer);
    }
}

#[test]
fn a_buffer_that_a_program_fixed_is_an_option_of_its_socket() {
    let mut fixed = parameters(LossModel::Queue);
    fixed.receive = Buffer { bytes: 400_000.0, fixed: true, origin: Origin::Calibrated };
    fixed.direction = Way::Up;
    let scenario = fixed.scenario("fitted").expect("it reads back");
    let experiment = &scenario.arms[0].experiment;
    assert_eq!(experiment.server.socket.rcvbuf, Some(Bytes::new(200_000)));
    assert!(!experiment.server.sysctl.contains_key("net.ipv4.tcp_rmem"));
    assert_eq!(experiment.client.route.initcwnd, Some(10));
    let Workload::Stream(stream) = &experiment.workload else { panic!("a stream") };
    assert_eq!((stream.direction, stream.amount), (Way::Up, thalweg_model::Amount::Seconds(Span::from_millis(2500))));
}

#[test]
fn what_the_handshake_left_out_is_off() {
    let mut old = parameters(LossModel::Random);
    (old.window_scaling, old.sack, old.timestamps) = (false, false, false);
    let scenario = old.scenario("fitted").expect("it reads back");
    for host in [&scenario.arms[0].experiment.client, &scenario.arms[0].experiment.server] {
        for name in ["window_scaling", "sack", "timestamps"] {
            assert_eq!(host.sysctl.get(&format!("net.ipv4.tcp_{name}")).map(String::as_str), Some("0"), "{name}");
        }
    }
}
