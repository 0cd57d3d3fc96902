#!/usr/bin/env bash
# Packages are installed and upgraded in a scratch tree by dpkg, which nothing else of the system is touched by. They are made of the crates that
# cargo has fetched for this repository, two versions of a crate being a package and its upgrade. Debian: dpkg, cargo, python3.
. "$(dirname "$0")/common.sh"
need dpkg dpkg
need dpkg-deb dpkg
if ! $inside; then
    need cargo cargo
    need python3 python3
    mkdir -p "$work/packages"
    cargo metadata --format-version 1 --manifest-path "$here/../Cargo.toml" >"$work/metadata"
    python3 "$here/packages.py" "$work/metadata" "$work/packages" "$(of 12 200)"
    record
    exit
fi
root=$work/root
mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
install_() { dpkg --root="$root" --log="$root/var/log" --force-not-root --force-script-chrootless "$@" >/dev/null; }
shopt -s nullglob
# First what there is of older versions, then the rest, then upgrades, and everything once more, as after a repair.
install_ --install "$work"/packages/old/*.deb
install_ --install "$work"/packages/only/*.deb
install_ --install "$work"/packages/new/*.deb
install_ --install "$work"/packages/only/*.deb
