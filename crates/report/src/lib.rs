//! What Thalweg found out, as a person, a program or a browser reads it.
//!
//! One room with several doors: [`terminal`] prints the answer first, [`json`] the versioned documents (their schemas are
//! in `docs/schema`), [`html`] one page that needs no network, [`junit`] what CI systems show, and
//! [`comments`] what Wireshark shows; [`verdicts`] are the pages of `docs/verdicts`. Nothing here measures or concludes: a figure that is not
//! in the model's types is not in a report.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]

pub mod comments;
mod facts;
pub mod figures;
mod fit_words;
pub mod html;
pub mod intervals;
pub mod json;
pub mod junit;
pub mod many;
pub mod tables;
pub mod terminal;
pub mod verdicts;
