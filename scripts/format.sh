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
    count=$({ prose | xargs -0 grep -aohiE -- "$pattern" || true; } | wc -l)  # grep fails without a hit
    if ((count > allowed)); then
        echo "scripts/habits.txt: $count hits of $pattern, but $allowed are allowed; better: $better" >&2
        failed=1
    fi
done <scripts/habits.txt
while IFS= read -r -d '' file; do
    if long=$(LC_ALL=C.UTF-8 grep -E '^.{161}' "$file"); then
        printf '%s: a line of more than 160 characters: %s\n' "$file" "$long" >&2
        failed=1
    fi
done < <(prose | grep -zE '\.md$')

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
