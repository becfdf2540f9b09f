#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/versions.sh (the argument) reports errors in its options before it builds anything.
set -euo pipefail

script=$1
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
export HEED_BUILD_DIR=$directory/build
touch "$directory/not_sources"
mkdir "$directory/sources"
touch "$directory/sources/CMakeLists.txt"

# refused TEXT OPTION...: the script must fail and print TEXT.
refused()
{
    local text=$1 said
    shift
    if said=$(bash "$script" "$@" 2>&1) || [[ $said != *"$text"* ]]; then
        printf 'versions.sh %s should print:\n    %s\nIt printed:\n%s\n' "$*" "$text" "$said"
        exit 1
    fi
}

refused "unknown option --xtnsor" --xtnsor "$directory"
refused "--xtensor takes a value" --xtensor
refused "'$directory/not_sources' should be a folder of sources" --xtensor "$directory/not_sources"
refused "--xtensor needs the matching xtl" --xtensor "$directory/sources"
refused "--xtensor needs the matching xtensor-blas" --xtensor "$directory/sources" --xtl "$directory/sources"
refused "the compiler no-such-compiler is not installed" --compiler no-such-compiler
refused "--blas $directory/libmine.so: $directory/libmine.so cannot be read" --blas "$directory/libmine.so"
refused "--target takes i386, s390x or aarch64, not 'vax'" --target vax
refused "--list takes a file, and '$directory/none' cannot be read" --list "$directory/none"
printf -- '# a comment\n\n--target vax # another\n' >"$directory/list"
refused "not run (\`--target vax\`): --target takes i386" --list "$directory/list"
