//! The pages of the verdicts, one for each code in `docs/verdicts`: what `thalweg explain` prints.

use thalweg_model::{Code, CodePage};

/// A part of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its heading, one of [`TITLES`].
    pub title: &'static str,
    /// Its text in one line, without marks.
    pub body: String,
}

/// The headings of every page, in their order.
pub const TITLES: [&str; 6] =
    ["What it means", "Why it is slow", "Evidence", "How to confirm", "What to set", "Source"];

/// The page of a verdict, as Markdown.
pub const fn page(code: Code) -> &'static str {
    macro_rules! pages {
        ($($code:ident = $file:literal,)*) => {
            match code {
                $(Code::$code => include_str!(concat!("../../../docs/verdicts/", $file, ".md")),)*
            }
        };
    }
    pages! {
        ReceiveWindow = "receive-window",
        WindowScalingMissing = "window-scaling-missing",
        WindowScaleIgnored = "window-scale-ignored",
        ReceiveBufferOverrun = "receive-buffer-overrun",
        ReceiverDrops = "receiver-drops",
        Reader = "reader",
        SendBuffer = "send-buffer",
        InitialWindow = "initial-window",
        RandomLoss = "random-loss",
        CongestionLoss = "congestion-loss",
        Policer = "policer",
        RetransmissionTimeout = "retransmission-timeout",
        PathRate = "path-rate",
        CongestionWindowClamp = "congestion-window-clamp",
        PacingRate = "pacing-rate",
        IdleRestart = "idle-restart",
        DelayedAck = "delayed-ack",
        PathMtuBlackHole = "path-mtu-black-hole",
        SackNotTranslated = "sack-not-translated",
        Reordering = "reordering",
        Bufferbloat = "bufferbloat",
        ApplicationWindow = "application-window",
        Connecting = "connecting",
        AcceptQueue = "accept-queue",
        RequestLost = "request-lost",
        WaitingForServer = "waiting-for-server",
        WaitingForClient = "waiting-for-client",
        Reset = "reset",
        VanishedPeer = "vanished-peer",
        Application = "application",
        NothingToGain = "nothing-to-gain",
        Unknown = "unknown",
    }
}

/// The page as a terminal shows it: headings at the margin, their text below them indented by two columns.
pub fn text(code: Code) -> String {
    let line = |line: &str| match line.trim_start_matches('#') {
        "" => String::new(),
        heading if heading.len() < line.len() => heading.trim().to_owned(),
        line => format!("  {}", plain(line)),
    };
    page(code).lines().map(|of| line(of) + "\n").collect()
}

/// The page as `thalweg explain --json` prints it.
pub fn document(code: Code) -> CodePage {
    let body = |title: &str| {
        sections(code)
            .into_iter()
            .find(|section| section.title == title)
            .map(|section| section.body)
            .unwrap_or_default()
    };
    let [what_it_means, why_it_is_slow, evidence, how_to_confirm, what_to_set, source] = TITLES.map(body);
    CodePage {
        schema: "thalweg.code/1",
        code,
        text: text(code),
        what_it_means,
        why_it_is_slow,
        evidence,
        how_to_confirm,
        what_to_set,
        source,
    }
}

/// The parts of the page.
pub fn sections(code: Code) -> Vec<Section> {
    let mut parts = page(code).split("\n## ");
    // The title.
    parts.next();
    parts
        .map(|part| {
            let (title, body) = part.split_once('\n').unwrap_or((part, ""));
            Section { title: title.trim(), body: plain(&body.split_whitespace().collect::<Vec<_>>().join(" ")) }
        })
        .collect()
}

/// What the verdict means, in one sentence.
pub fn meaning(code: Code) -> String {
    let body = sections(code).into_iter().find(|section| section.title == TITLES[0]).map(|section| section.body);
    let body = body.unwrap_or_default();
    first_sentence(&body).to_owned()
}

/// Up to the first full stop that ends a sentence: one that a space and a capital letter follow.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let end = ends.into_iter().find(|end| text[*end..].trim_start().starts_with(char::is_uppercase));
    &text[..end.unwrap_or(text.len())]
}

/// Text without the marks of code.
fn plain(markdown: &str) -> String {
    markdown.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_is_one_page_for_each_code_and_no_other() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts");
        let files: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder of pages")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        assert_eq!(files, Code::ALL.iter().map(|code| format!("{code}.md")).collect());
        for code in Code::ALL {
            assert_eq!(page(code).lines().next(), Some(format!("# {code}").as_str()), "of another code");
        }
    }

    #[test]
    fn every_page_has_the_same_parts_and_none_is_empty() {
        for code in Code::ALL {
            let sections = sections(code);
            assert_eq!(sections.iter().map(|section| section.title).collect::<Vec<_>>(), TITLES, "{code}");
            assert!(sections.iter().all(|section| section.body.ends_with('.')), "{code}: {sections:?}");
            let meaning = meaning(code);
            assert!(meaning.ends_with('.') && meaning.contains(' '), "{code}: {meaning}");
        }
    }

    #[test]
    fn a_terminal_shows_headings_and_indented_text_without_marks() {
        let text = text(Code::Reader);
        assert!(text.starts_with("reader\n\nWhat it means\n  The receiver's window shrank"), "{text}");
        assert!(
            text.contains("\n\nSource\n  RFC 9293 section 3.8.6.1 (zero-window probing); Linux __tcp_select_window.\n")
        );
        assert!(!text.contains(['`', '#']), "{text}");
    }

    #[test]
    fn a_sentence_ends_where_the_next_begins() {
        assert_eq!(first_sentence("Linux 4.13 and later. Others do not."), "Linux 4.13 and later.");
        assert_eq!(first_sentence("As tcp_input.c has it. It waits"), "As tcp_input.c has it.");
        assert_eq!(first_sentence("One."), "One.");
    }
}
