//! `thalweg tune attach`, `canary` and `congestion` as they are typed, on connections of this process in a cgroup of its own.
//!
//! Needs root, cgroup2 and BPF; where a host lets nobody have them, that is said.

mod common;
#[path = "common/schemas.rs"]
mod schemas;

use common::{run, texts, thalweg};
use schemas::Schemas;
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A BPF file system in a folder, and a cgroup that this process is in; both end with it.
struct Ground {
    folder: tempfile::TempDir,
    cgroup: PathBuf,
    /// A process is in one cgroup.
    _only: MutexGuard<'static, ()>,
}

static ONLY: Mutex<()> = Mutex::new(());

impl Ground {
    fn new() -> Result<Self, String> {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().expect("a folder");
        let pins = folder.path().join("bpf");
        fs::create_dir(&pins).expect("a folder");
        let mounts = fs::read_to_string("/proc/self/mounts").expect("mounts");
        let root = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[2] == "cgroup2");
        let root = root.ok_or("no cgroup2 is mounted")?[1].to_owned();
        let cgroup = Path::new(&root).join(format!("thalweg-attach-{}", std::process::id()));
        let mounted = Command::new("mount").args(["-t", "bpf", "none"]).arg(&pins).output().expect("mount");
        if !mounted.status.success() {
            return Err(format!("no BPF file system: {}", texts(&mounted).1));
        }
        let ground = Self { folder, cgroup, _only: only };
        fs::create_dir(&ground.cgroup).map_err(|error| format!("no cgroup can be made: {error}"))?;
        fs::write(ground.cgroup.join("cgroup.procs"), "0")
            .map_err(|error| format!("no cgroup can be joined: {error}"))?;
        Ok(ground)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// `thalweg tune VERB` with the folder of names.
    fn tune(&self, words: &str, code: i32) -> (String, String) {
        let mut all = vec!["tune"];
        all.extend(words.split(' '));
        all.extend(["--pins", "bpf/t"]);
        run(self.path(), &all, code)
    }

    /// What is attached as `name`.
    fn attached(&self, name: &str) -> Value {
        let all: Value = serde_json::from_str(&self.tune("attached --json", 0).0).expect("JSON");
        Schemas::default().check(&all);
        let programs = all["programs"].as_array().expect("programs").clone();
        programs.into_iter().find(|one| one["name"] == name).expect("it is listed")
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let parent = self.cgroup.parent().expect("a parent");
        let _ = fs::write(parent.join("cgroup.procs"), "0");
        // Connections that close keep it busy for a moment.
        let until = Instant::now() + Duration::from_secs(5);
        while fs::remove_dir(&self.cgroup).is_err() && self.cgroup.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = Command::new("umount").arg("--lazy").arg(self.folder.path().join("bpf")).status();
    }
}

/// A server that answers each connection with so many bytes.
fn server(bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let answer = vec![7; bytes];
        for mut stream in listener.incoming().flatten() {
            let _ = stream.write_all(&answer);
        }
    });
    address
}

fn download(from: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(from).expect("connected");
    let (mut all, mut buffer) = (0, vec![0; 1 << 18]);
    loop {
        match stream.read(&mut buffer).expect("read") {
            0 => return all,
            count => all += count,
        }
    }
}

/// Downloads one after the other until it is dropped.
struct Downloads {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Downloads {
    fn begin(from: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                download(from);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

#[test]
fn a_share_of_connections_is_set_and_counted_and_a_harmful_setting_is_stopped() {
    let ground = match Ground::new() {
        Ok(ground) => ground,
        Err(why) => {
            return writeln!(std::io::stderr(), "SKIPPED: settings of a cgroup's connections: {why}").expect("stderr");
        }
    };
    let cgroup = ground.cgroup.display().to_string();
    let from = server(64_000);
    let port = from.port();
    let attach =
        format!("attach edge --cgroup {cgroup} --port {port} --initial-window 33 --share 50 --first-bytes 20kB");
    let (out, _) = ground.tune(&attach, 0);
    assert!(out.contains(&format!("local port {port}, 50 %: initial window 33")), "{out}");
    for _ in 0..300 {
        assert_eq!(download(from), 64_000);
    }
    let edge = ground.attached("edge");
    let [without, with] = ["without", "with"].map(|arm| edge[arm].clone());
    let sum = |field: &str| without[field].as_u64().expect("a number") + with[field].as_u64().expect("a number");
    assert_eq!((sum("opened"), sum("first_bytes"), sum("refused")), (300, 300, 0), "{edge}");
    // Of 300 a half, within five standard deviations.
    assert!((107..=193).contains(&with["opened"].as_u64().expect("a number")), "{edge}");
    let (out, _) = ground.tune("attached", 0);
    assert!(out.contains("initial window 33") && out.contains("to first bytes"), "{out}");
    let (_, err) = ground.tune(&attach, 2);
    assert!(err.contains("attached already") && err.contains("hint:"), "{err}");

    // A window of two segments makes each download of two megabytes wait for many acknowledgements.
    let slow = server(2_000_000);
    ground.tune(
        &format!("attach slow --cgroup {cgroup} --port {} --cwnd-clamp 2 --share 0 --first-bytes 1900kB", slow.port()),
        0,
    );
    let downloads = Downloads::begin(slow);
    let canary =
        ["tune", "canary", "slow", "--steps", "40,50", "--step-time", "60s", "--look", "200ms", "--error", "0.001"];
    let output =
        thalweg(ground.path(), &[&canary[..], &["--pins", "bpf/t", "--json"]].concat()).output().expect("starts");
    drop(downloads);
    let (out, err) = texts(&output);
    let told: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
    Schemas::default().check(&told);
    assert_eq!((output.status.code(), told["outcome"].as_str()), (Some(1), Some("harm")), "{told}");
    // A busy machine may need the second step; it ends as soon as it is decided.
    assert!(told["steps"].as_u64().is_some_and(|steps| steps <= 2), "{told}");
    assert_eq!(ground.attached("slow")["share_percent"], 0, "{told}");

    ground.tune("detach slow", 0);
    ground.tune("detach edge", 0);
    let (_, err) = ground.tune("attached", 0);
    assert!(err.contains("nothing is attached"), "{err}");
    download(from);
}

#[test]
fn a_congestion_control_is_loaded_used_and_gone() {
    let skip =
        |why: &str| writeln!(std::io::stderr(), "SKIPPED: a congestion control of our own: {why}").expect("stderr");
    let ground = match Ground::new() {
        Ok(ground) => ground,
        Err(why) => return skip(&why),
    };
    let output = |verb: &str| {
        thalweg(ground.path(), &["tune", "congestion", verb, "--pin", "bpf/periodic"]).output().expect("starts")
    };
    let loaded = output("load");
    match (loaded.status.code(), texts(&loaded).1) {
        (Some(0), _) => {}
        (Some(3), why) if ["CONFIG_BPF_JIT", "CAP_BPF"].iter().any(|hint| why.contains(hint)) => return skip(&why),
        other => panic!("{other:?}"),
    }
    let again = output("load");
    assert!(again.status.code() == Some(2) && texts(&again).1.contains("hint:"), "{again:?}");
    assert!(texts(&output("list")).0.contains("periodic  loaded by thalweg"));

    // Connections of a port use it, with the share that the plan gives them.
    let from = server(500_000);
    let cgroup = ground.cgroup.display();
    ground.tune(
        &format!("attach car --cgroup {cgroup} --port {} --congestion periodic --initial-window 4", from.port()),
        0,
    );
    assert_eq!(download(from), 500_000);
    let with = &ground.attached("car")["with"];
    assert_eq!((&with["opened"], &with["refused"]), (&1.into(), &0.into()), "{with}");
    ground.tune("detach car", 0);

    assert_eq!(output("unload").status.code(), Some(0));
    assert!(!texts(&output("list")).0.contains("periodic"));
    let none = output("unload");
    assert!(none.status.code() == Some(2) && texts(&none).1.contains("nothing is loaded"), "{none:?}");
}

#[test]
fn what_cannot_be_attached_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    for (words, code, wanted) in [
        ("attach edge --port 443", 2, "nothing is to be set"),
        ("attach edge --congestion nosuch", 2, "does not have the congestion control nosuch"),
        ("attach Edge --initial-window 40", 2, "small letters"),
        ("attach edge --initial-window 40 --to 10.0.0.0/40", 2, "0 to 32"),
        ("attach edge --rto-min 10us", 2, "1 ms or more"),
        ("detach edge", 2, "nothing is attached as edge"),
        ("canary edge --step-time 1s", 2, "nothing is attached as edge"),
        ("canary edge --error 2", 2, "between 0 and 0.5"),
        ("attach edge --initial-window 40 --cgroup nosuch", 3, "hint:"),
    ] {
        let mut all = vec!["tune"];
        all.extend(words.split(' '));
        all.extend(["--pins", "here/t"]);
        let (_, err) = run(folder.path(), &all, code);
        assert!(err.contains(wanted), "{words}: {err}");
    }
    assert!(!folder.path().join("here/t/edge").exists());
}
