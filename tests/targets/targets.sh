#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# targets.sh PROGRAM OBJECT...: checks that files compiled for different targets share no function of heed, and that the
# program runs on a processor without AVX2.
set -euo pipefail

program=$1
shift

# functions OBJECT: the functions of heed that the linker merges across objects. The error types and
# heed::for_all_targets are the same for all targets; functions of the standard library and of xtensor are excluded.
functions()
{
    nm "$1" | awk '$2 ~ /^[WVu]$/ && /4heed/ { print $3 }' | grep -E '^_Z' | grep -Ev '^_ZT[ISV]N4heed(5error|11shape_error)E$|^_ZN4heed(5error|11shape_error)(C[0-9I]|D[0-9]|aS)|^_ZN4heed15for_all_targetsL?[0-9]+[a-z_]+E$' | sort
}

for one in "$@"; do
    [[ $(functions "$one" | wc -l) -gt 50 ]] || { echo "nm shows no functions of heed in $one" && exit 1; }
    for other in "$@"; do
        [[ $one < $other ]] || continue
        shared=$(comm -12 <(functions "$one") <(functions "$other") | c++filt)
        [[ -z $shared ]] || { echo "Two files share functions of heed, which belong in heed::inline HEED_TARGET: $shared" && exit 1; }
    done
done

if grep -qw avx2 /proc/cpuinfo; then
    "$program"
fi
if command -v qemu-x86_64 >/dev/null; then
    env -u OPENBLAS_CORETYPE qemu-x86_64 -cpu Nehalem "$program" any
else
    echo "not run on a processor without AVX2: there is no qemu-x86_64 (Debian: qemu-user)"
fi
