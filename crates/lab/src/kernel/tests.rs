//! Tests of finding and building lab kernels that need no build.
