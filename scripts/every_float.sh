#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/every_float.sh [--width NAME] [--part N] [--page FILE] [function...]

Evaluates the functions that heed computes on registers (default: all) at every float and at a sample of doubles, for
each register width that this processor has, and compares them with the C library. A function takes minutes. Prints
the tables of docs/explanation/accuracy.md, and fails if a result is NaN by mistake or depends on its position. After an
interruption, run again: finished functions are kept in build/every_float.

  --width NAME  only portable, sse2, avx2 or avx512
  --part N      only a sample: the first 1/N of each 32,768 consecutive floats, at least 64
  --page FILE   replace the part of this page after the line "<!-- scripts/every_float.sh -->" with the tables

Environment: CXX=g++ is the compiler.
END
}

width='' part=1 page='' functions=()
while (($#)); do
    case $1 in
    -h | --help) usage && exit ;;
    --width | --part | --page)
        (($# > 1)) || heed_fail "$1 takes a value; see scripts/every_float.sh --help"
        printf -v "${1#--}" %s "$2"
        shift
        ;;
    -*) usage >&2 && heed_fail "" "unknown option $1" ;;
    *) functions+=("$1") ;;
    esac
    shift
done
[[ $part =~ ^[1-9][0-9]*$ ]] || heed_fail "--part takes a positive number, not '$part'"
mark='<!-- scripts/every_float.sh -->'
[[ -z $page ]] || grep -qxF -- "$mark" "$page" || heed_fail "--page takes a file with the line $mark, which '$page' lacks"
[[ $(uname -m) == x86_64 ]] || heed_fail "the register widths are those of x86-64"

# ---- the program: the functions once for each width; the linker keeps the first version of the standard library's ------

heed_setup "${heed_packages_build[@]}"
compiler=${CXX:-g++}
out=$heed_builds/every_float/${compiler##*/}
mkdir -p "$out"
program=$out/every_float
if [[ ! -x $program || $(find "$heed_root/include/heed" "$heed_root/tests/every_float" "$heed_root/tests/support" -newer "$program") ]]; then
    heed_say "Compiling tests/every_float" >&2
    compile()
    {
        local object=$1
        shift
        "$compiler" -std=c++20 -O2 -DNDEBUG -DHEED_BLAS_NONE -I"$heed_root/include" -I"$heed_root/tests" "$@" -c -o "$out/$object.o"
    }
    of_registers=$heed_root/tests/every_float/functions.cpp
    compile portable -DHEED_SIMD_PORTABLE -DWIDTH=portable "$of_registers"
    compile sse2 -march=x86-64 -DWIDTH=sse2 "$of_registers"
    compile avx2 -march=x86-64-v3 -DWIDTH=avx2 "$of_registers"
    compile avx512 -march=x86-64-v4 -DWIDTH=avx512 "$of_registers"
    compile main -march=native -Wno-psabi "$heed_root/tests/every_float/main.cpp"
    "$compiler" -o "$program" "$out"/{portable,sse2,avx2,avx512,main}.o -pthread
fi

list=$("$program" --list)
((${#functions[@]})) || mapfile -t functions < <(grep -v '^--' <<<"$list")
if [[ -n $width ]]; then
    widths=("$width")
else
    mapfile -t widths < <(sed -n 's/^--width //p' <<<"$list")
fi

# ---- a file for each function and width; the same program gives the same results -----------------------------------------

hash=$(sha256sum "$program" | cut -c 1-16)
results=$out/$hash.$part
mkdir -p "$results"
files=()
for function in "${functions[@]}"; do
    missing=()
    for each in "${widths[@]}"; do
        files+=("$results/$function.$each")
        [[ -e $results/$function.$each ]] || missing+=("$each")
    done
    ((${#missing[@]})) || continue
    heed_say "$function (${missing[*]})" >&2
    only=()
    ((${#missing[@]} > 1)) || only=(--width "${missing[0]}")
    "$program" --part "$part" "${only[@]}" "$function" >"$results/running"
    for each in "${missing[@]}"; do
        # shellcheck disable=SC2016  # a program of awk
        heed_write "$results/$function.$each" awk -F '\t' -v width="$each" '$3 == width' "$results/running"
    done
    rm "$results/running"
done

# ---- the tables ------------------------------------------------------------------------------------------------------------

tables()
{
    local processor commit
    processor=$(sed -n 's/^model name[^:]*: *//p;T;q' /proc/cpuinfo)
    commit=$(git -C "$heed_root" rev-parse --short=8 HEAD 2>/dev/null || echo unknown)
    printf 'Measured on %s at commit %s, on %s with %s and %s, by\n\n    %s\n' "$(date +%F)" "$commit" "${processor:-an unknown processor}" \
        "$("$compiler" --version | head -n 1 | sed -E 's/^(Debian )?clang version ([0-9.]+).*/clang++ \2/; s/^.*g\+\+[^ ]* \([^)]*\) ([0-9.]+).*/g++ \1/')" \
        "$(ldd --version | sed -n '1s/^.*(\(.*\)).*$/\1/p')" "$command"
    awk -F '\t' -f "$heed_root/scripts/every_float.awk" "${files[@]}"
}
command='scripts/every_float.sh'
[[ $part == 1 ]] || command+=" --part $part"
[[ -z $width ]] || command+=" --width $width"
status=0
tables >"$results/tables" || status=$?
if [[ -z $page ]]; then
    cat "$results/tables"
else
    with_tables() { awk -v mark="$mark" '{ print } $0 == mark { exit }' "$page"; echo; cat "$results/tables"; }
    heed_write "$page" with_tables
fi
((status == 0)) || heed_fail "" "NaN, parity or positions have faults, see the end of the tables"
