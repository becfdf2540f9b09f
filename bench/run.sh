#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measures heed, the floor and the peer in turn, several rounds, and prints the table of ratios of medians. README.md
# describes the workloads and how the comparison is kept fair.
set -euo pipefail

usage() {
    cat <<'END'
bench/run.sh [--build DIR] [--out DIR] [--rounds N] [--threads "1 2"] [--works REGEX] [--no-peer] [--no-compile-time]

  --build DIR        a build with HEED_BUILD_BENCHMARKS, with a build of bench/peers in DIR/peers; created if missing
                     (default: build-bench next to this folder)
  --out DIR          folder for the raw JSON of every round and for table.md (default: <build>/bench-results)
  --rounds N         rounds; the table shows their medians (default 5)
  --threads LIST     thread counts (default "1 2")
  --works REGEX      only matching groups of workloads: additive, per_dimension, training, composition, windows,
                     allocations
  --no-peer          only heed and the floor
  --no-compile-time  omit compile times
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"
build="$root/build-bench"
out=""
rounds=5
thread_counts="1 2"
works=.
peer=yes
compile_time=yes
while [ $# -gt 0 ]; do
    case $1 in
        --build) build=$2; shift ;;
        --out) out=$2; shift ;;
        --rounds) rounds=$2; shift ;;
        --threads) thread_counts=$2; shift ;;
        --works) works=$2; shift ;;
        --no-peer) peer=no ;;
        --no-compile-time) compile_time=no ;;
        -h | --help) usage; exit 0 ;;
        *) echo "run.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done
[ -n "$out" ] || out="$build/bench-results"

if [ ! -d "$build" ]; then
    peers=no
    if [ $peer = yes ] && { [ -n "${Torch_DIR:-}" ] || compgen -G "/usr/lib/*/cmake/Torch/TorchConfig.cmake" >/dev/null; }; then
        peers=yes
    fi
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DHEED_BUILD_BENCHMARKS=ON
    cmake --build "$build"
    if [ $peers = yes ]; then
        cmake -S "$root/bench/peers" -B "$build/peers"
        cmake --build "$build/peers"
    fi
fi

mkdir -p "$out"
rm -f "$out"/round-*.json "$out"/*.err "$out"/compile_time.tsv

# All programs run the same OpenBLAS kernels; a setting in the environment takes precedence.
if [ -z "${OPENBLAS_CORETYPE:-}" ] && heed_has_avx512; then export OPENBLAS_CORETYPE=SkylakeX; fi
openmp_blas=$(ls -d /usr/lib/*/openblas-openmp 2>/dev/null | head -n 1 || true)

# measure <side> <threads> <round> <group> <program> <regex> [more arguments]
measure() {
    local side=$1 threads=$2 round=$3 group=$4 name=$5 regex=$6
    shift 6
    local program="$build/bench/$name"
    [ "$side" = heed ] || program="$build/peers/$name"
    local file="$out/round-$side-$threads-$round-$group.json"
    [ -x "$program" ] || { echo "run.sh: $program is missing; build it first" >&2; return 1; }
    local settings=(HEED_BENCH_THREADS="$threads")
    if [ "$side" = peer ]; then
        # libtorch's best setup: AVX-512 kernels if the processor supports them (libtorch does not check, and would crash
        # otherwise), and OpenBLAS on the same threads as libtorch, which sleep between uses
        settings+=(OMP_NUM_THREADS="$threads" OMP_WAIT_POLICY=PASSIVE)
        if [ -z "${ATEN_CPU_CAPABILITY:-}" ] && heed_has_avx512; then settings+=(ATEN_CPU_CAPABILITY=avx512); fi
        # the allocator keeps large temporaries instead of returning and requesting them in each step
        settings+=(GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296)
        if [ -n "$openmp_blas" ]; then settings+=(LD_LIBRARY_PATH="$openmp_blas${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"); fi
    fi
    # Not --benchmark_out, with which Google Benchmark ignores a full disk.
    if ! heed_write "$file" env "${settings[@]}" "$program" --benchmark_filter="$regex" --benchmark_format=json \
        "$@" 2>"$out/$name.err"; then
        echo "run.sh: $program failed: $(tail -n 3 "$out/$name.err")" >&2
        return 1
    fi
}

wanted() { [[ $1 =~ $works ]]; }

for threads in $thread_counts; do
    measure_peer=$peer
    if [ $peer = yes ] && [ ! -x "$build/peers/peer_libtorch" ]; then
        echo "run.sh: no libtorch in this build (bench/peers): measuring only heed and the floor" >&2
        measure_peer=no
    elif [ $peer = yes ] && [ "$threads" -gt 1 ] && [ -z "$openmp_blas" ]; then
        # with Debian's default, the threads of OpenBLAS and of libtorch compete for the cores: an unfair comparison
        echo "run.sh: a fair measurement of libtorch with $threads threads needs libopenblas0-openmp: omitting it" >&2
        measure_peer=no
    fi
    for round in $(seq "$rounds"); do
        printf '%s thread(s), round %s of %s\n' "$threads" "$round" "$rounds" >&2
        for size in 256 1000; do
            if wanted additive; then
                measure heed "$threads" "$round" "additive-$size" attention "^additive/.*/$size-" --benchmark_min_time=0.03
                if [ $measure_peer = yes ]; then
                    measure peer "$threads" "$round" "additive-$size" peer_libtorch "^additive/.*/$size-" --benchmark_min_time=0.03
                fi
            fi
            if wanted per_dimension; then
                measure heed "$threads" "$round" "per_dimension-$size" attention "^per_dimension/forward/$size-" --benchmark_min_time=0.03
                # separately: OpenBLAS's threads, once awake, would disturb heed's
                measure heed "$threads" "$round" "products-$size" attention "^per_dimension/products/$size-" --benchmark_min_time=0.03
                if [ $measure_peer = yes ]; then
                    measure peer "$threads" "$round" "per_dimension-$size" peer_libtorch "^per_dimension/forward/$size-" --benchmark_min_time=0.03
                fi
            fi
        done
        if wanted training; then
            measure heed "$threads" "$round" training training '^training/step' --benchmark_min_time=1
            measure heed "$threads" "$round" training-products training '^training/products' --benchmark_min_time=1
            if [ $measure_peer = yes ]; then
                measure peer "$threads" "$round" training peer_libtorch_training '^training/' --benchmark_min_time=1
            fi
        fi
        if wanted composition && [ "$threads" = 1 ]; then
            measure heed "$threads" "$round" composition composition .
        fi
        if wanted windows && [ "$threads" = 1 ]; then
            measure heed "$threads" "$round" windows windows . --benchmark_min_time=0.05
        fi
        if wanted allocations && [ "$round" = 1 ]; then
            measure heed "$threads" "$round" allocations allocations . --benchmark_min_time=0.001
        fi
    done
done

if [ $compile_time = yes ]; then heed_write "$out/compile_time.tsv" "$here/compile_time.sh"; fi
heed_write "$out/table.md" "$here/table.sh" "$out"
cat "$out/table.md"
