#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/debian.sh [--headers] [FOLDER]

Builds Debian packages of this tree in FOLDER (build/debian): libheed-dev, libheed-compiled-dev, libheed-translator-dev,
heed-tools and the source package. Unpacks the packages, and compiles and runs programs with them. If lintian is installed, it checks them.

  --headers   build only libheed-dev, in seconds; the others take minutes

DEB_BUILD_OPTIONS is passed to dpkg-buildpackage: parallel=N, noopt.
END
}

headers=no
output=$heed_builds/debian
while (($#)); do
    case $1 in
    --headers) headers=yes ;;
    -h | --help) usage && exit ;;
    -*) usage >&2 && heed_fail "" "unknown option $1" ;;
    *) output=$1 ;;
    esac
    shift
done
heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}" "${heed_packages_debian[@]}" lintian

if [[ $output == "$heed_builds/debian" ]]; then
    rm -rf "$output"
elif [[ -n $(ls -A "$output" 2>/dev/null || true) ]]; then
    heed_fail "$output is not empty; packages need an empty folder"
fi
version=$(sed -n 's/^#define HEED_VERSION_STRING "\(.*\)"$/\1/p' "$heed_root/include/heed/version.hpp")
mkdir -p "$output"
output=$(cd "$output" && pwd)

# The sources are the files that git tracks; in an unpacked archive, all files except builds.
cd "$heed_root"
if [[ -e .git ]]; then
    git ls-files -z
else
    find . -path ./build -prune -o -type f -printf '%P\0'
fi | while IFS= read -r -d '' file; do if [[ -e $file ]]; then printf '%s\0' "$file"; fi; done |
    tar --null -T - --sort=name --owner=0 --group=0 --numeric-owner --transform "s,^,heed-$version/," \
        -czf "$output/heed_$version.orig.tar.gz"
tar -xzf "$output/heed_$version.orig.tar.gz" -C "$output"
cp -R packaging/debian "$output/heed-$version/debian"

cd "$output/heed-$version"
what=(--build=full)
if [[ $headers == yes ]]; then what=(--build=all); fi
export DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-parallel=$(heed_jobs)}
dpkg-buildpackage --no-sign "${what[@]}" >"$output/log" 2>&1 ||
    heed_fail "$(tail -n 30 "$output/log")" "" "dpkg-buildpackage failed; its output is in $output/log"
cd "$output"
rm -rf "heed-$version"
if command -v lintian >/dev/null; then
    # Not for an upload to Debian: there is no intent to package, and the maintainer is the user who builds.
    lintian --allow-root --fail-on error,warning ./*.changes \
        --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs
fi
if [[ $headers == no ]]; then
    HEED_SETUP=off bash "$heed_root/tests/package/debian.sh" "$heed_root" "$output/used" "$version" "${CXX:-g++}" "$output"
    rm -rf used
fi
ls ./*.deb
