//! Lists of options, by what a run shows.

use super::{Acknowledgements, Connections, FullQueue, Work, families};
use crate::facts::{AckTiming, Facts};
use thalweg_model::{Change, Code, Handshake, HostReport, Measured, SettingsReport, Side, Way};
use thalweg_units::{Bytes, Rate, Span};

fn settings() -> SettingsReport {
    let host = HostReport {
        sysctl: [("net.ipv4.tcp_rmem", "4096 131072 6291456"), ("net.ipv4.tcp_wmem", "4096 16384 4194304")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..HostReport::default()
    };
    SettingsReport { client: host.clone(), server: host, path: Vec::new() }
}

/// 100 Mb/s and 100 ms: 1.25 MB.
fn facts(settings: &SettingsReport) -> Facts<'_> {
    Facts {
        direction: Way::Down,
        kernel: Some((6, 12)),
        settings,
        fixed_buffers: Vec::new(),
        rtt: Span::from_millis(100),
        path_rate: Some(Rate::from_bits_per_second(100_000_000)),
        measured: Measured::default(),
        handshake: Handshake::default(),
        first_flight: None,
        silence: Span::default(),
        acks_wait: false,
        family: None,
        crept: false,
        ack_timing: AckTiming::default(),
        policer: None,
        bytes: 0,
        ipv6: false,
    }
}

/// The changes of every option that sets `name`, as side and value.
fn options(work: &Work, name: &str) -> Vec<Vec<(Side, String)>> {
    let settings = settings();
    let families = families(&facts(&settings), work, &[], &[]);
    let all = families.into_iter().flat_map(|family| family.options);
    let of = |changes: Vec<Change>| -> Vec<(Side, String)> {
        changes.into_iter().filter(|one| one.setting.name() == name).map(|one| (one.side, one.to)).collect()
    };
    all.map(|one| of(one.changes)).filter(|one| !one.is_empty()).collect()
}

#[test]
fn both_hosts_timers_are_shortened_where_both_send() {
    let work = Work { losses: true, object: Some(Bytes::new(4000)), ..Work::default() };
    let timers = options(&Work { connections: Connections::Kept, ..work }, "rto_min");
    assert_eq!(timers.len(), 8);
    assert_eq!(timers[0], [(Side::Server, "5ms".to_owned())]);
    assert_eq!(timers[4], [(Side::Client, "5ms".to_owned()), (Side::Server, "5ms".to_owned())]);
    let bulk = Work { object: None, ..work };
    assert!(options(&bulk, "rto_min").iter().all(|one| one.len() == 1), "only one host sends");
    assert!(options(&Work { losses: false, ..work }, "rto_min").is_empty(), "nothing is lost");
}

#[test]
fn a_queue_that_is_filled_is_kept_empty_by_pacing_below_the_path() {
    assert!(options(&Work::default(), "max_pacing_rate").is_empty());
    let queue = FullQueue { rate: Rate::from_bits_per_second(80_000_000), cause: Code::CongestionLoss };
    let work = Work { full_queue: Some(queue), ..Work::default() };
    let server = |rates: [&str; 3]| rates.map(|rate| vec![(Side::Server, rate.to_owned())]);
    assert_eq!(options(&work, "max_pacing_rate"), server(["72mbit", "75.2mbit", "77.6mbit"]));
    assert_eq!(options(&Work { senders: 4, ..work }, "max_pacing_rate"), server(["18mbit", "18.8mbit", "19.4mbit"]));
    let policed = Work { policed: Some(Rate::from_bits_per_second(10_000_000)), ..work };
    assert_eq!(
        options(&policed, "max_pacing_rate"),
        server(["9mbit", "9.4mbit", "9.7mbit"]),
        "the policer is the limit"
    );
}

#[test]
fn a_first_flight_is_the_object_or_what_the_queue_holds() {
    let sizes = |work: &Work| -> Vec<u64> {
        let options = options(work, "initcwnd");
        options.into_iter().flatten().map(|(_, to)| to.parse().expect("a number")).collect()
    };
    let work = Work { object: Some(Bytes::new(900_000)), ..Work::default() };
    assert_eq!(sizes(&work), [20, 40, 64, 100]);
    let queue = |bytes: u64| Work { queue: Some(Bytes::new(bytes)), ..work };
    assert_eq!(sizes(&queue(500_000)), [20, 40, 64, 100, 200, 310]);
    assert_eq!(sizes(&queue(2_000_000)), [20, 40, 64, 100, 200, 622, 623, 626]);
}

#[test]
fn timestamps_go_where_acknowledgements_fill_their_direction() {
    assert!(options(&Work::default(), "net.ipv4.tcp_timestamps").is_empty());
    let work = Work { acknowledgements: Acknowledgements::Crowded, ..Work::default() };
    assert_eq!(options(&work, "net.ipv4.tcp_timestamps"), [[(Side::Client, "0".to_owned())]]);
}

#[test]
fn of_several_connections_each_needs_its_part_of_the_buffers() {
    let largest_need = |senders: u64| -> String {
        let options = options(&Work { senders, ..Work::default() }, "net.ipv4.tcp_wmem");
        options.into_iter().flatten().next().map(|(_, to)| to).unwrap_or_default()
    };
    assert_eq!(largest_need(1), "4096 16384 5242880");
    assert_eq!(largest_need(4), "");
}
