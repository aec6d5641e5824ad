//! Webhooks over real sockets: which are called, what they carry, and that nobody waits for an application that is slow or down.

mod common;

use common::{Client, Encoder, FPS, eventually, message, nobody_listens, serve_logged, shaken};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thalweg_media::amf::{self, Value as Amf};
use thalweg_media::rtmp::Publisher;
use thalweg_model::{LogConfig, LogLevel};

/// What an application was sent.
#[derive(Debug, Clone)]
struct Call {
    path: String,
    head: String,
    body: Vec<u8>,
}

impl Call {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// An application: `/yes` lets in, `/no` does not, `/down` fails, `/slow` takes three seconds and lets in then.
struct Application {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Application {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let calls = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&calls);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || while answer(&socket, &kept).is_some() {});
            }
        });
        Self { address, calls }
    }

    fn calls(&self, path: &str) -> Vec<Call> {
        self.calls.lock().expect("whole").iter().filter(|call| call.path == path).cloned().collect()
    }

    /// The sessions that calls of `path` named, in their order.
    fn sessions(&self, path: &str) -> Vec<String> {
        let session = |call: &Call| call.json()["session"].as_str().expect("a session").to_owned();
        let mut found: Vec<String> = self.calls(path).iter().map(session).collect();
        found.sort();
        found
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn answer(socket: &TcpStream, kept: &Mutex<Vec<Call>>) -> Option<()> {
    let mut reader = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let lower = head.to_lowercase();
    let len = lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let mut body = vec![0; len];
    reader.read_exact(&mut body).ok()?;
    kept.lock().expect("whole").push(Call { path: path.clone(), head: lower, body });
    if path.contains("slow") {
        std::thread::sleep(Duration::from_secs(3));
    }
    let status = match &path[..3] {
        "/no" => "403 Forbidden",
        "/do" => "503 Service Unavailable",
        _ => "200 OK",
    };
    let mut socket = socket;
    socket.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok").as_bytes()).ok()
}

fn loud() -> LogConfig {
    LogConfig { level: LogLevel::Debug, rate: 1_000, ..LogConfig::default() }
}

fn metric(api: SocketAddr, event: &str, outcome: &str) -> u64 {
    let text = Client::connect(api).get("/metrics").text().to_owned();
    let name = format!("thalweg_webhooks_total{{event=\"{event}\",outcome=\"{outcome}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)?.parse().ok()).expect("a figure")
}

#[test]
fn an_application_decides_and_is_told() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_publish = '{}'\non_play = '{}'\non_stop = '{}'\non_unpublish = '{}'\nsecret = 'the-signing-secret'\n\
         [hls]\ntarget = '1s'",
        application.url("/yes/publish?pass=word"),
        application.url("/yes/play"),
        application.url("/yes/stop"),
        application.url("/yes/unpublish"),
    );
    let (server, seen) = serve_logged(&text, loud());
    let (http, api) = (server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam?key=my-stream-key&room=7").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let call = application.calls("/yes/publish?pass=word").remove(0);
    let asked = call.json();
    assert_eq!((asked["event"].as_str(), asked["stream"].as_str()), (Some("on_publish"), Some("live/cam")));
    assert_eq!((asked["address"].as_str(), asked["query"].as_str()), (Some("127.0.0.1"), Some("room=7")));
    // printf my-stream-key | sha256sum
    let digest = "1066e1ba56f4af56c971d09cb375a1ece0f8eed2cbcb6b4445c7ab64db996d41";
    assert_eq!(asked["key_sha256"].as_str(), Some(digest));
    assert!(!String::from_utf8_lossy(&call.body).contains("my-stream-key"));
    assert!(call.head.contains("x-thalweg-event: on_publish\r\n"), "{}", call.head);
    let signature =
        call.head.lines().find_map(|line| line.strip_prefix("x-thalweg-signature: sha256=")).expect("signed");
    assert_eq!(signature, hmac(b"the-signing-secret", &call.body));

    // Two that ask the same at once or one after the other: the answer is known the second time.
    let mut client = Client::connect(http);
    let playlist = eventually(|| Some(client.get("/live/cam.m3u8?seat=3")).filter(|answer| answer.status == 200));
    let uri = format!("/live/{}", playlist.text().lines().last().expect("a URI"));
    let calls = application.calls("/yes/play").len();
    assert_eq!(client.get("/live/cam.m3u8?seat=3").status, 200);
    assert_eq!((application.calls("/yes/play").len(), metric(api, "on_play", "cached") > 0), (calls, true));
    let asked = application.calls("/yes/play")[0].json();
    assert_eq!((asked["protocol"].as_str(), asked["query"].as_str()), (Some("hls"), Some("seat=3")));
    assert_eq!((asked["agent"].as_str(), asked["address"].as_str()), (Some("test"), Some("127.0.0.1")));
    assert!(client.get(&uri).text().contains(".ts"));
    assert_eq!(client.get("/live/none.m3u8").status, 404, "nobody is asked about a stream that is not there");
    assert_eq!(application.calls("/yes/play").len(), calls);

    // A request behind the one that waits is answered after it, in order.
    client.write("GET /live/cam.flv?seat=4 HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.head().status, 200);
    let media = client.until(|bytes| bytes.len() > 1_000);
    assert!(media.starts_with(b"FLV"));
    drop(client);
    let stop = eventually(|| {
        let calls = application.calls("/yes/stop");
        calls.iter().map(Call::json).find(|call| call["viewer"]["protocol"] == "flv")
    });
    assert_eq!((stop["event"].as_str(), stop["stream"].as_str()), (Some("on_stop"), Some("live/cam")));
    assert!(stop["viewer"]["bytes"].as_u64().expect("bytes") > 1_000, "{stop}");
    assert!(stop["viewer"]["tcp"]["rtt_us"].as_u64().expect("the connection") > 0, "{stop}");
    assert_eq!(stop["session"], stop["viewer"]["id"]);

    encoder.end();
    let told = eventually(|| application.calls("/yes/unpublish").first().map(Call::json));
    assert_eq!(told["why"].as_str(), Some("the publisher ended the stream"));
    // The bytes are those of a publication, not of those before it.
    Encoder::publish(server.addresses.rtmp[0], "cam").expect("published").end();
    let again = eventually(|| application.calls("/yes/unpublish").get(1).map(Call::json));
    let received = [&told, &again].map(|told| told["received_bytes"].as_u64().expect("bytes"));
    assert!(received[0] > 50_000 && (1..1_000).contains(&received[1]), "{received:?}");
    assert_ne!(told["id"], again["id"]);
    server.drain().expect("drained");
    let hls = application
        .calls("/yes/stop")
        .iter()
        .map(Call::json)
        .filter(|call| call["viewer"]["protocol"] == "hls")
        .count();
    assert!(hls > 0, "whoever plays when the server ends is told of");
    let lines = seen.text();
    for secret in ["my-stream-key", "the-signing-secret", "pass=word", "seat=", "room="] {
        assert!(!lines.contains(secret), "{secret} is in\n{lines}");
    }
}

/// HMAC-SHA256 (RFC 2104), said once more so that two must agree.
fn hmac(key: &[u8], text: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    let outer = Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn no_is_no_and_remembered() {
    let application = Application::start();
    let text =
        format!("[webhooks]\non_play = '{}'\non_publish = '{}'", application.url("/no/play"), application.url("/yes"));
    let (server, _) = serve_logged(&text, loud());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2, 1_000);
    let mut client = Client::connect(server.addresses.http[0]);
    for _ in 0..3 {
        assert_eq!(eventually(|| Some(client.get("/live/cam.flv")).filter(|answer| answer.status != 404)).status, 403);
        assert_eq!(client.get("/live/cam.m3u8").status, 403);
    }
    assert_eq!(application.calls("/no/play").len(), 2, "once for each way of playing");
    // A session's id is not to be had elsewhere either.
    let forged = thalweg_edge::token::Keys::new(None).session(8, "live/cam", None, "", 4_000_000_000).id("");
    assert_eq!(client.get(&format!("/live/cam/{forged}/index.m3u8")).status, 403);
    server.drain().expect("drained");

    let (server, seen) =
        serve_logged(&format!("[webhooks]\non_publish = '{}'", application.url("/no/publish")), loud());
    let refused = Encoder::publish(server.addresses.rtmp[0], "cam").err();
    assert_eq!(refused.as_deref(), Some("NetStream.Publish.Denied"));
    assert_eq!(Client::connect(server.addresses.http[0]).get("/live/cam.flv").status, 404);
    eventually(|| seen.text().contains("(webhooks.on_publish) refuses this stream").then_some(()));
    server.drain().expect("drained");
}

#[test]
fn a_publisher_is_refused_for_the_true_reason() {
    let application = Application::start();
    let (_kept, nowhere) = nobody_listens();
    for (url, code, reason) in [
        (format!("http://{nowhere}/"), "NetStream.Publish.Rejected", "gives no usable answer"),
        (application.url("/down/publish"), "NetStream.Publish.Rejected", "gives no usable answer"),
        (application.url("/no/publish"), "NetStream.Publish.Denied", "refuses this stream"),
    ] {
        let text = format!(
            "[auth]\npublish_key = 'the-right-key'\n[webhooks]\non_publish = '{url}'\nretries = 0\ntimeout = '1s'"
        );
        let (server, seen) = serve_logged(&text, loud());
        let refused = Encoder::publish(server.addresses.rtmp[0], "cam?key=the-right-key").err();
        assert_eq!(refused.as_deref(), Some(code), "{url}");
        let lines = eventually(|| Some(seen.text()).filter(|lines| lines.contains("publish-refused")));
        server.drain().expect("drained");
        let line = lines.lines().find(|line| line.contains("publish-refused")).expect("a line");
        assert!(line.contains(reason) && !line.contains("key is wrong"), "{line}");
    }
}

#[test]
fn each_session_has_one_on_play_and_one_on_stop() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_play = '{}'\non_stop = '{}'\n[hls]\ntarget = '1s'\nexpiry = '500ms'",
        application.url("/yes/play"),
        application.url("/yes/stop"),
    );
    let (server, _) = serve_logged(&text, loud());
    let http = server.addresses.http[0];
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(http);
    eventually(|| (client.get("/live/cam.m3u8").status == 200).then_some(()));
    // Sessions that play, and one that does not, let in by an answer that is known.
    let entries: Vec<String> = (0..4).map(|_| client.get("/live/cam.m3u8").text().to_owned()).collect();
    for entry in &entries[..3] {
        assert_eq!(client.get(&format!("/live/{}", entry.lines().last().expect("a URI"))).status, 200);
    }
    // A session that was asked about and never plays.
    assert_eq!(client.get("/live/cam.m3u8?seat=1").status, 200);
    for _ in 0..3 {
        let mut client = Client::connect(http);
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(client.head().status, 200);
    }
    // One that leaves before the answer comes.
    let mut gone = Client::connect(http);
    gone.write("GET /live/cam.flv?seat=2 HTTP/1.1\r\nHost: a\r\n\r\n");
    drop(gone);
    // The first poll, three that play, seat 1, three FLV, and seat 2 where it was read before its end.
    eventually(|| {
        let stops = application.sessions("/yes/stop");
        (stops.len() >= 8 && stops == application.sessions("/yes/play")).then_some(())
    });
    server.drain().expect("drained");
    let (plays, stops) = (application.sessions("/yes/play"), application.sessions("/yes/stop"));
    assert_eq!(plays, stops);
    let mut distinct = plays.clone();
    distinct.dedup();
    assert_eq!(plays, distinct, "each once");
    assert!((8..=9).contains(&plays.len()), "{plays:?}");
    let calls = application.calls("/yes/play");
    let (known, asked): (Vec<_>, Vec<_>) = calls.iter().map(Call::json).partition(|call| call["known"] == true);
    assert!(known.len() >= 3, "those that were let in by a known answer are sent as well");
    let mut fields = asked[0].clone();
    fields["known"] = true.into();
    let names = |call: &Value| call.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&known[0]), names(&fields));
    assert_eq!(known[0]["subject"], asked[0]["subject"]);
}

#[test]
fn on_stop_follows_an_on_play_that_is_answered_while_the_server_ends() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_play = '{}'\non_stop = '{}'\ntimeout = '5s'\n[hls]\ntarget = '1s'\n[limits]\ndrain = '10s'",
        application.url("/slow/play"),
        application.url("/yes/stop"),
    );
    let (server, _) = serve_logged(&text, loud());
    let http = server.addresses.http[0];
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let ask = |path: &str| {
        let mut client = Client::connect(http);
        client.write(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client
    };
    // One that leaves before the answer, too.
    let waiting = [ask("/live/cam.flv"), ask("/live/cam.m3u8")];
    let gone = ask("/live/cam.flv?seat=2");
    eventually(|| (application.calls("/slow/play").len() == 3).then_some(()));
    drop(gone);
    server.drain().expect("drained");
    assert_eq!(
        (application.sessions("/slow/play").len(), application.sessions("/yes/stop")),
        (3, application.sessions("/slow/play"))
    );
    drop(waiting);
}

#[test]
fn each_on_publish_that_is_accepted_has_one_on_unpublish() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_publish = '{}'\non_unpublish = '{}'\ntimeout = '5s'\n[limits]\ndrain = '10s'",
        application.url("/slow/publish"),
        application.url("/yes/unpublish"),
    );
    let (server, _) = serve_logged(&text, loud());
    let rtmp = server.addresses.rtmp[0];
    // Two want the same stream, which one gets.
    let both = [(); 2].map(|()| std::thread::spawn(move || Encoder::publish(rtmp, "cam")));
    let both = both.map(|one| one.join().expect("whole"));
    assert_eq!(both.iter().filter(|one| one.is_ok()).count(), 1, "one is refused: the stream is being published");
    let told = eventually(|| application.calls("/yes/unpublish").first().map(Call::json));
    assert!(told["why"].as_str().is_some_and(|why| why.contains("publishes under this name")), "{told}");
    assert_eq!((told["published_ms"].as_u64(), told["received_bytes"].as_u64()), (Some(0), Some(0)));

    // One is asked about while the server ends.
    let late = std::thread::spawn(move || Encoder::publish(rtmp, "other"));
    eventually(|| (application.calls("/slow/publish").len() == 3).then_some(()));
    server.drain().expect("drained");
    assert!(late.join().expect("whole").is_err());
    let (asked, told) = (application.sessions("/slow/publish"), application.sessions("/yes/unpublish"));
    assert_eq!((asked.len(), &told), (3, &asked));
    let last = application.calls("/yes/unpublish").iter().map(Call::json).find(|call| call["stream"] == "live/other");
    assert_eq!(last.expect("told")["why"].as_str(), Some("the server ends"));
}

#[test]
fn who_closes_while_the_application_is_asked_has_closed() {
    let application = Application::start();
    let (server, seen) = serve_logged(
        &format!("[webhooks]\non_publish = '{}'\ntimeout = '5s'", application.url("/slow/publish")),
        loud(),
    );
    let mut socket = TcpStream::connect(server.addresses.rtmp[0]).expect("connected");
    socket.set_read_timeout(Some(Duration::from_millis(50))).expect("set");
    let (mut session, mut buffer) = (Publisher::new([7; 1536], "live", "cam"), [0; 4096]);
    eventually(|| {
        socket.write_all(session.output()).expect("sent");
        session.sent(session.output().len());
        let got = socket.read(&mut buffer).unwrap_or(0);
        let mut input = &buffer[..got];
        while session.handle(&mut input).expect("RTMP").is_some() {}
        (application.calls("/slow/publish").len() == 1).then_some(())
    });
    drop(socket);
    let lines = eventually(|| Some(seen.text()).filter(|text| text.contains(" unpublish ")));
    assert!(lines.contains("the publisher closed the connection") || lines.contains("was reset"), "{lines}");
    server.drain().expect("drained");
}

#[test]
fn each_publication_of_a_connection_has_its_session() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_publish = '{}'\non_unpublish = '{}'",
        application.url("/yes/publish"),
        application.url("/yes/unpublish"),
    );
    let (server, _) = serve_logged(&text, loud());
    let mut socket = shaken(server.addresses.rtmp[0]);
    let call = |stream: u8, name: &str, number: f64, more: &[Amf]| {
        let (mut payload, head) = (Vec::new(), [name.into(), number.into(), Amf::Null]);
        amf::encode(&[&head[..], more].concat(), &mut payload);
        message(20, stream, &payload)
    };
    let mut calls = [call(0, "connect", 1.0, &[]), call(0, "createStream", 2.0, &[])].concat();
    for _ in 0..2 {
        calls.extend(call(1, "publish", 3.0, &["live/cam".into()]));
        calls.extend(call(1, "closeStream", 0.0, &[]));
    }
    socket.write_all(&calls).expect("sent");
    eventually(|| (application.calls("/yes/unpublish").len() == 2).then_some(()));
    let (asked, told) = (application.sessions("/yes/publish"), application.sessions("/yes/unpublish"));
    assert!(asked == told && asked[0] != asked[1], "{asked:?} {told:?}");
    drop(socket);
    server.drain().expect("drained");
}

#[test]
fn a_refused_on_publish_has_no_on_unpublish_when_the_server_ends() {
    let application = Application::start();
    let text = format!(
        "[webhooks]\non_publish = '{}'\non_unpublish = '{}'\ntimeout = '5s'\n[limits]\ndrain = '10s'",
        application.url("/no/slow"),
        application.url("/yes/unpublish"),
    );
    let (server, _) = serve_logged(&text, loud());
    let rtmp = server.addresses.rtmp[0];
    let late = std::thread::spawn(move || Encoder::publish(rtmp, "cam"));
    eventually(|| (application.calls("/no/slow").len() == 1).then_some(()));
    server.drain().expect("drained");
    assert!(late.join().expect("whole").is_err());
    assert!(application.calls("/yes/unpublish").is_empty());
}

#[test]
fn where_nobody_answers_the_configuration_decides() {
    let application = Application::start();
    let (_kept, nowhere) = nobody_listens();
    for (fail, status) in [("open", 200), ("closed", 503)] {
        for url in [application.url(&format!("/down/{fail}")), format!("http://{nowhere}/")] {
            let text = format!(
                "[webhooks]\non_play = '{url}'\non_stop = '{url}'\nfail = '{fail}'\nretries = 2\nbackoff = '10ms'\ntimeout = '1s'\n\
                 cache = '0s'",
            );
            let (server, seen) = serve_logged(&text, loud());
            let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
            encoder.pictures(0, 2, 1_000);
            let answer = eventually(|| {
                let mut client = Client::connect(server.addresses.http[0]);
                client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
                Some(client.head()).filter(|answer| answer.status != 404)
            });
            assert_eq!(answer.status, status, "{fail} {url}");
            assert!(metric(server.addresses.api[0], "on_play", "failed") > 0);
            server.drain().expect("drained");
            assert!(seen.text().contains("webhook-failed event=on_play host=127.0.0.1 attempts=3"), "{}", seen.text());
        }
    }
    assert_eq!(application.calls("/down/closed").len(), 3, "one question, asked three times");
}

#[test]
fn nobody_else_waits_for_a_slow_application() {
    let application = Application::start();
    let text = format!(
        "workers = 1\n[webhooks]\non_play = '{}'\non_stop = '{}'\ntimeout = '10s'\nqueue = 2\nconnections = 1\n[hls]\ntarget = '1s'",
        application.url("/yes/play"),
        application.url("/slow/stop"),
    );
    let (server, _) = serve_logged(&text, loud());
    let (rtmp, http, api) = (server.addresses.rtmp[0], server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(rtmp, "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(http);
    let playlist = eventually(|| Some(client.get("/live/cam.m3u8")).filter(|answer| answer.status == 200));
    let uri = format!("/live/{}", playlist.text().lines().last().expect("a URI"));

    // From here on every question takes three seconds; one publisher and many viewers ask.
    let slow = text
        .replace("/yes/play", "/slow/play")
        .replace("[webhooks]", &format!("[webhooks]\non_publish = '{}'", application.url("/slow/publish")));
    let mut config = common::local(&slow);
    config.workers = Some(1);
    server.reload(config).expect("taken");
    let begun = Instant::now();
    let publisher = std::thread::spawn(move || Encoder::publish(rtmp, "late").map(drop));
    let mut waiting: Vec<Client> = (0..2).map(|_| Client::connect(http)).collect();
    eventually(|| (!application.calls("/slow/publish").is_empty()).then_some(()));
    for (at, client) in waiting.iter_mut().enumerate() {
        client.write(&format!("GET /live/cam.flv?seat={at} HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    let mut most = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(2) {
        let asked = Instant::now();
        assert_eq!(client.get(&uri).status, 200);
        most = most.max(asked.elapsed());
        assert_eq!(Client::connect(http).get("/live/late.m3u8").status, 404, "nothing is shown before it is let in");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(most < Duration::from_secs(1), "a playlist took {most:?} beside a slow application");
    // The queue holds two: a third one is turned away at once.
    let mut third = Client::connect(http);
    assert_eq!(third.get("/live/cam.flv?seat=9").status, 503);
    assert!(begun.elapsed() < Duration::from_secs(3) || metric(api, "on_play", "dropped") > 0);
    assert_eq!(publisher.join().expect("joined"), Ok(()));
    for client in &mut waiting {
        assert_eq!(client.head().status, 200);
    }
    // `on_stop` is sent one at a time; calls beyond the queue are counted.
    drop(waiting);
    let many: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::connect(http);
            client.write("GET /live/cam.flv?seat=0 HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.head().status, 200);
            client
        })
        .collect();
    drop(many);
    eventually(|| (metric(api, "on_stop", "dropped") > 0).then_some(()));
    encoder.end();
    server.drain().expect("drained");
}
