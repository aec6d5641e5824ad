#!/bin/sh
# Builds the packages, installs the .deb in a clean Debian root and unpacks the tarball in an empty one, and uses both there.
#
# Needs root, mmdebstrap and a Debian mirror; says NOT CHECKED where one is missing.
set -eu
cd "$(dirname "$0")/.."

say() { printf '==> %s\n' "$*" >&2; }

fail() {
    printf 'packaging: %s\n' "$*" >&2
    exit 1
}

not_checked() {
    say "NOT CHECKED: that the packages install and run in a clean root: $*"
    exit 0
}

sh packaging/build.sh
[ "$(id -u)" = 0 ] || not_checked "needs root"
command -v mmdebstrap >/dev/null 2>&1 || not_checked "mmdebstrap is not installed; apt-get install mmdebstrap"

target=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
deb=$(echo "$target"/package/thalweg_*.deb)
tarball=$(echo "$target"/package/thalweg-*.tar.gz)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
root=$folder/root

say "capturing a download whose receive window is 64 KB, in the lab"
cat >"$folder/window.toml" <<'TEXT'
name = "window"
about = "64 KB of window over 40 ms"

[path]
rtt = "40ms"
rate = "100mbit"

[workload]
kind = "stream"
direction = "down"
seconds = "3s"

[client.sysctl]
"net.ipv4.tcp_window_scaling" = "0"
TEXT
"$target/release/thalweg" lab run "$folder/window.toml" --quiet --no-progress --capture server --samples off --out "$folder/run" >&2
capture=$(echo "$folder"/run/*.pcapng)

# Runs the program in a root ($1, with the program at $2) on the capture; its verdict and exit code are known.
use() {
    cp "$capture" "$1/capture.pcapng"
    [ "$(chroot "$1" "$2" --version)" = "thalweg $version" ] || fail "$2 in $1 does not give its version"
    code=0
    text=$(chroot "$1" "$2" diagnose /capture.pcapng) || code=$?
    [ "$code" = 1 ] || fail "diagnose ended with $code and not with 1"
    case "$text" in
    *window-scaling-missing*) ;;
    *) fail "diagnose does not find that window scaling is missing: $text" ;;
    esac
}

say "making a clean Debian root"
mmdebstrap --quiet --mode=root --variant=essential bookworm "$root" >&2 || not_checked "mmdebstrap could not make a root (no mirror?)"

say "installing the .deb there"
cp "$deb" "$root/thalweg.deb"
chroot "$root" dpkg -i /thalweg.deb >&2
use "$root" /usr/bin/thalweg
changed=$(chroot "$root" dpkg -V thalweg)
[ -z "$changed" ] || fail "dpkg -V reports: $changed"
# The unit's StateDirectory= makes this folder.
mkdir -p "$root/var/lib/thalweg"
chroot "$root" thalweg serve /usr/share/doc/thalweg/examples/edge.toml --check >&2 || fail "the example configuration is not good"
zcat "$root/usr/share/man/man1/thalweg-diagnose.1.gz" | grep -q '^\.TH thalweg-diagnose' || fail "no man page of diagnose"
chroot "$root" bash -c '. /usr/share/bash-completion/completions/thalweg && complete -p thalweg' >&2 || fail "bash takes no completions"
if command -v systemd-analyze >/dev/null 2>&1; then
    # The clean root has no units of systemd's, and this host has no /usr/bin/thalweg.
    sed 's#/usr/bin/thalweg#/bin/true#' packaging/thalweg-serve.service >"$folder/thalweg-serve.service"
    systemd-analyze verify --man=no "$folder/thalweg-serve.service" >&2 || fail "systemd does not accept the unit"
else
    say "NOT CHECKED: the systemd unit; systemd-analyze is not installed"
fi
chroot "$root" dpkg --purge thalweg >&2
left=$(find "$root/usr" "$root/etc" -name '*thalweg*')
[ -z "$left" ] || fail "purging leaves $left"

say "unpacking the tarball in an empty root"
mkdir "$folder/empty"
tar -xzf "$tarball" -C "$folder/empty" --strip-components=1
use "$folder/empty" /bin/thalweg
say "both packages install and run"
