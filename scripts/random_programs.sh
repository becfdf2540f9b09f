#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/random_programs.sh [option...]

Runs random programs (tests/products/programs.hpp): a product of policies with random sizes, lengths, masks, numbers and
ways to run, compared with the equations in tests/products/interpreter. Builds the products of every pair of policies.

  --count N   the number of programs (default 100000)
  --seed N    the seed (default: a new one each day; it is printed)

A program with a fault is reduced to the smallest one that still has a fault, and printed. Repeat it with
composition_products --replay, and add it to tests/products/found.cpp.
END
}

count=100000 seed=''
while (($#)); do
    case $1 in
    --count | --seed)
        (($# > 1)) || heed_fail "$1 needs a value"
        [[ $2 =~ ^[0-9]+$ ]] || heed_fail "$1 requires a number"
        declare "${1#--}=$2"
        shift
        ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && heed_fail "" "unknown option $1" ;;
    esac
    shift
done

heed_setup "${heed_packages_build[@]}" "${heed_packages_tests[@]}" clang
heed_build dev composition_products -DHEED_TEST_PRODUCTS=pairs -DCMAKE_CXX_COMPILER=clang++
export OPENBLAS_NUM_THREADS=1
exec "$heed_builds/dev/tests/products/composition_products" --programs "$count" ${seed:+"$seed"}
