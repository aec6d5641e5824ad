//! What runs an arm: a lab kernel in virtual time, or this host's kernel in real time.

use crate::kernel::Kernel;

/// What runs an arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    /// A lab kernel, in virtual time.
    Virtual(Kernel),
    /// This host's kernel, in real time.
    Live {
        /// The kernel's release, as uname(2) has it.
        release: String,
    },
}

impl Engine {
    /// This host's kernel.
    pub fn live() -> Self {
        Self::Live { release: rustix::system::uname().release().to_string_lossy().into_owned() }
    }

    /// Release of the kernel.
    pub fn release(&self) -> &str {
        match self {
            Self::Virtual(kernel) => &kernel.release,
            Self::Live { release } => release,
        }
    }

    /// What tells its results from those of others.
    pub fn id(&self) -> String {
        match self {
            Self::Virtual(kernel) => kernel.id.clone(),
            Self::Live { release } => format!("live {release}"),
        }
    }

    /// Its name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Virtual(_) => "virtual",
            Self::Live { .. } => "live",
        }
    }

    /// Whether it runs in real time.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Live { .. })
    }
}
