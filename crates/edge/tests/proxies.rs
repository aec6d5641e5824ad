//! A server behind proxies knows each viewer's own address, and believes nobody else about it.

mod common;

use common::{Client, Encoder, FPS, TlsClient, eventually, local, serve, start, with_tls};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thalweg_edge::log::Log;

/// The addresses of all viewers, once there are `count`.
fn addresses(api: SocketAddr, count: usize) -> Vec<String> {
    let mut api = Client::connect(api);
    eventually(|| {
        let viewers: serde_json::Value = serde_json::from_str(api.get("/api/viewers").text()).expect("JSON");
        let viewers = viewers["viewers"].as_array().expect("a list");
        let mut addresses: Vec<String> =
            viewers.iter().map(|viewer| viewer["address"].as_str().expect("an address").to_owned()).collect();
        addresses.sort();
        (addresses.len() == count).then_some(addresses)
    })
}

fn publish(server: &thalweg_edge::server::Server) -> Encoder {
    let mut encoder = Encoder::publish(server.addresses.rtmp[0], "cam").expect("published");
    encoder.pictures(0, 3 * FPS + 1, 1_000);
    let mut api = Client::connect(server.addresses.api[0]);
    eventually(|| api.get("/api/streams").text().contains("\"live\":true").then_some(()));
    encoder
}

#[test]
fn a_proxy_header_tells_whose_a_connection_is() {
    let server = serve("trusted_proxies = ['127.0.0.1']\n[http]\nproxy_protocol = true\n[limits]\nper_address = 1");
    let _encoder = publish(&server);
    let http = server.addresses.http[0];
    let request = "GET /live/cam.flv HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut one = Client::connect(http);
    one.write(&format!("PROXY TCP4 192.0.2.1 192.0.2.9 1 2\r\n{request}"));
    assert_eq!(one.head().status, 200);
    let mut two = Client::connect(http);
    let header = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc6\x33\x64\x07\0\0\0\0\0\0\0\0", request.as_bytes()].concat();
    for byte in header {
        two.socket.write_all(&[byte]).expect("sent");
    }
    assert_eq!(two.head().status, 200);
    let mut again = Client::connect(http);
    again.write(&format!("PROXY TCP4 192.0.2.1 192.0.2.9 3 2\r\n{request}"));
    assert_eq!(again.until(|_| false).len(), 0, "one from each address, not from the proxy");
    let mut bare = Client::connect(http);
    bare.write(request);
    assert_eq!(bare.until(|_| false).len(), 0, "a header has to be there");
    assert_eq!(addresses(server.addresses.api[0], 2), ["192.0.2.1", "198.51.100.7"]);
    server.drain().expect("drained");
}

#[test]
fn a_proxy_header_goes_before_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = local("trusted_proxies = ['127.0.0.1']\n[http]\nproxy_protocol = true");
    let certificate = with_tls(&mut config, folder.path());
    let server = start(config, Arc::new(Log::silent()));
    let _encoder = publish(&server);
    let mut socket = TcpStream::connect(server.addresses.https[0]).expect("connected");
    socket.write_all(b"PROXY TCP6 2001:db8::7 ::1 1 2\r\n").expect("sent");
    let mut client = TlsClient::over(socket, &[certificate]);
    assert!(client.get("/live/cam.flv").starts_with("HTTP/1.1 200"));
    assert_eq!(addresses(server.addresses.api[0], 1), ["2001:db8::7"]);
    server.drain().expect("drained");
}

#[test]
fn a_proxy_that_nobody_trusts_is_turned_away() {
    let server = serve("trusted_proxies = ['192.0.2.0/24']\n[http]\nproxy_protocol = true");
    let mut client = Client::connect(server.addresses.http[0]);
    let _ = client.socket.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.9 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut rest = Vec::new();
    // Closed, or reset for what it had sent.
    let _ = std::io::Read::read_to_end(&mut client.socket, &mut rest);
    assert!(rest.is_empty());
    server.drain().expect("drained");
}

#[test]
fn who_is_forwarded_for_is_believed_from_a_trusted_proxy_alone() {
    for (trusted, found) in [("127.0.0.1", ["127.0.0.1", "198.51.100.7"]), ("192.0.2.1", ["127.0.0.1", "127.0.0.1"])] {
        let server = serve(&format!("trusted_proxies = ['{trusted}']"));
        let _encoder = publish(&server);
        let mut client = Client::connect(server.addresses.http[0]);
        for field in ["", "X-Forwarded-For: 10.0.0.1, 198.51.100.7\r\n"] {
            let entry = client.get_with("/live/cam.m3u8", field);
            let path = format!("/live/{}", entry.text().lines().last().expect("a URI"));
            assert_eq!(client.get_with(&path, field).status, 200);
        }
        assert_eq!(addresses(server.addresses.api[0], 2), found);
        server.drain().expect("drained");
    }
}

#[test]
fn a_session_of_a_bound_token_plays_from_its_address_alone() {
    let server = serve("trusted_proxies = ['127.0.0.1']\n[auth]\nplay_key = 'a-long-key'\n[hls]\ntarget = '1s'");
    let _encoder = publish(&server);
    let keys = thalweg_edge::token::Keys::new(Some("a-long-key"));
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("past 1970").as_secs();
    let home = "198.51.100.7".parse().expect("an address");
    let token = keys.token("live/cam", now_s + 60, "alice", Some(home)).expect("a key");
    let mut client = Client::connect(server.addresses.http[0]);
    let (here, there) = ("X-Forwarded-For: 198.51.100.7\r\n", "X-Forwarded-For: 198.51.100.8\r\n");
    let start = format!("/live/cam.m3u8?token={token}");
    assert_eq!(client.get_with(&start, there).status, 403);
    let entry = client.get_with(&start, here);
    let path = format!("/live/{}", entry.text().lines().last().expect("a URI"));
    for _ in 0..2 {
        assert_eq!(client.get_with(&path, there).status, 403);
        assert_eq!(client.get_with(&path, here).status, 200);
    }
    server.drain().expect("drained");
}

#[test]
fn a_connection_that_asks_too_often_ends() {
    let server = serve("[limits]\nrequest_rate = 5");
    let mut client = Client::connect(server.addresses.http[0]);
    let begun = Instant::now();
    client.write(&"GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20));
    let statuses: Vec<u16> = std::iter::from_fn(|| {
        let status = client.response(false).status;
        (status == 404).then_some(status)
    })
    .collect();
    // A second may have ended meanwhile.
    let most = 5 * (1 + begun.elapsed().as_secs() as usize + 1);
    assert!(statuses.len() >= 5 && statuses.len() <= most, "{}", statuses.len());
    let mut calm = Client::connect(server.addresses.http[0]);
    for _ in 0..8 {
        assert_eq!(calm.get("/").status, 404);
        std::thread::sleep(Duration::from_millis(250));
    }
    server.drain().expect("drained");
}
