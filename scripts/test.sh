#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/test.sh [option] [-- argument for ctest...]

Installs missing packages (Debian 12, root or sudo), builds the tests of the library and the kit, and runs them.

  (none)              clang++, not optimized; compiles in half of g++'s time
  --compiler gcc      g++ instead of clang++, Release, with the examples
  --sanitize          address and undefined-behavior sanitizers and xtensor's checks, clang++; with tools and translator
  --sanitize-threads  ThreadSanitizer, clang++, only for tests with threads: the pool, kernels, batches, models shared by
                      threads, `translate serve`
  --xtensor-assert    only xtensor's bounds and dimension checks, clang++
  --all               --sanitize and g++, without testing anything twice; warnings as errors, the format check, the site
                      (scripts/docs.sh), and the demo on a bare Debian (scripts/bare.sh). The default if CI=true
  --exhaustive        before a release, takes hours: --all and clang++, every product of policies, each header alone, the
                      tools and examples with every compiler, twins, benchmarks, the page in a browser, and heed as
                      WebAssembly if emcc is installed

For example: scripts/test.sh --sanitize -- -R score.
END
}

presets=(clang)
all=no
exhaustive=no
[[ ${CI:-} == true && $# == 0 ]] && all=yes
while (($#)); do
    case $1 in
    --compiler)
        case ${2:-} in
        clang | clang++) presets=(clang) ;;
        gcc | g++) presets=(release) ;;
        *) heed_fail "--compiler takes clang or gcc, not '${2:-}'" ;;
        esac
        shift
        ;;
    --sanitize) presets=(asan) ;;
    --sanitize-threads) presets=(tsan) ;;
    --xtensor-assert) presets=(xt-assert) ;;
    --all) all=yes ;;
    --exhaustive) all=yes exhaustive=yes ;;
    -h | --help) usage && exit ;;
    --) shift && break ;;
    *) usage >&2 && heed_fail "" "unknown option $1" ;;
    esac
    shift
done

packages=("${heed_packages_build[@]}" "${heed_packages_examples[@]}" "${heed_packages_tests[@]}")
if [[ $all == yes ]]; then
    presets=(release asan)
    [[ $exhaustive == no ]] || presets=(release clang asan)
    packages+=(clang-format-14 chromium debootstrap qemu-user "${heed_packages_docs[@]}" "${heed_packages_debian[@]}")
fi
[[ ${presets[*]} == release ]] || packages+=(clang lld libclang-rt-14-dev)
heed_setup "${packages[@]}"
site=
if [[ $all == yes ]]; then  # in parallel with the builds, since it takes one core; separate tests run the steps of the course
    mkdir -p "$heed_builds"
    "$heed_root/scripts/docs.sh" --no-run >"$heed_builds/site.log" 2>&1 &
    site=$!
    trap 'kill $site 2>/dev/null || true' EXIT
fi

# The bare Debian compiles the demo and runs it. If it cannot be created, bare.sh prints why, and the demo is built here.
demo=
if [[ $all == yes ]] && "$heed_root/scripts/bare.sh" --check; then demo=';demo'; fi

# shellcheck disable=SC2034  # used by heed_jobs
heed_kilobytes_per_job=4500000  # a unit of 24 tests with sanitizers takes 3.4 GB
for preset in "${presets[@]}"; do
    # Sets all options, since a build folder remembers them.
    options=(-DHEED_TEST_ONLY_PROCESSOR=OFF -DHEED_TEST_PRODUCTS=none -DHEED_TEST_EXHAUSTIVE=OFF
        -DHEED_TEST_FILES_PER_UNIT=8 -DHEED_BUILD_EXAMPLES=ON -DHEED_BUILD_TOOLS=ON -DHEED_BUILD_TRANSLATOR=ON
        -DHEED_BUILD_BENCHMARKS=OFF -DHEED_EXAMPLE_OPTIMIZATION= -DHEED_BENCHMARK_OPTIMIZATION= -DHEED_SANITIZE_EXCEPT=
        -DHEED_TEST_OPTIMIZATION= -DHEED_EXAMPLES_ONLY= -DHEED_EXAMPLES_EXCEPT= -DHEED_FUZZ_SECONDS=4 -DHEED_FUZZ_TARGETS=)
    case $preset in
    release) options+=(-DHEED_BUILD_TOOLS=OFF -DHEED_BUILD_TRANSLATOR=OFF -DHEED_EXAMPLE_OPTIMIZATION=-O1
        "-DHEED_TEST_WIDTHS=x86-64;x86-64-v3;x86-64-v4;portable") ;;
    clang) options+=(-DHEED_BUILD_EXAMPLES=OFF -DHEED_BUILD_TOOLS=OFF -DHEED_BUILD_TRANSLATOR=OFF "-DHEED_TEST_OPTIMIZATION=-O0") ;;
    xt-assert) options+=(-DHEED_TEST_PRODUCTS=policies) ;;
    esac
    target=all lines=-g1
    if [[ $exhaustive == yes ]]; then
        options+=(-DHEED_TEST_EXHAUSTIVE=ON)
        case $preset in
        release) options+=(-DHEED_BUILD_TOOLS=ON -DHEED_BUILD_TRANSLATOR=ON -DHEED_BUILD_BENCHMARKS=ON -DHEED_BENCHMARK_OPTIMIZATION=-O0) ;;
        clang) options+=(-DHEED_TEST_PRODUCTS=all -DHEED_BUILD_EXAMPLES=ON -DHEED_BUILD_TOOLS=ON -DHEED_BUILD_TRANSLATOR=ON
            -DHEED_BUILD_BENCHMARKS=ON -DHEED_TEST_OPTIMIZATION=-O1) ;;
        esac
    elif [[ $all == yes ]]; then
        # The builds do not repeat each other's tests. asan (clang++): every unit test, the tools and thus
        # heed::translator. release (g++): optimized kernels for every kind of processor, MPI, the other examples, and
        # tests for which one compiler is enough. Kernels are compiled with -O1 and the two parts of -O3 that most often
        # break incorrect code; the whole of -O3 takes almost twice as long.
        case $preset in
        release) options+=(-DHEED_TEST_ONLY_PROCESSOR=ON "-DHEED_EXAMPLES_EXCEPT=browser$demo"
            "-DHEED_TEST_OPTIMIZATION=-O1;-fstrict-aliasing;-ftree-vectorize"
            "-DHEED_TEST_WIDTHS=x86-64-v3;x86-64-v4;portable") ;;  # asan is compiled for plain x86-64
        # Excluded checks: the first two take a third of the time to build and to run, the others a sixth to a quarter of
        # the remaining build time. Null dereferences end the program anyway. --sanitize alone includes these checks.
        asan) lines=-g0 options+=(-DHEED_TEST_FILES_PER_UNIT=24 -DHEED_SANITIZE_EXCEPT=null,alignment,pointer-overflow,vptr,function
            -DHEED_TEST_PRODUCTS=policies -DHEED_EXAMPLES_ONLY=use_model -DHEED_FUZZ_SECONDS=1 "-DHEED_FUZZ_TARGETS=npy;model") ;;
        esac
    fi
    [[ $preset == asan ]] && options+=("-DCMAKE_CXX_FLAGS_DEBUG=-O0 $lines")
    options+=(-DHEED_WARNINGS_AS_ERRORS="$([[ $all == yes ]] && echo ON || echo OFF)")
    if [[ $preset == tsan ]]; then
        target=tests_of_threads
        options+=(-DHEED_TEST_FILES_PER_UNIT=1)
        set -- -R '\.(core\.(parallel|workspace|cache_tensor)|(kernels|simd|gemm)\..*|threads\..*|translator\.(batcher|load)|tool\.serve)$' "$@"
    fi
    heed_build "$preset" "$target" "${options[@]}"
done
if [[ $site ]]; then
    wait "$site" || heed_fail "$(<"$heed_builds/site.log")" "" "building the site failed"
    cat "$heed_builds/site.log"
    trap - EXIT
fi
heed_environment

# One run of all tests, so that there is one summary at the end.
tests=$heed_builds/${presets[0]}
if ((${#presets[@]} > 1)); then
    tests=$heed_builds
    printf 'subdirs(%s)\n' "${presets[*]}" >"$tests/CTestTestfile.cmake"
fi
progress=()
[[ -t 1 ]] && progress=(--progress)
exec ctest --test-dir "$tests" --output-on-failure --no-tests=error --parallel "$(heed_jobs)" "${progress[@]}" "$@"
