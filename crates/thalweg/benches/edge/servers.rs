//! The servers that are measured: ours, nginx with the same segment, and any other by its URLs and process.

use crate::client::Link;
use crate::pin;
use hmac::{Hmac, Mac};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use url::Url;

/// A server and what may be asked of it.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) pid: u32,
    /// Playlists or their entries, one for each scheme.
    pub(crate) playlists: Vec<Url>,
    /// Live streams of FLV, one for each scheme.
    pub(crate) flv: Vec<Url>,
    /// Ends them.
    pub(crate) _children: Vec<Running>,
}

/// A process that ends with its value.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Asked first: nginx takes its workers along, which outlive one that is killed.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        for _ in 0..100 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PLAY_KEY: &str = "a-key-of-the-bench";
/// What is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture {
    /// 720p25 of 3.27 Mb/s with a keyframe each two seconds, and AAC of 128 kb/s.
    Large,
    /// 320×180 at 12.5 pictures a second of 110 kb/s with a keyframe each four seconds, and AAC of 16 kb/s.
    Small,
}

/// Makes what is published, once.
pub(crate) fn picture(folder: &Path, kind: Picture) -> Option<PathBuf> {
    let (name, video, rate, audio, seconds) = match kind {
        Picture::Large => ("edge-720p25", "testsrc2=size=1280x720:rate=25", "3270k", "128k", "20"),
        Picture::Small => ("edge-180p12", "testsrc2=size=320x180:rate=12.5", "110k", "16k", "60"),
    };
    let path = folder.join(format!("{name}.flv"));
    if !path.exists() {
        let partial = folder.join(format!("{name}.partial.flv"));
        let mut command = Command::new("ffmpeg");
        command.args(["-v", "error", "-y", "-f", "lavfi", "-i", video, "-f", "lavfi", "-i"]);
        command.args(["sine=frequency=440", "-t", seconds, "-c:v", "libx264", "-preset", "ultrafast", "-g", "50"]);
        command.args(["-sc_threshold", "0", "-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", rate]);
        command.args(["-x264-params", "nal-hrd=cbr", "-c:a", "aac", "-ac", "1", "-b:a", audio]).arg(&partial);
        command.status().ok().filter(std::process::ExitStatus::success)?;
        fs::rename(&partial, &path).ok()?;
    }
    Some(path)
}

/// Publishes it, again and again, at its own pace.
pub(crate) fn publish(picture: &Path, to: &str) -> Running {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-re", "-stream_loop", "-1", "-i"]).arg(picture).args(["-c", "copy", "-f", "flv", to]);
    Running(command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("ffmpeg starts"))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// `EXPIRES.SUBJECT.MAC`: docs/serve.md, "Tokens".
fn token(stream: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(PLAY_KEY.as_bytes()).expect("invariant: any length will do");
    mac.update(format!("{stream}\n4000000000\nbench\n\n").as_bytes());
    let mac: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("4000000000.bench.{mac}")
}

/// `thalweg serve` with so many workers, accounts, tokens and a journal; one worker is on processor 0, and all else on 1.
pub(crate) fn ours(folder: &Path, picture: &Path, workers: u32, more: &str) -> Server {
    let [rtmp, http, https, api] = [(); 4].map(|()| free_port());
    certificate(folder);
    let text = format!(
        "workers = {workers}\nrtmp.listen = ['127.0.0.1:{rtmp}']\nhttp.listen = ['127.0.0.1:{http}']\napi.listen = ['127.0.0.1:{api}']\n\
         [https]\nlisten = ['127.0.0.1:{https}']\ncertificate = 'cert.pem'\nkey = 'key.pem'\n\
         [auth]\nplay_key = '{PLAY_KEY}'\n[limits]\nper_address = 100000\nviewers = 1000000\nviewers_per_address = 1000000\nrequest_rate = 1000000\n[journal]\npath = 'viewers.jsonl'\n{more}"
    );
    fs::write(folder.join("edge.toml"), text).expect("written");
    if workers == 1 {
        pin(0);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    let child = command.args(["serve", "edge.toml"]).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let child = Running(child.spawn().expect("the program starts"));
    let pid = child.0.id();
    sleep(Duration::from_millis(500));
    if workers == 1 {
        pin(1);
    }
    let publisher = publish(picture, &format!("rtmp://127.0.0.1:{rtmp}/live/a"));
    let query = token("live/a");
    let urls = |kind: &str| {
        let url = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}/live/a.{kind}?token={query}");
        [url("http", http), url("https", https)].iter().filter_map(|url| url.parse().ok()).collect()
    };
    Server { name: "thalweg".into(), pid, playlists: urls("m3u8"), flv: urls("flv"), _children: vec![publisher, child] }
}

fn certificate(folder: &Path) {
    let args = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "3",
        "-subj",
        "/CN=localhost",
    ];
    let mut command = Command::new("openssl");
    command.args(args).args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(folder);
    assert!(command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()), "openssl makes a certificate");
}

/// Writes a playlist and a segment that `from` serves into `root`, for others to serve: `index.m3u8`, and by its name.
pub(crate) fn copy(root: &Path, from: &Server) -> Option<PathBuf> {
    let found = resolve(from.playlists.first()?)?;
    fs::create_dir_all(root).ok()?;
    let mut scratch = vec![0; 1 << 20];
    let segment =
        Link::open(&found.segment, false).and_then(|mut link| link.get(&found.segment, true, &mut scratch)).ok()?;
    let path = root.join(found.segment.path_segments()?.next_back()?);
    fs::write(&path, &segment.body).ok()?;
    fs::write(root.join("index.m3u8"), &found.text).ok()?;
    Some(path)
}

/// nginx with one worker on processor 0, serving what is in `root` of the folder; `None` where there is none.
pub(crate) fn nginx(folder: &Path) -> Option<Server> {
    let [http, https] = [(); 2].map(|()| free_port());
    let folder = folder.display();
    let text = format!(
        "daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;\n\
         worker_rlimit_nofile 20000; events {{ worker_connections 19000; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; open_file_cache max=1000; open_file_cache_valid 60s; keepalive_requests 1000000000; keepalive_timeout 600;\n\
         client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n\
         server {{ listen 127.0.0.1:{http}; listen 127.0.0.1:{https} ssl; root {folder}/root; send_timeout 600;\n\
         ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.3; }} }}\n"
    );
    fs::write(format!("{folder}/nginx.conf"), text).ok()?;
    pin(0);
    let child = Command::new("nginx").args(["-c", &format!("{folder}/nginx.conf")]).stderr(Stdio::null()).spawn();
    let child = Running(child.ok()?);
    pin(1);
    sleep(Duration::from_millis(500));
    let url = |scheme: &str, port: u16| format!("{scheme}://127.0.0.1:{port}/index.m3u8").parse().ok();
    let playlists = [url("http", http), url("https", https)].into_iter().flatten().collect();
    let pid = child.0.id();
    Some(Server { name: "nginx".into(), pid, playlists, flv: Vec::new(), _children: vec![child] })
}

/// A playlist and its newest segment.
pub(crate) struct Found {
    pub(crate) playlist: Url,
    pub(crate) segment: Url,
    pub(crate) text: String,
}

/// Follows redirections and a multivariant playlist, as a player does; waits until there is a segment.
pub(crate) fn resolve(entry: &Url) -> Option<Found> {
    let begun = Instant::now();
    let mut scratch = vec![0; 1 << 20];
    let mut url = entry.clone();
    while begun.elapsed() < Duration::from_secs(30) {
        let answer = Link::open(&url, false).and_then(|mut link| link.get(&url, true, &mut scratch));
        if let Ok(answer) = &answer
            && let Some(to) = answer.field("location")
        {
            url = url.join(to).ok()?;
            continue;
        }
        let text = answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).unwrap_or_default();
        let uri = text.lines().rfind(|line| !line.is_empty() && !line.starts_with('#'));
        match uri.and_then(|uri| url.join(uri).ok()) {
            Some(variant) if text.contains("#EXT-X-STREAM-INF") => url = variant,
            Some(segment) => return Some(Found { playlist: url, segment, text }),
            None => sleep(Duration::from_millis(200)),
        }
    }
    None
}
