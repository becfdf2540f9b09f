#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# visits_in_order.sh ROOT: no `parameters` visits two tensors in the arguments of one function call, `of(visit("W", W),
# visit("b", b))`. A compiler evaluates these in any order (g++ from last to first, clang++ from first to last), but
# evaluates braced lists in the order in which they are written: `policy{visit("W", W), visit("b", b)}`.
set -euo pipefail
export LC_ALL=C
cd -- "$1"

find include src examples tests bench tools -type f \( -name '*.cpp' -o -name '*.hpp' \) ! -path 'tests/compile_fail/*' | sort |
    tr '\n' '\0' | xargs -0 awk '
    # At a parenthesis that opens a call, counts the visits among the direct arguments of the call.
    function judge(    at, c, depth, i, line, open, visits, word) {
        depth = 0
        line = start
        for (at = 1; at <= length(text); ++at) {
            c = substr(text, at, 1)
            if (c == "\n") ++line
            if (c == "(" || c == "{") {
                if (c == "(" && substr(text, at - 5, 5) == "visit" && substr(text, at + 1, 1) == "\"") {
                    ++found
                    if (open[depth] == "(" && ++visits[depth] == 2) {
                        print file ":" line ": visits in the arguments of a function, which have no order: take braces"
                        wrong = 1
                    }
                }
                open[++depth] = c
                visits[depth] = 0
            }
            if (c == ";" && depth > 0) visits[depth] = 0
            if ((c == ")" || c == "}") && depth > 0) --depth
        }
    }
    FNR == 1 { if (NR > 1) judge(); file = FILENAME; text = "" }
    /visit\("/ || text != "" {
        if (text == "") start = FNR
        text = text $0 "\n"
    }
    END {
        judge()
        if (found < 100) { print "visits_in_order.sh: almost no visits were found; the test is ineffective"; wrong = 1 }
        print found " visits"
        exit wrong
    }'
