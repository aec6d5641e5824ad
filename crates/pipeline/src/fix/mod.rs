//! From what is slow to a proven remedy: of a scenario, which is run as found, or of a capture, to which a path is fitted.

mod capture;
mod considerate;
mod hung;
mod known_path;
mod other_fits;
mod proof;
mod scenario;
mod work;

pub use capture::{CaptureRequest, FixedCapture, capture};
pub use proof::Fixed;
pub use scenario::scenario;
