#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Compares this checkout with another: the same benchmark sources, compiled with the headers of each, run in turn. See
# README.md.
set -euo pipefail
export LC_ALL=C

usage() {
    cat <<'END'
bench/against.sh OLD_CHECKOUT [--programs "steps training ..."] [--filter REGEX] [--rounds N] [--threads "1 2"]
                 [--min-time S] [--build DIR] [--out DIR] [--jobs N]

  OLD_CHECKOUT       another checkout of heed, whose include folder is compared with this one; only read
  --programs LIST    programs of bench/*.cpp (default "steps attention training search kept")
  --filter REGEX     only benchmarks whose name matches
  --rounds N         rounds, with one turn of either version each; the table shows their medians (default 5)
  --threads LIST     thread counts (default "1 2")
  --min-time S       seconds that a benchmark runs in each turn (default 0.2)
  --build DIR        build folder (default: build-against next to this folder)
  --out DIR          folder for the figures (figures.tsv) and the table (table.md) (default: <build>/against)
  --jobs N           compilers at a time (default: 2)

Ratios are old / new: above 1, this checkout is faster.
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"
old=""
programs="steps attention training search kept"
filter=.
rounds=5
thread_counts="1 2"
min_time=0.2
build="$root/build-against"
out=""
jobs=2
while [ $# -gt 0 ]; do
    case $1 in
        --programs) programs=$2; shift ;;
        --filter) filter=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --threads) thread_counts=$2; shift ;;
        --min-time) min_time=$2; shift ;;
        --build) build=$2; shift ;;
        --out) out=$2; shift ;;
        --jobs) jobs=$2; shift ;;
        -h | --help) usage; exit 0 ;;
        -*) echo "against.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
        *) [ -z "$old" ] || { echo "against.sh: takes one checkout, not also $1" >&2; exit 2; }; old=$1 ;;
    esac
    shift
done
[ -n "$old" ] || { usage >&2; exit 2; }
[ -f "$old/include/heed/heed.hpp" ] || { echo "against.sh: $old/include does not contain heed" >&2; exit 1; }
old=$(cd "$old" && pwd)
[ -n "$out" ] || out="$build/against"
mkdir -p "$build" "$out"

# ---- both builds -------------------------------------------------------------------------------------------------------

configure() {
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release \
        -DHEED_BUILD_BENCHMARKS=ON -DHEED_AGAINST="$old" -DHEED_AGAINST_SOURCES="$1" >"$out/configure.log"
}
compile() { cmake --build "$build" --parallel "$jobs" --target "$@" >"$out/$1.log" 2>&1; }

configure ""
taken=""
for program in $programs; do
    compile "$program" || { echo "against.sh: bench/$program.cpp does not compile, see $out/$program.log" >&2; exit 1; }
    compile "old_$program" && continue
    if [ ! -f "$old/bench/$program.cpp" ]; then
        echo "against.sh: bench/$program.cpp does not compile with $old/include, see $out/old_$program.log" >&2
        exit 1
    fi
    echo "against.sh: bench/$program.cpp does not compile with $old/include: using the source in that checkout" >&2
    taken="$taken${taken:+;}$program"
    configure "$taken"
    compile "old_$program" || { echo "against.sh: see $out/old_$program.log" >&2; exit 1; }
done

# ---- turns -------------------------------------------------------------------------------------------------------------

# All programs run the same OpenBLAS kernels; a setting in the environment takes precedence.
if [ -z "${OPENBLAS_CORETYPE:-}" ] && heed_has_avx512; then export OPENBLAS_CORETYPE=SkylakeX; fi

figures="$out/figures.tsv" # threads, side, round, benchmark, what, figure
: >"$figures"

# of_json <threads> <side> <round>: converts Google Benchmark's JSON to lines of figures.tsv. With one thread, time is
# CPU time, so that other load matters less.
of_json() {
    awk -v head="$1\t$2\t$3" -v clock="$([ "$1" = 1 ] && echo cpu || echo real)_time" '
        /"benchmarks":/ { inside = 1 }
        !inside { next }
        { key = $1; gsub(/[":]/, "", key); value = $0; sub(/^[^:]*: */, "", value); gsub(/[",]/, "", value) }
        key == "name" { name = value; own = name ~ /manual_time/; sub(/\/(iterations:|real_time|manual_time).*/, "", name) }
        key == (own ? "real_time" : clock) { time = value }
        key == "time_unit" { printf "%s\t%s\tns\t%.6g\n", head, name, time * (value == "ns" ? 1 : value == "us" ? 1e3 : value == "ms" ? 1e6 : 1e9) }
        key == "digest" || key ~ /^bytes_/ || key == "of_allowed" || key == "allocations" { printf "%s\t%s\t%s\t%.9g\n", head, name, key, value }
    '
}

# turn <threads> <side> <round> <program> <benchmark>
turn() {
    local prefix="" json="$out/turn.json"
    [ "$2" = new ] || prefix=old_
    if [ "$4" = search ]; then
        HEED_BENCH_THREADS=$1 "$build/bench/${prefix}search" --rounds=1 --work="${5#search/}" |
            awk -v head="$1\t$2\t$3" -v name="$5" '
            "search/" $1 == name { printf "%s\t%s\tns\t%.6g\n", head, name, 1e9 / $2 }' >>"$figures"
        return
    fi
    # Not --benchmark_out, with which Google Benchmark ignores a full disk.
    HEED_BENCH_THREADS=$1 "$build/bench/$prefix$4" --benchmark_filter="^$5\$" --benchmark_min_time="$min_time" \
        --benchmark_format=json >"$json" 2>"$out/$prefix$4.err" ||
        { echo "against.sh: $prefix$4 failed: $(tail -n 3 "$out/$prefix$4.err")" >&2; exit 1; }
    of_json "$1" "$2" "$3" <"$json" >>"$figures"
}

benchmarks_of() { # <program>: the benchmarks to measure, without the floors, which are not heed's work
    if [ "$1" = search ]; then
        printf 'search/%s\n' beam12/B16 beam12/B1 greedy/B1 greedy/B64 | { grep -E "$filter" || true; }
    else
        "$build/bench/$1" --benchmark_list_tests=true | grep -v /products | { grep -E "$filter" || true; }
    fi
}

for threads in $thread_counts; do
    for round in $(seq "$rounds"); do
        printf '%s thread(s), round %s of %s\n' "$threads" "$round" "$rounds" >&2
        for program in $programs; do
            if [ "$program" = kept ] && { [ "$round" != 1 ] || [ "$threads" != "${thread_counts%% *}" ]; }; then continue; fi
            for benchmark in $(benchmarks_of "$program"); do
                sides="old new"
                [ $((round % 2)) = 1 ] || sides="new old"
                for side in $sides; do turn "$threads" "$side" "$round" "$program" "$benchmark"; done
            done
        done
    done
done

# ---- the table ---------------------------------------------------------------------------------------------------------

sort -t "$(printf '\t')" -k1,1n -k4,4 -k5,5 -k2,2 -k6,6g "$figures" | awk -F '\t' '
    function flush() { if (n) printf "%s\t%.9g\t%.9g\n", last, n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2, v[1] }
    { key = $1 "\t" $4 "\t" $5 "\t" $2; if (key != last) { flush(); n = 0; last = key } v[++n] = $6 }
    END { flush() }' >"$out/medians.tsv"

table() {
    awk -F '\t' '
    function group_of(name, part) { split(name, part, "/"); return part[1] "/" part[2] }
    function fastest_ratio(threads, name) { return fastest[threads, name, "old"] / fastest[threads, name, "new"] }
    function figure(threads, name, what, side) { return m[threads, name, what, side] }
    { m[$1, $2, $3, $4] = $5; if ($3 == "ns") fastest[$1, $2, $4] = $6; if (!(($1, $2) in seen)) { seen[$1, $2] = 1; at[++lines] = $1; names[lines] = $2 } }
    END {
        print "Medians of the turns; ratios are old / new. \"fastest\" is the ratio of the fastest turns, which other load disturbs least.\n"
        print "| threads | work | old, µs | new, µs | old / new | fastest | bytes per step: old | new | old / new |"
        print "|---|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= lines; ++i) {
            t = at[i]; w = names[i]
            if (w ~ /^kept\//) continue
            o = figure(t, w, "ns", "old"); n = figure(t, w, "ns", "new")
            if (!o || !n) continue
            g = t SUBSEP group_of(w); r = o / n
            f = fastest_ratio(t, w); sum_of_fastest[g] += log(f)
            if (!(g in count)) { groups[++number_of_groups] = g; least[g] = r; most[g] = r }
            sum[g] += log(r); ++count[g]
            if (r <= least[g]) { least[g] = r; where[g] = w }
            if (r > most[g]) most[g] = r
            bo = figure(t, w, "bytes_recorded", "old"); bn = figure(t, w, "bytes_recorded", "new")
            printf "| %s | %s | %.1f | %.1f | %.3f | %.3f | %s | %s | %s |\n", t, w, o / 1e3, n / 1e3, r, f, \
                bo ? bo : "", bn ? bn : "", bo && bn ? sprintf("%.2f", bo / bn) : ""
            a = figure(t, w, "digest", "old"); b = figure(t, w, "digest", "new")
            if ((a - b) ^ 2 > (1e-3 * a) ^ 2) print "against.sh: the results of " w " differ: " a " and " b > "/dev/stderr"
        }
        print "\n| threads | group | workloads | geometric mean | of fastest | minimum | workload | maximum |"
        print "|---|---|---|---|---|---|---|---|"
        for (i = 1; i <= number_of_groups; ++i) {
            g = groups[i]; split(g, part, SUBSEP)
            printf "| %s | %s | %d | %.3f | %.3f | %.3f | %s | %.3f |\n", part[1], part[2], count[g], \
                exp(sum[g] / count[g]), exp(sum_of_fastest[g] / count[g]), least[g], where[g], most[g]
        }
        for (i = 1; i <= lines; ++i) {
            t = at[i]; w = names[i]
            if (w !~ /^kept\//) continue
            if (!heading++) {
                print "\n| kept on the tape for a step, bytes | old | new | new / allowed | with all gradients: old | new |"
                print "|---|---|---|---|---|---|"
            }
            printf "| %s | %d | %d | %.2f | %d | %d |\n", substr(w, 6), figure(t, w, "bytes_recorded", "old"), \
                figure(t, w, "bytes_recorded", "new"), figure(t, w, "of_allowed", "new"), \
                figure(t, w, "bytes_with_gradients", "old"), figure(t, w, "bytes_with_gradients", "new")
        }
    }' "$out/medians.tsv"
}
heed_write "$out/table.md" table
cat "$out/table.md"
