#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Formats all C++ in the project with .clang-format; --check changes nothing, and fails if a file is not formatted.
# Requires clang-format 14: other versions apply the same settings differently.

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

# Formats a copy, since --dry-run takes a quarter more time.
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
