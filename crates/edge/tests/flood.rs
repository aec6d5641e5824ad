//! A flood of requests from one address costs neither memory nor other viewers' journal lines.

mod common;

use common::{Client, Encoder, FPS, eventually, serve};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

fn json(api: SocketAddr, path: &str) -> Value {
    serde_json::from_str(Client::connect(api).get(path).text()).expect("JSON")
}

#[test]
fn polls_of_the_entry_playlist_are_no_viewers() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let text = format!(
        "[hls]\ntarget = '1s'\nexpiry = '300ms'\n[limits]\nrequest_rate = 1000000\n[journal]\npath = '{}'",
        journal.display()
    );
    let server = serve(&text);
    let (http, api) = (server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(http);
    let start = eventually(|| Some(client.get("/live/cam.m3u8")).filter(|answer| answer.status == 200));
    let resident = |statistics: Value| statistics["resident_bytes"].as_u64().expect("a number");
    let before = resident(json(api, "/api/statistics"));
    let until = Instant::now() + Duration::from_millis(1_500);
    let polls: usize = std::thread::scope(|scope| {
        let poll = || {
            let mut client = Client::connect(http);
            (0..).take_while(|_| Instant::now() < until && client.get("/live/cam.m3u8").status == 200).count()
        };
        let threads: Vec<_> = (0..20).map(|_| scope.spawn(poll)).collect();
        threads.into_iter().map(|thread| thread.join().expect("polled")).sum()
    });
    assert!(polls > 1_000, "{polls} polls make no flood");
    // One viewer plays meanwhile.
    assert_eq!(client.get(&format!("/live/{}", start.text().lines().last().expect("a URI"))).status, 200);
    let viewers = Client::connect(api).get("/api/viewers");
    let list: Value = serde_json::from_str(viewers.text()).expect("JSON");
    assert_eq!((list["total"].as_u64(), list["viewers"].as_array().map(Vec::len)), (Some(1), Some(1)), "{polls} polls");
    assert!(viewers.body.len() < 2_000, "{} bytes", viewers.body.len());
    let more = resident(json(api, "/api/statistics")).saturating_sub(before);
    assert!(more < 16 << 20, "{more} bytes for {polls} polls");
    eventually(|| (json(api, "/api/viewers")["total"] == 0).then_some(()));
    server.drain().expect("drained");
    let lines = std::fs::read_to_string(&journal).expect("the journal");
    assert_eq!(lines.lines().count(), 1, "{lines}");
}

#[test]
fn a_page_of_viewers_has_one_at_least() {
    let server = serve("");
    let mut client = Client::connect(server.addresses.api[0]);
    for (query, status) in
        [("limit=0", 400), ("limit=-1", 400), ("after=zz", 400), ("limit=1", 200), ("limit=99999", 200)]
    {
        assert_eq!(client.get(&format!("/api/viewers?{query}")).status, status, "{query}");
    }
    server.drain().expect("drained");
}

#[test]
fn a_question_that_cannot_be_answered_is_named() {
    let server = serve("");
    let mut api = Client::connect(server.addresses.api[0]);
    for (path, status, why) in [
        ("/api/viewers?limit=abc", 400, "limit is a number, at least 1"),
        ("/api/viewers?limit=0", 400, "limit is a number, at least 1"),
        ("/api/viewers?after=x", 400, "after is the 'next'"),
        ("/api/viewers?name=a", 400, "unknown parameter 'name'"),
        ("/api/streams?x=1", 400, "unknown parameter 'x'"),
        ("/api/viewers?limit=5&limit=6", 400, "the parameter 'limit' is given more than once"),
        ("/api/streem", 404, "nothing at this path"),
    ] {
        let answer = api.get(path);
        let body: Value = serde_json::from_str(answer.text()).expect("JSON");
        assert_eq!(answer.status, status, "{path}");
        assert!(body["error"].as_str().is_some_and(|error| error.contains(why)), "{path}: {body}");
    }
    for (line, allow) in [("DELETE /api/viewers", "GET, HEAD"), ("GET /api/viewers/1", "DELETE")] {
        api.write(&format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let answer = api.response(false);
        assert_eq!((answer.status, answer.field("Allow")), (405, Some(allow)), "{line}");
    }
    server.drain().expect("drained");
}

#[test]
fn sessions_and_journal_lines_of_one_address_are_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let text = format!(
        "[hls]\ntarget = '1s'\nexpiry = '100ms'\n[limits]\nrequest_rate = 1000000\nviewers_per_address = 50\n\
         [journal]\npath = '{}'",
        journal.display()
    );
    let server = serve(&text);
    let (http, api) = (server.addresses.http[0], server.addresses.api[0]);
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 2 * FPS + 1, 1_000);
    let mut client = Client::connect(http);
    eventually(|| (client.get("/live/cam.m3u8").status == 200).then_some(()));
    let (mut entered, mut refused) = (0_u64, 0_u64);
    for _ in 0..400 {
        let start = client.get("/live/cam.m3u8");
        let uri = format!("/live/{}", start.text().lines().last().expect("a URI"));
        match client.get(&uri).status {
            200 => entered += 1,
            429 => refused += 1,
            other => panic!("status {other}"),
        }
        assert!(json(api, "/api/viewers")["total"].as_u64().expect("a number") <= 50);
    }
    assert!(entered >= 50 && refused > 0, "{entered} entered, {refused} were refused");
    let page = json(api, "/api/viewers?limit=2");
    if page["total"].as_u64() > Some(2) {
        assert_eq!(page["viewers"].as_array().map(Vec::len), Some(2));
        assert!(page["next"].is_string(), "{page}");
    }
    server.drain().expect("drained");
    let lines = std::fs::read_to_string(&journal).expect("the journal");
    let parsed: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let own = parsed.iter().filter(|line| line["id"].is_string()).count() as u64;
    let summed: u64 = parsed.iter().filter_map(|line| line["left_out"].as_u64()).sum();
    assert_eq!(own + summed, entered, "each viewer once");
}
