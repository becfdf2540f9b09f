#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the site's checks find, in a small tree of headers and pages that is wrong on purpose. The argument is docs/site.
set -euo pipefail

site=$(cd "$1" && pwd)
export PYTHONDONTWRITEBYTECODE=1
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cd "$directory"

fail()
{
    echo "FAILED: $1" >&2
    exit 1
}

# ---- public names without a comment, and what needs none -----------------------------------------------------------------

mkdir -p include/heed/kernels
cat >include/heed/names.hpp <<'END'
#pragma once

namespace heed {

/// What this is.
template <class T>
struct documented {
    T x;  // [B,T]
    T y;
    void bare_member(int size) const { x = size; }
    int told() const { return y; }  // how many
    auto prepare(const T& hook) const { return hook; }
    bool operator==(const documented&) const;
};
template <class T>
documented(T) -> documented<T>;

/// Once is enough.
void overloaded(int);
void overloaded(double);

/// y = f(x)
struct with_object_op {};
inline constexpr with_object_op with_object{};

namespace detail {
struct hidden {};
}  // namespace detail

struct bare_type {};

template <class T>
concept bare_concept = true;

enum class bare_enum { a, b };

template <class T>
void bare_function(const T& x,
                   int more);

inline constexpr int bare_constant = 1;

template <class T>
using bare_alias = documented<T>;

}  // namespace heed
END
mkdir include/heed/ops
cat >include/heed/ops/operations.hpp <<'END'
#pragma once
namespace heed::ops {
/// y = 2 x: x [B] -> [B].
///
///     ∂x += 2 ∂y
struct whole_op {
    static void forward(int x, int& y);
};
inline constexpr whole_op whole{};
/// y = 3 x: x [B] -> [B].
struct without_derivative_op {
    static void forward(int x, int& y);
};
inline constexpr without_derivative_op without_derivative{};
}  // namespace heed::ops
END
printf '#pragma once\nnamespace heed {\nstruct in_kernels {};\n}\n' >include/heed/kernels/k.hpp
{ cat "$site/Doxyfile" && echo "OUTPUT_DIRECTORY = $directory"; } | doxygen - >/dev/null 2>&1
if python3 "$site/check_names.py" --root . --xml xml --least 5 >out 2>found; then fail "undocumented names pass"; fi
sed -n 's/.* heed::\(.*\) has no comment/\1/p' found | sort >names
printf '%s\n' bare_alias bare_concept bare_constant bare_enum bare_function bare_type documented::bare_member >expected
diff expected names >&2 || fail "other names are found than those without a comment"
grep -q 'the comment of heed::ops::without_derivative lacks' found || fail "a missing derivative is not found"
[[ $(grep -c 'lacks' found) == 1 ]] || fail "a whole comment lacks something: $(grep lacks found)"
grep -q '^include/heed/names.hpp:30: struct heed::bare_type' found || fail "a name's place is wrong: $(grep bare_type found)"
if python3 "$site/check_names.py" --root . --xml xml >/dev/null 2>&1; then fail "hardly any name was found, and nobody says so"; fi

# ---- links that lead nowhere ---------------------------------------------------------------------------------------------

mkdir -p pages/sub
cat >pages/index.html <<'END'
<h1 id="top">x</h1><a href="#top">1</a><a href="sub/a.html#there">2</a><a href="https://example.org/">3</a><img src="p.svg">
END
echo '<p id="there"></p><a href="../index.html">4</a>' >pages/sub/a.html
touch pages/p.svg
python3 "$site/links.py" pages >out || fail "links that exist are refused"
grep -q '^4 links inside the site lead somewhere, 1 lead' out || fail "links are counted wrong: $(cat out)"
grep -q '^https://example.org/ ' pages/external-links.txt || fail "an external link is not listed"
echo '<a href="../none.html">5</a><a href="../index.html#none">6</a><img src="none.svg">' >>pages/sub/a.html
if python3 "$site/links.py" pages >out 2>found; then fail "links that lead nowhere pass"; fi
[[ $(wc -l <found) == 3 ]] || fail "three links lead nowhere, not: $(cat found)"

# ---- a step of the course: what is prose, and what is code ---------------------------------------------------------------

cat >step.cpp <<'END'
// SPDX-License-Identifier: BSD-3-Clause
// test: --seed 1

// # Title
//
//     e = q · k

#include <cstdio>

/// A docstring stays code.
void f();
// So does what stands above code.
int main()
{
    // and this
}

// ## Exercises
END
python3 - "$site" <<'END' || fail "prose and code of a step are told apart wrongly"
import sys
sys.path.insert(0, sys.argv[1])
import course, markdown
text = open("step.cpp", encoding="utf-8").read()
blocks = course.blocks(text)
assert [kind for kind, _ in blocks] == ["prose", "code", "prose"], blocks
assert blocks[0][1] == "# Title\n\n    e = q · k", blocks[0]
assert "docstring" in blocks[1][1] and "above code" in blocks[1][1] and "and this" in blocks[1][1], blocks[1]
assert course.arguments(text) == ["--seed", "1"]
assert markdown.fence_commands(blocks[0][1]) == "# Title\n\n```text\ne = q · k\n```"
assert markdown.fence_commands("    scripts/demo.sh") == "```bash\nscripts/demo.sh\n```"
assert markdown.of_docstring("a_b <T>:\n\n    x = `y`\n") == "a\\_b \\<T\\>:\n\n```text\nx = `y`\n```\n"
END
# ---- a mechanism's page with its product around its picture ---------------------------------------------------------------

python3 - "$site" <<'END' || fail "a mechanism's page has no live figure, or one without its picture"
import sys
sys.path.insert(0, sys.argv[1])
import live
page = live.of_mechanism("docs/mechanisms/temporal", '# Title\n\n<img src="a.svg" alt="a">\n\nText.\n\n<img src="b.svg" alt="b">\n')
figure, rest = page.split("</figure>")
assert 'data-page="temporal"' in figure and '<img src="a.svg" alt="a">' in figure, page
assert 'src="../../live/embed.js"' in rest and "b.svg" in rest and "heed-play" not in rest, page
try:
    live.of_mechanism("docs/mechanisms/none", "# Title\n")
except SystemExit:
    pass
else:
    raise AssertionError("a page without a picture passes")
END
echo passed
