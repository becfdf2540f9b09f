#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/fuzz.sh [option...] [target...]
       scripts/fuzz.sh --runs N [--least N] [option...] [target...]
       scripts/fuzz.sh --totals [--corpus FOLDER]

Feeds arbitrary files to heed's readers (tests/fuzz) with libFuzzer, under the address and undefined-behavior
sanitizers. Builds the programs with clang++. Without targets, runs all targets in sequence.

  --minutes N      total time, divided among the targets (default 10)
  --seconds N      time per target, instead of --minutes
  --runs N         instead of a time: run until the targets have N executions in all, earlier ones included. Targets take
                   turns (--seconds, default 300). Once all have --least executions, the faster half gets the rest. If
                   interrupted, start it again
  --least N        with --runs: executions of each target (default: N / 100)
  --totals         print the executions of each target so far, from FOLDER/executions.tsv, for CONTRIBUTING.md
  --seed N         seed of the inputs (default: random; it is printed)
  --timeout N      seconds that a reader may take for an input (default 20); more on a busy machine
  --margin N       allow readers N times their memory limit (default 1)
  --corpus FOLDER  interesting inputs, kept for the next run (default ~/.cache/heed-fuzz)
  --programs DIR   folder of programs that are already built (default: build them)
  --list           list the targets

An input that breaks a reader is minimized for up to a minute and stored in FOLDER/found/<target>. Fix the reader, and
move the input to tests/fuzz/found/<target>, with a line in tests/fuzz/found/README.md.
END
}

minutes=10 seconds='' runs='' least='' totals=no seed='' timeout=20 margin=1 corpus=${XDG_CACHE_HOME:-$HOME/.cache}/heed-fuzz programs='' list=no targets=()
while (($#)); do
    case $1 in
    --minutes | --seconds | --runs | --least | --seed | --timeout | --margin | --corpus | --programs)
        (($# > 1)) || heed_fail "$1 needs a value"
        declare "${1#--}=$2"
        shift
        ;;
    --list) list=yes ;;
    --totals) totals=yes ;;
    -h | --help) usage && exit ;;
    -*) usage >&2 && heed_fail "" "unknown option $1" ;;
    *) targets+=("$1") ;;
    esac
    shift
done
for option in minutes seconds runs least seed timeout margin; do
    [[ ${!option:-1} =~ ^[1-9][0-9]*$ ]] || heed_fail "--$option requires a positive integer"
done

# The executions of all runs: date, commit, target, seed, executions, seconds.
executions=$corpus/executions.tsv
[[ -n $seed ]] || seed=$((RANDOM << 15 | RANDOM | 1))
# totals: target, executions, seconds, first and last date, last commit
totals()
{
    [[ -e $executions ]] || return 0
    awk -F '\t' '{ n[$3] += $5; s[$3] += $6; if (!($3 in first)) first[$3] = $1; last[$3] = $1; commit[$3] = $2 }
        END { for (t in n) printf "%s\t%d\t%d\t%s\t%s\t%s\n", t, n[t], s[t], first[t], last[t], commit[t] }' \
        "$executions" 2>/dev/null | sort
}
if [[ $totals == yes ]]; then
    printf '%s\n' '| target | executions | from | to | commit |' '|---|---|---|---|---|'
    totals | awk -F '\t' -v OFS=' | ' '{ print "| " $1, $2, $4, $5, $6 " |"; n += $2 } END { print "| all", n + 0, "", "", "|" }'
    exit
fi

if [[ -z $programs ]]; then
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}" "${heed_packages_tests[@]}" clang libclang-rt-14-dev
    build=$heed_builds/fuzz
    heed_say "Building the targets"
    cmake --log-level=WARNING -S "$heed_root" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_CXX_FLAGS_DEBUG=-g1 -DHEED_SANITIZE=address,undefined -DHEED_NATIVE=OFF -DHEED_BUILD_FUZZERS=ON \
        -DHEED_FUZZ_OPTIMIZATION=-O1 -DHEED_TEST_FILES_PER_UNIT=8 -DHEED_BUILD_TESTS=ON -DHEED_BUILD_TRANSLATOR=ON >/dev/null
    cmake --build "$build" --target fuzz fuzz_model fuzz_replay --parallel "$(heed_jobs)"
    programs=$build/tests/fuzz
fi
mapfile -t known < <("$programs/fuzz_replay" --targets)
[[ $list == no ]] || { printf '%s\n' "${known[@]}" && exit; }
((${#targets[@]})) || targets=("${known[@]}")
for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] || heed_fail "unknown target $target; targets are ${known[*]}"
done

mkdir -p "$corpus"
corpus=$(cd "$corpus" && pwd)
executions=$corpus/executions.tsv
"$programs/fuzz_replay" --seeds "$corpus"
export HEED_FUZZ_MARGIN=$margin
# Stacks of allocations cost a quarter of the time; fuzz_replay prints them.
export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=0:quarantine_size_mb=16}
commit=$(heed_commit include src tools tests/fuzz)
broken=()

# options_of <target>: sets HEED_FUZZ_TARGET, program and the array options
options_of()
{
    export HEED_FUZZ_TARGET=$1
    program=$programs/fuzz
    [[ ! -x ${program}_$1 ]] || program+=_$1
    mkdir -p "$corpus/found/$1" "$corpus/$1"
    # Models are larger than other files.
    local longest=4096 dictionary=$heed_root/tests/fuzz/dictionaries/$1.dict
    [[ $1 != model ]] || longest=16384
    # -entropic=0: libFuzzer's choice of the next input would take most of the time.
    options=("-max_len=$longest" "-timeout=$timeout" -detect_leaks=0 -malloc_limit_mb=256 -rss_limit_mb=2048 -reload=0 -entropic=0)
    [[ ! -e $dictionary ]] || options+=("-dict=$dictionary")
}

# fuzz <target> <seed> <seconds> <executions>: until one of the limits
fuzz()
{
    local target=$1 seed=$2 log=$corpus/$1.log found=$corpus/found/$1 program options input status=0 took
    options_of "$target"
    options+=("-seed=$seed")
    "$program" "${options[@]}" -max_total_time="$3" -runs="$4" -artifact_prefix="$found/" "$corpus/$target" >"$log" 2>&1 || status=$?
    if ((status == 0)); then
        took=$(sed -nE 's/^Done ([0-9]+) runs in ([0-9]+) second.*/\1\t\2/p' "$log")
        printf '%s\t%s\t%s\t%s\t%s\n' "$(date -u +%F)" "$commit" "$target" "$seed" "$took" >>"$executions"
        heed_say "$target: ${took%$'\t'*} inputs, $(find "$corpus/$target" -type f | wc -l) kept"
        return
    fi
    broken+=("$target")
    heed_say "$target: broken"
    grep -E '^fuzz: |^==[0-9]+==ERROR|runtime error|^SUMMARY' "$log" | head -n 5 || tail -n 20 "$log"
    input=$(find "$found" -type f ! -name '*.small' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
    [[ -n $input ]] || return 0
    timeout 90 "$program" "${options[@]}" -minimize_crash=1 -max_total_time=60 -exact_artifact_path="$input.small" "$input" >/dev/null 2>&1 || true
    if [[ -s $input.small ]]; then input=$input.small; fi
    echo "    $input, from seed $seed; to reproduce:"
    echo "base64 -d >input <<END"
    base64 "$input"
    echo END
    echo "HEED_FUZZ_MARGIN=$margin $programs/fuzz_replay $target input"
}

# minimize <target>: only inputs that reach something new stay in the corpus.
minimize()
{
    local kept=$corpus/$1.kept program options
    options_of "$1"
    rm -rf "$kept"
    mkdir "$kept"
    "$program" "${options[@]}" -merge=1 "$kept" "$corpus/$1" >"$corpus/$1.merged" 2>&1 || { heed_say "$1: not minimized, see $corpus/$1.merged" && return; }
    rm -rf "${corpus:?}/$1" "$corpus/$1.merged"
    mv "$kept" "$corpus/$1"
}

# next_target: target, number of executions: the next one, or nothing if all have enough
next_target()
{
    { printf '%s\n' "${targets[@]}" && totals; } | awk -F '\t' -v runs="$runs" -v least="$least" -v broken=" ${broken[*]} " '
        NF == 1 { n[$1] = s[$1] = 0 }
        NF > 1 && $1 in n { n[$1] = $2; s[$1] = $3; all += $2 }
        END {
            for (t in n) {
                if (index(broken, " " t " ")) continue
                if (n[t] < least && (low == "" || n[t] < n[low])) low = t
                rate[t] = n[t] / (s[t] + 1)
                ++count
            }
            if (low != "") { print low, least - n[low]; exit }
            for (t in rate) {
                faster = 0
                for (u in rate) faster += rate[u] > rate[t]
                if (2 * faster < count && (next_one == "" || s[t] < s[next_one])) next_one = t
            }
            if (next_one != "" && all < runs) print next_one, runs - all
        }'
}

if [[ -n $runs ]]; then
    [[ -n $least ]] || least=$(((runs + 99) / 100))
    heed_say "seed $seed, $runs executions of ${#targets[@]} targets, at least $least of each"
    while read -r target number < <(next_target) && [[ -n $target ]]; do
        fuzz "$target" "$seed" "${seconds:-300}" "$number"
        seed=$((seed % 2147483647 + 1))
    done
    for target in "${targets[@]}"; do minimize "$target"; done
else
    [[ -n $seconds ]] || seconds=$((minutes * 60 / ${#targets[@]}))
    ((seconds > 0)) || seconds=1
    heed_say "seed $seed, $seconds s for each of ${#targets[@]} targets"
    for target in "${targets[@]}"; do fuzz "$target" "$seed" "$seconds" -1; done
fi
((${#broken[@]} == 0)) || heed_fail "broken: ${broken[*]}"
