//! What can be told of kernels without building one: names, hashes, lost options, the lock, what dead builders leave.
#![allow(clippy::unwrap_used)] // A test may stop at the first surprise.

use super::cache::{BINARY, BUILDING, CONFIG, Cache, RECORD, Record, SCHEMA, SourceRecord};
use super::process::{self, RunError};
use super::release::Release;
use super::source::{Source, hash_file, is_needed};
use super::{KernelError, choose, recipe, tools};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Writes a folder that looks like a finished kernel.
fn finish(folder: &Path, release: &str, recipe: &str, packaged: bool) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(BINARY), "#!/bin/sh\n").unwrap();
    fs::set_permissions(folder.join(BINARY), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.join(CONFIG), "").unwrap();
    let record = Record {
        schema: SCHEMA.to_owned(),
        release: release.to_owned(),
        hz: 250,
        recipe: recipe.to_owned(),
        source: SourceRecord { packaged, path: PathBuf::from("/src"), hash: "0".to_owned() },
        built_unix_s: 1,
    };
    fs::write(folder.join(RECORD), serde_json::to_vec(&record).unwrap()).unwrap();
}

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("kernels"));
    (folder, cache)
}

#[test]
fn a_version_is_not_the_start_of_another() {
    let release = |text| Release::parse(text).unwrap();
    assert!(release("6.12").covers(&release("6.12.117")));
    assert!(!release("6.1").covers(&release("6.12.117")));
    assert!(release("6.9.1") < release("6.12.0"));
    for wrong in ["", "6", "6.", "6.12.1.2", "six.1", "-6.1", "6.99999999999"] {
        assert_eq!(Release::parse(wrong), None, "{wrong}");
    }
    let makefile = "VERSION = 6\nPATCHLEVEL = 19\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\n";
    assert_eq!(Release::of_makefile(makefile).as_deref(), Some("6.19.0-rc3"));
    assert_eq!(Release::of_makefile("all:\n\techo\n"), None);
}

#[test]
fn the_recipe_changes_with_the_frequency_alone() {
    assert_eq!(recipe::hash(250), recipe::hash(250));
    assert_ne!(recipe::hash(250), recipe::hash(1000));
    assert!(recipe::fragment(1000).lines().any(|line| line == "CONFIG_HZ=1000"));
    assert_eq!(recipe::fragment(1000).matches("CONFIG_HZ=").count(), 1);
}

#[test]
fn every_option_that_kconfig_dropped_is_named() {
    let fragment = "# about\nCONFIG_A=y\nCONFIG_B=y\n# CONFIG_C is not set\n# CONFIG_D is not set\nCONFIG_HZ=250\n";
    let config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=y\nCONFIG_HZ=2500\n";
    assert_eq!(recipe::lost_options(fragment, config), ["CONFIG_B=y", "# CONFIG_D is not set", "CONFIG_HZ=250"]);
}

#[test]
fn whole_kernels_are_listed_and_broken_ones_are_not() {
    let (_keep, cache) = cache();
    assert_eq!(cache.installed().unwrap(), []);
    finish(&cache.root.join("6.1.192-aa"), "6.1.192", "r", true);
    finish(&cache.root.join("6.12.117-bb"), "6.12.117", "r", true);
    finish(&cache.root.join(format!("{BUILDING}7")), "6.12.118", "r", true);
    finish(&cache.root.join("6.12.119-cc"), "6.12.119", "r", true);
    fs::remove_file(cache.root.join("6.12.119-cc").join(BINARY)).unwrap();
    finish(&cache.root.join("6.12.120-dd"), "6.12.120", "r", true);
    fs::write(cache.root.join("6.12.120-dd").join(RECORD), "{").unwrap();
    let ids: Vec<_> = cache.installed().unwrap().into_iter().map(|one| one.kernel.id).collect();
    assert_eq!(ids, ["6.12.117-bb", "6.1.192-aa"]);
}

#[test]
fn a_version_means_todays_recipe_and_debians_source_first() {
    let (_keep, cache) = cache();
    finish(&cache.root.join("6.12.117-aa"), "6.12.117", "now", true);
    finish(&cache.root.join("6.12.200-bb"), "6.12.200", "now", false);
    finish(&cache.root.join("6.12.300-cc"), "6.12.300", "old", true);
    let choose = |wanted| choose(wanted, cache.installed().unwrap(), "now");
    assert_eq!(choose("6.12").unwrap().id, "6.12.117-aa");
    assert_eq!(choose("6.12.200").unwrap().id, "6.12.200-bb");
    assert_eq!(choose("6.12.300-cc").unwrap().id, "6.12.300-cc");

    let text = choose("6.12.300").unwrap_err().to_string();
    assert!(text.contains("6.12.300-cc") && text.ends_with("\n\nhint: thalweg lab kernel build 6.12"), "{text}");
    let text = choose("6.1").unwrap_err().to_string();
    assert!(text.ends_with("\n\nhint: thalweg lab kernel build 6.1"), "{text}");
    for unknown in ["7.9", "latest"] {
        let error = choose(unknown).unwrap_err();
        assert!(error.is_users_mistake());
        let text = error.to_string();
        assert!(text.contains("known: 6.12, 6.1;") && text.contains("installed: 6.12.300-cc"), "{text}");
    }
}

#[test]
fn a_second_builder_waits_says_so_once_and_can_be_interrupted() {
    let (_keep, cache) = cache();
    let held = cache.lock(&GO_ON, || panic!("nobody holds it")).unwrap();
    let stop = AtomicBool::new(false);
    let mut told = 0;
    let refused = cache.lock(&stop, || {
        told += 1;
        stop.store(true, Ordering::Relaxed);
    });
    assert!(matches!(refused, Err(KernelError::Interrupted)));
    assert_eq!(told, 1);
    drop(held);
    cache.lock(&GO_ON, || panic!("it was given back")).unwrap();
}

#[test]
fn what_dead_builders_left_goes_and_kernels_stay() {
    let (_keep, cache) = cache();
    let lock = cache.lock(&GO_ON, || ()).unwrap();
    finish(&cache.root.join("6.12.117-aa"), "6.12.117", "r", true);
    fs::create_dir_all(cache.root.join(format!("{BUILDING}1/source/net"))).unwrap();
    cache.sweep(&lock).unwrap();
    assert!(!cache.root.join(format!("{BUILDING}1")).exists());
    assert_eq!(cache.installed().unwrap().len(), 1);

    let bench = cache.workshop(&lock).unwrap();
    let path = bench.path.clone();
    fs::write(path.join("object.o"), "").unwrap();
    drop(bench);
    assert!(!path.exists());
}

#[test]
fn a_kernel_gets_in_whole_and_replaces_a_damaged_one() {
    let (_keep, cache) = cache();
    let lock = cache.lock(&GO_ON, || ()).unwrap();
    let bench = cache.workshop(&lock).unwrap();
    fs::create_dir_all(cache.root.join("6.12.117-aa")).unwrap();
    let finished = bench.path.join("finished");
    finish(&finished, "6.12.117", "r", true);
    assert_eq!(cache.place(&lock, &finished, "6.12.117-aa").unwrap().kernel.release, "6.12.117");

    let part = bench.path.join("part");
    fs::create_dir(&part).unwrap();
    fs::write(part.join(BINARY), "").unwrap();
    assert!(cache.place(&lock, &part, "6.12.118-bb").is_err());
    assert!(!cache.root.join("6.12.118-bb").exists());
}

#[test]
fn a_tree_is_told_from_a_changed_one_and_copied_without_the_bulk() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("tree");
    for (name, text) in [
        ("Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\nEXTRAVERSION =\n"),
        ("arch/um/Kconfig", ""),
        ("net/ipv4/tcp.c", "int tcp;"),
        ("net/ipv4/tcp.o", "built"),
        ("drivers/gpu/drm/card.c", "bulk"),
        ("drivers/gpu/drm/Kconfig", "menu"),
        (".git/HEAD", "ref"),
    ] {
        fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
        fs::write(tree.join(name), text).unwrap();
    }
    let source = Source::given(&tree).unwrap();
    let before = source.hash(&GO_ON, |_| ()).unwrap();
    assert_eq!(source.hash(&GO_ON, |_| ()).unwrap(), before);
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    assert_eq!(source.copy_to(&copy, &GO_ON, |_| ()).unwrap(), "6.12.3");
    assert_eq!(fs::read_to_string(copy.join("net/ipv4/tcp.c")).unwrap(), "int tcp;");
    assert!(copy.join("drivers/gpu/drm/Kconfig").is_file());
    for left_out in ["net/ipv4/tcp.o", "drivers/gpu/drm/card.c", ".git"] {
        assert!(!copy.join(left_out).exists(), "{left_out}");
    }
    assert_eq!(source.hash(&GO_ON, |_| ()).unwrap(), before, "copying must not change the tree");
    fs::write(tree.join("net/ipv4/tcp.c"), "int tcp, bbr;").unwrap();
    assert_ne!(source.hash(&GO_ON, |_| ()).unwrap(), before);
}

#[test]
fn other_architectures_keep_their_kconfig_alone() {
    for kept in
        ["arch/arm/crypto/Kconfig", "arch/x86/um/ldt.c", "arch/um/kernel/time.c", "arch/Kconfig", "tools/include/a.h"]
    {
        assert!(is_needed(Path::new(kept)), "{kept}");
    }
    for dropped in ["arch/arm/mm/fault.c", "arch/x86/boot/dts/a.dts", "sound/core/pcm.c", "Documentation/a.rst"] {
        assert!(!is_needed(Path::new(dropped)), "{dropped}");
    }
}

#[test]
fn a_file_hashes_as_sha256sum_says() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "abc").unwrap();
    // FIPS 180-4, the example of one block.
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hash_file(file.path(), &GO_ON, |_| ()).unwrap(), expected);
    let stop = AtomicBool::new(true);
    assert!(matches!(hash_file(file.path(), &stop, |_| ()), Err(KernelError::Interrupted)));
}

#[test]
fn all_missing_programs_are_named_at_once() {
    let missing = tools::missing_programs(&[PathBuf::from("/nonexistent")], true);
    let text = KernelError::MissingTools(missing).to_string();
    assert!(text.contains("make, gcc, ld, bc, bison"), "{text}");
    assert_eq!(text.matches("build-essential").count(), 1, "{text}");
    assert!(!tools::missing_programs(&[], false).iter().any(|one| one.tool == "xz"));
}

#[test]
fn too_small_a_disk_is_told_in_megabytes() {
    let error = tools::check_space(Path::new("/"), u64::MAX).unwrap_err();
    assert!(error.to_string().contains("MB are free\n\nhint: "), "{error}");
}

#[test]
fn a_program_that_hangs_is_killed_with_all_it_started() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo begun; sleep 1000 & sleep 1000"]);
    let start = Instant::now();
    let run = process::run(command, &GO_ON, Some(Duration::from_millis(300)), |_| ());
    let Err(RunError::TimedOut(tail)) = run else { panic!("{run:?}") };
    assert_eq!(tail, ["begun"]);
    // The reader returns once nobody holds the pipe: the child in the background is gone too.
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_interrupt_ends_a_program() {
    let stop = AtomicBool::new(false);
    let mut command = Command::new("sh");
    command.args(["-c", "echo begun; sleep 1000"]);
    let run = process::run(command, &stop, None, |_| stop.store(true, Ordering::Relaxed));
    assert!(matches!(run, Err(RunError::Interrupted)));
}
