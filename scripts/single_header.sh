#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage()
{
    cat <<'END'
usage: scripts/single_header.sh [FILE]

Writes single_include/heed/heed.hpp: heed/heed.hpp, papers.hpp, nn and the optimizers of train in one file, for Compiler
Explorer and for programs that want one file. FILE is written in its place. Each release has the file as an asset; it is
not in git.
END
}

target=single_include/heed/heed.hpp
case ${1:-} in
-h | --help) usage && exit ;;
-*) usage >&2 && exit 2 ;;
?*) target=$1 ;;
esac

# What the file holds. Left out: what needs JSON or POSIX (checkpoints, locks, signals) and xt::linalg (orthogonal).
roots=(heed/heed.hpp heed/papers.hpp)
for header in include/heed/nn/*.hpp include/heed/train/*.hpp; do
    case $header in
    */nn/orthogonal.hpp | */train/checkpoint.hpp | */train/optimizer_state.hpp | */train/training_lock.hpp | */train/stop_signals.hpp) ;;
    *) roots+=("${header#include/}") ;;
    esac
done

# Each header once, after those that it includes. What the headers include unconditionally from outside of heed is
# collected at the top, below the checks of core/cxx20.hpp. Comments that explain code (`//`) stay behind; those of public
# names (`///`) come along.
generated()
{
    LC_ALL=C awk -v roots="${roots[*]}" '
        function fail(message) { print "scripts/single_header.sh: " message > "/dev/stderr"; exit 1 }

        # show(HEADER, LINES): these lines of a header, below a line that names it.
        function show(header, lines,    title) {
            if (lines ~ /^\n*$/) return
            title = "// ---- " header " "
            while (length(title) < 120) title = title "-"
            gsub(/\n\n\n+/, "\n\n", lines)
            gsub(/^\n+|\n+$/, "", lines)
            text = text title "\n\n" lines "\n\n"
        }

        # take(HEADER): its text is added to `text`, and that of the headers that it includes where it includes them.
        function take(header,    path, lines, kept, i, depth, line, mine) {
            if (header in taken) return
            taken[header] = 1
            if (header ~ /^heed\/(io|text|translator|view|distributed)\//)
                fail(header " has no place in the single header: leave out the header of nn or train that includes it")
            path = "include/" header
            while ((status = (getline line < path)) > 0) kept[++lines] = line
            close(path)
            if (status < 0) fail("there is no " path)
            for (i = 1; i <= lines; ++i) {
                line = kept[i]
                if (line ~ /^[ \t]*#[ \t]*if/) ++depth
                if (line ~ /^[ \t]*#[ \t]*endif/) --depth
                if (line ~ /^[ \t]*#[ \t]*include "/) fail(path ":" i ": an include in quotes")
                if (line ~ /R"[a-z]*\(/) fail(path ":" i ": a raw string, in which no comments are looked for")
                if (line ~ /^#include <heed\// && line !~ /^#include <heed\/needs\//) {
                    if (depth) fail(path ":" i ": a header of heed is included under a condition")
                    show(header, mine)
                    mine = ""
                    sub(/^#include </, "", line)
                    sub(/>.*/, "", line)
                    take(line)
                } else if (line ~ /^#include </ && !depth) {
                    sub(/>.*/, ">", line)
                    includes[line] = 1
                } else if (line != "#pragma once" && line !~ /^[ \t]*\/\/([^\/]|$)/) {
                    mine = mine line "\n"
                }
            }
            show(header, mine)
        }

        BEGIN {
            take("heed/core/cxx20.hpp")
            first = text
            text = ""
            count = split(roots, root, " ")
            for (r = 1; r <= count; ++r) take(root[r])
            printf "%s", first
            for (name in includes) print name | "sort"
            close("sort")
            printf "\n%s", text
        }'
}

version=$(sed -n 's/^#define HEED_VERSION_STRING "\(.*\)"$/\1/p' include/heed/version.hpp)
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT
{
    cat <<END
// SPDX-License-Identifier: BSD-3-Clause
//
// heed $version in one file: attention mechanisms made of three policies, header-only C++20. It needs xtensor 0.24 or later,
// and a BLAS through xtensor-blas, through <cblas.h> (define HEED_BLAS_CBLAS), or none (define HEED_BLAS_NONE).
//
// Made by scripts/single_header.sh of the headers in include/heed, in which the code is explained; not to be edited. It
// holds heed/heed.hpp, heed/papers.hpp, heed/nn and the optimizers of heed/train. A program includes either this file or
// headers of the folder, not both.
//
END
    sed -e 's|^|// |' -e 's| *$||' LICENSE
    cat <<'END'
#pragma once

#ifdef HEED_SEPARATE_HEADERS
#error "heed: the single header comes after headers of heed's folder, which it holds, too: include one or the other"
#include <heed/needs/one of the two>
#endif

END
    generated
    echo '#define HEED_SINGLE_HEADER  // core/cxx20.hpp refuses the headers of the folder now'
} >"$scratch"

mkdir -p "$(dirname "$target")"
cmp -s "$scratch" "$target" || { cat "$scratch" >"$target"; }
