//! Any bytes behind a section header: the reader ends, and gives packets within the file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let header = wire::pcapng::Writer::new(Vec::new(), "fuzz").and_then(|mut writer| {
        writer.add_interface("eth0", wire::LinkType::ETHERNET, 0)?;
        writer.finish()
    });
    let file = [&header.expect("a vector takes every byte")[..], data].concat();
    let mut capture = wire::Capture::new(file.as_slice()).expect("a section header");
    let mut bytes = 0;
    while let Ok(Some(packet)) = capture.next() {
        bytes += packet.bytes.len();
    }
    assert!(bytes <= file.len());
});
