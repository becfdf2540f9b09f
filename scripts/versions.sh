#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END_OF_USAGE'
usage: scripts/versions.sh [option...]
       scripts/versions.sh --list FILE [--sources DIR] [--table FILE]

Builds heed with the given sources or libraries, runs a selection of its unit tests, and prints a row of
docs/start/versions.md. Downloads nothing, and installs nothing outside of the build folder, except with --command.

  --xtensor DIR       the sources of xtensor (default: the installed one)
  --xtl DIR           the sources of the matching xtl
  --xtensor-blas DIR  the sources of the matching xtensor-blas; not with --blas none
  --xsimd DIR         compile xtensor with XTENSOR_USE_XSIMD and this xsimd; `installed` selects the installed one
  --compiler CXX      the compiler (default: g++)
  --flags "FLAG ..."  additional compiler flags, such as -DHEED_SIMD_PORTABLE or -march=x86-64-v3
  --blas WHICH        openblas-pthread, openblas-openmp, openblas-serial, reference (as Debian installs them), none, or
                      the file of a library (default: the one that CMake finds)
  --through WHICH     xtensor-blas or cblas: how heed calls the BLAS (default: the choice of HEED_BLAS=auto)
  --target WHICH      i386, s390x (big-endian) or aarch64: another architecture, the last two under qemu; without a BLAS
                      and without CMake
  --all               run every unit test (an hour), instead of the selection
  --tests "NAME ..."  run these tests, instead of the selection, as in "gemm/blas ops/elementwise"; kernels: a selection
                      of kernels, for --flags that select a register width
  --command COMMAND   run this command with the installed packages, instead of the selection
  --list FILE         one run for each line of FILE, which contains these options; # starts a comment
  --sources DIR       with --list: relative folders in FILE are in DIR
  --table FILE        with --list: put the rows into the table in FILE. A row replaces the row with the same tests,
                      compiler, libraries and BLAS; the table's other rows keep their dates

Example, with the sources of three libraries in ~/src:
  scripts/versions.sh --xtensor ~/src/xtensor-0.27.1 --xtl ~/src/xtl-0.8.2 --xtensor-blas ~/src/xtensor-blas-0.23.0 \
      --compiler clang++-16 --blas openblas-openmp

Some rows of the page again:
  scripts/versions.sh --list <(grep target scripts/versions.txt) --table docs/start/versions.md
END_OF_USAGE
}

# A minute of tests that cover the library: xtensor's tensors, products with each BLAS interface, operations and their
# gradients, a complete model, files.
selection="core/tensor core/view_of gemm/blas gemm/blas_threads gemm/blas_calls gemm/blas_beside_xtensor_blas ops/elementwise ops/products ops/softmax
    nn/orthogonal seq2seq/systems/sankaran2016 io/safetensors io/npy"
# For another architecture: tests that need only xtensor's headers. Kernels take minutes under qemu.
portable="core/tensor gemm/blas core/random simd/registers simd/simd gemm/int8_panels ops/elementwise ops/products ops/softmax nn/gru attention/attention io/npy
    io/safetensors"
# Intrinsics of one register width.
kernels="simd/registers simd/simd simd/lookup simd/trig kernels/additive kernels/layer_norm kernels/recurrent kernels/softmax gemm/gemm_kernel
    gemm/int8_panels"

xtensor='' xtl='' xtensor_blas='' xsimd='' compiler=g++ flags='' blas='' through='' target='' tests='' command='' list='' table=''
sources=''
while (($#)); do
    option=$1
    case $option in
    --all) tests=all && shift && continue ;;
    -h | --help) usage && exit ;;
    --xtensor | --xtl | --xtensor-blas | --xsimd | --compiler | --flags | --blas | --through | --target | --tests | --command | \
        --list | --sources | --table)
        (($# > 1)) || heed_fail "$option takes a value; see scripts/versions.sh --help"
        ;;
    *) usage >&2 && heed_fail "" "unknown option $option" ;;
    esac
    name=${option#--}
    printf -v "${name//-/_}" %s "$2"
    shift 2
done

# ---- a list ------------------------------------------------------------------------------------------------------------

heading="| tests | compiler | libraries | BLAS | processor | passed | date | commit |"

# put <row> <file>: the row replaces the one with the same first four columns in the table, or is added at its end.
put()
{
    [[ -e $2 ]] || printf '%s\n%s\n' "$heading" '|---|---|---|---|---|---|---|---|' >"$2"
    grep -qxF -- "$heading" "$2" || heed_fail "$2 has no table with the columns $heading"
    # shellcheck disable=SC2016  # variables of awk
    heed_write "$2" awk -v row="$1" -v heading="$heading" '
        function key(line, cells) { split(line, cells, / *[|] */); return cells[2] "|" cells[3] "|" cells[4] "|" cells[5] }
        function add() { if (inside && !done) { print row; done = 1 } }
        $0 == heading { inside = 1 }
        inside && !/^[|]/ { add(); inside = 0 }
        inside && key($0) == key(row) { add(); next }
        { print }
        END { add() }' "$2"
}

if [[ -n $list ]]; then
    [[ -r $list ]] || heed_fail "--list takes a file, and '$list' cannot be read"
    failed=0
    while IFS= read -r line || [[ -n $line ]]; do
        line=${line%%#*}
        [[ -n ${line//[[:space:]]/} ]] || continue
        declare -a words=()
        eval "words=($line)"  # quoted flags stay one word; the list is trusted
        for i in "${!words[@]}"; do
            case ${words[i]} in
            --xtensor | --xtl | --xtensor-blas | --xsimd)
                next=${words[i + 1]:-}
                [[ -z $sources || -z $next || $next == /* || $next == installed ]] || words[i + 1]=$sources/$next
                ;;
            esac
        done
        out=$("${BASH_SOURCE[0]}" "${words[@]}" 2>&1 </dev/null) || failed=$((failed + 1))
        out=$(tail -n 1 <<<"$out")
        if [[ $out != '| '* ]]; then
            out="not run (\`${words[*]}\`): $out"
        elif [[ -n $table ]]; then
            put "$out" "$table"
        fi
        printf '%s\n' "$out"
    done <"$list"
    ((failed == 0)) || heed_fail "" "$failed of the runs failed; their logs are in $heed_builds/versions"
    exit 0
fi

# ---- one run -----------------------------------------------------------------------------------------------------------

for folder in "$xtensor" "$xtl" "$xtensor_blas" "$xsimd"; do
    [[ -z $folder || $folder == installed || -r $folder/CMakeLists.txt ]] ||
        heed_fail "'$folder' should be a folder of sources with a CMakeLists.txt in it"
done
if [[ -n $xtensor ]]; then
    [[ -n $xtl ]] || heed_fail "--xtensor needs the matching xtl: --xtl DIR"
    [[ -n $xtensor_blas || $blas == none || $through == cblas || -n $target ]] ||
        heed_fail "--xtensor needs the matching xtensor-blas: --xtensor-blas DIR; or --blas none, or --through cblas"
fi
command -v "${compiler%% *}" >/dev/null || heed_fail "the compiler ${compiler%% *} is not installed"

# version_of <library> <folder of headers>...: the version in its first header there.
version_of()
{
    local library=$1 folder header macro=${1//-/_}
    shift
    for folder in "$@"; do
        for header in "$folder/$library"/{,core/,config/}{"$library",xblas}_config.hpp; do
            [[ -r $header ]] || continue
            sed -nE "s/^#define ${macro^^}_VERSION_(MAJOR|MINOR|PATCH) *([0-9]+).*/\2/p" "$header" | paste -sd .
            return
        done
    done
    echo -
}

compiler_name()
{
    "$@" --version 2>/dev/null | head -n 1 |
        sed -E 's/^(Debian )?clang version ([0-9]+\.[0-9]+).*/clang++ \2/; s/^.*g\+\+[^ ]* \([^)]*\) ([0-9]+\.[0-9]+).*/g++ \1/'
}

slug=$(printf '%s ' "${xtensor##*/}" "${xtl##*/}" "${xtensor_blas##*/}" "xsimd=${xsimd##*/}" "$compiler" "$flags" "$blas" "$through" \
    "$target" "$command" | tr -cs 'A-Za-z0-9.=+-' _)
build=$heed_builds/versions/$slug
log=$build/log
mkdir -p "$build"
: >"$log"

name_of_tests="\`$tests\`"
case $tests in
'') name_of_tests=selection ;;
all) name_of_tests="all unit tests" ;;
kernels) name_of_tests=kernels tests=$kernels ;;
esac

commit=$(heed_commit include src cmake CMakeLists.txt)

# registers FLAG...: the register width that heed has with this compiler and these flags.
registers()
{
    local macros
    macros=$(echo | "$compiler" "$@" -E -dM -x c++ - 2>>"$log" || true)
    case $macros in
    *HEED_SIMD_PORTABLE*) echo portable ;;
    *__AVX512F__*) echo AVX-512 ;;
    *__AVX2__*) echo AVX2 ;;
    *__SSE2__*) echo SSE2 ;;
    *) echo portable ;;
    esac
}

# row <compiler> <libraries> <BLAS> <processor> <passed>
row() { printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$name_of_tests" "$@" "$(date -u +%F)" "$commit"; }

libraries()
{
    local all="xtensor $xtensor_version, xtl $xtl_version"
    [[ $xtensor_blas_version == - ]] || all+=", xtensor-blas $xtensor_blas_version"
    [[ $xsimd_version == - ]] || all+=", xsimd $xsimd_version"
    echo "$all"
}

# ---- a command -----------------------------------------------------------------------------------------------------------

if [[ -n $command ]]; then
    name_of_tests="\`$command\`"
    status=0
    (cd "$heed_root" && bash -c "$command") >>"$log" 2>&1 </dev/null || status=$?
    passed=yes
    ((status == 0)) || passed="no: exit status $status, see $log"
    read -r wrong all < <(sed -nE 's/.* ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$log" | tail -n 1) || wrong=''
    if [[ -n $wrong ]]; then
        passed="$((all - wrong)) of $all"
        mapfile -t failed < <(sed -nE 's/^\t *[0-9]+ - ([^ ]+) \(.*(Failed|Timeout|SEGFAULT|Exception).*/\1/p' "$log")
        ((wrong == 0)) || passed+=": not ${failed[*]}"
    fi
    row - "$(. /etc/os-release && echo "${NAME%% *} ${VERSION_ID:-}")" - "$(uname -m | tr _ -)" "$passed"
    exit "$status"
fi

# ---- without CMake: another architecture ----------------------------------------------------------------------------------

if [[ -n $target ]]; then
    case $target in
    i386) compile=("$compiler" -m32 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu) runner=() ;;
    s390x | aarch64)
        compiler=$target-linux-gnu-g++-12
        command -v "$compiler" >/dev/null || heed_fail "$compiler is not installed (Debian: g++-12-$target-linux-gnu)"
        runner=("$(command -v "qemu-$target" "qemu-$target-static" | head -n 1)")
        [[ -n ${runner[*]} ]] || heed_fail "qemu-$target is not installed (Debian: qemu-user)"
        compile=("$compiler" -static)
        ;;
    *) heed_fail "--target takes i386, s390x or aarch64, not '$target'" ;;
    esac
    # Only these system headers: /usr/include itself would hide those of the other architecture.
    mkdir -p "$build/include"
    for library in xtensor xtl nlohmann doctest; do ln -sfn "/usr/include/$library" "$build/include/$library"; done
    [[ -z $xtensor ]] || ln -sfn "$(realpath "$xtensor")/include/xtensor" "$build/include/xtensor"
    [[ -z $xtl ]] || ln -sfn "$(realpath "$xtl")/include/xtl" "$build/include/xtl"
    xtensor_version=$(version_of xtensor "$build/include") xtl_version=$(version_of xtl "$build/include")
    xtensor_blas_version=- xsimd_version=- blas_name=none
    # shellcheck disable=SC2206  # $flags is a list
    compile+=(-std=c++20 -O0 -DHEED_BLAS_NONE $flags -I"$heed_root/include" -I"$heed_root/tests" -isystem "$build/include")
    "${compile[@]}" -c "$heed_root/tests/main.cpp" -o "$build/main.o" >>"$log" 2>&1 ||
        heed_fail "the compiler cannot compile for $target, see $log"
    passed=0 all=0 failed=()
    ((${#runner[@]})) || portable+=' kernels/additive kernels/per_dimension kernels/recurrent'
    note=''
    for test in ${tests:-$portable}; do
        program=$build/${test//\//_}
        if [[ $target == s390x && $test == io/* ]]; then
            # Files are rejected on big-endian machines with one error message.
            refusal=$("${compile[@]}" -fsyntax-only "$heed_root/tests/$test.cpp" 2>&1 | grep ' error: ' || true)
            if [[ $(wc -l <<<"$refusal") == 1 && $refusal == *'on little-endian machines'* ]]; then
                note=', files rejected with one error'
                continue
            fi
        fi
        all=$((all + 1))
        mkdir -p "$program.run"
        if "${compile[@]}" "$heed_root/tests/$test.cpp" "$build/main.o" -o "$program" -lpthread >>"$log" 2>&1 &&
            (cd "$program.run" && "${runner[@]}" "$program") >>"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed+=("$test")
        fi
    done
    case $target in
    i386) name="$(compiler_name "$compiler"), \`-m32\`" processor="i386, SSE2" ;;
    *) name="$target-linux-gnu-$(compiler_name "$compiler")" processor="$target, qemu" ;;
    esac
    row "$name${flags:+, \`$flags\`}" "$(libraries)" none "$processor" "$passed of $all$note${failed[*]+: not ${failed[*]}}"
    ((passed == all))
    exit
fi

# ---- with CMake: the packages of these versions, in a separate folder -------------------------------------------------------

prefix=$build/prefix
options=("-DCMAKE_INSTALL_PREFIX=$prefix" "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF)
case $blas in
'' | none) ;;
openblas-*) options+=(-DBLA_VENDOR=OpenBLAS) library=(/usr/lib/*/"$blas"/libopenblas.so.0) name=BLAS_openblas_LIBRARY ;;
reference) options+=(-DBLA_VENDOR=Generic) library=(/usr/lib/*/blas/libblas.so.3) name=BLAS_blas_LIBRARY ;;
*)
    library=("$blas")
    case ${blas##*/} in
    libopenblas*) options+=(-DBLA_VENDOR=OpenBLAS) name=BLAS_openblas_LIBRARY ;;
    *) options+=(-DBLA_VENDOR=Generic) name=BLAS_blas_LIBRARY ;;
    esac
    ;;
esac
if [[ -n $blas && $blas != none ]]; then
    [[ -r ${library[0]} ]] || heed_fail "--blas $blas: ${library[0]} cannot be read"
    options+=("-D$name=${library[0]}")
fi

install_sources()
{
    local from=$1 to=$build/packages/$2
    [[ ! -e $to.done || $(<"$to.done") != "$from" ]] || return 0
    rm -rf "$to" "$to.sources"
    mkdir -p "$to"
    if ! cmake -S "$from" -B "$to" "${options[@]}" >"$to.log" 2>&1; then
        # Only headers and three small files are installed, which do not need the required version of CMake.
        grep -q 'or higher is required' "$to.log" || { cat "$to.log" >>"$log" && return 1; }
        rm -rf "$to"
        cp -r "$from" "$to.sources"
        sed -i -E 's/^cmake_minimum_required\(.*\)/cmake_minimum_required(VERSION 3.22)/' "$to.sources/CMakeLists.txt"
        cmake -S "$to.sources" -B "$to" "${options[@]}" >>"$log" 2>&1 || return 1
    fi
    cmake --install "$to" >>"$log" 2>&1 || return 1
    printf '%s\n' "$from" >"$to.done"
}

xtensor_version=- xtl_version=- xtensor_blas_version=- xsimd_version=- blas_name=${blas:--}
mkdir -p "$build/packages" "$prefix"
cxx_flags="-Wno-deprecated-declarations $flags"  # newer compilers report deprecations in the standard library
for library_of in xtl xsimd xtensor xtensor_blas; do
    from=${!library_of}
    [[ -n $from && $from != installed ]] || continue
    install_sources "$from" "$library_of" || heed_fail "${library_of/_/-} of $from cannot be installed, see $log"
done
[[ -z $xsimd ]] || cxx_flags+=' -DXTENSOR_USE_XSIMD'

headers=("$prefix/include" /usr/local/include /usr/include)
xtensor_version=$(version_of xtensor "${headers[@]}") xtl_version=$(version_of xtl "${headers[@]}")
[[ -z $xsimd ]] || xsimd_version=$(version_of xsimd "${headers[@]}")

if [[ $blas == none ]]; then
    options+=(-DHEED_BLAS=none)
elif [[ -n $through ]]; then
    options+=("-DHEED_BLAS=$through")
fi
generator=()
if [[ ! -e $build/heed/CMakeCache.txt ]] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
if ! cmake -S "$heed_root" -B "$build/heed" "${generator[@]}" "${options[@]}" "-DCMAKE_CXX_COMPILER=$compiler" \
    "-DCMAKE_CXX_FLAGS=$cxx_flags" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DHEED_TEST_OPTIMIZATION=-O0 \
    -DHEED_BUILD_TESTS=ON -DHEED_TEST_WIDTHS= -DHEED_TEST_STATIC=OFF \
    -DHEED_WARNINGS_AS_ERRORS=ON -DHEED_NATIVE="$([[ $flags == *-march* ]] && echo OFF || echo ON)" >"$build/configured" 2>&1; then
    cat "$build/configured" >>"$log"
    heed_fail "$(sed -n '/^CMake Error/,/^$/{/^CMake Error/d;p}' "$build/configured" | xargs -0 | tr -s ' \n' ' ' | cut -c1-200)"
fi
how=$(sed -nE 's/^-- heed .*(through |, )([a-z-]+|no BLAS)$/\2/p' "$build/configured")
[[ $how != xtensor-blas ]] || xtensor_blas_version=$(version_of xtensor-blas "${headers[@]}")

passed=0 failed=() all=0
if [[ $tests == all ]]; then
    keep_going=-k
    [[ ! -e $build/heed/build.ninja ]] || keep_going=-k0
    cmake --build "$build/heed" --parallel "$(heed_jobs)" -- $keep_going >>"$log" 2>&1 || true
    ctest --test-dir "$build/heed" -L unit --parallel "$(heed_jobs)" >"$build/tested" 2>&1 || true
    cat "$build/tested" >>"$log"
    read -r wrong all < <(sed -nE 's/.* ([0-9]+) tests? failed out of ([0-9]+)$/\1 \2/p' "$build/tested")
    passed=$((all - wrong))
    mapfile -t failed < <(sed -nE 's/^\t *[0-9]+ - ([^ ]+) \(.*/\1/p' "$build/tested")
    selection=''
else
    selection=${tests:-$selection}
fi
targets=$'\n'$(cmake --build "$build/heed" --target help)$'\n'
for test in $selection; do
    program=${test//\//_}
    # Tests of xtensor-blas, or of a BLAS, are not built without it. (ninja and make print targets differently.)
    [[ $targets == *$'\n'"$program: "* || $targets == *$'\n... '"$program"$'\n'* ]] || continue
    all=$((all + 1))
    run=$build/run/$program
    mkdir -p "$run"
    if cmake --build "$build/heed" --target "$program" >>"$log" 2>&1 &&
        (cd "$run" && OPENBLAS_NUM_THREADS=1 "$build/heed/tests/$program") >>"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed+=("$test")
    fi
done
# The library that a program actually loads, not the requested one.
if [[ $how == "no BLAS" ]]; then
    blas_name=none
elif [[ -x $build/heed/tests/gemm_blas ]]; then
    blas_name=$(ldd "$build/heed/tests/gemm_blas" | sed -nE 's/.* => (.*(blas|BLAS).*) \(.*/\1/p' | head -n 1)
    case $blas_name in
    *openmp*) blas_name="OpenBLAS, OpenMP" ;;
    */openblas-serial/*) blas_name="OpenBLAS, serial" ;;
    *) case $(realpath "$blas_name") in
        */blas/libblas*) blas_name=reference ;;
        *openblas*) blas_name="OpenBLAS, pthread" ;;
        *) blas_name=${blas_name##*/} ;;
        esac ;;
    esac
    [[ $how != cblas ]] || blas_name+=", \`cblas\`"
fi
march=-march=native
[[ $flags != *-march* ]] || march=''
# shellcheck disable=SC2086  # lists of flags
row "$(compiler_name $compiler)${flags:+, \`$flags\`}" "$(libraries)" "$blas_name" "x86-64, $(registers $flags $march)" \
    "$passed of $all${failed[*]+: not ${failed[*]}}"
((passed == all && all > 0))
