//! What the targets of `thalweg_watch` do with their input.
#![allow(dead_code)]

use thalweg_watch::{Column, ColumnSet, Filter, Key, View, plain};

/// Any text as a filter of sockets: refused with a hint, or the same again when it is printed.
pub(crate) fn socket_filter(text: &str) -> usize {
    match text.parse::<Filter>() {
        Ok(filter) => {
            assert_eq!(filter.to_string().parse::<Filter>().as_ref(), Ok(&filter));
            1
        }
        Err(error) => {
            assert!(!error.hint.is_empty() && !error.to_string().is_empty());
            0
        }
    }
}

/// Any bytes as a line of a recording: refused, or shown.
pub(crate) fn recording(line: &[u8]) -> usize {
    let Ok(report) = serde_json::from_slice::<thalweg_model::WatchReport>(line) else { return 0 };
    let mut view = View::new(Filter::default(), Column::Rate, false, ColumnSet::All);
    view.update(&report);
    for key in [Key::Down, Key::Character('>'), Key::Enter] {
        view.key(key, &report);
        view.update(&report);
    }
    assert!(plain(&report, &view).chars().all(|one| one == '\n' || !one.is_control()));
    view.wanted(&report).sockets.len()
}
