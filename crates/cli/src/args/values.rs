//! Values that several commands take.

use thalweg_lab::Part;
use thalweg_model::since::Release;

pub(crate) fn release(text: &str) -> Result<Release, String> {
    thalweg_model::since::release(text)
        .ok_or_else(|| "write it as MAJOR.MINOR, such as 6.12; uname -r prints it".to_owned())
}

pub(crate) fn part(text: &str) -> Result<Part, String> {
    let numbers = text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    match numbers {
        Some((index, of)) if index >= 1 && index <= of => Ok(Part { index, of }),
        _ => Err("write it as I/N with I from 1 to N, such as 2/8".to_owned()),
    }
}
