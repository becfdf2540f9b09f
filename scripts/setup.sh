# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Functions for demo.sh, docs.sh, test.sh, bench/run.sh and others; sourced, not run. Installs only missing packages.
# HEED_SETUP=off disables installation, for xtensor and OpenBLAS from elsewhere (set CMAKE_PREFIX_PATH to their folders).

heed_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
heed_builds=${HEED_BUILD_DIR:-$heed_root/build}

heed_say() { printf '\033[1m==\033[0m %s\n' "$*" | { if [[ -t 1 ]]; then cat; else sed 's/\x1b\[[0-9]*m//g'; fi; }; }

heed_fail()
{
    printf '%s\n' "$@" >&2
    exit 1
}

# heed_write <file> <command>...: the output of the command, which runs in a subshell, replaces the file, as a whole or
# not at all. On failure, the message names the file, after the command's own message. A function as the command should
# not be under a condition, which disables set -e inside it.
heed_write()
(
    file=$1
    trap '(($? == 0)) || { rm -f -- "$file.part"; echo "$file: cannot write; the previous file is unchanged" >&2; }' EXIT
    "${@:2}" >"$file.part"
    # shellcheck disable=SC2181  # a condition around the command would disable set -e inside it
    (($? == 0)) || exit
    mv -f -- "$file.part" "$file"
)

# heed_commit <path>...: the last commit that changed these paths; + if they have changed since
heed_commit()
{
    local commit
    commit=$(git -C "$heed_root" log -1 --format=%h -- "$@" 2>/dev/null) || { echo - && return; }
    git -C "$heed_root" diff --quiet HEAD -- "$@" || commit+=+
    echo "$commit"
}

# ---- packages ----------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2034  # used by scripts that source this
heed_packages_build=(g++ cmake ninja-build libxtensor-dev libxsimd-dev libxtensor-blas-dev libopenblas-dev
    nlohmann-json3-dev)
# shellcheck disable=SC2034
heed_packages_demo=(libcli11-dev libfmt-dev)
# shellcheck disable=SC2034
heed_packages_examples=("${heed_packages_demo[@]}" libsentencepiece-dev libicu-dev libcpp-httplib-dev)
# shellcheck disable=SC2034
heed_packages_tests=(doctest-dev libbenchmark-dev libeigen3-dev libopenmpi-dev openmpi-bin)
# shellcheck disable=SC2034
heed_packages_docs=(doxygen python3-sphinx python3-myst-parser furo python3-sphinx-copybutton libjs-katex fonts-katex)
# shellcheck disable=SC2034
heed_packages_debian=(dpkg-dev debhelper pkgconf)
# shellcheck disable=SC2034
heed_packages_browser=(emscripten)

heed_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# A tool may come from anywhere; a library must be Debian's package, since only CMake could find others.
heed_has()
{
    case $1 in
    g++) command -v "${CXX:-g++}" >/dev/null ;;
    cmake | clang-format-14 | doxygen | python3) command -v "$1" >/dev/null ;;
    clang) command -v clang++ >/dev/null ;;
    emscripten) command -v emcc >/dev/null ;;
    ninja-build) command -v ninja >/dev/null || command -v make >/dev/null ;;
    # Not the serial build of OpenBLAS: it returns wrong results when called from several threads.
    libopenblas-dev) heed_installed libopenblas-pthread-dev || heed_installed libopenblas-openmp-dev ;;
    *) heed_installed "$1" ;;
    esac
}

# heed_setup <package>...: installs missing packages, or prints instructions and ends the script.
heed_setup()
{
    [[ ${HEED_SETUP:-on} != off ]] || return 0
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        heed_say "This is not a Debian system: no packages are installed. heed needs the equivalents of: $*"
        return
    fi

    local package missing=() as_root=()
    for package in "$@"; do
        heed_has "$package" || missing+=("$package")
    done
    ((${#missing[@]})) || return 0

    if ((EUID != 0)); then
        if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
            as_root=(sudo)
        else
            heed_fail "These Debian packages are missing, and installing them requires root:" \
                "    ${missing[*]}" "Have an administrator run this command, then run this script again:" \
                "    apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
        fi
    fi

    heed_say "Installing ${missing[*]}"
    local log
    log=$(mktemp)
    if ! "${as_root[@]}" apt-get -q update >"$log" 2>&1 ||
        ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
            "${missing[@]}" >>"$log" 2>&1; then
        tail -n 20 "$log" >&2
        rm -f "$log"
        heed_fail "" "apt-get could not install: ${missing[*]}"
    fi
    rm -f "$log"
}

# ---- building ----------------------------------------------------------------------------------------------------------

# The number of parallel compilers that cores and memory allow; each takes up to heed_kilobytes_per_job.
heed_kilobytes_per_job=1500000
heed_jobs()
{
    local cores memory
    cores=$(nproc 2>/dev/null || echo 1)
    memory=$(awk -v each="$heed_kilobytes_per_job" '/^MemAvailable:/ { print int($2 / each) }' /proc/meminfo 2>/dev/null || true)
    if [[ -n $memory ]] && ((memory < cores)); then cores=$((memory > 0 ? memory : 1)); fi
    echo "$cores"
}

# heed_build <preset> <target> [<cmake option>...]: configures a preset of CMakePresets.json in build/<preset> and builds it.
heed_build()
{
    local preset=$1 target=$2 generator=() start=$SECONDS
    shift 2
    local directory=$heed_builds/$preset
    if [[ ! -e $directory/CMakeCache.txt ]] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
    heed_say "Building $target ($preset), $(heed_jobs) at a time"
    (cd "$heed_root" && cmake --log-level=WARNING --preset "$preset" -B "$directory" "${generator[@]}" "$@") >/dev/null
    # clang++ allocates gigabytes and takes 8% less time with huge pages. g++ has its own allocator.
    GLIBC_TUNABLES=${GLIBC_TUNABLES-glibc.malloc.hugetlb=1} cmake --build "$directory" --target "$target" --parallel "$(heed_jobs)"
    heed_say "Built in $((SECONDS - start)) s"
}

# ---- running -----------------------------------------------------------------------------------------------------------

heed_openblas_version()
{
    local header
    for header in /usr/include/*/openblas*/openblas_config.h /usr/include{,/*}/openblas_config.h; do
        if [[ -r $header ]]; then
            sed -n 's/.*OPENBLAS_VERSION " *OpenBLAS \([0-9.]*\).*/\1/p' "$header"
            return
        fi
    done
}

# heed_has_avx512: whether this processor supports the AVX-512 kernels of OpenBLAS and libtorch.
# HEED_CPUINFO replaces /proc/cpuinfo, for tests.
heed_has_avx512()
{
    local flags flag
    flags=" $(sed -n 's/^flags[^:]*://p;T;q' "${HEED_CPUINFO:-/proc/cpuinfo}" 2>/dev/null || true) "
    for flag in avx512f avx512bw avx512vl avx512dq; do
        [[ $flags == *" $flag "* ]] || return 1
    done
}

heed_environment()
{
    # heed divides its work among threads: additional BLAS threads would compete for the cores.
    export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}

    # An OpenBLAS older than 0.3.25 may not recognize a newer CPU and then falls back to AVX2 kernels, at half the speed
    # of AVX-512. If it does recognize the CPU, this setting makes no measurable difference. The user's setting takes
    # precedence.
    local version
    [[ -z ${OPENBLAS_CORETYPE:-} ]] || return 0
    version=$(heed_openblas_version)
    [[ -n $version && $(printf '%s\n0.3.25\n' "$version" | sort -V | head -n 1) != 0.3.25 ]] || return 0
    heed_has_avx512 || return 0
    export OPENBLAS_CORETYPE=SkylakeX
}
