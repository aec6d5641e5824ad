//! What operators do with a server that runs: another configuration, other certificates, and what it says of itself.

mod common;

use common::{Client, Encoder, FPS, TlsClient, eventually, local, make_certificate, serve_logged, start, with_tls};
use std::net::SocketAddr;
use thalweg_model::{LogConfig, LogLevel};

#[test]
fn another_configuration_holds_at_once_and_those_who_play_go_on() {
    let loud = LogConfig { level: LogLevel::Debug, rate: 1_000, ..LogConfig::default() };
    let (server, seen) = serve_logged("[auth]\nplay_key = 'the-first-key'\n[hls]\ntarget = '1s'", loud);
    let (rtmp, http, api) = (server.addresses.rtmp[0], server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(rtmp, "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let token = |key: &str| {
        thalweg_edge::token::Keys::new(Some(key)).token("live/cam", 4_000_000_000, "a", None).expect("a key")
    };
    let start = |key: &str| Client::connect(http).get(&format!("/live/cam.m3u8?token={}", token(key)));
    let playlist = eventually(|| Some(start("the-first-key")).filter(|answer| answer.status == 200));
    let uri = format!("/live/{}", playlist.text().lines().last().expect("a URI"));
    assert_eq!(Client::connect(http).get(&uri).status, 200);
    assert_eq!(Client::connect(api).get("/api/streams").status, 200);

    let text = "[auth]\nplay_key = 'the-second-key'\npublish_key = 'the-third-key'\n[api]\ntoken = 'the-fourth-key'\n\
                [limits]\nhead = '300B'\nper_address = 5\n[log]\nlevel = 'debug'\nrate = 1000\n[http]\ntcp = { congestion = 'reno' }";
    assert_eq!(server.reload(local(text)).expect("taken"), Vec::<String>::new());
    eventually(|| (start("the-first-key").status == 403).then_some(()));
    eventually(|| (start("the-second-key").status == 200).then_some(()));
    assert_eq!(Client::connect(http).get(&uri).status, 200, "the session that was let in goes on");
    assert_eq!(Client::connect(api).get("/api/streams").status, 401);
    assert!(Encoder::publish(rtmp, "other").is_err());
    let long = format!("X-Long: {}\r\n", "x".repeat(300));
    eventually(|| (Client::connect(http).get_with("/", &long).status == 431).then_some(()));
    let held: Vec<_> = (0..5).map(|_| Client::connect(http)).collect();
    eventually(|| Client::connect(http).until(|_| false).is_empty().then_some(()));
    drop(held);

    let text = "[limits]\nper_address = 6000\n[log]\nlevel = 'debug'";
    let mut next = local(text);
    next.workers = Some(1);
    next.http.listen.push(SocketAddr::from(([127, 0, 0, 1], 1)));
    let restart = server.reload(next).expect("taken");
    assert_eq!(restart, ["workers", "http.listen", "http.tcp.congestion"]);
    encoder.end();
    server.drain().expect("drained");

    let lines = seen.text();
    for wanted in [
        "start",
        "listen what=http",
        "publish stream=live/cam",
        "play stream=live/cam",
        "stop stream=live/cam",
        "reload",
        "publish-refused",
        "connection-refused",
        "needs_restart=workers,http.listen",
        "unpublish stream=live/cam",
        "drain",
        "end",
    ] {
        assert!(lines.contains(wanted), "{wanted} is not in\n{lines}");
    }
    for secret in
        ["the-first", "the-second", "the-third", "the-fourth", "token=", "key=", &token("the-first-key")[10..]]
    {
        assert!(!lines.contains(secret), "{secret} is in\n{lines}");
    }
}

#[test]
fn a_full_disk_under_the_journal_costs_its_lines_alone() {
    let (server, seen) = serve_logged("[journal]\npath = '/dev/full'\n[hls]\ntarget = '1s'", LogConfig::default());
    let (http, api) = (server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    for _ in 0..20 {
        let mut client = Client::connect(http);
        client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(eventually(|| Some(client.head()).filter(|answer| answer.status != 404)).status, 200);
        assert!(client.until(|bytes| bytes.len() > 1_000).starts_with(b"FLV"));
    }
    eventually(|| {
        let text = Client::connect(api).get("/metrics").text().to_owned();
        text.contains("\nthalweg_journal_lost_total 20\n").then_some(())
    });
    assert_eq!(Client::connect(http).get("/live/cam.m3u8").status, 200);
    let lines = eventually(|| Some(seen.text()).filter(|text| text.contains("journal-failed")));
    assert!(lines.contains("path=/dev/full") && lines.contains("No space left on device"), "{lines}");
    assert_eq!(lines.matches("journal-failed").count(), 1, "one line a minute, not one for each lost line\n{lines}");
    server.drain().expect("drained");
}

#[test]
fn a_viewer_that_is_cut_off_is_told_from_one_that_left() {
    let settings = "[flv]\nstall = '1s'\ncache = '1MB'\n[http]\ntcp = { sndbuf = '16KiB' }";
    let (server, seen) = serve_logged(settings, LogConfig::default());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 1, 1_000);
    let join = || {
        eventually(|| {
            let mut client = Client::connect(server.addresses.http[0]);
            client.write("GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n");
            (client.head().status == 200).then_some(client)
        })
    };
    let (stalled, leaving) = (join(), join());
    drop(leaving);
    encoder.pictures(1, 20 * FPS, 40_000);
    eventually(|| seen.text().contains("why=\"the viewer took nothing for longer than flv.stall\"").then_some(()));
    drop(stalled);
    let mut api = Client::connect(server.addresses.api[0]);
    eventually(|| {
        let metrics = api.get("/metrics").text().to_owned();
        let counted = |reason: &str| metrics.contains(&format!("viewers_left_total{{reason=\"{reason}\"}} 1\n"));
        (counted("stalled") && counted("closed")).then_some(())
    });
    server.drain().expect("drained");
}

#[test]
fn an_operator_closes_a_publisher() {
    let (server, seen) = serve_logged("", LogConfig::default());
    let (rtmp, api) = (server.addresses.rtmp[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish_in(rtmp, "live/sub", "cam").expect("published");
    encoder.pictures(0, 2, 1_000);
    let delete = |path: &str| {
        let mut client = Client::connect(api);
        client.write(&format!("DELETE {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client.response(false).status
    };
    assert_eq!((delete("/api/streams/live/cam"), delete("/api/streams/live")), (404, 404));
    assert_eq!(delete("/api/streams/live/sub/cam"), 200);
    let lines = eventually(|| Some(seen.text()).filter(|text| text.contains("unpublish")));
    assert!(lines.contains("unpublish stream=live/sub/cam why=\"an operator ended the stream\""), "{lines}");
    assert_eq!(delete("/api/streams/live/sub/cam"), 404, "nobody publishes it any more");
    assert!(Encoder::publish_in(rtmp, "live/sub", "cam").is_ok(), "it may come back");
    server.drain().expect("drained");
}

#[test]
fn times_of_publishers_are_settings() {
    let text = "[limits]\npublish_silence = '500ms'\npublish_return = '300ms'\n[hls]\ntarget = '1s'";
    let (server, seen) = serve_logged(text, LogConfig::default());
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(server.addresses.http[0]);
    let playlist = eventually(|| Some(client.get("/live/cam.m3u8")).filter(|answer| answer.status == 200));
    let uri = format!("/live/{}", playlist.text().lines().last().expect("a URI"));
    eventually(|| client.get(&uri).text().contains("#EXT-X-ENDLIST").then_some(()));
    assert!(
        seen.text().contains(
            "unpublish stream=live/cam why=\"the publisher sent nothing for longer than limits.publish_silence\""
        ),
        "{}",
        seen.text()
    );
    server.drain().expect("drained");
}

#[test]
fn broken_certificates_leave_the_former_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = local("");
    let first = with_tls(&mut config, folder.path());
    let [certificate, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
    let server = start(config.clone(), std::sync::Arc::new(thalweg_edge::log::Log::silent()));
    let https = server.addresses.https[0];
    let mut held = TlsClient::connect(https, std::slice::from_ref(&first));
    assert_eq!(held.certificate(), first);
    let second = make_certificate(&certificate, &key);
    assert_ne!(first, second);
    let shown = || TlsClient::connect(https, &[first.clone(), second.clone()]).certificate();
    assert_eq!(server.reload(config.clone()).expect("taken"), Vec::<String>::new());
    assert_eq!(shown(), second);
    assert_eq!(held.certificate(), first, "who is connected stays so");
    assert!(held.get("/").starts_with("HTTP/1.1 404"));

    // Half a file, no file, and a key of another certificate.
    let mut other = config.clone();
    other.auth.play_key = Some(thalweg_model::Secret::new("another-key"));
    let whole = std::fs::read(&certificate).expect("read");
    std::fs::write(&certificate, &whole[..whole.len() / 2]).expect("written");
    assert!(server.reload(other.clone()).is_err() && shown() == second);
    std::fs::remove_file(&certificate).expect("removed");
    assert!(server.reload(other.clone()).is_err() && shown() == second);
    make_certificate(&certificate, &key);
    std::fs::write(&certificate, &whole).expect("written");
    assert!(server.reload(other).is_err() && shown() == second);
    // None of the broken configuration was taken: whoever asks needs no token.
    assert_eq!(Client::connect(server.addresses.http[0]).get("/live/none.m3u8").status, 404);
    server.drain().expect("drained");
}
