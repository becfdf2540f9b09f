#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/fuzz.sh [option...] [target...]

Feeds arbitrary files to heed's readers (tests/fuzz) with libFuzzer, under the address and undefined-behavior
sanitizers. Builds the programs with clang++. Without targets, runs all targets in sequence.

  --minutes N      total time, divided among the targets (default 10)
  --seconds N      time per target, instead of --minutes
  --seed N         seed of the inputs (default: random; it is printed)
  --margin N       allow readers N times their memory limit (default 1)
  --corpus FOLDER  interesting inputs, kept for the next run (default ~/.cache/heed-fuzz)
  --programs DIR   folder of programs that are already built
  --list           list the targets

An input that breaks a reader is minimized for up to a minute and stored in FOLDER/found/<target>. Fix the reader, and
move the input to tests/fuzz/found/<target>, with a line in tests/fuzz/found/README.md.
END
}

minutes=10 seconds='' seed='' margin=1 corpus=${XDG_CACHE_HOME:-$HOME/.cache}/heed-fuzz programs='' list=no targets=()
while (($#)); do
    case $1 in
    --minutes | --seconds | --seed | --margin | --corpus | --programs)
        (($# > 1)) || heed_fail "$1 needs a value"
        declare "${1#--}=$2"
        shift
        ;;
    --list) list=yes ;;
    -h | --help) usage && exit ;;
    -*) usage >&2 && heed_fail "" "unknown option $1" ;;
    *) targets+=("$1") ;;
    esac
    shift
done
[[ -n $seed ]] || seed=$((RANDOM << 15 | RANDOM | 1))
[[ $seed =~ ^[1-9][0-9]*$ && $margin =~ ^[1-9][0-9]*$ ]] || heed_fail "--seed and --margin require a positive integer"
[[ ${seconds:-1} =~ ^[1-9][0-9]*$ && $minutes =~ ^[1-9][0-9]*$ ]] || heed_fail "--minutes and --seconds require a positive integer"

if [[ -z $programs ]]; then
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}" "${heed_packages_tests[@]}" clang libclang-rt-14-dev
    build=$heed_builds/fuzz
    heed_say "Building the targets"
    cmake --log-level=WARNING -S "$heed_root" -B "$build" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ \
        -DCMAKE_CXX_FLAGS_DEBUG=-g1 -DHEED_SANITIZE=address,undefined -DHEED_NATIVE=OFF -DHEED_BUILD_FUZZERS=ON \
        -DHEED_BUILD_TESTS=ON -DHEED_BUILD_TRANSLATOR=ON >/dev/null
    cmake --build "$build" --target fuzz fuzz_replay --parallel "$(heed_jobs)"
    programs=$build/tests/fuzz
fi
mapfile -t known < <("$programs/fuzz_replay" --targets)
[[ $list == no ]] || { printf '%s\n' "${known[@]}" && exit; }
((${#targets[@]})) || targets=("${known[@]}")
for target in "${targets[@]}"; do
    [[ " ${known[*]} " == *" $target "* ]] || heed_fail "unknown target $target; targets are ${known[*]}"
done
[[ -n $seconds ]] || seconds=$((minutes * 60 / ${#targets[@]}))
((seconds > 0)) || seconds=1

mkdir -p "$corpus"
corpus=$(cd "$corpus" && pwd)
"$programs/fuzz_replay" --seeds "$corpus"
export HEED_FUZZ_MARGIN=$margin
heed_say "seed $seed, $seconds s for each of ${#targets[@]} targets"
broken=()
for target in "${targets[@]}"; do
    export HEED_FUZZ_TARGET=$target
    found=$corpus/found/$target
    mkdir -p "$found" "$corpus/$target"
    # Models are larger than other files.
    longest=4096
    [[ $target != model ]] || longest=16384
    options=("-max_len=$longest" -timeout=20 -detect_leaks=0 -malloc_limit_mb=256 -rss_limit_mb=2048 "-seed=$seed")
    dictionary=$heed_root/tests/fuzz/dictionaries/$target.dict
    [[ ! -e $dictionary ]] || options+=("-dict=$dictionary")
    if "$programs/fuzz" "${options[@]}" -max_total_time="$seconds" -artifact_prefix="$found/" "$corpus/$target" >"$corpus/$target.log" 2>&1; then
        heed_say "$target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1 inputs/p' "$corpus/$target.log"), $(find "$corpus/$target" -type f | wc -l) kept"
        continue
    fi
    broken+=("$target")
    heed_say "$target: broken"
    grep -E '^fuzz: |^==[0-9]+==ERROR|runtime error|^SUMMARY' "$corpus/$target.log" | head -n 5 || tail -n 20 "$corpus/$target.log"
    input=$(find "$found" -type f ! -name '*.small' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
    [[ -n $input ]] || continue
    timeout 90 "$programs/fuzz" "${options[@]}" -minimize_crash=1 -max_total_time=60 -exact_artifact_path="$input.small" "$input" >/dev/null 2>&1 || true
    if [[ -s $input.small ]]; then input=$input.small; fi
    echo "    $input, from seed $seed; to reproduce:"
    echo "base64 -d >input <<END"
    base64 "$input"
    echo END
    echo "HEED_FUZZ_MARGIN=$margin $programs/fuzz_replay $target input"
done
((${#broken[@]} == 0)) || heed_fail "broken: ${broken[*]}"
