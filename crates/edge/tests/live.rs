//! A whole server over real sockets: what is published is played, once and in order, and nobody makes it hold more than it may.

mod common;

use common::{Client, Encoder, FPS, eventually, numbers, serve};
use std::io::Write;
use std::time::{Duration, Instant};
use thalweg_media::flv::FlvReader;
use thalweg_media::hls::{Checker, Playlist};
use thalweg_media::ts::Demuxer;
use thalweg_media::{AvcConfig, TagKind, Track, amf};

/// The media playlist's path and text of a fresh session.
fn session(client: &mut Client, name: &str) -> (String, String) {
    let start = client.get(&format!("/live/{name}.m3u8"));
    assert_eq!(start.status, 200, "{}", start.head);
    let uri = start.text().lines().last().expect("a URI").to_owned();
    let path = format!("/live/{uri}");
    let text = client.get(&path).text().to_owned();
    (path, text)
}

fn uris(text: &str) -> Vec<String> {
    let Ok(Playlist::Media(playlist)) = Playlist::parse(text) else { panic!("a playlist: {text}") };
    playlist.entries.iter().map(|entry| entry.uri.clone()).collect()
}

#[test]
fn every_access_unit_is_played_once_and_in_order() {
    let server = serve("[hls]\ntarget = '1s'\nwindow = 60\n[flv]\ncache = '64MB'\ncache_time = '60s'");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 1, 1_000);
    let http = server.addresses.http[0];
    let mut flv = eventually(|| {
        let mut client = Client::connect(http);
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        (client.head().status == 200).then_some(client)
    });
    let pictures = 10 * FPS + 1;
    let mut all = flv.until(|bytes| numbers(bytes, b's').contains(&0));
    encoder.pictures(1, pictures, 1_000);
    all.extend(flv.until(|bytes| numbers(bytes, b's').last() == Some(&(pictures - 1))));
    let mut reader = FlvReader::new(1 << 20);
    let mut rest: &[u8] = &all;
    let (mut video, mut audio) = (Vec::new(), Vec::new());
    while let Some(tag) = reader.read(&mut rest).expect("FLV") {
        match tag.kind {
            TagKind::Video => {
                video.extend(numbers(&tag.payload, b'#').iter().map(|&number| (number, tag.timestamp_ms)))
            }
            TagKind::Audio => audio.extend(numbers(&tag.payload, b's')),
            TagKind::Script => {}
        }
    }
    assert_eq!(video.iter().map(|found| found.0).collect::<Vec<_>>(), (0..pictures).collect::<Vec<_>>());
    assert_eq!(audio, (0..pictures).collect::<Vec<_>>());
    assert!(video.windows(2).all(|two| two[1].1 - two[0].1 == 1_000 / FPS), "{video:?}");

    encoder.end();
    let mut client = Client::connect(http);
    let (path, text) = eventually(|| {
        let (path, text) = session(&mut client, "cam");
        (uris(&text).len() >= 11).then_some((path, text))
    });
    assert_eq!(Checker::default().check(&text), [], "{text}");
    let folder = path.strip_suffix("index.m3u8").expect("its name");
    let (mut video, mut audio) = (Vec::new(), Vec::new());
    for uri in uris(&text) {
        let segment = client.get(&format!("{folder}{uri}"));
        assert_eq!((segment.status, segment.field("Content-Type")), (200, Some("video/mp2t")));
        let mut demuxer = Demuxer::new(1 << 20);
        let mut rest: &[u8] = &segment.body;
        let mut each = |pes: thalweg_media::ts::Pes| match pes.track {
            Track::Video => video.extend(numbers(&pes.payload, b'#')),
            Track::Audio => audio.extend(numbers(&pes.payload, b's')),
        };
        while !rest.is_empty() {
            if let Some(pes) = demuxer.read(&mut rest).expect("a transport stream") {
                each(pes);
            }
        }
        while let Some(pes) = demuxer.finish().expect("a transport stream") {
            each(pes);
        }
    }
    assert_eq!(video, (0..pictures).collect::<Vec<_>>());
    assert_eq!(audio, (0..pictures).collect::<Vec<_>>());
    server.drain().expect("drained");
}

#[test]
fn who_joins_between_keyframes_is_live_at_once() {
    let server = serve("");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    let joined_at = 2 * FPS - 1;
    encoder.pictures(0, joined_at + 1, 1_000);
    let mut api = Client::connect(server.addresses.api[0]);
    eventually(|| {
        let streams: serde_json::Value = serde_json::from_str(api.get("/api/streams").text()).expect("JSON");
        let received = streams["streams"][0]["received_bytes"].as_u64().unwrap_or(0);
        (received >= u64::from(joined_at + 1) * (1_009 + 12)).then_some(())
    });
    let mut client = Client::connect(server.addresses.http[0]);
    client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let mut all = client.until(|bytes| numbers(bytes, b'#').len() == FPS as usize);
    encoder.pictures(joined_at + 1, joined_at + 4, 1_000);
    all.extend(client.until(|bytes| numbers(bytes, b's').contains(&(joined_at + 3))));
    let (mut reader, mut rest) = (FlvReader::new(1 << 20), all.as_slice());
    let mut got: Vec<(u32, u32)> = Vec::new();
    let mut sound = None;
    while let Some(tag) = reader.read(&mut rest).expect("FLV") {
        match tag.kind {
            TagKind::Video => got.extend(numbers(&tag.payload, b'#').iter().map(|&number| (number, tag.timestamp_ms))),
            TagKind::Audio => sound = sound.or(numbers(&tag.payload, b's').first().copied()),
            TagKind::Script => {}
        }
    }
    assert!(got.iter().map(|found| found.0).eq(FPS..joined_at + 4), "each picture once: {got:?}");
    let &(_, last_ms) = got.last().expect("pictures");
    let own_ms = |number: u32| last_ms - (joined_at + 3 - number) * 1_000 / FPS;
    for &(number, at_ms) in &got {
        let early = joined_at.saturating_sub(number);
        assert_eq!(at_ms, if early == 0 { own_ms(number) } else { own_ms(joined_at) - 2 * early }, "{got:?}");
    }
    assert_eq!(sound, Some(joined_at + 1), "of the past only pictures");
    server.drain().expect("drained");
}

#[test]
fn metadata_and_sound_behind_the_keyframe_do_not_hold_a_viewer_back() {
    let server = serve("");
    let mut encoder = Encoder::publish_bare(server.addresses.rtmp[0], "live", "cam").expect("published");
    let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
    let metadata = |duration: f64, name: &str| {
        let mut out = Vec::new();
        let members =
            vec![("duration".to_owned(), amf::Value::Number(duration)), (name.to_owned(), amf::Value::Number(1.0))];
        amf::encode(&["onMetaData".into(), amf::Value::Object(members)], &mut out);
        out
    };
    encoder.send(TagKind::Video, 0, &[b"\x17\0\0\0\0", &avc.record[..]].concat());
    let picture = |number: u32| {
        let head: &[u8] = if number == 0 { b"\x17\x01\0\0\0\0\0\0\x0b\x65" } else { b"\x27\x01\0\0\0\0\0\0\x0b\x41" };
        [head, format!("#{number:08}#").as_bytes()].concat()
    };
    let mut client = Client::connect(server.addresses.http[0]);
    let mut join = || {
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        (client.head().status == 200).then_some(())
    };
    for number in 0..50 {
        encoder.send(TagKind::Video, number * 40, &picture(number));
        match number {
            0 => encoder.send(TagKind::Script, 0, &metadata(0.0, "audiocodecid")),
            9 => encoder.send(TagKind::Audio, 400, b"\xaf\0\x12\x10"),
            10..=49 if number % 10 == 0 => {
                encoder.send(TagKind::Script, number * 40, &metadata(number.into(), "width"))
            }
            _ => {}
        }
    }
    let mut api = Client::connect(server.addresses.api[0]);
    eventually(|| {
        let streams: serde_json::Value = serde_json::from_str(api.get("/api/streams").text()).expect("JSON");
        (streams["streams"][0]["received_bytes"].as_u64() >= Some(50 * 19 + 100)).then_some(())
    });
    eventually(&mut join);
    let all = client.until(|bytes| numbers(bytes, b'#').len() == 50);
    assert_eq!(all[4], 5, "sound and video are announced");
    let (mut reader, mut rest) = (FlvReader::new(1 << 20), all.as_slice());
    let tags: Vec<_> = std::iter::from_fn(|| reader.read(&mut rest).expect("FLV")).collect();
    let times: Vec<u32> = tags.iter().filter(|tag| tag.payload.contains(&b'#')).map(|tag| tag.timestamp_ms).collect();
    assert_eq!((times.len(), times[49] - times[0]), (50, 98), "all pictures of the group, 2 ms apart: {times:?}");
    assert_eq!(tags.iter().filter(|tag| tag.kind == TagKind::Script).count(), 1);
    assert!(tags.iter().any(|tag| tag.payload == b"\xaf\0\x12\x10"), "sound that came meanwhile is configured");
    encoder.end();
    server.drain().expect("drained");
}

#[test]
fn responses_are_as_the_rfcs_have_them() {
    let server = serve("[hls]\ntarget = '1s'");
    let http = server.addresses.http[0];
    let mut client = Client::connect(http);
    for path in
        ["/", "/live", "/live/none.m3u8", "/live/none.flv", "/live/cam.mp4", "/a/b/c/d/e", "/live/cam/x/index.m3u8"]
    {
        let answer = client.get(path);
        assert_eq!(answer.status, 404, "{path}");
        let is_stream = path.contains("none") || path.ends_with("index.m3u8");
        let wanted = if is_stream { "no stream of this name" } else { "play /APP/NAME" };
        assert!(answer.text().starts_with(wanted), "{path}: {}", answer.text());
    }
    assert!(client.get("/live/../x").text().contains("no name here"));
    client.write("HEAD /live/none.flv HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.response(true).status, 404);
    let mut poster = Client::connect(http);
    poster.write("POST /live/cam.m3u8 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    let answer = poster.response(false);
    assert_eq!((answer.status, answer.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 1, 1_000);
    // Asked before there is a segment: it waits for it.
    let mut early = Client::connect(http);
    early.write("GET /live/cam.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(100));
    encoder.pictures(1, 3 * FPS + 1, 1_000);
    assert_eq!(early.response(false).status, 200);
    let (path, text) = eventually(|| Some(session(&mut client, "cam")).filter(|(_, text)| uris(text).len() == 3));

    let playlist = client.get(&path);
    let tag = playlist.field("ETag").expect("a tag").to_owned();
    assert_eq!(client.get_with(&path, &format!("If-None-Match: {tag}\r\n")).status, 304);
    client.write(&format!("HEAD {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let head = client.response(true);
    assert_eq!((head.status, head.field("Content-Length")), (200, playlist.field("Content-Length")));
    assert_eq!(head.field("Access-Control-Allow-Origin"), Some("*"));

    let segment = path.replace("index.m3u8", &uris(&text)[0]);
    let whole = client.get(&segment);
    let len = whole.body.len();
    for (range, status, part) in [
        ("bytes=0-9", 206, 0..10),
        ("bytes=-5", 206, len - 5..len),
        ("bytes=100-", 206, 100..len),
        ("bytes=0-1,5-6", 200, 0..len),
        ("bytes=99999999-", 416, 0..0),
    ] {
        let got = client.get_with(&segment, &format!("Range: {range}\r\n"));
        assert_eq!((got.status, got.body.as_slice()), (status, &whole.body[part]), "{range}");
    }
    let stale = client.get_with(&segment, "Range: bytes=0-9\r\nIf-Range: \"other\"\r\n");
    assert_eq!((stale.status, stale.body.len()), (200, len));

    // Three requests at once, answered in their order; the last one ends the connection.
    client.write(&format!(
        "GET {segment} HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\nGET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ));
    let statuses: Vec<u16> = (0..3).map(|_| client.response(false).status).collect();
    assert_eq!((statuses, client.until(|_| false).len()), (vec![200, 404, 200], 0));

    let mut client = Client::connect(http);
    client.write(
        "OPTIONS /live/cam.m3u8 HTTP/1.1\r\nHost: a\r\n\r\nDELETE / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/9.9\r\n\r\n",
    );
    let statuses: Vec<u16> = (0..3).map(|_| client.response(false).status).collect();
    assert_eq!((statuses, client.until(|_| false).len()), (vec![204, 405, 505], 0));
    server.drain().expect("drained");
}

#[test]
fn a_request_behind_one_that_waits_for_the_first_playlist_is_answered_after_it() {
    let server = serve("[hls]\ntarget = '1s'");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 1, 1_000);
    let mut client = Client::connect(server.addresses.http[0]);
    client.write("GET /live/cam.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(300));
    client.write("GET /no/such/path HTTP/1.1\r\nHost: a\r\n\r\n");
    std::thread::sleep(Duration::from_millis(300));
    encoder.pictures(1, 3 * FPS, 1_000);
    assert_eq!([client.response(false).status, client.response(false).status], [200, 404]);
    server.drain().expect("drained");
}

#[test]
fn a_connection_of_http_1_0_ends_with_its_response() {
    let server = serve("[hls]\ntarget = '1s'");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let http = server.addresses.http[0];
    eventually(|| (Client::connect(http).get("/live/cam.m3u8").status == 200).then_some(()));
    for path in ["/live/cam.m3u8", "/live/none.m3u8"] {
        let mut client = Client::connect(http);
        client.write(&format!("GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
        assert_eq!(client.head().field("Connection"), Some("close"));
        client.until(|_| false);
    }
    server.drain().expect("drained");
}

#[test]
fn a_live_response_ends_cleanly() {
    let server = serve("[limits]\npublish_return = '2s'");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    let http = server.addresses.http[0];
    encoder.pictures(0, FPS / 2, 20_000);
    let play = |version: &str| {
        eventually(|| {
            let mut client = Client::connect(http);
            client.write(&format!("GET /live/cam.flv HTTP/{version}\r\nHost: a\r\n\r\n"));
            let head = client.head();
            (head.status == 200).then_some((client, head))
        })
    };
    let (mut one, head) = play("1.1");
    assert_eq!(head.field("Transfer-Encoding"), Some("chunked"));
    // One that reads nothing for a while: its chunks are sent in parts.
    let (mut slow, _) = play("1.1");
    let (mut old, head) = play("1.0");
    assert_eq!((head.field("Transfer-Encoding"), head.field("Connection")), (None, Some("close")));
    encoder.pictures(FPS / 2, 3 * FPS, 20_000);
    encoder.end();
    let bodies: [Vec<u8>; 3] = std::thread::scope(|scope| {
        let read = |client: &mut Client, pause_ms| {
            std::thread::sleep(Duration::from_millis(pause_ms));
            client.until(|_| false)
        };
        let threads = [(&mut one, 0), (&mut old, 0), (&mut slow, 2_500)]
            .map(|(client, pause_ms)| scope.spawn(move || read(client, pause_ms)));
        threads.map(|thread| thread.join().expect("read"))
    });
    assert!(one.is_ended && slow.is_ended, "the last chunk came before the connection's end");
    for (at, body) in bodies.iter().enumerate() {
        // The slow one has what was on its way when the stream ended.
        assert!(at == 2 || numbers(body, b'#').last() == Some(&(3 * FPS - 1)), "body {at}");
        let (mut reader, mut rest) = (FlvReader::new(1 << 20), body.as_slice());
        while reader.read(&mut rest).expect("FLV").is_some() {}
        assert!(rest.is_empty(), "the last tag is whole");
    }
    // A server that ends says so as well.
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, FPS, 1_000);
    let (mut client, _) = play("1.1");
    assert!(!client.until(|bytes| numbers(bytes, b'#').contains(&(FPS - 1))).is_empty());
    let drained = std::thread::spawn(move || server.drain());
    client.until(|_| false);
    assert!(client.is_ended);
    drained.join().expect("joined").expect("drained");
}

#[test]
fn an_application_has_several_parts() {
    let server = serve("[hls]\ntarget = '1s'\n[auth]\nplay_key = 'a-long-key'");
    let (rtmp, http) = (server.addresses.rtmp[0], server.addresses.http[0]);
    let mut encoder = Encoder::publish_in(rtmp, "live/sub", "stream").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    // Another encoder divides the same path elsewhere.
    assert_eq!(
        Encoder::publish_in(rtmp, "live", "sub/stream").err().as_deref(),
        Some("NetStream.Publish.BadName"),
        "the name is taken"
    );
    assert_eq!(Encoder::publish_in(rtmp, "live/../sub", "x").err().as_deref(), Some("NetStream.Publish.Rejected"));
    let keys = thalweg_edge::token::Keys::new(Some("a-long-key"));
    let token = keys.token("live/sub/stream", 4_000_000_000, "alice", None).expect("a key");
    let mut client = Client::connect(http);
    let start = eventually(|| {
        Some(client.get(&format!("/live/sub/stream.m3u8?token={token}"))).filter(|answer| answer.status == 200)
    });
    let path = format!("/live/sub/{}", start.text().lines().last().expect("a URI"));
    let playlist = client.get(&path);
    assert_eq!(playlist.status, 200, "{path}");
    let segment = path.replace("index.m3u8", &uris(playlist.text())[0]);
    assert_eq!(client.get(&segment).status, 200);
    client.write(&format!("GET /live/sub/stream.flv?token={token} HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_eq!(client.head().status, 200);
    server.drain().expect("drained");
}

#[test]
fn nothing_is_played_or_published_without_its_key() {
    let server = serve("[auth]\nplay_key = 'a-long-key'\npublish_key = 'another-key'\n[hls]\ntarget = '1s'");
    let rtmp = server.addresses.rtmp[0];
    for name in ["cam", "cam?key=", "cam?key=another-kez"] {
        assert_eq!(Encoder::publish(rtmp, name).err().as_deref(), Some("NetStream.Publish.Denied"), "{name}");
    }
    let mut encoder = Encoder::publish(rtmp, "cam?key=another-key").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    assert_eq!(Encoder::publish(rtmp, "cam?key=another-key").err().as_deref(), Some("NetStream.Publish.BadName"));
    let mut client = Client::connect(server.addresses.http[0]);
    let keys = thalweg_edge::token::Keys::new(Some("a-long-key"));
    let now_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("past 1970").as_secs();
    let token = keys.token("live/cam", now_s + 60, "alice", None).expect("a key");
    let late = keys.token("live/cam", now_s - 1, "alice", None).expect("a key");
    for file in ["cam.m3u8", "cam.flv"] {
        assert_eq!(client.get(&format!("/live/{file}")).status, 401);
        assert_eq!(client.get(&format!("/live/{file}?token={late}")).status, 403);
        assert_eq!(client.get(&format!("/live/{file}?token=x{token}")).status, 403);
    }
    let start =
        eventually(|| Some(client.get(&format!("/live/cam.m3u8?token={token}"))).filter(|found| found.status == 200));
    let path = format!("/live/{}", start.text().lines().last().expect("a URI"));
    let playlist = client.get(&path);
    assert_eq!(playlist.status, 200);
    let segment = path.replace("index.m3u8", &uris(playlist.text())[0]);
    assert_eq!(client.get(&segment).status, 200);
    // A session of another server, and one that was changed.
    let foreign =
        thalweg_edge::token::Keys::new(Some("other-key")).session(2, "live/cam", None, "alice", now_s).id("alice");
    let own = path.split('/').nth(3).expect("a session").to_owned();
    for path in [&path, &segment] {
        assert_eq!(client.get(&path.replace(&own, &foreign)).status, 403);
        assert_eq!(client.get(&path.replace(&own, &own.to_lowercase())).status, 403);
        // Another subject with the same signature.
        assert_eq!(client.get(&path.replace(&own, &format!("{}Ym9i", &own[..32]))).status, 403);
    }
    // Who watches, and its end by an operator.
    let mut api = Client::connect(server.addresses.api[0]);
    let viewers: String = eventually(|| {
        let text = api.get("/api/viewers?stream=live/cam").text().to_owned();
        text.contains("\"segments\":1").then_some(text)
    });
    let viewers: serde_json::Value = serde_json::from_str(&viewers).expect("JSON");
    let viewers = viewers["viewers"].as_array().expect("a list").iter().filter(|viewer| viewer["segments"] == 1);
    let viewer = viewers.into_iter().next().expect("the viewer");
    assert_eq!((viewer["subject"].as_str(), viewer["agent"].as_str()), (Some("alice"), Some("test")));
    assert!(viewer["tcp"]["rtt_us"].as_u64().expect("a number") > 0);
    api.write(&format!("DELETE /api/viewers/{} HTTP/1.1\r\nHost: a\r\n\r\n", viewer["id"].as_str().expect("an id")));
    assert_eq!(api.response(false).status, 200);
    eventually(|| (client.get(&segment).status == 403).then_some(()));
    assert!(api.get("/metrics").text().contains("thalweg_requests_total{thread=\"0\"}"));
    server.drain().expect("drained");
}

#[test]
fn a_stalled_viewer_holds_little_and_goes_on_at_a_keyframe() {
    let server = serve("[flv]\ncache = '2MB'\ncache_time = '60s'\n[http]\ntcp = { sndbuf = '64KiB' }");
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 1, 1_000);
    let http = server.addresses.http[0];
    let mut stalled = eventually(|| {
        let mut client = Client::connect(http);
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        (client.head().status == 200).then_some(client)
    });
    // 60 MB go by that nobody reads.
    let pictures = 60 * FPS;
    encoder.pictures(1, pictures, 40_000);
    let mut api = Client::connect(server.addresses.api[0]);
    let statistics = api.get("/api/statistics");
    let statistics: serde_json::Value = serde_json::from_str(statistics.text()).expect("JSON");
    assert!(statistics["flv_bytes"].as_u64().expect("a number") <= 2_000_000, "{statistics}");
    let rest = std::thread::spawn(move || {
        let all = stalled
            .until(|bytes| bytes.len() > 200 && numbers(&bytes[bytes.len() - 200..], b's').contains(&(60 * FPS)));
        numbers(&all, b'#')
    });
    std::thread::sleep(Duration::from_millis(500));
    encoder.pictures(pictures, pictures + 1, 1_000);
    let got = rest.join().expect("read");
    let jumps: Vec<_> = got.windows(2).filter(|two| two[1] != two[0] + 1).collect();
    assert!(!jumps.is_empty() && jumps.iter().all(|two| two[1] % FPS == 0), "it goes on at keyframes: {jumps:?}");
    assert_eq!(got.last(), Some(&pictures));
    server.drain().expect("drained");
}

#[test]
fn who_is_slow_to_ask_is_cut_off_and_crowds_are_bounded() {
    let server = serve("[limits]\nhead_time = '1s'\nper_address = 3\nkeep_alive = '1s'");
    let http = server.addresses.http[0];
    let begun = Instant::now();
    let mut slow = Client::connect(http);
    let mut idle = Client::connect(http);
    assert_eq!(idle.get("/").status, 404);
    let mut third = Client::connect(http);
    assert_eq!(third.get("/").status, 404);
    let mut fourth = Client::connect(http);
    assert_eq!(fourth.until(|_| false).len(), 0, "there is no room");
    for _ in 0..100 {
        if slow.socket.write_all(b"G").is_err() || begun.elapsed() > Duration::from_secs(5) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begun.elapsed() < Duration::from_secs(4), "a head that never ends was cut off");
    assert_eq!(idle.until(|_| false).len(), 0);
    assert_eq!(third.until(|_| false).len(), 0);
    eventually(|| {
        let mut again = Client::connect(http);
        again.socket.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
        (!again.until(|bytes| bytes.ends_with(b"\r\n\r\n")).is_empty()).then_some(())
    });
    server.drain().expect("drained");
}

#[test]
fn a_publisher_that_comes_back_goes_on_behind_a_discontinuity() {
    let server = serve("[hls]\ntarget = '1s'\n[auth]\ntake_over = true");
    let rtmp = server.addresses.rtmp[0];
    let mut first = Encoder::publish(rtmp, "cam").expect("published");
    first.pictures(0, 2 * FPS + 1, 1_000);
    let http = server.addresses.http[0];
    let mut flv = eventually(|| {
        let mut client = Client::connect(http);
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        (client.head().status == 200).then_some(client)
    });
    // What the first one sent and the server has not read yet goes with it.
    let before = flv.until(|bytes| numbers(bytes, b'#').contains(&(2 * FPS)));
    let mut second = Encoder::publish(rtmp, "cam").expect("taken over");
    second.pictures(1_000, 1_000 + 3 * FPS + 1, 1_000);
    let after = flv.until(|bytes| numbers(bytes, b'#').contains(&(1_000 + 3 * FPS)));
    let got = [numbers(&before, b'#'), numbers(&after, b'#')].concat();
    assert!(got.contains(&(2 * FPS)) && got.contains(&1_000), "{got:?}");
    let mut client = Client::connect(http);
    let text = eventually(|| Some(session(&mut client, "cam").1).filter(|text| uris(text).len() >= 5));
    assert_eq!(
        text.matches("#EXT-X-DISCONTINUITY\n").count(),
        2,
        "the first segment's, and that of the return: {text}"
    );
    assert_eq!(Checker::default().check(&text), [], "{text}");
    server.drain().expect("drained");
}

#[test]
fn a_publisher_that_comes_back_with_video_alone_has_silence() {
    let server = serve("[hls]\ntarget = '1s'");
    let (rtmp, http) = (server.addresses.rtmp[0], server.addresses.http[0]);
    let mut first = Encoder::publish(rtmp, "cam").expect("published");
    first.pictures(0, 2 * FPS + 1, 1_000);
    first.end();
    let mut second = eventually(|| Encoder::publish_bare(rtmp, "live", "cam").ok());
    let avc = AvcConfig::of(b"\x67\x42\xc0\x1e\xda", b"\x68\xce").expect("a configuration");
    second.send(TagKind::Video, 0, &[b"\x17\0\0\0\0", &avc.record[..]].concat());
    for number in 0..=2 * FPS {
        let key = number % FPS == 0;
        let head = if key { b"\x17\x01\0\0\0\0\0\0\x02\x65" } else { b"\x27\x01\0\0\0\0\0\0\x02\x41" };
        second.send(TagKind::Video, number * 1_000 / FPS, &[&head[..], b"\x9a"].concat());
    }
    let mut client = Client::connect(http);
    let (path, text) = eventually(|| Some(session(&mut client, "cam")).filter(|(_, text)| uris(text).len() >= 5));
    let last = uris(&text).pop().expect("a segment");
    let segment = client.get(&path.replace("index.m3u8", &last));
    let (mut demuxer, mut rest, mut sounds) = (Demuxer::new(1 << 20), segment.body.as_slice(), 0);
    while !rest.is_empty() {
        sounds += u32::from(demuxer.read(&mut rest).expect("a stream").is_some_and(|pes| pes.track == Track::Audio));
    }
    assert!(sounds > 0, "{text}");
    second.end();
    server.drain().expect("drained");
}

/// Stops a publisher.
struct Ends<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn the_built_in_stream_is_played_like_any_other() {
    let server = serve("[hls]\ntarget = '1s'\n[auth]\npublish_key = 'a-secret-of-ours'");
    let (rtmp, http) = (server.addresses.rtmp[0], server.addresses.http[0]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let refused = thalweg_edge::demo::publish(rtmp, "live", "demo", Some("wrong"), &stop).expect_err("refused");
    assert!(!refused.to_string().is_empty());
    std::thread::scope(|scope| {
        // Also where something below panics.
        let ends = Ends(&stop);
        let publisher =
            scope.spawn(|| thalweg_edge::demo::publish(rtmp, "live", "demo", Some("a-secret-of-ours"), &stop));
        let mut flv = eventually(|| {
            let mut client = Client::connect(http);
            client.write("GET /live/demo.flv HTTP/1.1\r\nHost: a\r\n\r\n");
            (client.head().status == 200).then_some(client)
        });
        let mut client = Client::connect(http);
        let text = eventually(|| Some(session(&mut client, "demo").1).filter(|text| uris(text).len() >= 2));
        assert_eq!(Checker::default().check(&text), [], "{text}");
        let mut reader = thalweg_media::flv::FlvReader::new(1 << 20);
        let bytes = flv.until(|bytes| bytes.len() > 300_000);
        let body = bytes.windows(3).position(|three| three == b"FLV").map(|at| &bytes[at..]).expect("FLV");
        let mut keyframes = 0;
        let mut ingest = thalweg_media::Ingest::default();
        let mut input = body;
        while let Ok(Some(tag)) = reader.read(&mut input) {
            if let Ok(Some(thalweg_media::Arrival::Unit(unit))) = ingest.take(&tag) {
                keyframes += u32::from(unit.keyframe && unit.track == thalweg_media::Track::Video);
            }
        }
        assert!(keyframes >= 1, "{} bytes", body.len());
        drop(ends);
        publisher.join().expect("ended").expect("published");
    });
    server.drain().expect("drained");
}
