#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Formats all C++ in the project as .clang-format says; with --check, changes nothing and fails where it would.
# clang-format 14, and no other: versions differ in how they apply the same settings.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

format=$(command -v clang-format-14) || {
    echo "clang-format-14 is not installed (Debian: clang-format-14)" >&2
    exit 1
}
find include src tools tests examples bench \( -name '*.hpp' -o -name '*.cpp' \) -print0 |
    case ${1:-} in
    --check) xargs -0 -r "$format" --dry-run --Werror ;;
    "") xargs -0 -r "$format" -i ;;
    *) echo "usage: scripts/format.sh [--check]" >&2 && exit 1 ;;
    esac
