#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds only bench/quick.cpp and runs it: five figures in less than a minute, each with a sentence, and a picture.
set -euo pipefail

usage() {
    cat <<'END'
bench/quick.sh [--build DIR] [--threads N] [--picture FILE]

  --build DIR     build folder (default: build-quick next to this folder)
  --threads N     threads (default 1)
  --picture FILE  SVG of the times by length (default: <build>/quick.svg)

Five figures: attention's share of the processor's peak; the gain of tiles; the gain of linear attention; one query
compared with reading its memory; target words per second in training. bench/run.sh and bench/long measure more.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"
build="$root/build-quick"
threads=1
picture=""
while [ $# -gt 0 ]; do
    case $1 in
        --build | --threads | --picture)
            [ $# -ge 2 ] || { echo "quick.sh: $1 needs a value" >&2; exit 2; }
            ;;&
        --build) build=$2; shift ;;
        --threads) threads=$2; shift ;;
        --picture) picture=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        *) echo "quick.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
[[ $threads =~ ^[1-9][0-9]*$ ]] || { echo "quick.sh: --threads requires a positive integer, not \"$threads\"" >&2; exit 2; }
[ -n "$picture" ] || picture="$build/quick.svg"

mkdir -p "$build"
[ -x "$build/bench/quick" ] || heed_say "building (about a minute, once)"
if ! { cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DHEED_BUILD_BENCHMARKS=ON && cmake --build "$build" --target quick; } >"$build/quick.log" 2>&1; then
    tail -n 20 "$build/quick.log" >&2
    echo "quick.sh: the build failed; see $build/quick.log" >&2
    exit 1
fi

heed_environment
"$build/bench/quick" --threads "$threads" --picture "$picture"
echo "  Times by length: $picture"
