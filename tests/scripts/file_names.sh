#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# file_names.sh ROOT: every header, source and page named in a comment, message or page of the project exists. A name is
# the end of a path in the project: error_rate.cpp, metrics/error_rate.cpp and tests/kit/metrics/error_rate.cpp are the
# same file. The compiler checks the names in #include; the changelog may name files of old releases.
set -euo pipefail
export LC_ALL=C
cd -- "$1"

# Names that are not files of the project: files that programs write, generated pages of the site, and NN for a number.
known='^(course_NN\.cpp|NN\.hpp|checks/NN\.cpp|table\.md|page\.md|reference/(operations|hooks)\.md)$'

scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
find include src tools examples tests docs bench scripts cmake packaging ./*.md -type f | sed 's|^\./||' >"$scratch/files"
grep -E '\.(hpp|cpp|md)$' "$scratch/files" | grep -v "^CHANGELOG\.md$" |
    tr '\n' '\0' | xargs -0 grep -nHE '[A-Za-z0-9_]\.(hpp|cpp|md)([^A-Za-z0-9_/]|$)' | grep -vE '^[^:]*:[0-9]+:\s*#' >"$scratch/lines"
(($(wc -l <"$scratch/lines") > 500)) || { echo "file_names.sh: almost no names were found; the test is ineffective" >&2; exit 1; }
awk -v known="$known" '
    NR == FNR {  # the ends of all paths
        for (path = $0; ; sub("^[^/]*/", "", path)) {
            there[path] = 1
            if (path !~ "/") break
        }
        sub("^include/heed/", "heed/"); there[$0] = 1
        next
    }
    {
        match($0, "^[^:]*:[0-9]+:")
        where = substr($0, 1, RLENGTH)
        rest = " " substr($0, RLENGTH + 1)
        gsub("https?://[^ )>]*", "", rest)
        while (match(rest, "[A-Za-z0-9_./-]*[A-Za-z0-9_-]\\.(hpp|cpp|md)([^A-Za-z0-9_/]|$)")) {
            before = substr(rest, RSTART - 1, 1)
            name = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH - 1)
            sub("[^A-Za-z0-9_]$", "", name)
            sub("^[./]*/", "", name)
            if (before ~ /[<>*{}$"\\]/ && !(name in there)) continue  # part of a pattern or of a composed text
            if (name in there || name ~ known) continue
            print where " " name " does not exist"
            wrong = 1
        }
    }
    END { exit wrong }' "$scratch/files" "$scratch/lines" || exit 1
echo "$(wc -l <"$scratch/lines") lines name files that exist"
