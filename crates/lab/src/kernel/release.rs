//! Kernel releases: their order, and which of them a shorter name stands for.

/// The numbers of a kernel release: `6.12` or `6.12.117`, and `-rc3` of a release that is not out yet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Release {
    numbers: Vec<u32>,
    /// Orders a release candidate before its release.
    candidate: Option<u32>,
}

impl Release {
    /// Reads two or three numbers with dots between them; anything after a `-` that is not `rc` and a number is left out.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (numbers, suffix) = text.split_once('-').map_or((text, None), |(numbers, rest)| (numbers, Some(rest)));
        let numbers: Vec<u32> = numbers.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let candidate = suffix.and_then(|rest| rest.strip_prefix("rc")?.split('-').next()?.parse().ok());
        (2..=3).contains(&numbers.len()).then_some(Self { numbers, candidate })
    }

    /// Whether this name stands for `other`: `6.12` for `6.12.117`, but not `6.1`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.numbers.starts_with(&self.numbers) && self.candidate.is_none_or(|own| other.candidate == Some(own))
    }

    /// Reads the release a source tree's top Makefile sets: `6.12.117`, `6.19.0-rc3`.
    pub(crate) fn of_makefile(makefile: &str) -> Option<String> {
        let value = |name: &str| {
            makefile.lines().take(20).find_map(|line| {
                let (key, value) = line.split_once('=')?;
                (key.trim() == name).then(|| value.trim().to_owned())
            })
        };
        let text = format!(
            "{}.{}.{}{}",
            value("VERSION")?,
            value("PATCHLEVEL")?,
            value("SUBLEVEL")?,
            value("EXTRAVERSION").unwrap_or_default()
        );
        Self::parse(&text).map(|_| text)
    }
}
