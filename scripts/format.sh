#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Formats all C++ in the project with .clang-format. --check changes nothing; it fails if a file is not formatted, if a
# habit of language occurs more often than scripts/habits.txt allows, or if a line of Markdown is too long.
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

failed=0
prose() {
    find include src tools tests examples bench scripts packaging docs cmake -type f \
        ! -path 'scripts/habits.txt' ! -path 'tests/fuzz/found/*' ! -path '*/__pycache__/*' \
        \( -name '*.[ch]pp' -o -name '*.md' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' -o -name '*.txt' -o -name '*.in' -o -name '*.1' \) -print0
    printf '%s\0' README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CMakeLists.txt
}
while IFS=$'\t' read -r allowed pattern better; do
    [[ $allowed == [0-9]* ]] || continue
    count=$(prose | xargs -0 grep -aohiE -- "$pattern" | wc -l)
    if ((count > allowed)); then
        echo "scripts/habits.txt: $count hits of /$pattern/, $allowed allowed; better: $better. Find them: grep -rniE" >&2
        failed=1
    fi
done <scripts/habits.txt
# One sentence a line, at most 160 characters; rows of tables, code and lines of HTML may be longer.
prose | grep -zE '\.md$' | xargs -0 awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code; next }
    !code && length > 160 && !/^ *[|<]/ && !/^    / { print FILENAME ":" FNR ": " length " characters, 160 allowed"; bad = 1 }
    END { exit bad }' >&2 || failed=1

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
exit "$failed"
