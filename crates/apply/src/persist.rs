//! Sysctls of confirmed applications in a file of `/etc/sysctl.d`: a block for each application. Source: sysctl.d(5).

use crate::Unwatched;
use crate::error::ApplyError;
use crate::journal::Journal;
use crate::state::State;
use crate::store::Locked;
use crate::target::Target;

impl Journal {
    /// The lines that persist its sysctls.
    fn block(&self) -> Vec<String> {
        let first = format!("# thalweg tune persist {}: {}", self.id, self.purpose.replace('\n', " "));
        let sysctl = |entry: &crate::Entry| match &entry.target {
            Target::Sysctl(name) => Some(format!("{name} = {}", entry.after)),
            Target::Route(_) => None,
        };
        std::iter::once(first).chain(self.entries.iter().filter_map(sysctl)).collect()
    }

    /// A file's text with the block of this application, at its end so that its values hold; what else is in the file stays.
    pub fn persisted_in(&self, text: &str) -> String {
        let mut text = self.removed_from(text).unwrap_or_else(|| text.to_owned());
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text + &self.block().join("\n") + "\n"
    }

    /// A file's text without the block of this application; `None` where it has none. A line that somebody changed stays.
    pub fn removed_from(&self, text: &str) -> Option<String> {
        let block = self.block();
        let mut lines: Vec<&str> = text.lines().collect();
        let first = lines.iter().position(|line| *line == block[0])?;
        let count = lines[first..].iter().take_while(|line| block.iter().any(|own| own == *line)).count();
        lines.drain(first..first + count);
        Some(lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

/// Notes in the journal of a confirmed application the file that is about to get its sysctls, so that an undo takes them out.
///
/// # Errors
/// When there is no such application, or nobody confirmed it.
pub fn note_persisted(id: &str, file: &str, locked: &Locked) -> Result<Journal, ApplyError> {
    let mut journal = locked.store().journal(Some(id))?;
    if journal.state != State::Confirmed {
        return Err(ApplyError::State { id: journal.id, state: journal.state });
    }
    if !journal.persisted.iter().any(|known| known == file) {
        journal.persisted.push(file.to_owned());
        locked.save(&journal, &mut Unwatched)?;
    }
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(id: &str, name: &str, after: &str) -> Journal {
        let entry = |name: &str, after: &str| crate::Entry {
            target: Target::Sysctl(name.to_owned()),
            before: String::new(),
            after: after.to_owned(),
        };
        Journal {
            schema: Journal::SCHEMA.to_owned(),
            id: id.to_owned(),
            purpose: "bulk".to_owned(),
            at_s: 0,
            deadline_s: None,
            boot_id: String::new(),
            namespace: 0,
            state: State::Confirmed,
            entries: vec![entry(name, after), entry("net.ipv4.tcp_sack", "1")],
            notes: Vec::new(),
            persisted: Vec::new(),
        }
    }

    #[test]
    fn each_application_has_its_own_block() {
        let (one, two) = (journal("1", "net.ipv4.tcp_wmem", "1 2 3"), journal("2", "net.ipv4.tcp_ecn", "1"));
        let own = "# by hand\nvm.swappiness = 10";
        let first = one.persisted_in(own);
        assert!(
            first.starts_with(own) && first.ends_with("net.ipv4.tcp_wmem = 1 2 3\nnet.ipv4.tcp_sack = 1\n"),
            "{first}"
        );
        assert_eq!(one.persisted_in(&first), first, "once");
        let both = two.persisted_in(&first);
        assert!(both.starts_with(&first) && both.contains("net.ipv4.tcp_ecn = 1"), "{both}");
        assert_eq!(two.removed_from(&both), Some(first.clone()));
        assert_eq!(one.removed_from(&first).as_deref(), Some("# by hand\nvm.swappiness = 10\n"));
        assert_eq!(one.removed_from(own), None);
        // What somebody changed in the block stays.
        let changed = first.replace("1 2 3", "4 5 6");
        assert!(one.removed_from(&changed).expect("a block").contains("net.ipv4.tcp_wmem = 4 5 6"));
    }
}
