#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench/run.sh (the argument) makes libtorch and OpenBLAS use AVX-512 if and only if the processor has it; environment
# variables take precedence. The programs and the processor are fakes.
set -euo pipefail

run=$1
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
mkdir -p "$directory/build/bench" "$directory/build/peers"
cat >"$directory/build/bench/attention" <<'END'
#!/bin/sh
echo '{ "benchmarks": [] }'
echo "${0##*/} ${ATEN_CPU_CAPABILITY:-unset} ${OPENBLAS_CORETYPE:-unset}" >>"$SEEN"
END
chmod +x "$directory/build/bench/attention"
cp "$directory/build/bench/attention" "$directory/build/peers/peer_libtorch"
export SEEN=$directory/seen HEED_CPUINFO=$directory/cpuinfo

# expect WHAT FLAGS PEER: the settings that libtorch's program gets on a processor with these flags.
expect()
{
    printf 'processor\t: 0\nflags\t\t: fpu sse2 %s\nprocessor\t: 1\nflags\t\t: fpu sse2 %s\n' "$2" "$2" >"$HEED_CPUINFO"
    : >"$SEEN"
    bash "$run" --build "$directory/build" --rounds 1 --threads 1 --works '^additive$' --no-compile-time \
        >"$directory/log" 2>&1 || { cat "$directory/log" >&2; exit 1; }
    if [[ $(grep '^peer' "$SEEN" | sort -u) != "peer_libtorch $3" ]]; then
        echo "FAILED: $1: libtorch's program must get '$3', not:" >&2
        cat "$SEEN" >&2
        exit 1
    fi
}

unset ATEN_CPU_CAPABILITY OPENBLAS_CORETYPE
expect "AVX2" "avx avx2 fma" "unset unset"
expect "AVX-512" "avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl" "avx512 SkylakeX"
expect "the first AVX-512, which lacks most of it" "avx avx2 fma avx512f avx512cd avx512er avx512pf" "unset unset"
export ATEN_CPU_CAPABILITY=default OPENBLAS_CORETYPE=Haswell
expect "AVX-512 that is not wanted" "avx avx2 fma avx512f avx512dq avx512cd avx512bw avx512vl" "default Haswell"
echo passed
