//! Tests that need to be root: each runs again in a process with a network namespace of its own, and where it is not root
//! already, with a user namespace.

use rustix::thread::UnshareFlags;
use std::ffi::CStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

const INSIDE: &str = "THALWEG_TEST_INSIDE";

/// Runs `act` as root of fresh namespaces. `test` is the calling test's full path, such as `qdisc::tests::name`.
pub(crate) fn inside(test: &str, act: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some_and(|name| name == test) {
        return act();
    }
    let map = format!("0 {} 1\n", rustix::process::getuid().as_raw());
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, test);
    // SAFETY: between fork and exec only system calls are made; the child has one thread.
    unsafe {
        command.pre_exec(move || {
            if rustix::thread::unshare_unsafe(UnshareFlags::NEWNET).is_ok() {
                return Ok(());
            }
            rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
            std::fs::write("/proc/self/uid_map", &map)
        });
    }
    let output = command.output().expect("this test runs again");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    for line in text.lines().filter(|line| line.starts_with("SKIPPED")) {
        skip(line.trim_start_matches("SKIPPED: "));
    }
}

/// Says aloud that something was not tested.
pub(crate) fn skip(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// A BPF file system in a mount namespace of this process.
pub(crate) fn bpf_file_system() -> bool {
    let mount = |kind: Option<&CStr>, to: &CStr, flags| {
        let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
        // SAFETY: every string ends with a zero byte and outlives the call.
        unsafe { libc::mount(c"none".as_ptr(), to.as_ptr(), kind, flags, std::ptr::null()) == 0 }
    };
    // SAFETY: the process has one thread that touches file systems.
    let own = unsafe { libc::unshare(libc::CLONE_NEWNS) == 0 };
    own && mount(None, c"/", libc::MS_REC | libc::MS_PRIVATE) && mount(Some(c"bpf"), c"/sys/fs/bpf", 0)
}

/// Runs `ip` with these arguments, and gives what it prints.
pub(crate) fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip (iproute2)");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The routes of both families as `ip` lists them, without what comes and goes when the kernel likes: link-local ones, and that a new link is down.
pub(crate) fn routes() -> [String; 2] {
    ["route show", "-6 route show"].map(|arguments| {
        let own = |line: &&str| !line.starts_with("fe80");
        ip(arguments).replace("linkdown ", "").lines().filter(own).map(|line| format!("{line}\n")).collect()
    })
}
