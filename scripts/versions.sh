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
docs/start/versions.md. Downloads nothing, and installs nothing outside of the build folder.

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
  --tests "NAME ..."  run these tests, instead of the selection, as in "gemm/blas ops/elementwise"
  --list FILE         one run for each line of FILE, which contains these options; # starts a comment
  --sources DIR       with --list: relative folders in FILE are in DIR
  --table FILE        with --list: also write the table to FILE

Example, with the sources of three libraries in ~/src:
  scripts/versions.sh --xtensor ~/src/xtensor-0.27.1 --xtl ~/src/xtl-0.8.2 --xtensor-blas ~/src/xtensor-blas-0.23.0 \
      --compiler clang++-16 --blas openblas-openmp
END_OF_USAGE
}

# A minute of tests that cover the library: xtensor's tensors, products with each BLAS interface, operations and their
# gradients, a complete model, files.
selection="core/tensor core/view_of gemm/blas gemm/blas_threads gemm/blas_calls gemm/blas_beside_xtensor_blas ops/elementwise ops/products ops/softmax
    nn/orthogonal seq2seq/systems/sankaran2016 io/safetensors io/npy"
# For another architecture: tests that need only xtensor's headers. Kernels take minutes under qemu.
portable="core/tensor gemm/blas core/random simd/registers simd/simd gemm/int8_panels ops/elementwise ops/products ops/softmax nn/gru attention/attention io/npy
    io/safetensors"

xtensor='' xtl='' xtensor_blas='' xsimd='' compiler=g++ flags='' blas='' through='' target='' tests='' list='' table=''
sources=''
while (($#)); do
    option=$1
    case $option in
    --all) tests=all && shift && continue ;;
    -h | --help) usage && exit ;;
    --xtensor | --xtl | --xtensor-blas | --xsimd | --compiler | --flags | --blas | --through | --target | --tests | --list | \
        --sources | --table)
        (($# > 1)) || heed_fail "$option takes a value; see scripts/versions.sh --help"
        ;;
    *) usage >&2 && heed_fail "" "unknown option $option" ;;
    esac
    name=${option#--}
    printf -v "${name//-/_}" %s "$2"
    shift 2
done

# ---- a list ------------------------------------------------------------------------------------------------------------

heading="| xtensor | xtl | xtensor-blas | xsimd | compiler | BLAS | tests that passed |
|---|---|---|---|---|---|---|"
if [[ -n $list ]]; then
    [[ -r $list ]] || heed_fail "--list takes a file, and '$list' cannot be read"
    rows=$heading failed=0
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
        out=$("${BASH_SOURCE[0]}" "${words[@]}" 2>&1) || failed=$((failed + 1))
        out=$(tail -n 1 <<<"$out")
        [[ $out == '| '* ]] || out="| | | | | | | not run (\`${words[*]}\`): $out |"
        rows+=$'\n'$out
        printf '%s\n' "$out"
    done <"$list"
    printf '\n%s\n' "$rows"
    [[ -z $table ]] || heed_write "$table" printf '%s\n' "$rows"
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
    "$target" | tr -cs 'A-Za-z0-9.=+-' _)
build=$heed_builds/versions/$slug
log=$build/log
mkdir -p "$build"
: >"$log"

# row <passed> <of> <failures>
row()
{
    local what=$1 of=$2 reason=$3
    printf '| %s | %s | %s | %s | %s | %s | %s |\n' "$xtensor_version" "$xtl_version" "$xtensor_blas_version" "$xsimd_version" \
        "$(compiler_name $compiler)${target:+, $target}${flags:+, \`$flags\`}" "$blas_name" "$what of $of${reason:+: $reason}"
}

# ---- without CMake: another architecture ----------------------------------------------------------------------------------

if [[ -n $target ]]; then
    case $target in
    i386) command=("$compiler" -m32 -msse2 -mfpmath=sse -idirafter /usr/include/x86_64-linux-gnu) runner=() ;;
    s390x | aarch64)
        compiler=$target-linux-gnu-g++-12
        command -v "$compiler" >/dev/null || heed_fail "$compiler is not installed (Debian: g++-12-$target-linux-gnu)"
        command -v "qemu-$target-static" >/dev/null || heed_fail "qemu-$target-static is not installed (Debian: qemu-user-static)"
        command=("$compiler" -static) runner=("qemu-$target-static")
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
    command+=(-std=c++20 -O0 -DHEED_BLAS_NONE $flags -I"$heed_root/include" -I"$heed_root/tests" -isystem "$build/include")
    "${command[@]}" -c "$heed_root/tests/main.cpp" -o "$build/main.o" >>"$log" 2>&1 ||
        { row 0 0 "the compiler cannot compile for $target" && exit 1; }
    passed=0 all=0 failed=()
    ((${#runner[@]})) || portable+=' kernels/additive kernels/per_dimension kernels/recurrent'
    note=''
    for test in ${tests:-$portable}; do
        program=$build/${test//\//_}
        if [[ $target == s390x && $test == io/* ]]; then
            # Files are rejected on big-endian machines with one error message.
            refusal=$("${command[@]}" -fsyntax-only "$heed_root/tests/$test.cpp" 2>&1 | grep ' error: ' || true)
            if [[ $(wc -l <<<"$refusal") == 1 && $refusal == *'on little-endian machines'* ]]; then
                note=', files rejected with one error'
                continue
            fi
        fi
        all=$((all + 1))
        mkdir -p "$program.run"
        if "${command[@]}" "$heed_root/tests/$test.cpp" "$build/main.o" -o "$program" -lpthread >>"$log" 2>&1 &&
            (cd "$program.run" && "${runner[@]}" "$program") >>"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed+=("$test")
        fi
    done
    row "$passed" "$all$note" "${failed[*]+not ${failed[*]}}"
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

xtensor_version=- xtl_version=- xtensor_blas_version=- xsimd_version=- blas_name=${blas:-?}
mkdir -p "$build/packages" "$prefix"
cxx_flags="-Wno-deprecated-declarations $flags"  # newer compilers report deprecations in the standard library
for library_of in xtl xsimd xtensor xtensor_blas; do
    from=${!library_of}
    [[ -n $from && $from != installed ]] || continue
    install_sources "$from" "$library_of" || { row 0 0 "${library_of/_/-} of $from cannot be installed, see $log" && exit 1; }
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
    row 0 0 "$(sed -n '/^CMake Error/,/^$/{/^CMake Error/d;p}' "$build/configured" | xargs -0 | tr -s ' \n' ' ' | cut -c1-200)"
    exit 1
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
row "$passed" "$all" "${failed[*]+not ${failed[*]}}"
((passed == all && all > 0))
