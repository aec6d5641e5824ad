//! Files that a verb writes, looked at before anything is read: none may be one that it reads, nor one that it writes besides.

use crate::failure::Failure;
use anyhow::anyhow;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thalweg_pipeline::whole;

/// A file that is to be written: the option that names it, and its path.
pub(crate) type Target<'a> = (&'static str, &'a Path);

/// Refuses to write over a file that is read, over another that is written, and over what is no file at all.
///
/// Other files are replaced, as `-o` of other programs does; `-` among those read is stdin, which may be a file, too.
pub(crate) fn check(read: &[impl AsRef<Path>], written: &[Target<'_>]) -> Result<(), Failure> {
    let read: Vec<(&Path, Option<Id>)> = read.iter().map(|path| (path.as_ref(), source(path.as_ref()))).collect();
    for (place, (option, path)) in written.iter().enumerate() {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            // A rename would put a file in the place of the folder or the device.
            return Err(Failure::user(anyhow!("{option} would replace '{}', which is no file", path.display()))
                .hint("name a file"));
        }
        // What is written grows beside its name until it is whole, and may be taken for no other file either.
        let own = [id(path), id(&whole::partial(path))];
        let over = read.iter().find(|(_, source)| source.is_some() && own.contains(source));
        if let Some((source, _)) = over {
            return Err(Failure::user(anyhow!("{option} would write over '{}', which is read", source.display()))
                .hint("name another file"));
        }
        if let Some((other, _)) = written[..place].iter().find(|(_, other)| same(path, other)) {
            return Err(Failure::user(anyhow!("{other} and {option} would both write '{}'", path.display()))
                .hint("name two files"));
        }
    }
    Ok(())
}

/// What a file is, by whatever name: its device and its number there.
type Id = (u64, u64);

fn id(path: &Path) -> Option<Id> {
    fs::metadata(path).ok().filter(Metadata::is_file).map(|found| (found.dev(), found.ino()))
}

fn source(path: &Path) -> Option<Id> {
    id(if path == Path::new("-") { Path::new("/dev/stdin") } else { path })
}

/// Whether two names are of one file, which need not be there yet.
fn same(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| -> Option<PathBuf> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    };
    one == other
        || id(one).is_some_and(|found| id(other) == Some(found))
        || (place(one).is_some() && place(one) == place(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_read_is_never_written_over_by_whatever_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let capture = at("a.pcap");
        fs::write(&capture, "packets").expect("written");
        fs::write(at("old.html"), "a page").expect("written");
        fs::write(at("b.pcap.partial"), "packets").expect("written");
        symlink(&capture, at("link.pcap")).expect("linked");
        fs::hard_link(&capture, at("hard.pcap")).expect("linked");
        let said = |read: &Path, written: &[Target<'_>]| check(&[read], written).err().map(|error| error.to_string());
        for (read, written) in
            [("a.pcap", "a.pcap"), ("a.pcap", "link.pcap"), ("link.pcap", "a.pcap"), ("link.pcap", "link.pcap")]
        {
            let said = said(&at(read), &[("--html", &at(written))]).expect("refused");
            assert!(said.contains("--html would write over") && said.contains(read), "{said}");
        }
        assert!(said(&capture, &[("--html", &at("hard.pcap"))]).is_some());
        assert!(
            said(&capture, &[("--html", &at("sub/../a.pcap"))]).is_none(),
            "there is no such folder, and writing says so"
        );
        assert!(said(&at("b.pcap.partial"), &[("--html", &at("b.pcap"))]).is_some(), "it would be written there first");
        assert_eq!(said(&capture, &[("--html", &at("old.html")), ("--pcapng", &at("b.pcapng"))]), None);
        assert!(said(&capture, &[("--html", folder.path())]).is_some_and(|said| said.contains("no file")));
    }

    #[test]
    fn two_options_write_two_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).expect("made");
        let none: [&Path; 0] = [];
        for other in ["x", "./x", "sub/../x"] {
            let error = check(&none, &[("--html", &at("x")), ("--pcapng", &at(other))]).expect_err("one file");
            assert!(error.to_string().contains("--html and --pcapng would both write"), "{error}");
        }
        assert!(check(&none, &[("--html", &at("x")), ("--pcapng", &at("sub/x"))]).is_ok());
    }
}
