//! What was wrong with a capture file, in numbers and in sentences.

/// What could not be read of a capture file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// The file ends within a record.
    pub truncated: bool,
    /// Places where records made no sense and the reader searched for the next that does.
    pub resyncs: u64,
    /// Bytes stepped over in those places.
    pub skipped_bytes: u64,
    /// File offset of the first such place.
    pub first_offset: Option<u64>,
    /// Packets that name an interface the file does not describe.
    pub unknown_interface: u64,
    /// Packets that the capturing program says it lost.
    pub dropped: u64,
    /// Packets that carry no time.
    pub untimed: u64,
    /// How the file is compressed, and why it could not be unpacked to its end.
    pub decompression: Option<(&'static str, String)>,
}

impl Damage {
    pub(crate) fn at(&mut self, offset: u64) {
        self.resyncs += 1;
        self.first_offset.get_or_insert(offset);
    }

    /// One sentence for each kind of damage; none for a sound file.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some((kind, why)) = &self.decompression {
            notes.push(format!(
                "the file's {kind} compression is cut or damaged ({why}); what could be unpacked is what is analysed"
            ));
        } else if self.truncated {
            notes.push("the file ends within a packet record: it was cut, or its writer was still at work".to_owned());
        }
        if let Some(offset) = self.first_offset {
            notes.push(format!(
                "{} place{} in the file held no valid record (the first at byte {offset}); {} bytes were skipped to find the next one",
                self.resyncs,
                if self.resyncs == 1 { "" } else { "s" },
                self.skipped_bytes
            ));
        }
        if self.unknown_interface > 0 {
            notes.push(format!(
                "{} packets belong to an interface the file does not describe; they were skipped",
                self.unknown_interface
            ));
        }
        if self.dropped > 0 {
            notes.push(format!(
                "the capturing program lost {} packets, as the file says itself: what is missing here was not lost on the path",
                self.dropped
            ));
        }
        if self.untimed > 0 {
            notes.push(format!(
                "{} packets carry no time (simple packet blocks): each is taken to be of the one before it, so what depends on time is not known of them",
                self.untimed
            ));
        }
        notes
    }
}
