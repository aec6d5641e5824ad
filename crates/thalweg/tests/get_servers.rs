//! `thalweg get` against nginx: TLS, HTTP/1.1 and HTTP/2, redirects, validators, a server's rate limit, and proxies; and compared with
//! aria2 and axel.

#![allow(clippy::print_stderr)]

mod common;

use common::thalweg;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LEN: usize = 3_000_000;

/// An nginx of its own, ended when it is dropped.
struct Nginx {
    folder: tempfile::TempDir,
    child: Child,
    plain: u16,
    tls: u16,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Nginx {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        let bytes: Vec<u8> = (0..LEN).map(|at| ((at * 2_654_435_761) >> 11) as u8).collect();
        fs::write(at.join("object.bin"), bytes).expect("written");
        certificate(at);
        let (plain, tls) = (port(), port());
        let text = format!(
            "daemon off; master_process off; pid nginx.pid; error_log stderr; events {{}}
             http {{
                access_log off; default_type application/octet-stream;
                client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
                server {{
                    listen 127.0.0.1:{plain}; root .;
                    location /dated/ {{ alias ./; etag off; }}
                    location /slow/ {{ alias ./; limit_rate 1m; }}
                    location /moved/ {{ return 302 https://localhost:{tls}/object.bin; }}
                }}
                server {{
                    listen 127.0.0.1:{tls} ssl http2; root .; ssl_certificate cert.pem; ssl_certificate_key key.pem;
                    location /down/ {{ return 302 http://127.0.0.1:{plain}/object.bin; }}
                }}
             }}"
        );
        fs::write(at.join("nginx.conf"), text).expect("written");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(at).args(["-c", "nginx.conf", "-e", "stderr"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("nginx (./x installs it)");
        let nginx = Self { folder, child, plain, tls };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", tls)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(10), "nginx does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn is_whole(&self, folder: &Path) -> bool {
        fs::read(folder.join("object.bin")).expect("a file")
            == fs::read(self.path().join("object.bin")).expect("a file")
    }
}

/// A port that is free at this moment.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// An authority, and a certificate of it for localhost.
fn certificate(folder: &Path) {
    let openssl = |args: &str| {
        let status = Command::new("openssl").args(args.split(' ')).current_dir(folder).stderr(Stdio::null()).status();
        assert!(status.expect("openssl (./x installs it)").success(), "openssl {args}");
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
    openssl(&format!("req {key} -keyout key.pem -out request.pem -subj /CN=localhost"));
    fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1").expect("written");
    openssl("x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 -extfile names");
}

fn get(folder: &Path, url: &str, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let args = [&["get", url, "--json", "--force"], args].concat();
    let mut command = thalweg(folder, &args);
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.envs(variables.iter().copied()).output().expect("the program starts")
}

fn report(output: &Output) -> Value {
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn tls_both_versions_of_http_and_redirects() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().expect("a folder"));
    let (folder, ca) = (folder.path(), nginx.path().join("ca.pem"));
    let trusted = ["--cacert", ca.to_str().expect("UTF-8")];
    let tls = format!("https://localhost:{}/object.bin", nginx.tls);
    for (url, args, protocol) in [
        (&tls, &[][..], "HTTP/2"),
        (&tls, &["--http1"][..], "HTTP/1.1"),
        (&format!("http://127.0.0.1:{}/object.bin", nginx.plain), &[][..], "HTTP/1.1"),
        (&format!("http://127.0.0.1:{}/moved/", nginx.plain), &["-o", "object.bin"][..], "HTTP/2"),
    ] {
        let report = report(&get(folder, url, &[args, &trusted].concat(), &[]));
        assert!(nginx.is_whole(folder), "{url} {args:?}");
        assert_eq!((report["protocol"].as_str(), report["ranges"]["possible"].as_bool()), (Some(protocol), Some(true)));
    }
    let unknown = get(folder, &tls, &[], &[]);
    let err = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(3), "{err}");
    assert!(err.contains("cannot speak TLS with localhost") && err.contains("hint: --cacert"), "{err}");
    // The very certificate is as good as its authority's.
    let own = nginx.path().join("cert.pem");
    report(&get(folder, &tls, &["--cacert", own.to_str().expect("UTF-8")], &[]));
    let down = get(folder, &format!("https://localhost:{}/down/", nginx.tls), &trusted, &[]);
    let err = String::from_utf8_lossy(&down.stderr).into_owned();
    assert!(down.status.code() == Some(2) && err.contains("which is not encrypted"), "{err}");
}

/// `openssl req -x509` makes a certificate that may sign others, which webpki takes for no server's; a device has no other.
#[test]
fn a_certificate_that_is_its_own_authority_is_trusted_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    certificate(folder);
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout own.key -out own.pem -days 2";
    let made = Command::new("openssl")
        .args(["req", "-x509", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(key.split(' '))
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl").success());
    let port = port();
    let mut server = Command::new("openssl")
        .args(["s_server", "-quiet", "-accept", &port.to_string(), "-cert", "own.pem", "-key", "own.key", "-HTTP"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl");
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "no server");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::write(folder.join("object"), "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello").expect("written");
    let fetch = |host: &str, ca: &str| {
        let args =
            ["--cacert", folder.join(ca).to_str().expect("UTF-8").to_owned().leak(), "-o", "got", "--retries", "0"];
        get(folder, &format!("https://{host}:{port}/object"), &args, &[])
    };
    let (own, by_address, other) =
        (fetch("localhost", "own.pem"), fetch("127.0.0.1", "own.pem"), fetch("localhost", "ca.pem"));
    server.kill().expect("killed");
    server.wait().expect("ended");
    report(&own);
    assert_eq!(fs::read_to_string(folder.join("got")).expect("a file"), "hello");
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(by_address.status.code() == Some(3) && said(&by_address).contains("localhost"), "{}", said(&by_address));
    assert!(other.status.code() == Some(3) && said(&other).contains("this very certificate"), "{}", said(&other));
}

/// An interrupted download goes on by its date where there is no tag, and a server's own rate limit is named.
#[test]
fn a_date_identifies_a_version_and_a_server_that_limits_its_rate_is_named() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().expect("a folder"));
    let folder = folder.path();
    // A date identifies a version only if it is older than the response.
    let touched = Command::new("touch").args(["-d", "2024-01-01"]).arg(nginx.path().join("object.bin")).status();
    assert!(touched.expect("touch").success());
    let dated = format!("http://127.0.0.1:{}/dated/object.bin", nginx.plain);
    let mut child = thalweg(folder, &["get", &dated, "--limit-rate", "1MB/s", "--quiet"]).spawn().expect("started");
    let (begun, journal) = (Instant::now(), folder.join("object.bin.part.json"));
    while !journal.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20) && child.try_wait().expect("waited").is_none(), "no journal");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    let resumed = report(&get(folder, &dated, &[], &[]));
    assert!(resumed["resumed_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{resumed}");
    assert!(nginx.is_whole(folder));

    let slow = format!("http://127.0.0.1:{}/slow/object.bin", nginx.plain);
    let report = report(&get(folder, &slow, &[], &[]));
    assert_eq!(report["limits"][0]["limit"], "server", "{report}");
}

/// A proxy that serves requests for whole URLs and CONNECT; it keeps their first lines.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, seen) = (listener.local_addr().expect("an address"), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || relay(client, &kept));
        }
    });
    (address.to_string(), seen)
}

fn relay(mut client: TcpStream, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut input = BufReader::new(client.try_clone().ok()?);
    let (mut head, mut authorized) = (String::new(), false);
    loop {
        let mut line = String::new();
        input.read_line(&mut line).ok()?;
        authorized |= line.trim_end().eq_ignore_ascii_case("proxy-authorization: Basic bWU6c2VjcmV0");
        head += &line;
        if line.trim_end().is_empty() {
            break;
        }
    }
    if !authorized {
        return client.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").ok();
    }
    let first = head.lines().next()?.to_owned();
    let target = first.split(' ').nth(1)?.to_owned();
    seen.lock().ok()?.push(first);
    let host = target.strip_prefix("http://").unwrap_or(&target).split('/').next()?.to_owned();
    let mut server = TcpStream::connect(host).ok()?;
    if target.starts_with("http://") {
        server.write_all(head.as_bytes()).ok()?;
    } else {
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").ok()?;
    }
    let (mut from, mut to) = (server.try_clone().ok()?, client.try_clone().ok()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut client, &mut server).ok().map(drop)
}

#[test]
fn proxies_of_the_environment_are_used() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().expect("a folder"));
    let (folder, ca) = (folder.path(), nginx.path().join("ca.pem"));
    let (address, seen) = proxy();
    let (with, without) = (format!("http://me:secret@{address}"), format!("http://{address}"));
    let plain = format!("http://127.0.0.1:{}/object.bin", nginx.plain);
    let direct = report(&get(folder, &plain, &[], &[("http_proxy", &with), ("no_proxy", "127.0.0.0/8")]));
    assert_eq!((direct["proxy"].as_bool(), seen.lock().expect("kept").len()), (Some(false), 0));

    let proxied = report(&get(folder, &plain, &[], &[("http_proxy", &with)]));
    assert!(nginx.is_whole(folder));
    assert_eq!(proxied["proxy"], true);
    assert_eq!(seen.lock().expect("kept").last(), Some(&format!("GET {plain} HTTP/1.1")));

    let tls = format!("https://localhost:{}/object.bin", nginx.tls);
    let args = ["--cacert", ca.to_str().expect("UTF-8")];
    let tunnelled = report(&get(folder, &tls, &args, &[("https_proxy", &with)]));
    assert_eq!((tunnelled["protocol"].as_str(), tunnelled["proxy"].as_bool()), (Some("HTTP/2"), Some(true)));
    assert_eq!(seen.lock().expect("kept").last(), Some(&format!("CONNECT localhost:{} HTTP/1.1", nginx.tls)));

    let refused = get(folder, &plain, &[], &[("http_proxy", &without)]);
    let err = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && err.contains("407") && err.contains("http_proxy="), "{err}");
}

/// Prints how long each program took, and holds `get` to the line's rate.
#[test]
#[ignore = "ten minutes, and the Debian packages aria2 and axel; its result is in docs/get.md"]
fn get_is_compared_with_aria2_and_axel_over_a_window_limited_path() {
    for program in ["nginx", "aria2c", "axel"] {
        if Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            eprintln!("SKIPPED: {program} is not installed: apt-get install nginx-light aria2 axel");
            return;
        }
    }
    let report = common::lab(include_str!("get_compared.toml"), &["--kernel", "6.12"]);
    let bits = 2_097_152_000.0 * 8.0;
    let mut rates = Vec::new();
    for arm in report["arms"].as_array().expect("arms") {
        let name = arm["name"].as_str().expect("a name");
        assert_eq!(common::figure(&report, name, "client_exit"), 0.0, "{name}");
        let seconds = common::figure(&report, name, "duration_s");
        eprintln!("{name:12} {seconds:.2} s, {:.2} Gb/s", bits / seconds / 1e9);
        rates.push((name.to_owned(), bits / seconds));
    }
    let best =
        |of: &str| rates.iter().filter(|(name, _)| name.starts_with(of)).map(|(_, rate)| *rate).fold(0.0, f64::max);
    let get = best("get");
    assert!(get > best("axel"), "{rates:?}");
    // The start with one range costs less than three in a hundred of this file.
    assert!(get > best("aria2") * 0.97, "{rates:?}");
}
