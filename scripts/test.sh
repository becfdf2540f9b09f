#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/test.sh [option] [-- argument for ctest...]

Installs what is missing (Debian 12, root or sudo), builds heed's tests, examples and benchmarks, and runs every test.

  (none)              g++, Release
  --compiler clang    clang++ in place of g++
  --sanitize          address and undefined-behaviour sanitizers and xtensor's own checks, clang++
  --xtensor-assert    xtensor's own bounds and dimension checks alone, clang++
  --all               g++, --sanitize, and of clang++ what these leave out; warnings as errors, the format check
                      and the page in a browser; what CI=true does by itself

For example: scripts/test.sh --sanitize -- -R score.
END
}

presets=(release)
all=no
[[ ${CI:-} == true && $# == 0 ]] && all=yes
while (($#)); do
    case $1 in
    --compiler)
        case ${2:-} in
        clang | clang++) presets=(clang) ;;
        gcc | g++) presets=(release) ;;
        *) heed_fail "--compiler takes clang or g++, not '${2:-}'" ;;
        esac
        shift
        ;;
    --sanitize) presets=(asan) ;;
    --xtensor-assert) presets=(xt-assert) ;;
    --all) all=yes ;;
    -h | --help) usage && exit ;;
    --) shift && break ;;
    *) usage >&2 && heed_fail "" "unknown option $1" ;;
    esac
    shift
done

packages=("${heed_packages_build[@]}" "${heed_packages_examples[@]}" "${heed_packages_tests[@]}")
if [[ $all == yes ]]; then
    presets=(release clang asan)
    packages+=(clang-format-14 chromium)
fi
[[ ${presets[*]} != release ]] && packages+=(clang libclang-rt-14-dev)
heed_setup "${packages[@]}"

for preset in "${presets[@]}"; do
    # Set either way, since a build directory remembers its options. With the sanitizers, clang++ builds every test and
    # example, so without them only what depends on the processor. It also judges every product of policies, g++ every
    # pair of them.
    options=(-DHEED_TEST_ONLY_PROCESSOR=OFF -DHEED_TEST_PAIRS=OFF -DHEED_BUILD_EXAMPLES=ON)
    if [[ $all == yes && $preset == clang ]]; then options=(-DHEED_TEST_ONLY_PROCESSOR=ON -DHEED_BUILD_EXAMPLES=OFF); fi
    if [[ $all == yes && $preset == release ]]; then options+=(-DHEED_TEST_PAIRS=ON); fi
    [[ $preset != clang ]] && options+=(-DHEED_WARNINGS_AS_ERRORS="$([[ $all == yes ]] && echo ON || echo OFF)")
    heed_build "$preset" all "${options[@]}"
done
heed_environment

# One run over all that was built, so that there is one summary, and it comes last.
tests=$heed_builds/${presets[0]}
if ((${#presets[@]} > 1)); then
    tests=$heed_builds
    printf 'subdirs(%s)\n' "${presets[*]}" >"$tests/CTestTestfile.cmake"
fi
progress=()
[[ -t 1 ]] && progress=(--progress)
exec ctest --test-dir "$tests" --output-on-failure --no-tests=error --parallel "$(heed_jobs)" "${progress[@]}" "$@"
