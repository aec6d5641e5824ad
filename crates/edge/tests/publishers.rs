//! Publishers that send too much, too fast, or what nobody sends: they are cut off, by name, and nobody else notices.

mod common;

use common::{Client, Encoder, FPS, eventually, message, serve_logged, shaken};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use thalweg_media::{AvcConfig, TagKind};
use thalweg_model::LogConfig;

#[test]
fn who_sends_more_than_it_may_is_cut_off() {
    for (limits, size, pictures, why) in [
        ("publish_bitrate = '8Mbit'", 50_000, 200, "the publisher sends more than limits.publish_bitrate"),
        ("gop = '500ms'", 1_000, 24, "the video has no keyframe for longer than limits.gop"),
        ("gop_bytes = '100kB'", 10_000, 24, "the video has no keyframe for longer than limits.gop"),
    ] {
        let (server, seen) = serve_logged(&format!("[limits]\n{limits}"), LogConfig::default());
        let rtmp = server.addresses.rtmp[0];
        let mut good = Encoder::publish(rtmp, "good").expect("published");
        let mut bad = Encoder::publish(rtmp, "bad").expect("published");
        good.pictures(0, 8, 1_000);
        // It may be cut off while it sends.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bad.pictures(1, pictures, size)));
        let line = format!("unpublish stream=live/bad why=\"{why}");
        eventually(|| seen.text().contains(&line).then_some(()));
        good.pictures(8, 12, 1_000);
        let mut client = Client::connect(server.addresses.http[0]);
        client.write("GET /live/good.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head().status, 200);
        assert!(!seen.text().contains("stream=live/good why"), "{}", seen.text());
        server.drain().expect("drained");
    }
    // Under its limits it goes on: one keyframe in a second, and as many bytes as four seconds may have.
    let limits = "[limits]\npublish_bitrate = '8Mbit'\ngop = '1s'\ngop_bytes = '30kB'";
    let (server, seen) = serve_logged(limits, LogConfig::default());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 10 * FPS, 1_000);
    std::thread::sleep(Duration::from_millis(200));
    assert!(!seen.text().contains("unpublish"), "{}", seen.text());
    encoder.end();
    server.drain().expect("drained");
}

#[test]
fn a_track_of_which_nothing_can_be_taken_ends_its_publisher() {
    // What is wrong with it: the tag that comes again and again, with what else is sent.
    let key = b"\x17\x01\0\0\0\0\0\0\x02\x65x";
    let start_codes = b"\x17\x01\0\0\0\0\0\0\x01\x65x";
    for (kind, payload, is_configured, why) in [
        (
            TagKind::Video,
            &key[..],
            false,
            "no video could be taken for longer than limits.publish_silence: its configuration",
        ),
        (
            TagKind::Audio,
            b"\xaf\x01abc",
            false,
            "no sound could be taken for longer than limits.publish_silence: its configuration",
        ),
        (
            TagKind::Video,
            start_codes,
            true,
            "no video could be taken for longer than limits.publish_silence: an access unit",
        ),
        (
            TagKind::Audio,
            b"\x2fabcdef",
            true,
            "no sound could be taken for longer than limits.publish_silence: a frame of MP3",
        ),
    ] {
        let (server, seen) = serve_logged("[limits]\npublish_silence = '500ms'", LogConfig::default());
        let rtmp = server.addresses.rtmp[0];
        let publish = if is_configured { Encoder::publish_in } else { Encoder::publish_bare };
        let mut bad = publish(rtmp, "live", "bad").expect("published");
        let begun = Instant::now();
        let mut at_ms = 0;
        // The other track is well: the publisher is not silent.
        let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
        let avc = [b"\x17\0\0\0\0", &avc.record[..]].concat();
        let (other, well) = match kind {
            TagKind::Video => (TagKind::Audio, [&b"\xaf\0\x12\x10"[..], b"\xaf\x01abc"]),
            _ => (TagKind::Video, [&avc[..], key]),
        };
        bad.send(other, 0, well[0]);
        let sends = std::panic::AssertUnwindSafe(|| {
            while begun.elapsed() < Duration::from_secs(10) {
                bad.send(kind, at_ms, payload);
                bad.send(other, at_ms, well[1]);
                at_ms += 40;
                std::thread::sleep(Duration::from_millis(40));
            }
        });
        assert!(std::panic::catch_unwind(sends).is_err(), "it is cut off: {why}");
        eventually(|| seen.text().contains(&format!("unpublish stream=live/bad why=\"{why}")).then_some(()));
        server.drain().expect("drained");
    }
}

#[test]
fn sound_behind_video_that_has_stopped_is_bounded_as_a_group_of_pictures() {
    let (server, seen) = serve_logged("[limits]\ngop = '2s'", LogConfig::default());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2, 1_000);
    (4..190).for_each(|at| encoder.send(TagKind::Audio, at * 21, b"\xaf\x01abc"));
    let why = "the video has no keyframe for longer than limits.gop or in more than limits.gop_bytes";
    assert_eq!(encoder.reason(), why);
    // Sound without video has no such bound.
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "sound").expect("published");
    (0..190).for_each(|at| encoder.send(TagKind::Audio, at * 21, b"\xaf\x01abc"));
    encoder.end();
    eventually(|| seen.text().contains("stream=live/sound why=\"the publisher ended the stream\"").then_some(()));
    server.drain().expect("drained");
}

#[test]
fn sound_that_is_ahead_ends_no_group_of_pictures() {
    let (server, seen) = serve_logged("[limits]\ngop = '1s'", LogConfig::default());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    // Groups of a second, which is what is allowed, and sound that is 400 ms ahead.
    for number in 0..4 * FPS {
        let (head, nal) = if number % FPS == 0 { (0x17, 0x65) } else { (0x27, 0x41) };
        encoder.send(TagKind::Audio, number * 1_000 / FPS + 400, b"\xaf\x01abc");
        encoder.send(TagKind::Video, number * 1_000 / FPS, &[head, 1, 0, 0, 0, 0, 0, 0, 2, nal, 7]);
    }
    encoder.end();
    eventually(|| seen.text().contains("stream=live/cam why=\"the publisher ended the stream\"").then_some(()));
    server.drain().expect("drained");
}

#[test]
fn names_are_decoded_as_a_viewers_path_is_and_others_are_logged() {
    let (server, seen) = serve_logged("[hls]\ntarget = '1s'", LogConfig::default());
    let rtmp = server.addresses.rtmp[0];
    let mut encoder = Encoder::publish(rtmp, "my%20cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(server.addresses.http[0]);
    let entry = eventually(|| Some(client.get("/live/my%20cam.m3u8")).filter(|answer| answer.status == 200));
    assert_eq!(client.get(&format!("/live/{}", entry.text().lines().last().expect("a URI"))).status, 200);
    for name in ["", "a%2fb"] {
        assert_eq!(Encoder::publish(rtmp, name).err().as_deref(), Some("NetStream.Publish.Rejected"), "{name}");
    }
    for stream in ["live/", "live/a%2fb"] {
        let line = format!("publish-refused stream={stream} address=");
        eventually(|| seen.text().contains(&line).then_some(()));
    }
    encoder.end();
    server.drain().expect("drained");
}

#[test]
fn a_connection_past_the_last_one_has_a_log_line() {
    // A proxy's connections do not count for its address.
    let text = "trusted_proxies = ['127.0.0.1']\n[limits]\nhead_time = '60s'";
    let (server, seen) = serve_logged(text, LogConfig::default());
    let rtmp = server.addresses.rtmp[0];
    let crowd: Vec<TcpStream> = (0..4_097).map(|_| TcpStream::connect(rtmp).expect("connected")).collect();
    let why = "publisher-closed address=127.0.0.1:";
    let lines = eventually(|| Some(seen.text()).filter(|text| text.contains(why)));
    assert!(lines.contains("why=\"the server has as many publishers' connections as it takes\""), "{lines}");
    drop(crowd);
    eventually(|| Encoder::publish(rtmp, "cam").ok());
    server.drain().expect("drained");
}

#[test]
fn a_stream_that_is_over_gives_way_to_another() {
    let (server, _) = serve_logged("[limits]\nstreams = 1\npublish_return = '100ms'", LogConfig::default());
    let rtmp = server.addresses.rtmp[0];
    let first = Encoder::publish(rtmp, "a").expect("published");
    assert!(Encoder::publish(rtmp, "b").is_err(), "the first is live");
    first.end();
    // Sooner than what is over is forgotten by itself.
    eventually(|| Encoder::publish(rtmp, "b").ok());
    server.drain().expect("drained");
}

#[test]
fn who_is_refused_and_stays_is_closed_for_that_reason() {
    let text = "[auth]\npublish_key = 'the+right/key'\n[limits]\npublish_silence = '300ms'";
    let (server, seen) = serve_logged(text, LogConfig::default());
    let rtmp = server.addresses.rtmp[0];
    for key in ["the+right/key", "the%2Bright%2Fkey"] {
        let published = Encoder::publish(rtmp, &format!("cam-{}?key={key}", key.len()));
        published.unwrap_or_else(|why| panic!("{key}: {why}")).end();
    }
    let (refused, _) = Encoder::ask(rtmp, "live", "cam?key=another-key");
    let line = "why=\"the publisher had no stream to publish for longer than limits.publish_silence\"";
    eventually(|| {
        seen.text().lines().any(|text| text.contains("publisher-closed") && text.contains(line)).then_some(())
    });
    drop(refused);
    // A name of more bytes than a message may have is refused with a line as well.
    assert!(Encoder::publish(rtmp, &"a".repeat(3_000)).is_err());
    eventually(|| seen.text().contains("publish-refused stream=\"\" address=127.0.0.1:").then_some(()));
    server.drain().expect("drained");
}

#[test]
fn one_address_does_not_keep_others_from_publishing() {
    for (limits, most) in [("per_address = 5", 5), ("", 1_024)] {
        let text = format!("[limits]\nhead_time = '60s'\n{limits}");
        let (server, seen) = serve_logged(&text, LogConfig::default());
        let rtmp = server.addresses.rtmp[0];
        let mut crowd: Vec<TcpStream> = (0..most).map(|_| TcpStream::connect(rtmp).expect("connected")).collect();
        crowd.push(TcpStream::connect(rtmp).expect("connected"));
        let why = "why=\"its address has as many publishers' connections as limits.per_address and the server allow\"";
        eventually(|| seen.text().contains(why).then_some(()));
        assert_eq!(seen.text().matches("publisher-closed").count(), 1, "{}", seen.text());
        drop(crowd);
        eventually(|| Encoder::publish(rtmp, "cam").ok());
        server.drain().expect("drained");
    }
}

#[test]
fn what_no_encoder_sends_ends_its_connection_alone() {
    let (server, _) = serve_logged("[limits]\nhead_time = '60s'", LogConfig::default());
    let rtmp = server.addresses.rtmp[0];
    let mut encoder = Encoder::publish(rtmp, "cam").expect("published");
    encoder.pictures(0, 2, 1_000);
    let connect = b"\x02\0\x07connect\0\x3f\xf0\0\0\0\0\0\0";
    let deep = [&connect[..], &b"\x03\0\x01a".repeat(100_000)].concat();
    let wide = [&connect[..], b"\x0a\xff\xff\xff\xff", &[5; 1_000_000]].concat();
    let long_name = [&connect[..], b"\x0c\xff\xff\xff\xff", &[b'x'; 1_000]].concat();
    let chunk = |size: u32| message(1, 0, &size.to_be_bytes());
    let huge = [&chunk(0x7fff_ffff)[..], &[3, 0, 0, 0, 0xff, 0xff, 0xff, 20, 0, 0, 0, 0], &[0; 100_000]].concat();
    // Each of many chunk streams begins a long message and ends none.
    let held: Vec<u8> =
        (3..64).flat_map(|id| [&[id, 0, 0, 0, 0x7f, 0xff, 0xff, 9, 1, 0, 0, 0][..], &[0; 128]].concat()).collect();
    let held = [&chunk(128)[..], &held.repeat(3_000)].concat();
    for (name, bytes) in [
        ("objects in objects", message(20, 0, &deep)),
        ("an array of four thousand millions", message(20, 0, &wide)),
        ("a text of four thousand millions", message(20, 0, &long_name)),
        ("a message of 16 MB", huge),
        ("messages that never end", held),
        ("chunks of nothing", chunk(0)),
        ("a chunk stream without a header", vec![0xc5; 1_000]),
    ] {
        let begun = Instant::now();
        let mut socket = shaken(rtmp);
        // It may be closed before all is sent.
        let _ = socket.write_all(&bytes);
        let mut rest = Vec::new();
        let ended = socket.read_to_end(&mut rest);
        let is_reset = ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || is_reset, "{name}: {ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{name}");
    }
    encoder.pictures(2, 4, 1_000);
    let statistics = Client::connect(server.addresses.api[0]).get("/api/statistics");
    let statistics: serde_json::Value = serde_json::from_str(statistics.text()).expect("JSON");
    assert_eq!(statistics["streams"], 1);
    encoder.end();
    server.drain().expect("drained");
}
