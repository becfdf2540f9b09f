#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The second order of every operation is checked: each operation in the headers of the first argument, a folder, has a
# CHECK_CURVATURE(ops::name, ...) in one of the files given after it, or is listed there as
# without_derivative(ops::name, ...) or without_second_order(ops::name, ...).
set -euo pipefail

headers=$1
shift

# in_ops FOLDER: the lines of the namespace heed::ops.
in_ops()
{
    find "$1" -name '*.hpp' -exec cat {} + | awk '/^namespace (heed::(inline HEED_TARGET::)?)?ops \{/ { on = 1 } /^\}  \/\/ namespace (heed::(inline HEED_TARGET::)?)?ops/ { on = 0 } on'
}

# declared FOLDER: the names of its operations. They are objects; a template that is built manually is identified by its
# type.
declared()
{
    local objects
    objects=$(in_ops "$1" | grep -oE '^inline constexpr [a-z_0-9]+(<.*>)? [a-z_0-9]+\{')
    sed -E 's/.* ([a-z_0-9]+)\{$/\1/' <<<"$objects"
    in_ops "$1" | grep -oE '^struct [a-z_0-9]+_op\b' | sed 's/^struct //' |
        grep -vxFf <(sed -E 's/^inline constexpr ([a-z_0-9]+).*/\1/' <<<"$objects")
}

# missing FOLDER FILE...: the operations that no file checks or lists, one per line.
missing()
{
    local folder=$1
    shift
    declared "$folder" | sort -u | comm -23 - <(
        cat "$@" | tr '\n' ' ' | tr -s ' ' |
            grep -oE '(CHECK_CURVATURE|without_derivative|without_second_order)\([ (]*ops::[a-z_0-9]+' | sed 's/.*:://' | sort -u)
}

directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT

# First check that the script detects missing operations.
cat >"$directory/some.hpp" <<'END'
namespace heed::ops {
struct checked_op : operation<checked_op> {
inline constexpr checked_op checked{};
inline constexpr choice_op choice{};
inline constexpr pair<functions::forgotten, double> forgotten{"forgotten", "its first argument",
struct by_hand_op : operation<by_hand_op<Function>> {
struct also_by_hand_op : operation<also_by_hand_op<Function>> {
inline constexpr bool is_none = false;
}  // namespace heed::ops
inline constexpr other_op other{};
END
cat >"$directory/some.cpp" <<'END'
    CHECK_CURVATURE(ops::checked, with(), ops::forgotten(x));
    static_assert(without_derivative(ops::choice, "it jumps"));
    CHECK_CURVATURE(
        (ops::by_hand_op{ops::forgotten}), with(), x);
END
if [[ $(missing "$directory" "$directory/some.cpp" | paste -sd' ') != "also_by_hand_op forgotten" ]]; then
    echo "FAILED: this script must report also_by_hand_op and forgotten as missing in its example, not:" >&2
    missing "$directory" "$directory/some.cpp" >&2
    exit 1
fi

count=$(declared "$headers" | sort -u | wc -l)
if ((count < 100)); then
    echo "FAILED: only $count operations found in $headers; has their declaration changed?" >&2
    exit 1
fi
mapfile -t left < <(missing "$headers" "$@")
if ((${#left[@]} > 0)); then
    {
        echo "FAILED: no test checks the second order of these operations:"
        printf '    %s\n' "${left[@]}"
        echo "Add a CHECK_CURVATURE for each in one of these files, or document there why it has no derivative:"
        printf '    %s\n' "$@"
    } >&2
    exit 1
fi
echo "passed: $count operations"
