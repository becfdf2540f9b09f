#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# compiled.sh PROGRAM OBJECT LIBRARY: does the program call the library's kernels, for the requested target?
set -euo pipefail

program=$1
object=$2
library=$3

fail()
{
    echo "$@"
    exit 1
}

# The object calls the kernel and does not define it.
called=$(nm -C "$object" | grep -E '^ +U .*kernels::additive_softmax_forward<float>' || true)
[[ -n $called ]] || fail "the program compiles additive_softmax_forward itself"

# The library's wide instructions are in local functions, which another object cannot link to.
if [[ $library == *.a ]]; then
    for target in avx2 avx512 avx512_vnni avx512_bf16 avx512_amx; do
        names=$(nm -g --defined-only "$library" 2>/dev/null | awk -v t="kernels_$target.o:" '$0 == t { on = 1; next } /:$/ { on = 0 } on && NF == 3 { print $3 }' |
            grep -Ev "^heed_kernels_|^_ZN4heed15for_all_targets|4heed[0-9]+${target}_of_library" || true)
        [[ -z $names ]] || fail "kernels_$target.o shows these names, too:" "$names"
    done
fi

expected=$(HEED_COMPILED_TARGET=sse2 "$program")
[[ $expected == "sse2 "* ]] || fail "HEED_COMPILED_TARGET=sse2 runs $expected"
expected=${expected#* }
for target in "" avx2 avx512 avx512_vnni avx512_bf16 avx512_amx; do
    if out=$(HEED_COMPILED_TARGET=$target "$program" 2>&1); then
        [[ -z $target || $out == "$target "* ]] || fail "HEED_COMPILED_TARGET=$target runs $out"
        awk -v a="${out#* }" -v b="$expected" 'BEGIN { exit !((a - b) ^ 2 <= (1e-4 * b) ^ 2) }' || fail "$out, but sse2 $expected"
    else
        [[ $out == *"this processor cannot run $target"* ]] || fail "HEED_COMPILED_TARGET=$target: $out"
    fi
done
if out=$(HEED_COMPILED_TARGET=mmx "$program" 2>&1); then
    fail "HEED_COMPILED_TARGET=mmx is taken"
fi
[[ $out == *'HEED_COMPILED_TARGET is "mmx", but must be one of avx512_amx, avx512_bf16, avx512_vnni, avx512, avx2, sse2'* ]] || fail "another error: $out"

if command -v qemu-x86_64 >/dev/null; then
    out=$(env -u OPENBLAS_CORETYPE qemu-x86_64 -cpu Nehalem "$program")
    [[ $out == "sse2 $expected" ]] || fail "on a processor without AVX: $out"
else
    echo "not run on a processor without AVX2: there is no qemu-x86_64 (Debian: qemu-user)"
fi
