#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail

usage()
{
    cat <<'END'
usage: scripts/bare.sh [--check | COMMAND]

Runs a command in a bare Debian 12 with only a copy of this folder (the files that git tracks), like a new user's
machine. Without a command, runs the CI job: scripts/demo.sh, and then a build without any optional dependency. Needs
root and debootstrap (installed if missing).

  --check   only check whether a bare root can be created here

The first run stores the base system in ${XDG_CACHE_HOME:-~/.cache}/heed. Each run unpacks it into build/bare, which is
kept for inspection. The exit status is the command's, or 77 if no bare root can be created (not root, no mirror).

For example: scripts/bare.sh 'scripts/test.sh -- -R additive'
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/heed base=
root=${HEED_BUILD_DIR:-$here/build}/bare
base=$cache/bookworm.tar

cannot()
{
    printf '%s\n' "WARNING: cannot create a bare Debian here: $*." \
        "WARNING: scripts/demo.sh is NOT tested on a new user's machine." >&2
    exit 77
}

release() { umount "$root/proc" "$root/dev/pts" 2>/dev/null || true; }

make_base()
{
    [[ ! -s $base ]] || return 0
    mkdir -p "$cache"
    local made
    made=$(mktemp -d "$cache/base.XXXXXX")
    if ! debootstrap --variant=minbase bookworm "$made/root" >"$cache/debootstrap.log" 2>&1; then
        rm -rf --one-file-system "$made"
        cannot "debootstrap: $(tail -n 1 "$cache/debootstrap.log")"
    fi
    tar -C "$made/root" -cf "$made/tar" .
    mv "$made/tar" "$base"
    rm -rf --one-file-system "$made"
}

make_root()
{
    release
    rm -rf --one-file-system "$root"
    mkdir -p "$root"
    tar -C "$root" -xf "$base"
    local file name major minor
    for file in /etc/resolv.conf /etc/hosts; do cp "$file" "$root/etc/" 2>/dev/null || true; done
    mkdir "$root/heed"
    # shellcheck disable=SC2016  # sh expands these
    git -C "$here" ls-files -z | (cd "$here" && xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\0" "$f"; done' sh) |
        tar -C "$here" --null --files-from=- -cf - | tar -C "$root/heed" -xf -
    mount -t proc proc "$root/proc" 2>/dev/null || cannot "this root may not mount /proc"
    for file in null:1:3 zero:1:5 random:1:8 urandom:1:9 full:1:7 tty:5:0; do
        IFS=: read -r name major minor <<<"$file"
        [[ -e $root/dev/$name ]] || mknod -m 666 "$root/dev/$name" c "$major" "$minor" || cannot "this root may not call mknod"
    done
    mkdir -p "$root/dev/pts"
    mount -t devpts devpts "$root/dev/pts" -o ptmxmode=666,newinstance 2>/dev/null && ln -sf pts/ptmx "$root/dev/ptmx"
    return 0
}

# The demo's packages do not include MPI, SentencePiece, ICU, cpp-httplib, Google Benchmark and doctest.
# Warnings are errors, since CI does not compile the demo elsewhere.
# shellcheck disable=SC2016  # expanded by the shell in the bare root
ci='
CXXFLAGS=-Werror scripts/demo.sh
echo "== Without optional dependencies"
cmake -S . -B /absent -G Ninja -DHEED_BUILD_EXAMPLES=ON -DHEED_BUILD_TOOLS=ON >/absent.log || { cat /absent.log; exit 1; }
for part in RAW_TEXT DISTRIBUTED HTTPLIB; do
    ! grep -q -e "-DHEED_$part" /absent/build.ninja || { echo "HEED_$part is defined in a build without its dependency"; exit 1; }
done
cmake --build /absent --target course_01 && /absent/examples/course/course_01 >/dev/null
'

case ${1:-} in
-h | --help) usage && exit ;;
esac
((EUID == 0)) || cannot "root is required"
git -C "$here" ls-files --error-unmatch scripts/bare.sh >/dev/null 2>&1 || cannot "git is missing, or this is not a checkout"
if ! command -v debootstrap >/dev/null; then
    { apt-get -q update && apt-get -q install -y debootstrap; } >/dev/null 2>&1 || cannot "debootstrap cannot be installed"
fi
make_base
if [[ ${1:-} == --check ]]; then
    trial=$(mktemp -d "$cache/trial.XXXXXX")
    trap 'umount "$trial" 2>/dev/null || true; rmdir "$trial"' EXIT
    mount -t proc proc "$trial" 2>/dev/null || cannot "this root may not mount /proc"
    exit 0
fi
trap release EXIT
make_root
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}" \
    chroot "$root" /bin/bash -ec "cd /heed && ${*:-$ci}" </dev/null
