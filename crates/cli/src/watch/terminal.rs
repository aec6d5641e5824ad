//! The screen and its keys.

use super::{Exports, Source};
use crate::failure::Failure;
use anyhow::anyhow;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_watch::{Key, View, draw};

/// How long a signal waits to be seen.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a connection that ended stays on the screen: time to select it.
const CLOSED_SHOWN_S: f64 = 10.0;

/// Shows reports until a key or a signal ends it, `count` refreshes were shown, or a recording is over and a key is pressed.
pub(crate) fn show(
    source: &mut Source,
    view: &mut View,
    exports: &Exports,
    pace: (Duration, Option<u64>),
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut terminal =
        ratatui::try_init().map_err(|error| Failure::host(anyhow!("cannot use this terminal: {error}")))?;
    view.keep_closed(CLOSED_SHOWN_S);
    let result = run(&mut terminal, source, view, exports, pace, stop);
    ratatui::restore();
    result
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    source: &mut Source,
    view: &mut View,
    exports: &Exports,
    (interval, mut left): (Duration, Option<u64>),
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::host(anyhow!("cannot use this terminal: {error}"));
    let mut due = Some(Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        if due.is_some_and(|due| due <= now) && !view.is_paused() {
            if left == Some(0) {
                return Ok(());
            }
            if source.refresh()? {
                left = left.map(|left| left - 1);
                view.update(source.report());
                exports.publish(source);
                due = Some(now + source.pause(interval));
            } else {
                // The end of a recording stays on the screen.
                due = None;
            }
        }
        source.gather();
        let verdict = source.judge(view.detailed());
        terminal.draw(|frame| draw(frame, source.report(), view, verdict.as_ref())).map_err(broken)?;
        let next = due.filter(|_| !view.is_paused());
        let wait = next.map_or(LOOK_EVERY, |due| due.saturating_duration_since(Instant::now())).min(LOOK_EVERY);
        let until = Instant::now() + wait;
        loop {
            if has_hung_up(until) {
                return Ok(());
            }
            if !event::poll(Duration::ZERO).map_err(broken)? {
                if Instant::now() >= until {
                    break;
                }
                continue;
            }
            match event::read().map_err(broken)? {
                Event::Key(key) if key.kind == KeyEventKind::Press => {
                    let is_over = is_interrupt(key) || key_of(key).is_some_and(|key| !view.key(key, source.report()));
                    if is_over {
                        return Ok(());
                    }
                    break;
                }
                Event::Resize(..) => break,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Waits for input until then; whether nobody is at the other end any more. The library that reads keys never returns once the terminal has
/// hung up: that is seen here, before it is asked.
fn has_hung_up(until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let stdin = io::stdin();
    let mut terminal = [PollFd::new(&stdin, PollFlags::IN)];
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut terminal, Some(&left)).is_ok() && terminal[0].revents().intersects(gone)
}

fn is_interrupt(key: KeyEvent) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c')
}

fn key_of(key: KeyEvent) -> Option<Key> {
    Some(match key.code {
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Char(character) if !key.modifiers.contains(KeyModifiers::CONTROL) => Key::Character(character),
        _ => return None,
    })
}
