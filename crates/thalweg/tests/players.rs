//! Publishers of several makes against players of several makes: irregular, long and scene-cut keyframes, a variable frame rate, pushed by
//! nginx-rtmp, by librtmp (GStreamer's `rtmpsink`) and by GStreamer's own RTMP; played by hls.js, VLC, GStreamer and ffplay.
//!
//! Needs the Debian packages `chromium`, `npm`, `ffmpeg`, `vlc-bin`, `vlc-plugin-base`, `libnginx-mod-rtmp`, `gstreamer1.0-tools`,
//! `gstreamer1.0-plugins-base`, `-good`, `-bad`, `-ugly` and `gstreamer1.0-libav`.

#![allow(clippy::print_stderr)]

mod common;

use common::browser::{players, watch};
use common::edge::{Edge, LOCAL, Tied, address, eventually, ffmpeg, installed};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// How much of each stream each player plays.
const PLAYED_S: u32 = 8;
/// The picture and the tone that FFmpeg publishes at their own pace.
const PICTURES: &str = "-re -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i sine=frequency=440 -t 300";
const TO_RTMP: &str = "-pix_fmt yuv420p -c:a aac -f flv";
/// What each publisher by FFmpeg sets: keyframes at these seconds alone, then none; x264's own choice with a cut each 1.7 s; a frame rate
/// that changes; keyframes each two seconds, by way of nginx.
const ENCODERS: [(&str, &str); 4] = [
    (
        "irregular",
        "-c:v libx264 -preset ultrafast -g 9999 -sc_threshold 0 \
         -force_key_frames 0,2,4,12,20,21,22,30,33,34,40,48,50,56,60,68,70,72,80,88,90,96,100,108,110,120,124,128,136,140,150,158,160,170",
    ),
    ("cuts", "-vf negate=enable='lt(mod(t,3.4),1.7)' -c:v libx264 -preset veryfast"),
    ("variable", "-vf select='not(mod(n,3))+gte(mod(t,12),6)' -vsync vfr -c:v libx264 -preset ultrafast -g 40"),
    ("pushed", "-c:v libx264 -preset ultrafast -g 50"),
];
/// GStreamer's sinks: librtmp's, and its own.
const SINKS: [(&str, &str, &str); 2] = [("librtmp", "rtmpsink", " live=1"), ("rtmp2", "rtmp2sink", "")];

fn start(command: &mut Command) -> Tied {
    Tied(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"))
}

/// nginx with its RTMP module, which pushes what is published at the returned address to `to`.
fn relay(folder: &Path, to: &str) -> (Tied, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let text = format!(
        "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;\ndaemon off;\nmaster_process off;\npid {folder}/pid;\n\
         error_log {folder}/error.log;\nevents {{}}\nrtmp {{ server {{ listen 127.0.0.1:{port};\n\
         application relay {{ live on; push rtmp://{to}/live; }} }} }}\n",
        folder = folder.display()
    );
    fs::write(folder.join("nginx.conf"), text).expect("written");
    let nginx = start(Command::new("nginx").arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")));
    eventually("nginx", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    (nginx, format!("rtmp://127.0.0.1:{port}/relay/NAME"))
}

/// GStreamer's test picture and tone, published by this sink.
fn gstreamer(sink: &str, location: &str) -> Tied {
    let words = format!(
        "-q videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=25/1 ! x264enc key-int-max=80 \
         tune=zerolatency speed-preset=ultrafast ! h264parse ! flvmux name=mux streamable=true ! {sink} name=out \
         audiotestsrc is-live=true ! audioconvert ! avenc_aac ! aacparse ! mux."
    );
    let location = format!("location={location}");
    // The location is one word, spaces included.
    let words = words.split_whitespace().flat_map(|word| match word {
        "name=out" => vec![word, &location],
        _ => vec![word],
    });
    start(Command::new("gst-launch-1.0").args(words))
}

/// Runs a player for a few seconds, as it ends only when it is ended; returns all it printed.
fn run_for(seconds: u32, command: &mut Command) -> String {
    let program = command.get_program().to_owned();
    let mut timed = Command::new("timeout");
    timed.arg("-k5").arg(seconds.to_string()).arg(program).args(command.get_args());
    for (key, value) in command.get_envs() {
        timed.env(key, value.unwrap_or_default());
    }
    let output = timed.stdin(Stdio::null()).output().expect("the player starts");
    let (out, err) = common::texts(&output);
    out + &err
}

fn ffplay(url: &str) {
    let mut command = Command::new("ffplay");
    command.args(["-nodisp", "-v", "warning", "-stats", url]).env("SDL_AUDIODRIVER", "dummy");
    let said = run_for(PLAYED_S + 6, &mut command);
    // `12.34 A-V: 0.001 fd= 0 …`: the clock of what is played.
    let clock = said.split(['\r', '\n']).filter(|line| line.contains("fd="));
    let clock = clock.filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let clock: Vec<f64> = clock.filter(|at: &f64| at.is_finite()).collect();
    let played = clock.last().zip(clock.first()).map_or(0.0, |(last, first)| last - first);
    let warnings: Vec<&str> = said.split(['\r', '\n']).filter(|line| !line.contains("fd=")).collect();
    assert!(played >= f64::from(PLAYED_S), "ffplay plays {played} s of {url}: {warnings:?}");
    assert!(!warnings.iter().any(|line| line.contains("rror")), "{url}: {warnings:?}");
}

fn gst_player(url: &str) {
    let pipeline = format!(
        "-e souphttpsrc location={url} ! hlsdemux ! decodebin name=all \
         all. ! queue ! videoconvert ! progressreport name=pictures update-freq=1 ! fakesink sync=true \
         all. ! queue ! audioconvert ! progressreport name=sound update-freq=1 ! fakesink sync=true"
    );
    let said = run_for(PLAYED_S + 8, Command::new("gst-launch-1.0").args(pipeline.split_whitespace()));
    for name in ["pictures", "sound"] {
        // `pictures (00:00:05): 4 / 8 seconds (50.0 %)`: the time since its start, and the position.
        let reports = said.lines().filter(|line| line.starts_with(name)).count();
        assert!(reports >= PLAYED_S as usize - 1, "gstreamer reports {reports} times of {name} of {url}: {said}");
    }
    assert!(!said.contains("ERROR"), "{url}: {said}");
}

fn vlc(folder: &Path, url: &str) {
    let pictures = tempfile::tempdir_in(folder).expect("a folder");
    // VLC refuses to be root; the user nobody may write there.
    let mut command = if rustix::process::geteuid().is_root() {
        let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(pictures.path(), everyone).expect("permitted");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "cvlc"]);
        command
    } else {
        Command::new("cvlc")
    };
    command.args(["--intf=dummy", "--vout=dummy", "--aout=dummy", "--video-filter=scene", "--scene-format=png"]);
    command.args(["--scene-ratio=25", "--scene-prefix=picture"]).env("HOME", pictures.path());
    command.arg(format!("--scene-path={}", pictures.path().display())).arg(url);
    let said = run_for(PLAYED_S + 8, &mut command);
    let files = fs::read_dir(pictures.path()).expect("read").flatten();
    // One of 25 frames is written: about one a second.
    let shown = files.filter(|file| file.file_name().to_string_lossy().ends_with(".png")).count();
    assert!(shown >= PLAYED_S as usize / 2, "VLC shows {shown} pictures of {url}: {said}");
    assert!(!said.contains("cannot"), "{url}: {said}");
}

/// hls.js in Chromium. It reports its own first seek to the live edge as a hole; no other error is taken.
fn hls_js(folder: &Path, scripts: &Path, url: &str) {
    let seen = watch(folder, scripts, url, PLAYED_S);
    assert!(seen["advanced"].as_f64() >= Some(f64::from(PLAYED_S)), "{url}: {seen}");
    let errors = seen["errors"].as_array().expect("errors");
    assert!(errors.iter().all(|error| error.to_string().contains("seeking from 0 to")), "{url}: {seen}");
}

#[test]
fn players_of_four_makes_play_what_publishers_of_several_makes_send() {
    let programs = ["chromium", "ffmpeg", "ffplay", "nginx", "gst-launch-1.0", "cvlc"];
    if !programs.iter().all(|program| installed(program)) {
        return;
    }
    let Some(scripts) = players() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    // The user nobody reaches its own folder below.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permitted");
    let edge = Edge::start(folder.path(), LOCAL, &[]);
    let rtmp = edge.url("publish", "rtmp");
    let (_nginx, relayed) = relay(folder.path(), address(&rtmp));
    let mut publishing: Vec<Tied> = Vec::new();
    for (name, words) in ENCODERS {
        let to = if name == "pushed" { &relayed } else { &rtmp }.replace("NAME", name);
        publishing.push(start(&mut ffmpeg(&format!("{PICTURES} {words} {TO_RTMP} {to}"))));
    }
    for (name, sink, more) in SINKS {
        publishing.push(gstreamer(sink, &format!("{}{more}", rtmp.replace("NAME", name))));
    }
    let url = |name: &str| edge.url_of("play", "http", ".m3u8").replace("NAME", name);
    let names = ENCODERS.iter().map(|(name, _)| *name).chain(SINKS.iter().map(|(name, ..)| *name));
    for name in names.clone() {
        eventually(name, || (edge.get(&format!("/live/{name}.m3u8")).0 == 200).then_some(()));
    }
    std::thread::scope(|scope| {
        for url in ["irregular", "cuts"].map(url) {
            let (first, second) = (url.clone(), url.clone());
            scope.spawn(move || ffplay(&first));
            scope.spawn(move || gst_player(&second));
            scope.spawn(|| vlc(folder.path(), &{ url }));
        }
    });
    // Each decodes in software.
    for together in names.collect::<Vec<_>>().chunks(3) {
        std::thread::scope(|scope| {
            for url in together.iter().map(|name| url(name)) {
                scope.spawn(|| hls_js(folder.path(), &scripts, &{ url }));
            }
        });
    }
    let said = edge.said();
    assert!(!said.contains("unpublish"), "a publisher was closed: {said}");
    drop(publishing);
}
