//! A worker's own hold on segments: each is opened in its descriptor table once, when the worker first sends it.

use crate::hub::{Hls, Piece};
use host::segment::OpenSegment;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// A segment, and its file in this thread's table.
#[derive(Debug)]
pub(super) struct OwnPiece {
    pub(super) piece: Arc<Piece>,
    file: OnceCell<Option<OpenSegment>>,
}

impl OwnPiece {
    /// Its file; where that could not be opened the segment is sent from memory.
    pub(super) fn file(&self) -> Option<&OpenSegment> {
        self.file.get_or_init(|| self.piece.segment.open()).as_ref()
    }
}

/// The segments of a stream that the worker has sent.
#[derive(Debug, Default)]
pub(super) struct OwnPieces {
    pieces: Vec<Rc<OwnPiece>>,
}

impl OwnPieces {
    /// The segment of that number, if it is one of the stream's.
    pub(super) fn get(&mut self, sequence: u64, hls: &Hls) -> Option<Rc<OwnPiece>> {
        let piece = hls.piece(sequence)?;
        if let Some(own) = self.pieces.iter().find(|own| Arc::ptr_eq(&own.piece, piece)) {
            return Some(Rc::clone(own));
        }
        let own = Rc::new(OwnPiece { piece: Arc::clone(piece), file: OnceCell::new() });
        self.pieces.push(Rc::clone(&own));
        Some(own)
    }

    /// Lets go of those that nobody is being sent. With many streams the table would be full of them otherwise.
    pub(super) fn rest(&mut self) {
        self.pieces.retain(|own| Rc::strong_count(own) > 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_opened_once_for_as_long_as_it_is_sent() {
        let (pieces, _files): (Vec<_>, Vec<_>) =
            (0..4).map(|number| Piece::new(number, 7, 1_000, &[number as u8; 5_000]).expect("made")).unzip();
        let hls = Hls { pieces: pieces.into_iter().map(Arc::new).collect(), ..Hls::default() };
        let mut own = OwnPieces::default();
        let first = own.get(0, &hls).expect("there");
        assert!(own.get(1, &hls).is_some() && own.get(4, &hls).is_none());
        own.rest();
        assert!(Rc::ptr_eq(&first, &own.get(0, &hls).expect("there")));
        assert!(std::ptr::eq(first.file().expect("opened"), first.file().expect("opened")));
        assert_eq!(own.pieces.len(), 1);
        drop(first);
        own.rest();
        assert!(own.pieces.is_empty());
    }
}
