#!/bin/sh
# Builds target/package/thalweg_VERSION_ARCH.deb and target/package/thalweg-VERSION-ARCH-linux.tar.gz.
#
# The .deb holds the program linked with Debian's C library, man pages, completions, a systemd unit for `serve` and an example
# configuration. The tarball holds the same with a static program: musl where rustup has that target, else glibc.
# Both are the same to the byte for the same commit and toolchain.
set -eu
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*" >&2; }

command -v dpkg-deb >/dev/null 2>&1 || {
    printf 'packaging: dpkg-deb is not installed\n\nhint: build packages on Debian or a system derived from it\n' >&2
    exit 3
}
target=${CARGO_TARGET_DIR:-target}
out=$target/package
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
machine=$(uname -m)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022

rm -rf "$out"
mkdir -p "$out"

say "building the program"
cargo build --release --locked -p thalweg

say "making man pages and completions"
cargo run --release --locked --quiet -p thalweg-cli --example manual -- "$out/manual"

triple=$machine-unknown-linux-musl
if rustup target list --installed 2>/dev/null | grep -qx "$triple"; then
    say "building the static program, with musl"
    cargo build --release --locked -p thalweg --target "$triple"
else
    say "building the static program, with glibc: rustup has no target $triple (rustup target add $triple)"
    triple=$machine-unknown-linux-gnu
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked -p thalweg --target "$triple"
fi

# The files of a package, below $1; the program is $2.
lay_out() {
    install -D -m 755 "$2" "$1/bin/thalweg"
    strip --strip-debug "$1/bin/thalweg"
    for page in "$out"/manual/man1/*.1; do
        install -D -m 644 "$page" "$1/share/man/man1/$(basename "$page")"
        gzip -9n "$1/share/man/man1/$(basename "$page")"
    done
    install -D -m 644 "$out/manual/completions/thalweg.bash" "$1/share/bash-completion/completions/thalweg"
    install -D -m 644 "$out/manual/completions/thalweg.fish" "$1/share/fish/vendor_completions.d/thalweg.fish"
    install -D -m 644 "$out/manual/completions/_thalweg" "$1/share/zsh/vendor-completions/_thalweg"
    install -D -m 644 packaging/thalweg-serve.service "$1/lib/systemd/system/thalweg-serve.service"
    documents=$1/share/doc/thalweg
    install -D -m 644 packaging/edge.toml "$documents/examples/edge.toml"
    install -D -m 644 packaging/copyright "$documents/copyright"
    install -D -m 644 CHANGELOG.md "$documents/changelog"
    gzip -9n "$documents/changelog"
}

say "packing the tarball"
name=thalweg-$version-$machine-linux
lay_out "$out/$name" "$target/$triple/release/thalweg"
install -m 644 README.md LICENSE-APACHE LICENSE-MIT "$out/$name/"
tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$out" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"

say "packing the .deb"
deb=$out/deb
lay_out "$deb/usr" "$target/release/thalweg"
install -d "$deb/etc/thalweg" "$deb/DEBIAN"
# The newest version of the C library whose symbols the program takes.
libc=$(objdump -T "$deb/usr/bin/thalweg" | sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
cat >"$deb/DEBIAN/control" <<TEXT
Package: thalweg
Version: $version
Architecture: $architecture
Maintainer: The Thalweg authors <https://github.com/thalweg/thalweg>
Installed-Size: $(du -sk "$deb/usr" | cut -f1)
Depends: libc6 (>= $libc), libgcc-s1
Suggests: build-essential, bc, bison, flex, libelf-dev, linux-source-6.12
Section: net
Priority: optional
Homepage: https://github.com/thalweg/thalweg
Description: finds why a TCP stream is slow, and proves what makes it fast
 Thalweg reads captures and names the cause that limits each TCP connection,
 derives the setting that removes the limit, and proves it on the Linux
 kernel's own TCP in virtual time. It is also a live-streaming edge (RTMP in,
 HLS and HTTP-FLV out) and a load generator for such servers.
TEXT
(cd "$deb" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$deb/DEBIAN/md5sums"
find "$deb" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build "$deb" "$out/thalweg_${version}_$architecture.deb" >&2
rm -rf "${out:?}/$name" "$deb"
ls -l "$out"/*.deb "$out"/*.tar.gz >&2
