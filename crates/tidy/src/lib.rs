//! The rules of the house that the compiler does not check; see `tests/`.

#![warn(clippy::too_many_lines, clippy::struct_excessive_bools)]
