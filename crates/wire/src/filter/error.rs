//! What is wrong with a filter, where, and what to write instead.

use std::fmt;

/// A filter that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// The filter as it was typed.
    pub text: String,
    /// Where the trouble begins, in characters from 0.
    pub at: usize,
    /// What is wrong there.
    pub problem: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for FilterError {
    /// The problem, and the filter with a mark below the place; not the hint.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the filter is wrong: {}", self.problem)?;
        if self.text.contains('\n') || self.text.chars().count() > 160 {
            return write!(f, " (at character {})", self.at + 1);
        }
        write!(f, "\n  {}\n  {:>2$}", self.text, '^', self.at + 1)
    }
}

impl std::error::Error for FilterError {}
