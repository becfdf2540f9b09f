#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles bench/compiled/compiled.cpp for this processor, for any x86-64, and for any x86-64 with heed::compiled, and
# compares run times.
set -euo pipefail

usage() {
    cat <<'END'
bench/compiled/compiled.sh [--build DIR] [--rounds N]

  --build DIR   build folder (default: build-compiled in the root)
  --rounds N    rounds in which the three programs take turns (default 7)

Prints for each workload the time with -march=native and the relative speed of the two others, as medians of the ratios
within a round.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"
build="$root/build-compiled"
rounds=7
while [ $# -gt 0 ]; do
    case $1 in
        --build | --rounds) [ $# -ge 2 ] || { echo "compiled.sh: $1 needs a value" >&2; exit 2; } ;;&
        --build) build=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        *) echo "compiled.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "compiled.sh: --rounds requires a positive integer, not \"$rounds\"" >&2; exit 2; }

mkdir -p "$build"
heed_say "building (several minutes, once)"
if ! { cmake -S "$here" -B "$build" -DCMAKE_BUILD_TYPE=Release && cmake --build "$build"; } >"$build/compiled.log" 2>&1; then
    tail -n 20 "$build/compiled.log" >&2
    echo "compiled.sh: the build failed; see $build/compiled.log" >&2
    exit 1
fi

export OPENBLAS_NUM_THREADS=1
programs=(native any library)
for ((round = 1; round <= rounds; ++round)); do
    for program in "${programs[@]}"; do
        "$build/$program" | sed "s/^/$round $program /"
    done
    printf '\rround %d of %d ' "$round" "$rounds" >&2
done >"$build/times"
echo >&2
awk '
    function median(of, name, n,    i, j, t, x) {
        for (i = 1; i <= n; ++i) x[i] = of[name, i]
        for (i = 2; i <= n; ++i) for (j = i; j > 1 && x[j] < x[j - 1]; --j) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t }
        return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
    }
    { took[$1, $2, $3] = $4; if (!($3 in known)) { known[$3]; order[++works] = $3 } rounds = $1 }
    END {
        print "| work | -march=native | any x86-64 | any x86-64, heed::compiled |"
        print "|---|---|---|---|"
        for (w = 1; w <= works; ++w) {
            name = order[w]
            for (r = 1; r <= rounds; ++r) {
                native[name, r] = took[r, "native", name]
                any[name, r] = took[r, "native", name] / took[r, "any", name]
                library[name, r] = took[r, "native", name] / took[r, "library", name]
            }
            printf "| %s | %.0f µs | %.2f | %.2f |\n", name, median(native, name, rounds), median(any, name, rounds), median(library, name, rounds)
        }
    }' "$build/times"
