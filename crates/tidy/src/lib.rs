//! The rules of the house that the compiler does not check; see `tests/`.
