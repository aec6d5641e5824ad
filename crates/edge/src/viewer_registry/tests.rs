//! Tests of the registry, without sockets.

use super::*;
use crate::session_stats::SessionStats;

fn registry(workers: usize) -> ViewerRegistry {
    let log = Arc::new(Log::silent());
    let hooks = Hooks::new(thalweg_model::WebhooksConfig::default(), Vec::new(), Arc::clone(&log), 0);
    ViewerRegistry::new(workers, None, Arc::new(hooks), log)
}

fn who(protocol: Protocol) -> Who {
    Who {
        stream: "live/cam".into(),
        protocol,
        is_tls: false,
        address: [192, 0, 2, 1].into(),
        agent: "x".into(),
        subject: None,
        began_ms: 1_000,
    }
}

fn enter(registry: &ViewerRegistry, stats: &mut SessionStats, number: u64, protocol: Protocol) {
    registry.enter(number, &LimitsConfig::default(), || who(protocol)).expect("room");
    stats.open(number, None, "live/cam", [192, 0, 2, 1].into(), 1_000);
}

fn hand(stats: &mut SessionStats, registry: &ViewerRegistry, now_ms: u64) -> Vec<u64> {
    let (updates, fetched) = stats.hand_over(now_ms, 30_000);
    registry.update(updates, fetched)
}

#[test]
fn a_viewer_on_two_workers_is_one() {
    let registry = registry(2);
    let mut workers = [SessionStats::default(), SessionStats::default()];
    for worker in &mut workers {
        enter(&registry, worker, 7, Protocol::Hls);
        worker.count(7, 1_500, |update| update.bytes += 10);
        worker.media(7, 1_700, None, None);
    }
    for worker in &mut workers {
        hand(worker, &registry, 2_000);
    }
    let viewers = registry.page(Some("live/cam"), None, 9).viewers;
    assert_eq!((viewers.len(), viewers[0].bytes, viewers[0].segments), (1, 20, 2));
    assert_eq!(viewers[0].first_media_after_ms, Some(700));
    registry.expire(31_700, 30_000);
    assert_eq!(registry.count(), 1);
    registry.expire(31_701, 30_000);
    assert!(registry.count() == 0 && registry.seen.load(Ordering::Relaxed) == 1);
    // A worker that counted one more request meanwhile learns that the viewer has to enter again.
    workers[0].count(7, 31_600, |update| update.requests += 1);
    assert_eq!(hand(&mut workers[0], &registry, 31_800), [7]);
}

#[test]
fn a_stall_is_seen_though_workers_report_segments_out_of_order() {
    let registry = registry(2);
    let mut workers = [SessionStats::default(), SessionStats::default()];
    for (at, done_ms) in [1_000, 3_000, 8_000, 8_500].into_iter().enumerate() {
        let worker = &mut workers[at % 2];
        enter(&registry, worker, 7, Protocol::Hls);
        let published_ms = at as u64 * 2_000;
        let fetched = Fetched { asked_ms: published_ms + 100, done_ms, published_ms, duration_ms: 2_000 };
        worker.media(7, done_ms, None, Some(fetched));
    }
    for worker in workers.iter_mut().rev() {
        hand(worker, &registry, 9_000);
    }
    for (now_ms, stalls, stalled_ms, left) in [(10_499, 0, 0, 2), (10_500, 1, 3_000, 1)] {
        registry.expire(now_ms, 30_000);
        let state = registry.state();
        let entry = &state.viewers[&7];
        let playout = &entry.viewer.playout;
        assert_eq!((playout.stalls, playout.stalled_ms, entry.fetched.len()), (stalls, stalled_ms, left));
    }
    registry.close(11_000);
    assert_eq!((registry.stalls.load(Ordering::Relaxed), registry.stalled_ms.load(Ordering::Relaxed)), (1, 3_000));
}

#[test]
fn a_live_viewer_goes_with_its_response_and_may_be_kicked() {
    let registry = registry(1);
    let mut worker = SessionStats::default();
    for number in [1, 2] {
        enter(&registry, &mut worker, number, Protocol::Flv);
    }
    hand(&mut worker, &registry, 900_000);
    worker.count(1, 900_000, |update| update.left = Some(Left::Stalled));
    hand(&mut worker, &registry, 900_000);
    assert_eq!((registry.count(), worker.viewers()), (1, 1));
    assert!(registry.kick("2") && !registry.kick("2") && !registry.kick("x"));
    assert_eq!((registry.kicked(0), registry.kicked(0)), (vec![2], vec![]));
    let left = Left::ALL.map(|left| registry.left[left as usize].load(Ordering::Relaxed));
    assert_eq!(left, [0, 0, 1, 0, 1, 0], "stalled, and kicked");
}

#[test]
fn viewers_are_bounded_in_all_and_for_each_address() {
    let registry = registry(1);
    let limits = LimitsConfig { viewers: 5, viewers_per_address: 3, ..LimitsConfig::default() };
    let from = |last: u8| Who { address: [192, 0, 2, last].into(), ..who(Protocol::Hls) };
    let enter = |number: u64, last: u8| registry.enter(number, &limits, || from(last));
    assert_eq!([1, 2, 3, 4].map(|number| enter(number, 1)), [Ok(()), Ok(()), Ok(()), Err(Full::Address)]);
    assert_eq!([5, 6, 7].map(|number| enter(number, 2)), [Ok(()), Ok(()), Err(Full::All)]);
    assert_eq!(enter(3, 1), Ok(()), "it is counted already");
    assert!(registry.kick("1"));
    assert_eq!((enter(8, 1), enter(9, 2)), (Ok(()), Err(Full::All)));
    // All addresses of an IPv6 network of 64 bits are one.
    let from = |last: u8| Who { address: format!("2001:db8::{last:x}").parse().expect("one"), ..who(Protocol::Hls) };
    let limits = LimitsConfig { viewers: 50, ..limits };
    let entered = (10..20).filter(|&number| registry.enter(number, &limits, || from(number as u8)).is_ok()).count();
    assert_eq!(entered, 3);
}

#[test]
fn pages_hold_each_viewer_once() {
    let registry = registry(1);
    for number in 1..=10 {
        let stream = if number % 2 == 0 { "live/even" } else { "live/odd" };
        let who = || Who { stream: stream.into(), ..who(Protocol::Hls) };
        registry.enter(number, &LimitsConfig::default(), who).expect("room");
    }
    for (stream, wanted) in [(None, (1..=10).collect::<Vec<_>>()), (Some("live/odd"), vec![1, 3, 5, 7, 9])] {
        let (mut after, mut got, mut pages) = (None, Vec::new(), 0);
        loop {
            let page = registry.page(stream, after, 2);
            assert_eq!(page.total, wanted.len() as u64);
            got.extend(page.viewers.iter().map(|viewer| viewer.id));
            pages += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((got.len(), pages), (wanted.len(), wanted.len().div_ceil(2)));
        assert_eq!(got, wanted);
    }
}
