//! FFmpeg at the other end: what it publishes is what comes.

#![allow(clippy::print_stderr)]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use thalweg_media::aac::AdtsFrames;
use thalweg_media::demo::Demo;
use thalweg_media::flv::{self, FlvReader};
use thalweg_media::hls::{Segment, Segmenter, Settings};
use thalweg_media::rtmp::{Event, Limits, Session};
use thalweg_media::ts::{Demuxer, Muxer, Pes};
use thalweg_media::{Arrival, Config, Ingest, Tag, TagKind, Track, Unit};

/// Whether `program` is installed; says so if it is not, which in CI is a failure.
fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(found || std::env::var("CI").is_err(), "{program} is not installed, and in CI nothing is skipped");
    if !found {
        eprintln!("SKIPPED: {program} is not installed, so nothing was compared with it");
    }
    found
}

/// A test picture with a tone, two seconds, a keyframe each second.
const SOURCE: &str = "-v error -f lavfi -i testsrc=size=320x180:rate=25 -f lavfi -i sine=frequency=440 -t 2 \
    -c:v libx264 -preset ultrafast -g 25 -bf 2 -pix_fmt yuv420p -c:a aac -b:a 64k";

fn ffmpeg(arguments: &str) -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(arguments.split_whitespace()).stdin(Stdio::null());
    command
}

/// What a program makes of `file` as its standard input, all of which it must read.
fn fed(command: &mut Command, file: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        let feeder = scope.spawn(move || stdin.write_all(file));
        let output = child.wait_with_output().expect("it ends");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{complaint}");
        feeder.join().expect("a feeder").expect("it reads all");
        output
    })
}

/// What FFmpeg publishes. `None` where it closed with an answer of ours unread: its kernel resets the connection then, and throws away what
/// was not sent yet.
fn published() -> Option<Vec<Event>> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("rtmp://{}/live/news?key=secret", listener.local_addr().expect("an address"));
    let mut child = ffmpeg(&format!("{SOURCE} -f flv {url}")).spawn().expect("ffmpeg");
    let (mut socket, _) = listener.accept().expect("a connection");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut session = Session::new([7; 1536], Limits::default());
    let (mut events, mut block) = (Vec::new(), vec![0; 50_000]);
    let is_whole = loop {
        let n = match socket.read(&mut block) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break false,
            read => read.expect("bytes"),
        };
        let mut input = &block[..n];
        while let Some(event) = session.handle(&mut input).expect("a session") {
            if matches!(event, Event::Publish { .. }) {
                session.accept();
            }
            events.push(event);
        }
        if n == 0 || events.last() == Some(&Event::Unpublish) {
            break true;
        }
        let output = session.output().to_vec();
        socket.write_all(&output).expect("an answer is taken");
        session.sent(output.len());
    };
    drop(socket);
    child.wait().expect("ffmpeg ends");
    is_whole.then_some(events)
}

#[test]
fn ffmpeg_publishes() {
    if !installed("ffmpeg") {
        return;
    }
    let events = (0..5).find_map(|_| published()).expect("one of five ends without a reset");
    assert_eq!(
        events.first(),
        Some(&Event::Publish { app: "live".into(), name: "news".into(), query: "key=secret".into() })
    );
    assert_eq!(events.last(), Some(&Event::Unpublish));
    let tags: Vec<&Tag> =
        events.iter().filter_map(|event| if let Event::Tag(tag) = event { Some(tag) } else { None }).collect();
    assert!(tags[0].kind == TagKind::Script && tags[0].payload.starts_with(b"\x02\0\x0aonMetaData"));
    // A sequence header, 50 pictures, and an end of sequence.
    assert_eq!(tags.iter().filter(|tag| tag.kind == TagKind::Video).count(), 52);
    let keyframes = tags.iter().filter(|tag| tag.kind == TagKind::Video && tag.payload.starts_with(&[0x17, 1]));
    assert_eq!(keyframes.count(), 2);
    // 88,200 samples in frames of 1024, and what goes ahead.
    let audio = tags.iter().filter(|tag| tag.kind == TagKind::Audio).count();
    assert!((87..=90).contains(&audio), "{audio}");
}

/// A file of FFmpeg's in a folder of its own.
fn made_by_ffmpeg(format: &str) -> Vec<u8> {
    let flags = if format == "flv" { "-flvflags no_duration_filesize" } else { "" };
    let output = ffmpeg(&format!("{SOURCE} {flags} -f {format} -")).output().expect("ffmpeg");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Configurations and units of an FLV file.
fn arrivals(file: &[u8]) -> (Vec<Config>, Vec<Unit>) {
    let (mut reader, mut ingest, mut input) = (FlvReader::new(1 << 20), Ingest::default(), file);
    let (mut configs, mut units) = (Vec::new(), Vec::new());
    while let Some(tag) = reader.read(&mut input).expect("FLV") {
        match ingest.take(&tag).expect("a tag that is understood") {
            Some(Arrival::Config(config)) => configs.push(config),
            Some(Arrival::Unit(unit)) => units.push(unit),
            _ => {}
        }
    }
    (configs, units)
}

/// What ffprobe finds in `file`: a line for each packet, with the entries that are asked for.
fn probed(file: &[u8], entries: &str) -> Vec<String> {
    let mut ffprobe = Command::new("ffprobe");
    let output = fed(ffprobe.args(["-v", "error", "-of", "csv=p=0", "-show_entries", entries, "-"]), file);
    // Packets of MPEG-TS have lines of side data besides.
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let packets = text.lines().filter(|line| line.starts_with("video,") || line.starts_with("audio,"));
    packets.map(|line| line.trim_end_matches(',').to_owned()).collect()
}

#[test]
fn flv_of_ours_is_what_ffmpeg_wrote() {
    if !installed("ffmpeg") {
        return;
    }
    let theirs = made_by_ffmpeg("flv");
    let (configs, units) = arrivals(&theirs);
    let Some(Config::Avc(avc)) = configs.iter().find(|config| config.track() == Track::Video) else {
        panic!("a configuration of video");
    };
    assert_eq!((avc.width, avc.height), (320, 180));
    let mut ours = Vec::new();
    flv::write_header(true, true, &mut ours);
    configs.iter().for_each(|config| flv::write_config(config, 0, &mut ours));
    units.iter().for_each(|unit| flv::write_unit(unit, None, &mut ours));
    let entries = "packet=codec_type,dts,pts,flags,size";
    let first = |lines: &[String]| lines[0].split(',').nth(2).expect("dts").parse::<i64>().expect("a number");
    let (theirs, ours) = (probed(&theirs, entries), probed(&ours, entries));
    // FFmpeg begins at 0, and our timeline at 1000.
    let ahead = first(&ours) - first(&theirs);
    let later = |line: &String| {
        let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
        for field in &mut fields[1..3] {
            *field = (field.parse::<i64>().expect("a number") + ahead).to_string();
        }
        fields.join(",")
    };
    assert_eq!(ours.len(), units.len());
    assert_eq!(ours, theirs.iter().map(later).collect::<Vec<_>>());
}

#[test]
fn segments_of_ours_hold_what_ffmpeg_wrote() {
    if !installed("ffmpeg") {
        return;
    }
    let theirs = made_by_ffmpeg("flv");
    let (configs, units) = arrivals(&theirs);
    let mut segmenter = Segmenter::new(Settings::default());
    configs.iter().for_each(|config| segmenter.config(config));
    let mut segments: Vec<Segment> = units.iter().filter_map(|unit| segmenter.unit(unit)).collect();
    segments.extend(segmenter.end());
    let durations: Vec<u64> = segments.iter().map(|segment| segment.info.duration_ms).collect();
    // The second one ends with the sound, of which the encoder flushes a frame or two more.
    assert!(durations[0] == 1000 && (980..1150).contains(&durations[1]) && durations.len() == 2, "{durations:?}");
    // Each alone, as a player that joins has it: every packet with its time, the keyframe first.
    let entries = "packet=codec_type,dts,pts";
    let whole = segments.iter().flat_map(|segment| segment.bytes.iter().copied()).collect::<Vec<u8>>();
    let mut found = Vec::new();
    for segment in &segments {
        let lines = probed(&segment.bytes, "packet=codec_type,flags");
        assert!(lines.iter().find(|line| line.starts_with("video")).expect("video").contains('K'));
        found.extend(lines);
    }
    assert_eq!(found.len(), units.len());
    let times = |lines: Vec<String>, track: &str| -> Vec<(i64, i64)> {
        let pick = |line: &String| {
            let mut fields = line.split(',');
            let is = fields.next() == Some(track);
            let mut number = || fields.next()?.parse::<i64>().ok();
            is.then(|| Some((number()?, number()?))).flatten()
        };
        lines.iter().filter_map(pick).collect()
    };
    let video = times(probed(&whole, entries), "video");
    let expected: Vec<(i64, i64)> = units
        .iter()
        .filter(|unit| unit.track == Track::Video)
        .map(|unit| (126_000 + 90 * unit.dts_ms as i64, i64::from(unit.cts_ms) * 90))
        .map(|(dts, ahead)| (dts + ahead, dts))
        .collect();
    assert_eq!(video, expected);
    // And it decodes to the same pictures and samples, to the bit.
    let hashes = |file: &[u8], format: &str| {
        let output = fed(&mut ffmpeg(&format!("-v error -f {format} -i - -map 0:v -map 0:a -f streamhash -")), file);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let ours = hashes(&whole, "mpegts");
    assert_eq!(ours.lines().count(), 2, "{ours}");
    assert_eq!(ours, hashes(&theirs, "flv"));
}

#[test]
fn segments_of_ffmpeg_come_apart() {
    if !installed("ffmpeg") {
        return;
    }
    let file = made_by_ffmpeg("mpegts");
    let mut demuxer = Demuxer::new(1 << 20);
    let (mut input, mut video, mut frames) = (&file[..], 0, 0);
    let mut count = |pes: Pes| match pes.track {
        Track::Video => video += 1,
        Track::Audio => frames += AdtsFrames::new(&pes.payload).count(),
    };
    while let Some(pes) = demuxer.read(&mut input).expect("a stream") {
        count(pes);
    }
    while let Some(pes) = demuxer.finish().expect("a stream") {
        count(pes);
    }
    assert_eq!(video, 50);
    assert!((87..=90).contains(&frames), "{frames}");
}

/// The built-in stream's first two seconds, as FLV and as MPEG-TS.
fn demo() -> (Vec<u8>, Vec<u8>) {
    let mut demo = Demo::new();
    let (mut flv, mut ts, mut muxer) = (Vec::new(), Vec::new(), Muxer::default());
    flv::write_header(true, true, &mut flv);
    for config in demo.configs() {
        flv::write_config(&config, 0, &mut flv);
        muxer.config(&config);
    }
    muxer.begin(&mut ts);
    while demo.due_ms() < 2_000 {
        let unit = demo.next().expect("it has no end");
        flv::write_unit(&unit, None, &mut flv);
        muxer.write(&unit, &mut ts);
    }
    muxer.flush(&mut ts);
    (flv, ts)
}

/// What FFmpeg decodes, which must not complain of anything.
fn decoded(file: &[u8], arguments: &str) -> Vec<u8> {
    fed(&mut ffmpeg(&format!("-v warning -xerror -err_detect explode -i - {arguments} -")), file).stdout
}

#[test]
fn the_demo_decodes_to_what_was_painted() {
    if !installed("ffmpeg") {
        return;
    }
    let (flv, ts) = demo();
    for file in [flv, ts] {
        let pictures = decoded(&file, "-map 0:v -f rawvideo -pix_fmt yuv420p");
        let (width, size) = (320, 320 * 192 * 3 / 2);
        assert_eq!(pictures.len(), 50 * size);
        let luma = |picture: usize, x: usize, y: usize| pictures[picture * size + y * width + x];
        // The flash is on in the first 120 ms; then the first bar is there again.
        assert_eq!((luma(0, 40, 20), luma(2, 1, 1), luma(10, 1, 1), luma(25, 1, 1)), (235, 235, 180, 235));
        // The ball, three pixels to the right and two down each picture: its middle, and a bar beside it.
        for picture in [0, 20, 49] {
            assert_eq!(luma(picture, 3 * picture + 16, 2 * picture + 16), 235);
        }
        assert_eq!(luma(49, 3 * 49 + 40, 2 * 49 + 16), 84);

        let samples = decoded(&file, "-map 0:a -f s16le -c:a pcm_s16le");
        let samples: Vec<f64> = samples.chunks(2).map(|two| f64::from(i16::from_le_bytes([two[0], two[1]]))).collect();
        // Ten periods are a frame: the tone's amplitude, and what else there is.
        let tone = |from: usize| {
            let part = &samples[from..from + 1024];
            let turn = |at: usize| 2.0 * std::f64::consts::PI * 10.0 * at as f64 / 1024.0;
            let sum = |wave: fn(f64) -> f64| part.iter().enumerate().map(|(at, s)| s * wave(turn(at))).sum::<f64>();
            let amplitude = sum(f64::sin).hypot(sum(f64::cos)) / 512.0;
            let power = part.iter().map(|sample| sample * sample).sum::<f64>() / 1024.0;
            (amplitude, power)
        };
        let (amplitude, power) = tone(2500);
        assert!((1_000.0..8_000.0).contains(&amplitude), "{amplitude}");
        assert!(
            (power / (amplitude * amplitude / 2.0) - 1.0).abs() < 0.001,
            "nothing but the tone: {power} {amplitude}"
        );
        assert!(tone(24_000).1 < 1.0, "silence between");
    }
}
