//! Keys, and the screens they lead to.

use super::*;
use crate::tests::row;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use thalweg_model::{Backlog, ClosedSockets, LimitName, LimitNow, SocketRow, SocketState, TcpMemoryUse};

fn report() -> WatchReport {
    let mut database = row();
    database.id = 8;
    database.process = None;
    database.uid = 999;
    database.local = "[2001:db8::1]:5432".parse().expect("an end");
    database.peer = "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:50000".parse().expect("an end");
    (database.send.rate_bps, database.send.queued_s, database.send.zero_window) = (0.0, None, true);
    database.limit.now = database.limit.now.map(|now| LimitNow { cause: LimitName::Reader, share: 1.0, ..now });
    let mut idle = row();
    idle.id = 9;
    idle.state = SocketState::SynSent;
    idle.process = idle.process.map(|process| thalweg_model::SocketProcess { name: "curl".to_owned(), ..process });
    (idle.send, idle.receive, idle.rtt) = Default::default();
    (idle.limit, idle.retransmissions) = Default::default();
    idle.send.queued_s = Some(0.0);
    WatchReport {
        schema: "thalweg.watch/1".to_owned(),
        at_s: 1e9,
        interval_s: 1.0,
        sockets_total: 3,
        backlog: Backlog {
            queued_bytes: 4 << 20,
            growth_bytes_per_s: 1e6,
            tcp_memory: Some(TcpMemoryUse { used_bytes: 900 << 20, pressure_bytes: 1 << 30, limit_bytes: 2 << 30 }),
            growing: Vec::new(),
            warnings: vec!["TCP takes 900 MiB of 1.00 GiB and grows".to_owned()],
        },
        notes: vec!["1 socket of other users without program".to_owned()],
        sockets: vec![idle, database, row()],
        closed: None,
    }
}

fn view() -> View {
    View::new(Filter::default(), Column::Rate, false, ColumnSet::Overview)
}

fn screen(view: &View, report: &WatchReport, width: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, 26)).expect("a terminal");
    terminal.draw(|frame| crate::draw(frame, report, view, None)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..26).map(line).collect::<Vec<_>>().join("\n")
}

fn ids(view: &View, report: &WatchReport) -> Vec<u64> {
    view.rows(report).map(|row| row.id).collect()
}

#[test]
fn rows_are_sorted_and_the_selection_stays_at_its_socket() {
    let (mut view, mut report) = (view(), report());
    view.update(&report);
    assert_eq!(ids(&view, &report), [7, 8, 9]);
    view.key(Key::Down, &report);
    assert_eq!(view.selected(&report).map(|row| row.id), Some(8));
    // It becomes the fastest, and stays selected.
    report.sockets[1].send.rate_bps = 9e9;
    view.update(&report);
    assert_eq!((ids(&view, &report), view.place()), (vec![8, 7, 9], 0));
    view.key(Key::Character('r'), &report);
    assert_eq!(ids(&view, &report), [9, 7, 8]);
    view.key(Key::End, &report);
    assert_eq!(view.selected(&report).map(|row| row.id), Some(8));
    report.sockets.remove(1);
    view.update(&report);
    assert_eq!(view.selected(&report).map(|row| row.id), Some(7), "its neighbour");
    report.sockets.clear();
    view.update(&report);
    assert!(view.selected(&report).is_none());
    assert!(view.key(Key::Enter, &report) && view.mode() == Mode::List);
    assert!(!view.key(Key::Character('q'), &report));
}

#[test]
fn every_column_sorts_both_ways() {
    let report = report();
    for column in Column::ALL {
        let mut view = View::new(Filter::default(), column, false, ColumnSet::All);
        view.update(&report);
        let forward = ids(&view, &report);
        view.key(Key::Character('r'), &report);
        let mut back = ids(&view, &report);
        back.reverse();
        assert_eq!(forward, back, "{}", column.name());
        assert_eq!(column.name().parse(), Ok(column));
    }
    assert!("rat".parse::<Column>().expect_err("no column").ends_with("hint: did you mean 'rate'?"));
}

#[test]
fn a_filter_is_typed_and_a_wrong_one_is_said() {
    let (mut view, report) = (view(), report());
    view.update(&report);
    let press = |view: &mut View, key: Key| assert!(view.key(key, &report));
    let typed = |view: &mut View, text: &str| text.chars().for_each(|one| press(view, Key::Character(one)));
    typed(&mut view, "/prot:443");
    view.key(Key::Enter, &report);
    assert_eq!(view.mode(), Mode::Filter);
    assert!(screen(&view, &report, 160).contains("a filter has no 'prot'; did you mean 'port'?"));
    (0..8).for_each(|_| press(&mut view, Key::Backspace));
    typed(&mut view, "port:443");
    view.key(Key::Enter, &report);
    assert_eq!((view.mode(), ids(&view, &report)), (Mode::List, vec![7, 9]));
    assert_eq!(view.wanted(&report).sockets.len(), 2);
    typed(&mut view, "/x");
    view.key(Key::Escape, &report);
    assert_eq!(view.filter().to_string(), "port:443");
}

#[test]
fn screens() {
    let (mut view, mut report) = (view(), report());
    view.update(&report);
    let mut screens = vec![screen(&view, &report, 160), screen(&view, &report, 80)];
    for key in [Key::Tab, Key::Tab, Key::Tab, Key::Character('?')] {
        view.key(key, &report);
        screens.push(screen(&view, &report, 160));
    }
    view.key(Key::Escape, &report);
    view.key(Key::Enter, &report);
    for second in 1..40 {
        report.at_s += 1.0;
        report.sockets[2].send.in_flight_bytes = 100_000 + second % 7 * 20_000;
        view.update(&report);
    }
    screens.push(screen(&view, &report, 120));
    report.sockets.pop();
    view.update(&report);
    assert!(screen(&view, &report, 120).contains("the socket was closed"));
    insta::assert_snapshot!(screens.join("\n----\n"));
}

#[test]
fn connections_that_ended_stay_for_a_while_and_move_nothing_after_their_interval() {
    let (mut view, mut report) = (view(), report());
    view.keep_closed(10.0);
    let closed = SocketRow { id: 70, state: SocketState::Closed, ..row() };
    let other = SocketRow { id: 71, local: "192.0.2.1:22".parse().expect("an end"), ..closed.clone() };
    report.closed = Some(ClosedSockets { total: 2, missed: 0, sockets: vec![closed, other] });
    view.update(&report);
    view.update(&report);
    assert_eq!(ids(&view, &report), [7, 70, 71, 8, 9]);
    assert!(crate::table::summary(&report, &view).starts_with("3 sockets, 2 closed, sending 240 Mb/s"));
    view.key(Key::Down, &report);
    report.closed = Some(ClosedSockets::default());
    for (after_s, is_there) in [(4.0, true), (10.0, true), (11.0, false)] {
        report.at_s = 1e9 + after_s;
        view.update(&report);
        assert_eq!(view.selected(&report).map(|row| row.id), Some(if is_there { 70 } else { 8 }));
        assert!(crate::table::summary(&report, &view).starts_with("3 sockets, sending 80.0 Mb/s"));
    }
    assert_eq!(ids(&view, &report), [7, 8, 9]);
}

#[test]
fn a_filter_and_json_take_connections_that_ended() {
    let mut report = report();
    let closed = SocketRow { id: 70, state: SocketState::Closed, ..row() };
    let other = SocketRow { id: 71, local: "192.0.2.1:22".parse().expect("an end"), ..closed.clone() };
    report.closed = Some(ClosedSockets { total: 9, missed: 1, sockets: vec![closed, other] });
    for (filter, sockets, ended) in [("port:443", 2, 1), ("state:closed", 0, 2), ("-state:closed", 3, 0)] {
        let mut view = View::new(filter.parse().expect("a filter"), Column::Rate, false, ColumnSet::Overview);
        view.update(&report);
        let wanted = view.wanted(&report);
        let closed = wanted.closed.expect("they are reported");
        assert_eq!((wanted.sockets.len(), closed.sockets.len(), closed.total, closed.missed), (sockets, ended, 9, 1));
    }
}

#[test]
fn the_plain_table() {
    let (mut view, report) = (View::new(Filter::default(), Column::Rate, false, ColumnSet::All), report());
    view.update(&report);
    insta::assert_snapshot!(crate::plain(&report, &view));
}
