#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# mutate.sh MUTATE: scripts/mutate.py on a header with a good test and on one with a poor test: mutants are killed or
# survive, survivors must be explained, and an interrupted run continues.
set -Eeuo pipefail
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
fail() { printf 'FAILED (line %s): %s\n' "${BASH_LINENO[0]}" "$*" >&2 && exit 1; }
mkdir -p "$directory"/{scripts,include/heed/score,tests/score,tests/properties}
cp -- "$1" "$directory/scripts/mutate.py"
cd -- "$directory"

cat >include/heed/score/one.hpp <<'END'
#pragma once
/// 2 x - 1 if x is above 0, else -1; the + in a comment is no operator.
inline int less_one(int x)
{
    static_assert(1 + 1 == 2, "a + b");
    int y = 0;
    if (x > 0) y += 2 * x;
    return y - 1;
}
END
echo 'set(own_program )' >tests/CMakeLists.txt
echo 'int test(); int main() { return test(); }' >tests/main.cpp
test_of() { printf '#include <heed/score/one.hpp>\nint test() { return %s ? 0 : 1; }\n' "$1" >tests/score/one.cpp; }
mutate() { python3 scripts/mutate.py --all --compiler c++ "$@" include/heed/score/one.hpp; }

mutate --list out >list
diff - list <<'END' || fail "the mutants"
score/one.hpp: int y = 0;  =>  int y = 1;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (!(x > 0)) y += 2 * x;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x >= 0) y += 2 * x;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x > 1) y += 2 * x;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x > 0) y -= 2 * x;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x > 0) y += (2 + 1) * x;
score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x > 0) y += 2 / x;
score/one.hpp: return y - 1;  =>  return y + 1;
score/one.hpp: return y - 1;  =>  return y - 2;
score/one.hpp: return y - 1;  =>  return y - 0;
END

test_of 'less_one(-1) == -1 && less_one(1) == 1 && less_one(3) == 5'
status=0
mutate out >report 2>log || status=$?
((status == 1)) || fail "an unexplained survivor: status $status"
same='score/one.hpp: if (x > 0) y += 2 * x;  =>  if (x >= 0) y += 2 * x;' # 2 · 0
grep -qxF "$same" report || fail "not the only survivor: $(cat report log)"
grep -qx '1 survivors are not explained' report || fail "the survivors: $(cat report)"
grep -qx '| score | 10 | 0 | 9 | 1 | 90.0 |' report || fail "the table: $(cat report)"
echo "$same" >tests/mutants.txt
mutate out >report 2>log || fail "an explained survivor"
grep -q '10 judged before' log || fail "judged again: $(cat log)"

test_of 'less_one(-1) == -1'
rm tests/mutants.txt
mutate --minutes 0 fewer >report 2>log || fail "no time: $(cat log)"
grep -qx '0 survivors are not explained' report || fail "judged without time"
mutate fewer >report 2>log && fail "a test of one case"
grep -qx '5 survivors are not explained' report || fail "the survivors of a poor test: $(cat report)"

echo 'int test() { return true; }' >tests/score/one.cpp
mutate failing >report 2>log && fail "a test that fails on its own"
grep -q 'tests/score/one.cpp does not pass on its own' log || fail "no message: $(cat log)"
python3 scripts/mutate.py out tests/main.cpp 2>log && fail "not a header"
grep -q 'main.cpp is not a header of include/heed' log || fail "the message: $(cat log)"
echo passed
