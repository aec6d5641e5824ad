//! FFmpeg publishes as fast as it can, and every access unit is there once, in order: in FLV, and in the segments of HLS.

#![allow(clippy::print_stderr)]

mod common;

use common::{Client, eventually, serve};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_media::aac::AdtsFrames;
use thalweg_media::avc::{Nals, StartCodes};
use thalweg_media::flv::FlvReader;
use thalweg_media::hls::{Checker, Playlist};
use thalweg_media::ts::{Demuxer, Pes};
use thalweg_media::{Arrival, Ingest, Track, Unit};

/// What is published again and again, in seconds.
const LOOP_S: u32 = 20;
/// A publisher's bytes that are let through at a time until somebody watches.
const DRIP: usize = 2048;

fn ffmpeg(folder: &Path, words: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]).args(words.split_whitespace()).current_dir(folder);
    assert!(command.status().expect("ffmpeg starts").success(), "ffmpeg {words}");
}

/// A stream of `seconds`, as a file: B-frames, a keyframe each 2 s, sound.
fn stream(folder: &Path, seconds: u32) {
    ffmpeg(
        folder,
        &format!(
            "-f lavfi -i testsrc=size=160x90:rate=25 -f lavfi -i sine=frequency=440 -t {LOOP_S} -c:v libx264 -preset ultrafast -g 50 \
             -bf 2 -pix_fmt yuv420p -c:a aac -b:a 32k -flvflags no_duration_filesize loop.flv"
        ),
    );
    let times = seconds / LOOP_S - 1;
    ffmpeg(folder, &format!("-stream_loop {times} -i loop.flv -c copy -flvflags no_duration_filesize stream.flv"));
}

/// The units of an FLV stream.
fn units(mut file: &[u8]) -> Vec<Unit> {
    let (mut reader, mut ingest, mut units) = (FlvReader::new(1 << 20), Ingest::default(), Vec::new());
    while let Some(tag) = reader.read(&mut file).expect("FLV") {
        if let Some(Arrival::Unit(unit)) = ingest.take(&tag).expect("a tag that is understood") {
            units.push(unit);
        }
    }
    units
}

/// Passes a publisher's bytes on, in drips until `open`.
fn pass(listener: &TcpListener, to: SocketAddr, open: &AtomicBool) {
    let (mut near, _) = listener.accept().expect("a publisher");
    let mut far = TcpStream::connect(to).expect("a server");
    let (mut back, mut answers) = (near.try_clone().expect("a copy"), far.try_clone().expect("a copy"));
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    let mut block = vec![0; 65_536];
    loop {
        let is_open = open.load(Ordering::Relaxed);
        let got = near.read(&mut block[..if is_open { 65_536 } else { DRIP }]).expect("bytes");
        if got == 0 || far.write_all(&block[..got]).is_err() {
            let _ = far.shutdown(std::net::Shutdown::Both);
            return;
        }
        if !is_open {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Everything that comes until nothing has come for a while after the publisher's end.
fn rest(mut client: Client, is_over: &AtomicBool) -> Vec<u8> {
    client.socket.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    let (mut all, mut block) = (std::mem::take(&mut client.held), vec![0; 1 << 20]);
    loop {
        match client.socket.read(&mut block) {
            Ok(0) => return all,
            Ok(got) => all.extend_from_slice(&block[..got]),
            Err(_) if is_over.load(Ordering::Relaxed) => return all,
            Err(_) => {}
        }
    }
}

/// Follows a playlist until the publisher's end and nothing new comes; checks each, and returns the segments in order.
fn follow(http: SocketAddr, is_over: &AtomicBool) -> Vec<Vec<u8>> {
    let mut client = Client::connect(http);
    let start = eventually(|| Some(client.get("/live/cam.m3u8")).filter(|found| found.status == 200));
    let path = format!("/live/{}", start.text().lines().last().expect("a URI"));
    let folder = path.strip_suffix("index.m3u8").expect("its name").to_owned();
    let (mut checker, mut segments, mut last_news) = (Checker::default(), Vec::new(), Instant::now());
    let (mut media_s, mut begins) = (0.0, None);
    while !is_over.load(Ordering::Relaxed) || last_news.elapsed() < Duration::from_secs(1) {
        let text = client.get(&path).text().to_owned();
        assert_eq!(checker.check(&text), [], "{text}");
        let Ok(Playlist::Media(playlist)) = Playlist::parse(&text) else { panic!("a playlist: {text}") };
        // Numbers begin anywhere; that the first one is the stream's first shows in what it holds.
        let first = (playlist.media_sequence - *begins.get_or_insert(playlist.media_sequence)) as usize;
        assert!(first <= segments.len(), "segments {} to {first} were gone before they were asked for", segments.len());
        for entry in playlist.entries.iter().skip(segments.len() - first) {
            let segment = client.get(&format!("{folder}{}", entry.uri));
            assert_eq!(segment.status, 200, "{}", entry.uri);
            assert!(!entry.discontinuity || segments.is_empty(), "{text}");
            media_s += entry.duration_us as f64 / 1e6;
            segments.push(segment.body);
            last_news = Instant::now();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!("{} segments, {media_s:.3} s", segments.len());
    segments
}

/// NAL units but for what a byte stream has besides: delimiters, and sets before keyframes.
fn slices<'a>(nals: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    nals.filter(|nal| !matches!(nal[0] & 31, 7..=9)).map(<[u8]>::to_vec).collect()
}

/// Publishes `seconds` of stream time at full speed.
fn publish(seconds: u32) {
    if Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var("CI").is_err(), "ffmpeg is not installed, and in CI nothing is skipped");
        eprintln!("SKIPPED: ffmpeg is not installed, so nothing was published by it");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    stream(folder.path(), seconds);
    let published = units(&fs::read(folder.path().join("stream.flv")).expect("the stream"));
    let server = serve(
        "[hls]\ntarget = '2s'\nwindow = 100\n[flv]\ncache = '64MB'\ncache_time = '600s'\ncatch_up = false\n[limits]\nrequest_rate = 10000",
    );
    let (rtmp, http) = (server.addresses.rtmp[0], server.addresses.http[0]);
    let gate = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("rtmp://{}/live/cam", gate.local_addr().expect("an address"));
    let (open, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let begun = Instant::now();
    let (flv, segments) = std::thread::scope(|scope| {
        scope.spawn(|| pass(&gate, rtmp, &open));
        let encoder = scope.spawn(|| ffmpeg(folder.path(), &format!("-i stream.flv -c copy -f flv {url}")));
        let watching = eventually(|| {
            let mut client = Client::connect(http);
            client.write("GET /live/cam.flv HTTP/1.0\r\n\r\n");
            (client.head().status == 200).then_some(client)
        });
        let flv = scope.spawn(|| rest(watching, &is_over));
        let segments = scope.spawn(|| follow(http, &is_over));
        // The first keyframe may not be whole yet: the viewer waits for it.
        std::thread::sleep(Duration::from_millis(300));
        open.store(true, Ordering::Relaxed);
        encoder.join().expect("published");
        is_over.store(true, Ordering::Relaxed);
        (flv.join().expect("watched"), segments.join().expect("followed"))
    });
    eprintln!("{seconds} s of stream in {:.1} s, {} units", begun.elapsed().as_secs_f64(), published.len());

    let played = units(&flv);
    for track in [Track::Video, Track::Audio] {
        let of = |units: &[Unit]| -> Vec<Unit> { units.iter().filter(|unit| unit.track == track).cloned().collect() };
        let (published, played) = (of(&published), of(&played));
        assert!(published.len() as u32 >= 25 * seconds, "{track:?}: {}", published.len());
        assert_eq!(played.len(), published.len(), "{track:?}");
        for (at, (wanted, got)) in published.iter().zip(&played).enumerate() {
            let since = |unit: &Unit, first: &Unit| unit.dts_ms - first.dts_ms;
            assert_eq!(since(got, &played[0]), since(wanted, &published[0]), "{track:?} {at}");
            assert_eq!((got.cts_ms, got.keyframe), (wanted.cts_ms, wanted.keyframe), "{track:?} {at}");
            assert!(got.payload == wanted.payload, "{track:?} {at}: another unit");
        }
    }

    let (mut pictures, mut sounds) = (Vec::new(), Vec::new());
    for (number, segment) in segments.iter().enumerate() {
        let (mut demuxer, mut input, mut first) = (Demuxer::new(1 << 20), &segment[..], true);
        let mut take = |pes: Pes| match pes.track {
            Track::Video => {
                assert!(!first || pes.random_access, "segment {number} begins with no keyframe");
                first = false;
                pictures.push((pes.dts, slices(StartCodes::new(&pes.payload))));
            }
            Track::Audio => sounds.extend(AdtsFrames::new(&pes.payload).map(|(_, frame)| frame.to_vec())),
        };
        while let Some(pes) = demuxer.read(&mut input).expect("a transport stream") {
            take(pes);
        }
        while let Some(pes) = demuxer.finish().expect("a transport stream") {
            take(pes);
        }
    }
    let video: Vec<&Unit> = published.iter().filter(|unit| unit.track == Track::Video).collect();
    assert_eq!(pictures.len(), video.len());
    for (at, (wanted, (dts, got))) in video.iter().zip(&pictures).enumerate() {
        assert_eq!(dts - pictures[0].0, 90 * (wanted.dts_ms - video[0].dts_ms), "picture {at}");
        assert!(*got == slices(Nals::new(&wanted.payload, 4)), "picture {at} is another");
    }
    let audio: Vec<&[u8]> =
        published.iter().filter(|unit| unit.track == Track::Audio).map(|unit| &unit.payload[..]).collect();
    assert_eq!(sounds.len(), audio.len());
    assert!(sounds == audio, "other frames of sound");
    server.drain().expect("drained");
}

#[test]
fn a_minute_of_ffmpegs_is_played_once_and_in_order() {
    publish(60);
}

/// FFmpeg reports a body that ends with its connection alone as "Stream ends prematurely", an input error.
#[test]
fn ffmpeg_plays_flv_to_a_clean_end() {
    let server = serve("[limits]\npublish_return = '300ms'");
    let (rtmp, http) = (server.addresses.rtmp[0], server.addresses.http[0]);
    let stop = AtomicBool::new(false);
    let played = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| thalweg_edge::demo::publish(rtmp, "live", "demo", None, &stop));
        eventually(|| {
            let mut client = Client::connect(http);
            client.write("HEAD /live/demo.flv HTTP/1.1\r\nHost: a\r\n\r\n");
            (client.head().status == 200).then_some(())
        });
        let player = scope.spawn(|| {
            let url = format!("http://{http}/live/demo.flv");
            let words = ["-nostdin", "-v", "info", "-i", &url, "-c", "copy", "-f", "null", "-"];
            Command::new("ffmpeg").args(words).output().expect("ffmpeg starts")
        });
        std::thread::sleep(Duration::from_secs(6));
        stop.store(true, Ordering::Relaxed);
        publisher.join().expect("joined").expect("published");
        player.join().expect("joined")
    });
    let said = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success() && said.contains("Video: h264"), "{said}");
    assert!(!said.contains("prematurely") && !said.contains("Input/output error"), "{said}");
    server.drain().expect("drained");
}

/// `cargo test --release -p thalweg-edge --test encoder -- --ignored --nocapture`
#[test]
#[ignore = "an hour of stream takes a minute or more"]
fn an_hour_of_ffmpegs_is_played_once_and_in_order() {
    publish(3_600);
}
