//! Every change has a journal that says so, whatever fails and whenever the process is killed.
//!
//! Each test runs again as root of network namespaces of its own, made by unshare(1); the host's own settings are never written.

use super::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use thalweg_model::{PlannedChange, Reach, RouteTarget, Setting, TunePlan};

const INSIDE: &str = "THALWEG_TEST_INSIDE";
/// Where a child is to be killed, and its journals' folder.
const KILL_AT: &str = "THALWEG_TEST_KILL_AT";
const FOLDER: &str = "THALWEG_TEST_FOLDER";

const SYSCTLS: [(&str, &str); 4] = [
    ("net.ipv4.tcp_wmem", "4096 20000 8388608"),
    ("net.ipv4.tcp_rmem", "4096 140000 16777216"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
    ("net.ipv4.tcp_timestamps", "0"),
];

/// Runs `act` in a fresh network namespace with two default routes.
fn inside(test: &str, act: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some_and(|name| name == test) {
        return act();
    }
    let output = unshared(test, &[]);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn unshared(test: &str, variables: &[(&str, String)]) -> Output {
    let root = rustix::process::getuid().is_root();
    let mut command = Command::new("unshare");
    command.args(if root { &["--net"][..] } else { &["--net", "--map-root-user"][..] });
    command.arg(std::env::current_exe().expect("this test")).args([
        "--exact",
        &format!("tests::{test}"),
        "--nocapture",
    ]);
    command.env(INSIDE, test).envs(variables.iter().map(|(name, value)| (*name, value)));
    command.output().expect("unshare (util-linux)")
}

fn ip(line: &str) {
    let output = Command::new("ip").args(line.split(' ')).output().expect("ip (iproute2)");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn network() {
    // Link-local routes would come when the kernel likes.
    let _ = thalweg_host::sysctl::write("net.ipv6.conf.default.disable_ipv6", "1");
    for line in [
        "link set lo up",
        "link add v0 type veth peer name v1",
        "address add 10.0.0.1/24 dev v0",
        "link set v0 up",
        "link set v1 up",
        "route add default via 10.0.0.254 dev v0 metric 100 mtu 1400",
        "route add 198.51.100.0/24 via 10.0.0.253 dev v0 initcwnd 15",
    ] {
        ip(line);
    }
}

fn route(to: &str, metric: u64) -> RouteTarget {
    RouteTarget { to: to.to_owned(), via: None, dev: Some("v0".to_owned()), metric, ..RouteTarget::default() }
}

fn change(setting: Setting, route: Option<RouteTarget>, from: Option<&str>, to: &str) -> PlannedChange {
    let from = from.map(str::to_owned);
    PlannedChange {
        reach: Reach::Namespace,
        setting,
        route,
        from,
        to: to.to_owned(),
        why: String::new(),
        risk: String::new(),
    }
}

/// Four sysctls and two routes, one of which gets two attributes.
fn plan() -> TunePlan {
    let mut changes: Vec<PlannedChange> =
        SYSCTLS.iter().map(|(name, to)| change(Setting::Sysctl((*name).to_owned()), None, None, to)).collect();
    let attribute = |name: &str, target, from, to| change(Setting::Route(name.to_owned()), Some(target), from, to);
    changes.push(attribute("initcwnd", route("default", 100), None, "40"));
    changes.push(attribute("quickack", route("default", 100), None, "1"));
    changes.push(attribute("initcwnd", route("198.51.100.0/24", 0), Some("15"), "30"));
    of(changes)
}

fn of(changes: Vec<PlannedChange>) -> TunePlan {
    let schema = TunePlan::SCHEMA.to_owned();
    TunePlan {
        schema,
        purpose: "a test".to_owned(),
        kernel: None,
        expected: None,
        arithmetic: Vec::new(),
        changes,
        enough: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Everything that may change: every sysctl of TCP, and the routes.
fn snapshot() -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc/sys/net/ipv4").expect("sysctls").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // The key of Fast Open is made when it is first looked at.
        if name.starts_with("tcp_") && name != "tcp_fastopen_key" {
            all.insert(format!("net.ipv4.{name}"), fs::read_to_string(entry.path()).unwrap_or_default());
        }
    }
    for family in ["-4", "-6"] {
        let routes = Command::new("ip").args([family, "route", "show", "table", "main"]).output().expect("ip").stdout;
        all.insert(format!("routes {family}"), String::from_utf8(routes).expect("text"));
    }
    all
}

fn no_timer(_: &Journal) -> io::Result<()> {
    Ok(())
}

const WITHIN: Options = Options { confirm_within_s: Some(60) };

/// Fails at the n-th step.
struct FailAt(usize);

impl Watch for FailAt {
    fn at(&mut self, step: Step) -> io::Result<()> {
        if self.0 == 0 {
            self.0 = usize::MAX;
            return Err(io::Error::other(format!("injected at {step:?}")));
        }
        self.0 -= 1;
        Ok(())
    }
}

/// Kills this process at the n-th step.
struct KillAt(usize);

impl Watch for KillAt {
    fn at(&mut self, _: Step) -> io::Result<()> {
        if self.0 == 0 {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        self.0 -= 1;
        Ok(())
    }
}

/// Counts steps.
#[derive(Default)]
struct Count(usize);

impl Watch for Count {
    fn at(&mut self, _: Step) -> io::Result<()> {
        self.0 += 1;
        Ok(())
    }
}

#[test]
fn what_is_undone_is_as_it_was() {
    inside("what_is_undone_is_as_it_was", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path().join("tune"));
        let before = snapshot();
        let locked = store.lock(false).expect("locked");
        let journal = apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        assert_eq!((journal.state, journal.entries.len()), (State::Unconfirmed, 6), "one write per setting");
        assert!(store.folder().join("pending").exists());
        let now = snapshot();
        assert_eq!(now["net.ipv4.tcp_timestamps"].trim(), "0");
        assert!(
            now["routes -4"].contains("mtu 1400 initcwnd 40 quickack 1") && now["routes -4"].contains("initcwnd 30"),
            "{now:?}"
        );
        let outcome = rollback(None, false, &locked, &mut Unwatched).expect("undone").expect("open");
        assert_eq!((outcome.journal.state, outcome.undone.restored.len()), (State::RolledBack, 6));
        assert_eq!(snapshot(), before);
        assert!(!store.folder().join("pending").exists());
        let again = rollback(Some(&journal.id), false, &locked, &mut Unwatched);
        assert!(matches!(again, Err(ApplyError::State { .. })), "{again:?}");
        // Confirmed, it stays, and the timer leaves it alone; undone by hand it is as before.
        let journal = apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        let twice = apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect_err("one is open");
        assert!(matches!(&twice, ApplyError::Unfinished(id) if *id == journal.id), "{twice}");
        confirm(None, &locked, &mut Unwatched).expect("confirmed");
        let timer = rollback(Some(&journal.id), true, &locked, &mut Unwatched).expect("left alone");
        assert_eq!(timer, None);
        assert!(
            matches!(apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched), Err(ApplyError::Drift { .. })),
            "the routes are not as planned"
        );
        rollback(Some(&journal.id), false, &locked, &mut Unwatched).expect("undone");
        assert_eq!(snapshot(), before);
    });
}

#[test]
fn what_somebody_changed_since_is_left_alone() {
    inside("what_somebody_changed_since_is_left_alone", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let locked = store.lock(false).expect("locked");
        apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        thalweg_host::sysctl::write("net.ipv4.tcp_wmem", "4096 30000 9999999").expect("written");
        let outcome = rollback(None, false, &locked, &mut Unwatched).expect("undone").expect("open");
        assert_eq!(outcome.journal.state, State::PartlyRolledBack);
        assert_eq!(outcome.undone.restored.len(), 5);
        assert!(
            outcome.undone.refused[0].contains("net.ipv4.tcp_wmem: somebody changed it since"),
            "{:?}",
            outcome.undone
        );
        assert_eq!(thalweg_host::sysctl::read("net.ipv4.tcp_wmem").expect("read"), "4096 30000 9999999");
    });
}

#[test]
fn two_at_a_time_exclude_each_other_and_drift_refuses() {
    inside("two_at_a_time_exclude_each_other_and_drift_refuses", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let before = snapshot();
        let locked = store.lock(false).expect("locked");
        assert!(matches!(store.lock(false), Err(ApplyError::InUse)));
        let sysctl = |name: &str, from: Option<&str>, to: &str| {
            of(vec![change(Setting::Sysctl(name.to_owned()), None, from, to)])
        };
        let attribute = |name: &str, to: &str, value: &str| {
            of(vec![change(Setting::Route(name.to_owned()), Some(route(to, 0)), None, value)])
        };
        let refused =
            |plan: &TunePlan| apply(plan, WITHIN, &locked, no_timer, &mut Unwatched).expect_err("refused").to_string();
        for (plan, part) in [
            (
                sysctl("net.ipv4.tcp_sack", Some("0"), "0"),
                "net.ipv4.tcp_sack is '1', and the plan was made when it was '0'",
            ),
            (sysctl("net.ipv4.tcp_nothing", None, "1"), "cannot read the sysctl 'net.ipv4.tcp_nothing'"),
            (sysctl("net.ipv4.tcp_ecn", None, "77"), "cannot set the sysctl 'net.ipv4.tcp_ecn' to '77'"),
            (sysctl("net.ipv4.tcp_congestion_control", None, "nonesuch"), "this kernel has no 'nonesuch'"),
            (sysctl("net.ipv4.tcp_sack", None, "1"), "the plan changes nothing"),
            (attribute("initcwnd", "203.0.113.0/24", "9"), "there is no route 203.0.113.0/24"),
            (attribute("speed", "198.51.100.0/24", "9"), "no route has such an attribute"),
            (attribute("initcwnd", "198.51.100.0/24", "9"), "is '15', and the plan was made when it was 'not set'"),
            (
                of(vec![change(Setting::Socket("nodelay".to_owned()), None, None, "1")]),
                "the socket option nodelay cannot be applied",
            ),
        ] {
            assert!(refused(&plan).contains(part), "{}", refused(&plan));
            assert_eq!(changed(&before), Vec::<String>::new());
        }
        // A route behind one that is preferred has no effect, which is found and undone.
        ip("route add default via 10.0.0.252 dev v0 metric 50");
        let before = snapshot();
        let shadowed = of(vec![change(Setting::Route("initcwnd".to_owned()), Some(route("default", 100)), None, "40")]);
        assert!(
            refused(&shadowed).contains("another route is preferred; everything is as it was"),
            "{}",
            refused(&shadowed)
        );
        assert_eq!(snapshot(), before);
        assert!(store.all().expect("read").iter().all(|journal| !journal.state.is_open()));
    });
}

/// Each of these routes gets an attribute, and is as it was after the undo.
#[test]
fn routes_of_every_kind_are_as_they_were() {
    inside("routes_of_every_kind_are_as_they_were", || {
        network();
        thalweg_host::sysctl::write("net.ipv6.conf.v0.disable_ipv6", "0").expect("written");
        for line in [
            "address add 2001:db8:1::2/64 dev v0 nodad",
            "-6 route add default via 2001:db8:1::1 dev v0 proto ra pref high metric 5 expires 1800",
            "-6 route add 2001:db8:77::/48 via 2001:db8:1::1 dev v0",
            "nexthop add id 10 via 10.0.0.254 dev v0",
            "route add 10.80.0.0/16 nhid 10",
            "route add 10.81.0.0/16 via inet6 2001:db8:1::1 dev v0",
            "route add 10.50.0.0/16 metric 7 nexthop via 10.0.0.3 dev v0 nexthop via 10.0.0.4 dev v0 weight 2",
            "route add 10.61.0.0/16 via 10.250.0.1 dev v0 onlink",
        ] {
            ip(line);
        }
        let ipv6 = |to: &str, metric| RouteTarget { ipv6: true, ..route(to, metric) };
        let targets = [
            ipv6("default", 5),
            ipv6("2001:db8:77::/48", 1024),
            route("10.80.0.0/16", 0),
            route("10.81.0.0/16", 0),
            route("10.50.0.0/16", 7),
            route("10.61.0.0/16", 0),
        ];
        let attribute = |target| change(Setting::Route("initcwnd".to_owned()), Some(target), None, "40");
        let plan = of(targets.into_iter().map(attribute).collect());
        // Time passes; what is left of it is looked at by itself.
        let routes = || {
            let text = snapshot()["routes -4"].clone() + &snapshot()["routes -6"];
            let expires = text.split("expires ").nth(1).and_then(|rest| rest.split("sec").next()?.parse::<u32>().ok());
            let seconds = expires.expect("the route still expires");
            assert!((1700..=1800).contains(&seconds), "{text}");
            text.replace(&format!("expires {seconds}sec"), "expires")
        };
        let before = routes();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let locked = store.lock(false).expect("locked");
        let journal = apply(&plan, WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        assert_eq!(routes().matches("initcwnd 40").count(), 6);
        let entry = &journal.entries[0];
        assert_eq!(entry.target.difference(&entry.before, &entry.after), "initcwnd not set → 40");
        ip("route change 10.61.0.0/16 via 10.250.0.1 dev v0 onlink initcwnd 40 quickack 1");
        let outcome = rollback(None, false, &locked, &mut Unwatched).expect("undone").expect("open");
        let refused = &outcome.undone.refused;
        assert!(
            refused.len() == 1 && refused[0].ends_with("initcwnd 40 → not set, quickack 1 → not set"),
            "{refused:?}"
        );
        ip("route change 10.61.0.0/16 via 10.250.0.1 dev v0 onlink");
        assert_eq!(routes(), before);
        // The kernel would replace the first of these, whichever is meant.
        ip("route append 10.61.0.0/16 via 10.250.0.2 dev v0 onlink");
        let ambiguous = of(vec![attribute(route("10.61.0.0/16", 0))]);
        let error = apply(&ambiguous, WITHIN, &locked, no_timer, &mut Unwatched).expect_err("refused");
        assert!(matches!(error, ApplyError::Ambiguous(_)), "{error}");
    });
}

#[test]
fn a_setting_that_comes_twice_is_written_once() {
    inside("a_setting_that_comes_twice_is_written_once", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let locked = store.lock(false).expect("locked");
        let sack = |to: &str| change(Setting::Sysctl("net.ipv4.tcp_sack".to_owned()), None, None, to);
        let error = apply(&of(vec![sack("0"), sack("1")]), WITHIN, &locked, no_timer, &mut Unwatched);
        assert!(matches!(error, Err(ApplyError::Twice(_))), "{error:?}");
        let journal =
            apply(&of(vec![sack("0"), sack("0")]), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        assert_eq!(journal.entries.len(), 1);
        confirm(None, &locked, &mut Unwatched).expect("confirmed");
        // Without a name the one that waits is meant, and there is none.
        let none = rollback(None, false, &locked, &mut Unwatched).expect_err("none waits");
        assert!(none.hint().contains(&journal.id), "{none}: {}", none.hint());
    });
}

#[test]
fn hints_name_what_mends_it() {
    let journal = |kind: io::ErrorKind| {
        ApplyError::Journal { act: "write", path: PathBuf::from("/x"), source: kind.into() }.hint()
    };
    assert!(journal(io::ErrorKind::StorageFull).contains("free space"));
    assert!(journal(io::ErrorKind::PermissionDenied).contains("root"));
    assert!(ApplyError::State { id: "7".to_owned(), state: State::Unconfirmed }.hint().contains("tune confirm 7"));
    assert!(ApplyError::SocketOption("nodelay".to_owned()).hint().contains("--skip-sockets"));
    inside("hints_name_what_mends_it", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let locked = Store::new(folder.path()).lock(false).expect("locked");
        let limit = change(Setting::Sysctl("net.core.rmem_max".to_owned()), None, None, "4000000");
        let error = apply(&of(vec![limit]), WITHIN, &locked, no_timer, &mut Unwatched).expect_err("not in a namespace");
        assert!(
            error.hint().contains("whole host") || matches!(error, ApplyError::Read(_)),
            "{error}: {}",
            error.hint()
        );
    });
}

/// The settings that are not as `before`.
fn changed(before: &BTreeMap<String, String>) -> Vec<String> {
    snapshot().into_iter().filter(|(name, value)| before.get(name) != Some(value)).map(|(name, _)| name).collect()
}

/// Whether the journals of the folder say of every setting that is changed, with what was before.
fn accounted(store: &Store, before: &BTreeMap<String, String>) {
    let open: Vec<Journal> =
        store.all().expect("every journal is whole").into_iter().filter(|journal| journal.state.is_open()).collect();
    for name in changed(before) {
        let says = open.iter().flat_map(|journal| &journal.entries).any(|entry| match &entry.target {
            Target::Sysctl(known) => {
                *known == name && before[&name].split_whitespace().eq(entry.before.split_whitespace())
            }
            Target::Route(_) => name == "routes -4",
        });
        assert!(says, "{name} is changed, and no open journal says so");
    }
}

#[test]
fn a_thousand_faults_leave_nothing_changed() {
    inside("a_thousand_faults_leave_nothing_changed", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let before = snapshot();
        let mut steps = Count::default();
        let store = Store::new(folder.path().join("count"));
        let locked = store.lock(false).expect("locked");
        apply(&plan(), WITHIN, &locked, no_timer, &mut steps).expect("applied");
        let applying = steps.0;
        rollback(None, false, &locked, &mut steps).expect("undone");
        assert!(applying > 20, "{applying} steps");
        let mut failed = 0;
        for round in 0..1000 {
            let store = Store::new(folder.path().join(format!("{}", round % 7)));
            let locked = store.lock(false).expect("locked");
            match apply(&plan(), WITHIN, &locked, no_timer, &mut FailAt(round % (applying + 2))) {
                Ok(_) => {
                    rollback(None, false, &locked, &mut Unwatched).expect("undone");
                }
                Err(error) => {
                    failed += 1;
                    assert!(error.to_string().contains("injected"), "{error}");
                }
            }
            assert_eq!(changed(&before), Vec::<String>::new(), "round {round}");
            assert!(store.all().expect("whole").iter().all(|journal| !journal.state.is_open()), "round {round}");
            if round % 7 == 6 {
                for journal in 0..7 {
                    let _ = fs::remove_dir_all(folder.path().join(format!("{journal}")));
                }
            }
        }
        assert!(failed >= 900, "{failed} of 1,000 failed");
        // Faults in the undo, too: what is not restored is said, and a second undo restores it.
        for at in 0..steps.0 - applying {
            let store = Store::new(folder.path().join(format!("undo-{at}")));
            let locked = store.lock(false).expect("locked");
            apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
            let id = store.journal(None).expect("open").id;
            let _ = rollback(Some(&id), false, &locked, &mut FailAt(at));
            let state = store.journal(Some(&id)).expect("there").state;
            assert!(changed(&before).is_empty() || state != State::RolledBack, "step {at}: {state:?}");
            let _ = rollback(Some(&id), false, &locked, &mut Unwatched);
            assert_eq!(changed(&before), Vec::<String>::new(), "step {at}");
        }
    });
}

/// A child that is killed at a step of its application, or of its undo.
#[test]
fn killed_child() {
    let Some(at) = std::env::var(KILL_AT).ok().and_then(|text| text.parse().ok()) else { return };
    let store = Store::new(PathBuf::from(std::env::var_os(FOLDER).expect("a folder")));
    let locked = store.lock(true).expect("locked");
    let mut watch = KillAt(at);
    if store.journal(None).is_ok() {
        let _ = rollback(None, false, &locked, &mut watch);
    } else {
        let _ = apply(&plan(), WITHIN, &locked, no_timer, &mut watch);
    }
}

/// Runs the child in this namespace; says whether it was killed.
fn child(folder: &Path, at: usize) -> bool {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "tests::killed_child", "--nocapture"])
        .env(KILL_AT, at.to_string())
        .env(FOLDER, folder)
        .output()
        .expect("this test runs again");
    !output.status.success()
}

#[test]
fn two_hundred_kills_leave_no_change_without_its_journal() {
    inside("two_hundred_kills_leave_no_change_without_its_journal", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let before = snapshot();
        let (mut kills, mut at) = (0, 0);
        while kills < 200 {
            let store = Store::new(folder.path().join(format!("{kills}-{at}")));
            if !child(store.folder(), at) {
                // Past the last step: begin again.
                let locked = store.lock(false).expect("nobody holds it");
                rollback(None, false, &locked, &mut Unwatched).expect("undone");
                assert_eq!(changed(&before), Vec::<String>::new());
                at = 0;
                continue;
            }
            kills += 1;
            accounted(&store, &before);
            // Every other time the undo is killed too, and then undone again.
            if kills % 2 == 0 && store.journal(None).is_ok() && child(store.folder(), kills % 12) {
                kills += 1;
                accounted(&store, &before);
            }
            let locked = store.lock(false).expect("the lock died with its owner");
            let open = store.journal(None).is_ok();
            if open {
                let outcome = rollback(None, true, &locked, &mut Unwatched).expect("undone").expect("open");
                assert!(outcome.undone.refused.is_empty(), "{:?}", outcome.undone);
            }
            assert_eq!(changed(&before), Vec::<String>::new(), "step {at}");
            at += 1;
        }
    });
}

#[test]
fn after_a_reboot_the_journal_is_closed_and_nothing_is_written() {
    inside("after_a_reboot_the_journal_is_closed_and_nothing_is_written", || {
        network();
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(folder.path());
        let locked = store.lock(false).expect("locked");
        let before = snapshot();
        let journal = apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        // A reboot: other boot, other namespace, settings as the boot has them.
        for entry in &journal.entries {
            entry.target.write(&entry.before).expect("written");
        }
        let file = store.folder().join(format!("{}.json", journal.id));
        let text = fs::read_to_string(&file)
            .expect("read")
            .replace(&journal.boot_id, "another")
            .replace(&journal.namespace.to_string(), "1");
        fs::write(&file, text).expect("written");
        let outcome = rollback(None, true, &locked, &mut Unwatched).expect("undone").expect("open");
        assert_eq!((outcome.journal.state, outcome.undone.untouched.len()), (State::RolledBack, 6));
        assert!(outcome.journal.notes[0].contains("started again"));
        assert_eq!(snapshot(), before);
        // In another namespace of the same boot it is refused.
        let journal = apply(&plan(), WITHIN, &locked, no_timer, &mut Unwatched).expect("applied");
        let file = store.folder().join(format!("{}.json", journal.id));
        let text = fs::read_to_string(&file).expect("read").replace(&journal.namespace.to_string(), "1");
        fs::write(&file, text).expect("written");
        assert!(matches!(rollback(None, true, &locked, &mut Unwatched), Err(ApplyError::OtherNamespace(_))));
    });
}

#[test]
fn broken_journals_are_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::new(folder.path());
    assert_eq!(Store::new(folder.path().join("none")).all().expect("none"), []);
    for text in ["", "{}", "[1]", "{\"schema\": \"thalweg.tune-journal/1\"}"] {
        let mut file = fs::File::create(folder.path().join("x.json")).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        let error = store.all().expect_err("broken");
        assert!(error.to_string().contains("cannot be read") && !error.hint().is_empty(), "{error}");
    }
}
