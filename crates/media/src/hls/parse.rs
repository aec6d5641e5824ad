//! Playlists out of text, this server's and others'.

use super::parse_error::ParseError;
use super::variables::{Definitions, Origin, Variables};
use std::sync::Arc;

/// A playlist of either kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Playlist {
    /// Segments.
    Media(MediaPlaylist),
    /// Other playlists of the same content.
    Multivariant(Vec<Variant>),
}

/// A media playlist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MediaPlaylist {
    /// `EXT-X-VERSION`, 1 without one.
    pub version: u32,
    /// `EXT-X-TARGETDURATION`, in seconds.
    pub target_duration_s: u32,
    /// The first segment's number.
    pub media_sequence: u64,
    /// How many discontinuities have left the playlist.
    pub discontinuity_sequence: u64,
    /// Each segment begins with a keyframe.
    pub independent: bool,
    /// Nothing will be added.
    pub ended: bool,
    /// A duration has a fraction.
    pub fractions: bool,
    /// The segments.
    pub entries: Vec<Entry>,
}

/// A segment in a playlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its address, as it is written.
    pub uri: String,
    /// Its duration, in microseconds, rounded.
    pub duration_us: u64,
    /// `EXT-X-DISCONTINUITY` is before it.
    pub discontinuity: bool,
    /// The address of its initialization section (`EXT-X-MAP`), as it is written.
    pub map: Option<Arc<str>>,
    /// The part of that resource, where it is not all.
    pub map_range: Option<ByteRange>,
    /// The part of the resource at `uri` that is the segment (`EXT-X-BYTERANGE`), where it is not all.
    pub range: Option<ByteRange>,
    /// `METHOD` of the `EXT-X-KEY` that it is encrypted by.
    pub encryption: Option<Arc<str>>,
    /// It is absent (`EXT-X-GAP`): players do not ask for it.
    pub gap: bool,
}

/// A part of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Its first byte, counted from 0.
    pub start: u64,
    /// Bytes.
    pub len: u64,
}

/// A playlist in a multivariant playlist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its address, as it is written.
    pub uri: String,
    /// `BANDWIDTH`, in bits a second.
    pub bandwidth: u64,
    /// Its sound is in playlists of its own: `EXT-X-MEDIA` with a `URI` in the group that its `AUDIO` names.
    pub separate_audio: bool,
}

impl Playlist {
    /// The playlist in `text`. Tags that nothing here needs are passed over.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::parse_from(text, Origin::default()).map(|(playlist, _)| playlist)
    }

    /// The playlist in `text`, whose variables may have values of `origin`, and the variables that it defines.
    ///
    /// # Errors
    /// [`ParseError`].
    pub fn parse_from(text: &str, origin: Origin<'_>) -> Result<(Self, Variables), ParseError> {
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim_end()));
        // Some packagers write attributes behind the tag, which players pass over.
        let is_begin = |line: &str| {
            line.strip_prefix("#EXTM3U").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
        };
        if lines.next().is_none_or(|(_, line)| !is_begin(line)) {
            return Err(ParseError::Begin);
        }
        let mut parser = Parser { definitions: Definitions::new(origin), ..Parser::default() };
        for (at, line) in lines {
            match line.strip_prefix('#') {
                Some(tag) => parser.tag(at, tag)?,
                None if line.is_empty() => {}
                None => parser.uri(at, line)?,
            }
        }
        let variables = std::mem::take(&mut parser.definitions).finish();
        Ok((parser.finish()?, variables))
    }
}

#[derive(Default)]
struct Parser<'a> {
    definitions: Definitions<'a>,
    media: MediaPlaylist,
    variants: Vec<Variant>,
    version: Option<u32>,
    target: Option<u32>,
    sequence: Option<u64>,
    discontinuities: Option<u64>,
    /// Of the segment that follows.
    duration_us: Option<u64>,
    discontinuity: bool,
    /// Its length and first byte; without the latter it follows the segment before it.
    range: Option<(u64, Option<u64>)>,
    /// Of all segments that follow.
    map: Option<Arc<str>>,
    map_range: Option<ByteRange>,
    encryption: Option<Arc<str>>,
    gap: bool,
    /// Of the variant that follows.
    bandwidth: Option<u64>,
    group: Option<String>,
    /// The audio group of each variant.
    groups: Vec<Option<String>>,
    /// Audio groups with playlists of their own.
    renditions: Vec<String>,
}

impl Parser<'_> {
    /// The attribute `wanted` of the list in `value`, variables replaced.
    fn attribute(&mut self, line: usize, value: &str, wanted: &str) -> Result<Option<String>, ParseError> {
        let found = attribute(value, wanted).map(|found| self.definitions.resolve(line, found));
        Ok(found.transpose()?.map(std::borrow::Cow::into_owned))
    }

    fn tag(&mut self, line: usize, tag: &str) -> Result<(), ParseError> {
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        let late = !self.media.entries.is_empty();
        match name {
            "EXT-X-VERSION" => once(&mut self.version, value, line, "EXT-X-VERSION", false),
            "EXT-X-TARGETDURATION" => once(&mut self.target, value, line, "EXT-X-TARGETDURATION", false),
            "EXT-X-MEDIA-SEQUENCE" => once(&mut self.sequence, value, line, "EXT-X-MEDIA-SEQUENCE", late),
            "EXT-X-DISCONTINUITY-SEQUENCE" => {
                let late = late || self.discontinuity;
                once(&mut self.discontinuities, value, line, "EXT-X-DISCONTINUITY-SEQUENCE", late)
            }
            "EXT-X-INDEPENDENT-SEGMENTS" => {
                self.media.independent = true;
                Ok(())
            }
            "EXT-X-ENDLIST" => {
                self.media.ended = true;
                Ok(())
            }
            "EXT-X-DISCONTINUITY" => {
                self.discontinuity = true;
                Ok(())
            }
            "EXT-X-GAP" => {
                self.gap = true;
                Ok(())
            }
            "EXT-X-DEFINE" => self.definitions.define(line, |name| attribute(value, name)),
            "EXT-X-MEDIA" => {
                if attribute(value, "TYPE") == Some("AUDIO") && attribute(value, "URI").is_some() {
                    let group = self.attribute(line, value, "GROUP-ID")?;
                    self.renditions.extend(group);
                }
                Ok(())
            }
            "EXTINF" => {
                let wrong = ParseError::Value { line, tag: "EXTINF" };
                let number = value.split(',').next().unwrap_or_default();
                self.media.fractions |= number.contains('.');
                let seconds = number.parse().ok().filter(|s: &f64| (0.0..1e9).contains(s)).ok_or(wrong)?;
                self.duration_us = Some((seconds * 1e6).round() as u64);
                Ok(())
            }
            "EXT-X-BYTERANGE" => {
                let wrong = ParseError::Value { line, tag: "EXT-X-BYTERANGE" };
                self.range = Some(byte_range(value).ok_or(wrong)?);
                Ok(())
            }
            "EXT-X-MAP" => {
                let wrong = || ParseError::Value { line, tag: "EXT-X-MAP" };
                let uri = self.attribute(line, value, "URI")?.ok_or_else(wrong)?;
                let range = match self.attribute(line, value, "BYTERANGE")?.map(|range| byte_range(&range)) {
                    None => None,
                    Some(Some((len, start))) => Some(ByteRange { start: start.unwrap_or(0), len }),
                    Some(None) => return Err(wrong()),
                };
                (self.map, self.map_range) = (Some(uri.into()), range);
                Ok(())
            }
            "EXT-X-KEY" => {
                let method = attribute(value, "METHOD").ok_or(ParseError::Value { line, tag: "EXT-X-KEY" })?;
                self.encryption = (method != "NONE").then(|| method.into());
                Ok(())
            }
            "EXT-X-STREAM-INF" => {
                let wrong = ParseError::Value { line, tag: "EXT-X-STREAM-INF" };
                let found = attributes(value).find(|(name, _)| *name == "BANDWIDTH");
                self.bandwidth = Some(found.and_then(|(_, value)| value.parse().ok()).ok_or(wrong)?);
                self.group = self.attribute(line, value, "AUDIO")?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn uri(&mut self, line: usize, uri: &str) -> Result<(), ParseError> {
        let uri = self.definitions.resolve(line, uri)?.into_owned();
        if let Some(bandwidth) = self.bandwidth.take() {
            self.variants.push(Variant { uri, bandwidth, separate_audio: false });
            self.groups.push(self.group.take());
            return Ok(());
        }
        if !self.variants.is_empty() {
            return Err(ParseError::Mixed(line));
        }
        let duration_us = self.duration_us.take().ok_or(ParseError::NoDuration(line))?;
        let discontinuity = std::mem::take(&mut self.discontinuity);
        let range = match self.range.take() {
            None => None,
            Some((len, start)) => {
                let before = self.media.entries.last().filter(|entry| entry.uri == uri);
                let follows = || before?.range.map(|range| range.start.saturating_add(range.len));
                let wrong = ParseError::Value { line, tag: "EXT-X-BYTERANGE" };
                Some(ByteRange { start: start.or_else(follows).ok_or(wrong)?, len })
            }
        };
        let (map, map_range, encryption) = (self.map.clone(), self.map_range, self.encryption.clone());
        let gap = std::mem::take(&mut self.gap);
        self.media.entries.push(Entry { uri, duration_us, discontinuity, map, map_range, range, encryption, gap });
        Ok(())
    }

    fn finish(mut self) -> Result<Playlist, ParseError> {
        for (variant, group) in self.variants.iter_mut().zip(&self.groups) {
            variant.separate_audio = group.as_ref().is_some_and(|group| self.renditions.contains(group));
        }
        if !self.variants.is_empty() {
            let media = !self.media.entries.is_empty() || self.target.is_some();
            return if media { Err(ParseError::Mixed(0)) } else { Ok(Playlist::Multivariant(self.variants)) };
        }
        Ok(Playlist::Media(MediaPlaylist {
            version: self.version.unwrap_or(1),
            target_duration_s: self.target.ok_or(ParseError::NoTarget)?,
            media_sequence: self.sequence.unwrap_or(0),
            discontinuity_sequence: self.discontinuities.unwrap_or(0),
            ..self.media
        }))
    }
}

fn once<N: std::str::FromStr>(
    place: &mut Option<N>,
    value: &str,
    line: usize,
    tag: &'static str,
    late: bool,
) -> Result<(), ParseError> {
    if late || place.is_some() {
        return Err(ParseError::Place { line, tag });
    }
    *place = Some(value.trim().parse().map_err(|_| ParseError::Value { line, tag })?);
    Ok(())
}

/// `LENGTH[@START]` (§4.3.2.2).
fn byte_range(text: &str) -> Option<(u64, Option<u64>)> {
    match text.trim().split_once('@') {
        Some((len, start)) => Some((len.parse().ok()?, Some(start.parse().ok()?))),
        None => Some((text.trim().parse().ok()?, None)),
    }
}

/// An attribute's value.
fn attribute<'a>(list: &'a str, wanted: &str) -> Option<&'a str> {
    attributes(list).find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// An attribute list's names and values, quotes taken off (§4.2).
fn attributes(mut rest: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, behind) = rest.split_once('=')?;
        let (value, behind) = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => behind.split_at(behind.find(',').unwrap_or(behind.len())),
        };
        rest = behind.strip_prefix(',').unwrap_or(behind);
        Some((name.trim(), value))
    })
}
