#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tolerances.sh TESTS: every comparison with doctest::Approx states its tolerance, `.epsilon(…)`, or uses
# support::approx, whose tolerance depends on the type. The default tolerance of doctest::Approx, 1.2e-5, suits floats:
# it misses that a double has lost half of its digits.
set -euo pipefail
export LC_ALL=C
cd -- "$1"

find . -type f \( -name '*.cpp' -o -name '*.hpp' \) ! -path './releases/*' ! -path './compile_fail/*' | sort |
    tr '\n' '\0' | xargs -0 awk '
    function judge(    at, before, c, depth, line, rest) {
        rest = text
        line = 1
        while (match(rest, "(^|[^A-Za-z0-9_])Approx *[({]")) {
            before = substr(rest, 1, RSTART + RLENGTH - 1)
            rest = substr(rest, RSTART + RLENGTH)
            line += gsub("\n", "", before)
            ++uses
            depth = 1  # up to the end of its argument
            for (at = 1; at <= length(rest) && depth > 0; ++at) {
                c = substr(rest, at, 1)
                if (c == "(" || c == "{") ++depth
                if (c == ")" || c == "}") --depth
            }
            if (substr(rest, at) !~ "^[ \n]*\\.epsilon\\(") {
                print file ":" line ": doctest::Approx without a tolerance: take support::approx"
                wrong = 1
            }
        }
    }
    FNR == 1 { if (NR > 1) judge(); file = FILENAME; text = "" }
    { text = text $0 "\n" }
    END {
        judge()
        if (uses < 100) { print "tolerances.sh: almost no comparisons were found; the test is ineffective"; wrong = 1 }
        print uses " comparisons state their tolerance"
        exit wrong
    }'
