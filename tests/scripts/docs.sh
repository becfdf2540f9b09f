#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The checks of the site, run on a small tree of headers and pages with deliberate errors. The argument is docs/site.
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

# ---- public names without a comment, and names that need none ------------------------------------------------------------

mkdir -p include/heed/kernels
cat >include/heed/names.hpp <<'END'
#pragma once

namespace heed {

/// A documented type.
template <class T>
struct documented {
    T x;  // [B,T]
    T y;
    void bare_member(int size) const { x = size; }
    int told() const { return y; }  // the count
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
printf '#pragma once\nnamespace heed {\nstruct kernel_tag {};\n}\n' >include/heed/kernels/k.hpp
{ cat "$site/Doxyfile" && echo "OUTPUT_DIRECTORY = $directory"; } | doxygen - >/dev/null 2>&1
if python3 "$site/check_names.py" --root . --xml xml --least 5 >out 2>found; then fail "undocumented names pass"; fi
sed -n 's/.* heed::\(.*\) has no comment/\1/p' found | sort >names
printf '%s\n' bare_alias bare_concept bare_constant bare_enum bare_function bare_type documented::bare_member >expected
diff expected names >&2 || fail "the names found are not those without a comment"
grep -q 'the comment of heed::ops::without_derivative lacks' found || fail "a missing derivative is not found"
[[ $(grep -c 'lacks' found) == 1 ]] || fail "a complete comment is reported: $(grep lacks found)"
grep -q '^include/heed/names.hpp:30: struct heed::bare_type' found || fail "the location of a name is wrong: $(grep bare_type found)"
if python3 "$site/check_names.py" --root . --xml xml >/dev/null 2>&1; then fail "almost no names were found, without an error"; fi

# ---- the parts of a comment: errors, shapes, equation and source, units --------------------------------------------------

mkdir -p parts/include/heed/score parts/include/heed/papers
cat >parts/include/heed/errors.hpp <<'END'
#pragma once
namespace heed {
namespace detail {
inline void deep(int x)
{
    if (x > 0) throw x;
}
inline void middle(int x)
{
    deep(x);
}
}  // namespace detail
/// Silent.
inline void silent(int x)
{
    detail::middle(x);
}
/// Throws, but not how.
inline void vague(int x) { require_shape(x); }
/// Throws heed::error if x is not 0.
inline void stated(int x) { throw_error({x}); }
/// A reader. Throws std::bad_alloc.
struct reader {
    /// Its type has the error.
    void read() const { check_open(0); }
};
/// A writer.
struct writer {
    writer() { start(); }
    /// Calls no function that throws.
    void end() const { requires_nothing("throw"); }

private:
    void start()
    {
        throw 1;
    }
};
/// The base of readers.
struct base {
    /// Throws shape_error if it is empty.
    virtual void next() = 0;
};
/// A reader with the base's errors.
struct derived : base {
    void next() override { throw 1; }
};
/// Takes a tensor.
void without_shape(const tensor auto& x);
/// Takes a tensor.
void with_shape(const tensor auto& x);  // [B,T] -> [B]
/// Takes a tensor of any shape, with numbers in [0,1].
template <tensor X>
void of_any_shape(const X& x);
/// Waits for other processes.
void without_unit(double timeout, int max_words);
/// Waits, at most `timeout` seconds.
void with_unit(double timeout);
/// Options.
struct options {
    double timeout, interval = 3;  // between two calls
    double delay = 1;              // in seconds
    int length_penalty = 0;
};
}  // namespace heed
END
cat >parts/include/heed/score/scores.hpp <<'END'
#pragma once
namespace heed::score {
/// The score with neither `e = x` nor a source.
struct with_neither {
    static auto parameters(auto& self, auto&& visit);
};
/// A complete score.
///
///     e = q · k     Luong et al. 2015, eq. 8
struct complete {
    static auto parameters(auto& self, auto&& visit);
};
/// e = q k. No published source.
struct unpublished {
    static auto parameters(auto& self, auto&& visit);
};
/// Leaves the scores unchanged.
struct no_score {
    static auto parameters(auto& self, auto&& visit);
};
}  // namespace heed::score
END
cat >parts/include/heed/papers/papers.hpp <<'END'
#pragma once
/// Luong et al. (2015), "Effective approaches".
namespace heed::papers {
/// Global attention.
void without_equation();
/// Global attention.
///
///     α = softmax(e)
void with_equation();
/// New parameters.
void new_global(random_source& random);
}  // namespace heed::papers
END
(cd parts && { cat "$site/Doxyfile" && echo "OUTPUT_DIRECTORY = $directory/parts"; } | doxygen - >/dev/null 2>&1)
if python3 "$site/check_names.py" --root parts --xml parts/xml --least 5 >out 2>found; then fail "incomplete comments pass"; fi
sed -n 's/^include[^ ]* [a-z]* heed::\(\S*\) \(throws without\|takes a tensor\|lacks an equation\|lacks a source\|lacks the unit\).*/\2: \1/p' found |
    sort >names
sort >expected <<'END'
throws without: silent
throws without: vague
throws without: writer::writer
takes a tensor: without_shape
lacks an equation: score::with_neither
lacks an equation: papers::without_equation
lacks a source: score::with_neither
lacks the unit: without_unit
lacks the unit: options::timeout
lacks the unit: options::interval
END
diff expected names >&2 || fail "the incomplete comments found are not those that lack a part"
grep -q '^include/heed/errors.hpp:14: function heed::silent throws .*: add “Throws heed::error if …”' found ||
    fail "the location or the cure of a fault is wrong: $(grep silent found)"

# ---- broken links --------------------------------------------------------------------------------------------------------

mkdir -p pages/sub
cat >pages/index.html <<'END'
<h1 id="top">x</h1><a href="#top">1</a><a href="sub/a.html#there">2</a><a href="https://example.org/">3</a><img src="p.svg">
END
echo '<p id="there"></p><a href="../index.html">4</a>' >pages/sub/a.html
touch pages/p.svg
python3 "$site/links.py" pages >out || fail "valid links are rejected"
grep -q '^4 links inside the site are valid, 1 are external' out || fail "links are counted incorrectly: $(cat out)"
grep -q '^https://example.org/ ' pages/external-links.txt || fail "an external link is not listed"
echo '<a href="../none.html">5</a><a href="../index.html#none">6</a><img src="none.svg">' >>pages/sub/a.html
if python3 "$site/links.py" pages >out 2>found; then fail "broken links pass"; fi
[[ $(wc -l <found) == 3 ]] || fail "three links are broken, not: $(cat found)"

# ---- a step of the course: prose and code are told apart -----------------------------------------------------------------

cat >step.cpp <<'END'
// SPDX-License-Identifier: BSD-3-Clause
// test: --seed 1

// # Title
//
//     e = q · k

#include <cstdio>

/// A docstring stays code.
void f();
// So does a comment above code.
int main()
{
    // and this
}

// ## Exercises
END
python3 - "$site" <<'END' || fail "prose and code of a step are confused"
import sys
sys.path.insert(0, sys.argv[1])
import course, markdown
text = open("step.cpp", encoding="utf-8").read()
blocks = course.blocks(text)
assert [kind for kind, _ in blocks] == ["prose", "code", "prose"], blocks
assert blocks[0][1] == "# Title\n\n    e = q · k", blocks[0]
assert "docstring" in blocks[1][1] and "above code" in blocks[1][1] and "and this" in blocks[1][1], blocks[1]
assert course.arguments(text) == ["--seed", "1"]
fenced = markdown.fence_commands(blocks[0][1])
assert fenced.startswith('# Title\n\n```{raw} html\n<div class="equations plain">') and fenced.endswith("</div>\n```"), fenced
assert markdown.fence_commands("    a list\n    of words") == "```text\na list\nof words\n```"
assert markdown.fence_commands("    scripts/demo.sh") == "```bash\nscripts/demo.sh\n```"
assert markdown.of_docstring("a_b <T>:\n\n    x in `y`\n") == "a\\_b \\<T\\>:\n\n```text\nx in `y`\n```\n"
references = "[`a::b`], [text][l], `[l]`, [l](c.md), x[i] and [none]\n```\n[l]\n```\n[`a::b`]: a.hpp\n[l]: l.md#x\n"
resolved = "[`a::b`](a.hpp), [text](l.md#x), `[l]`, [l](c.md), x[i] and [none]\n```\n[l]\n```\n"
assert markdown.inline_links(references) == resolved, markdown.inline_links(references)
assert markdown.of_docstring("One:\n\n    x = y\n\n    words\n").count("```") == 4, "an equation, and a separate text"
END
# ---- breaks in long names, and pictures that are wider than a telephone ----------------------------------------------------

python3 - "$site" <<'END' || fail "a name has wrong breaks, or markup is read incorrectly"
import sys
sys.path.insert(0, sys.argv[1])
import breaks, markdown, pictures
from pathlib import Path
assert breaks.within("score::with_word{additive}") == "score::<wbr>with_<wbr>word{<wbr>additive}"
assert breaks.within("h_j") == "h_j" and breaks.within("--long-option=value") == "--long-<wbr>option=<wbr>value"
body = '<h3><code><span class="pre">score::additive_grouped</span></code><a class="headerlink" href="#a_long_name::x">#</a></h3><p>a_long_name::x</p>'
assert breaks.in_html(body) == body.replace("score::additive_grouped", "score::<wbr>additive_<wbr>grouped"), breaks.in_html(body)
assert markdown.escaped("it *adds* a * b * c") == r"it *adds* a \* b \* c"
assert markdown.on_spans("a `b` `` c `d` `` e", str.upper, lambda rest: rest) == "a `B` `` C `D` `` e"
Path("wide.svg").write_text('<svg xmlns="x" width="760" height="9"></svg>')
Path("wide.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (1200).to_bytes(4, "big"))
assert [pictures.width_of_file(Path(f"wide.{kind}")) for kind in ("svg", "png")] == [760, 1200]
END

# ---- equations in Unicode as LaTeX ----------------------------------------------------------------------------------------

python3 - "$site" <<'END' || fail "an equation is typeset incorrectly"
import html, re, sys
sys.path.insert(0, sys.argv[1])
import equations

def cells(*lines):
    """(class, text with its mathematics as ⟦LaTeX⟧) of each cell that is not empty."""
    block = equations.of_block(list(lines))
    if block is None:
        return None
    found = []
    for kind, inner in re.findall(r'<span class="(label|left|right|both|note)">(.*?)</span>(?=<span class="(?:label|left|right|both|note)"|</div>$)', block):
        tex = re.sub(r'<span class="katex-source" data-tex="(.*?)">.*?</span>', lambda m: "⟦" + html.unescape(m.group(1)).replace("\\displaystyle ", "") + "⟧", inner)
        found += [(kind, tex)] if tex else []
    return found

def tex(line):
    """The LaTeX of one equation."""
    return "".join(re.findall("⟦(?:{})?(.*?)⟧", "".join(text for _, text in cells(line))))

for line, expected in (
    ("e_j = vᵀ tanh(W s + U h_j)", r"e_{j}= v^{\top}\tanh (Ws + Uh_{j})"),
    ("α_{t,j} = b_{t,j} / Σ_i b_{t,i}", r"\alpha _{t,j}= \frac{b_{t,j}}{\sum_{i} b_{t,i}}"),
    ("z = a / b c + d", r"z= \frac{a}{b}c + d"),  # as written: only the next factor is divided
    ("z = Σ_k a_k b / (c + d)", r"z= \sum_{k} \frac{a_{k}b}{c + d}"),
    ("z = D/2", "z= D/2"),
    ("p = Σ_{l=j+1..i} log f_l", r"p= \sum_{l = j + 1}^{i} \log f_{l}"),
    ("p = Σ_{k=1}^n x_k²", r"p= \sum_{k = 1}^{n} x_{k}^{2}"),
    ("x' = x / D^¼", r"x'= \frac{x}{D^{1/4}}"),
    ("∂S'_bᵀ = y", r"\partial S_{b}^{\prime \top}= y"),
    ("h̃ = ẑ ⊙ →h_1", r"\tilde{h}= \hat{z} \odot \overrightarrow{h}_{1}"),
    ("α = σ(Q1 K1ᵀ / √(K + R))", r"\alpha= \sigma \left( \frac{Q_{1}K_{1}^{\top}}{\sqrt{K + R}} \right)"),
    ("d = |x_i - y_j| ‖v‖", r"d= \lvert x_{i} - y_{j}\rvert \,\lVert v\rVert"),
    ("λ_init ∝ head_h W_DKV", r"\lambda _{\mathrm{init}}\propto \mathrm{head}_{h}\,W_{\mathrm{DKV}}"),
    ("∂x[b,:] −= ∂loss", r"\partial x[b,{:}]\mathrel{-}= \partial \mathrm{loss}"),
    ("s_t ~ one-hot(argmax_j e_j)", r"s_{t}\sim \operatorname{\text{one-hot}}(\operatorname{argmax}_{j}e_{j})"),
):
    assert tex(line) == expected, (line, tex(line))
# Words stay words, and lines with several equations may break between them.
assert cells("k_j = 0 with probability p,  c = Σ_j α_j h_j") == [
    ("left", "⟦k_{j}⟧"), ("right", "⟦{}= 0⟧ with probability ⟦p⟧,\u2002 ⟦c = \\sum_{j} \\alpha _{j}h_{j}⟧")]
# Names first, sources last, continued lines.
assert cells("sparsemax   α = max(e - τ, 0)       Martins 2016, eq. 2 and 3",
             "top k       softmax over the k greatest    Zhao et al.",
             "                                           2019, `top_k`") == [
    ("label", "sparsemax"), ("left", "⟦\\alpha⟧"), ("right", "⟦{}= \\max (e - \\tau ,0)⟧"), ("note", "Martins 2016, eq. 2 and 3"),
    ("label", "top k"), ("both", "softmax over the ⟦k⟧ greatest"), ("note", "Zhao et al.<br>2019, <code>top_k</code>")]
assert cells("u_t = w   ", "eq. 1,   ")[-1] == ("both", "eq. 1,")
assert "α_j= e_j" in re.sub("<.*?>", "", equations.of_block(["α_j = e_j"])), "the text as it was written, for searches and without scripts"
# Text that is not an equation, or is not understood, is unchanged.
for line in ("auto x = f(y);", "const auto found = g(h);", "words without any relation", "x = {1, 2}", "╭ e = q · h", "translate --beam = 3", 'view(a{.x = "b"})',
             "Description=Translations", "past = recall(state.score, at)", "e = (a", "e = a_", "#include = 1"):
    assert cells(line) is None, (line, cells(line))
END
# ---- pictures and names of the mechanisms -----------------------------------------------------------------------------------

python3 - "$site" <<'END' || fail "a picture is not rearranged, or the index entries of a page are wrong"
import sys, pathlib, re
sys.path.insert(0, sys.argv[1])
import pictures, search_names
panel = '<g data-size="{} 210" transform="translate({} 24)">\n{}</g>\n'
wide = ('<svg xmlns="x" class="heed" width="558" height="292" viewBox="0 0 558 292">\n' + panel.format(235, 24, "one") + panel.format(240, 304, "two")
        + '<g class="legend" transform="translate(24 256)">\n</g>\n</svg>\n')
narrow = pictures.stacked(wide)
assert 'width="288" height="542" viewBox="0 0 288 542"' in narrow, narrow
assert re.findall(r"translate\(.*?\)", narrow) == ["translate(24 24)", "translate(24 274)", "translate(24 506)"], narrow
assert pictures.stacked(narrow) is None and pictures.width_of(wide) == 558
folder = pathlib.Path("mechanisms")
folder.mkdir()
(folder / "README.md").write_text("[b](local.md) [a](local-temporal.md) [c](temporal.md)")
link = "[x](../../include/heed/{}.hpp)"
(folder / "local-temporal.md").write_text("# A\n\nHeaders: " + ", ".join(map(link.format, ("normalize/temporal", "normalize/local_m"))) + "\n")
(folder / "local.md").write_text("# B\n\nHeaders: " + ", ".join(map(link.format, ("normalize/local_m", "normalize/local_p", "heads/multi_head"))) + "\n")
(folder / "temporal.md").write_text("# C\n\nHeader: " + link.format("normalize/temporal") + ". See " + link.format("score/dot") + "\n")
names = search_names.of_mechanisms(folder)
assert names == {"local": ["local", "local_m", "normalize::local_m", "local_p", "normalize::local_p", "multi_head"],
                 "local-temporal": ["local_temporal", "local temporal", "local-temporal"],
                 "temporal": ["temporal", "normalize::temporal", "dot", "score::dot"]}, names
assert search_names.with_entries("# A\n\ntext", ["a", "b::a"]) == "# A\n\n```{index} a, b::a\n```\n\ntext"
END
# ---- a mechanism's page has its product around its picture ---------------------------------------------------------------

python3 - "$site" <<'END' || fail "a mechanism's page has no live figure, or one without its picture"
import sys
sys.path.insert(0, sys.argv[1])
import live
page = live.of_mechanism("docs/mechanisms/temporal", '# Title\n\n<img src="a.svg" alt="a">\n\nText.\n\n<img src="b.svg" alt="b">\n')
figure, rest = page.split("</figure>")
assert 'data-page="temporal"' in figure and '<img src="a.svg" alt="a">' in figure, page
assert 'src="../../live/embed.js"' in rest and "b.svg" in rest and "heed-play" not in rest, page
two = '<picture><source media="(max-width: 9px)" srcset="b.svg"><img src="a.svg" alt="a"></picture>'
assert two in live.of_mechanism("docs/mechanisms/temporal", f"# Title\n\n{two}\n").split("</figure>")[0], "with one for narrow screens"
try:
    live.of_mechanism("docs/mechanisms/none", "# Title\n")
except SystemExit:
    pass
else:
    raise AssertionError("a page without a picture passes")
END
echo passed
