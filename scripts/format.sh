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
files() { find include src tools tests examples bench \( -name '*.hpp' -o -name '*.cpp' \) -print0; }
case ${1:-} in
--check) ;;
"") files | xargs -0 -r "$format" -i; exit ;;
*) echo "usage: scripts/format.sh [--check]" >&2 && exit 1 ;;
esac

# A copy is formatted, since --dry-run takes a quarter more time.
copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
files >"$copy/files"
{ cat "$copy/files" && printf '.clang-format\0'; } | tar --null -T - -cf - | tar -xf - -C "$copy"
xargs -0 -r sha256sum <"$copy/files" >"$copy/sums"
(cd "$copy" && xargs -0 -r "$format" -i <files && sha256sum --quiet -c sums >changed 2>/dev/null) || {
    [[ -s $copy/changed ]] || exit 1
    sed 's/: FAILED$//' "$copy/changed" | while IFS= read -r file; do diff -u "$file" "$copy/$file" || true; done
    exit 1
}
