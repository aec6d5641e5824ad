//! A short run of what a fuzz target does, on its corpus and on copies of that with a few bytes changed, the same every time.

use std::fs;
use std::path::Path;

/// Changed copies of each input.
const COPIES: u64 = 400;

struct Random(u64);

impl Random {
    /// A number below `limit`. Source: Knuth's MMIX generator.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Hands each input of a target's corpus to `each`, and its copies; returns how many inputs `each` got something out of.
pub(crate) fn run(target: &str, each: impl Fn(&[u8]) -> usize) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut random = Random(1);
    let mut inputs: Vec<_> = fs::read_dir(&folder).expect("the corpus").map(|e| e.expect("an entry").path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 20, "{} inputs in {}", inputs.len(), folder.display());
    let mut fruitful = 0;
    for path in inputs {
        let input = fs::read(&path).expect("an input");
        fruitful += usize::from(each(&input) > 0);
        for _ in 0..COPIES {
            let mut copy = input.clone();
            for _ in 0..=random.below(6) {
                if copy.is_empty() {
                    break;
                }
                let at = random.below(copy.len());
                match random.below(4) {
                    0 => copy.truncate(at),
                    1 => copy.insert(at, random.below(256) as u8),
                    2 => copy[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                    _ => copy[at] ^= 1 << random.below(8),
                }
            }
            each(&copy);
        }
    }
    fruitful
}
