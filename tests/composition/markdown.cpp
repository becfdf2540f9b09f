// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <stdexcept>

#include <composition/products.hpp>

// docs/composition.md, from what the compiler and the runs say.
namespace composition {

namespace {

using heed::composition_fault, heed::weight_kind;

constexpr weight_kind kinds[] = {weight_kind::per_position, weight_kind::per_dimension, weight_kind::per_group};

std::string text(weight_kind kind)
{
    switch (kind) {
    case weight_kind::per_position:
        return "position";
    case weight_kind::per_dimension:
        return "dimension";
    default:
        return "group of dimensions";
    }
}

/// The very words of the static assertion.
std::string sentence(composition_fault fault)
{
    if (fault == composition_fault::different_weights) return HEED_SAYS_DIFFERENT_WEIGHTS;
    throw std::logic_error("composition: a policy of the table is none");
}

std::string code(const std::string& x) { return "`" + x + "`"; }

std::string joined(const std::vector<std::string>& names)
{
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + code(name);
    return all;
}

/// The different values of a column of the table, in their order.
template <class Take>
std::vector<std::string> distinct(const table& lines, const std::vector<std::size_t>& which, Take&& take)
{
    std::vector<std::string> values;
    for (const std::size_t i : which) {
        if (std::find(values.begin(), values.end(), take(lines[i])) == values.end()) values.push_back(take(lines[i]));
    }
    return values;
}

template <class Condition>
std::vector<std::size_t> where(const table& lines, Condition&& condition)
{
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (condition(i)) which.push_back(i);
    }
    return which;
}

std::string header(const std::vector<std::string>& names)
{
    std::string head = "| |", rule = "|---|";
    for (const std::string& name : names) {
        head += " " + code(name) + " |";
        rule += "---|";
    }
    return head + "\n" + rule + "\n";
}

const auto score_of = [](const row& line) { return line.score; };
const auto normalizer_of = [](const row& line) { return line.normalizer; };
const auto combiner_of = [](const row& line) { return line.combiner; };

/// Scores × normalizers of one kind: which of the combiners that fit the kind go with them.
std::string table_of(weight_kind kind, const table& lines)
{
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].kind == kind && lines[i].legal; });
    const auto normalizers = distinct(lines, legal, normalizer_of);
    const auto combiners = distinct(lines, legal, combiner_of);
    std::string out = "### A weight for each " + text(kind) + "\n\nCombiners: " + joined(combiners) + ".\n\n";
    out += header(normalizers);
    for (const std::string& score : distinct(lines, legal, score_of)) {
        out += "| " + code(score) + " |";
        for (const std::string& normalizer : normalizers) {
            const auto here = where(lines, [&](std::size_t i) {
                return lines[i].legal && lines[i].score == score && lines[i].normalizer == normalizer;
            });
            const auto fitting = distinct(lines, here, combiner_of);
            out += " " + (fitting == combiners ? "✓" : joined(fitting));
            out += " |";
        }
        out += "\n";
    }
    return out + "\n";
}

std::string illegal(const table& lines)
{
    const auto all = where(lines, [](std::size_t) { return true; });
    const auto combiners = distinct(lines, all, combiner_of);
    std::string out = header(combiners);
    std::vector<composition_fault> faults;
    for (const weight_kind kind : kinds) {
        out += "| a score per " + text(kind) + " |";
        for (const std::string& combiner : combiners) {
            const auto same =
                where(lines, [&](std::size_t i) { return lines[i].kind == kind && lines[i].combiner == combiner; });
            const composition_fault fault = lines[same.front()].fault;
            for (const std::size_t i : same) {
                if (lines[i].fault != fault) throw std::logic_error("composition: it depends on more than the kind");
            }
            if (fault == composition_fault::none) {
                out += " ✓ |";
                continue;
            }
            auto found = std::find(faults.begin(), faults.end(), fault);
            if (found == faults.end()) found = faults.insert(faults.end(), fault);
            out += " ✗ (" + std::to_string(found - faults.begin() + 1) + ") |";
        }
        out += "\n";
    }
    for (std::size_t i = 0; i < faults.size(); ++i) {
        out += "\n(" + std::to_string(i + 1) + ") " + code(sentence(faults[i])) + "\n";
    }
    return out + "\n";
}

constexpr const char* worth_knowing = R"(## Worth knowing

**A constant cancels under temporal modulation.** What is added to position j's score at every step is in the divisor too: from the
second step on it is gone, under `temporal`, `recent_temporal` and any `fading_temporal` of strength 1. Of another strength β, the part
1 − β is left. So a preference for a position as such (a bias for each position, `score::location` with a query that stays the same)
works in the first step only. What survives: what is added after modulation (an `additive_mask`) or multiplied after normalising
(`local_p`'s Gaussian), and what depends on the step as well as on the position (relative biases, `with_neighbours`, `with_location`,
`with_coverage`). `connected` remembers weights and divides by nothing: constants stay.

**A number added to all scores of one step** changes no weight of that step, but under `temporal` how much that step counts later. Scores
whose size depends on the query (`dot`, `general`) give some steps a longer memory than others; `cosine` does not.

**Local inside temporal, or outside.** `local_m{D, temporal{}}` remembers the scores of all positions and hides what is outside the window
only where weights are made: a window that covers the sentence is `temporal`. `fading_temporal{1, 0, local_m{D}}` is the same the other way
round. Both cost the whole sentence at every step. `local_m{D, temporal{}, history::in_window{}}` remembers only what lay in the window; a
position that was never in it has no history, and nothing outside is computed. Around a memory that fades or forgets (`fading_temporal`,
`recent_temporal`) a window never cuts, since that memory changes outside of it too. All of this holds for `local_p` as well. A window inside
a window that cuts does not compile.

**Sparse normalizers under temporal modulation.** `fading_temporal{1, 0, sparsemax{}}`: what is remembered are scores. A position with
weight exactly 0 is therefore discounted from then on like any other. `connected{w, sparsemax{}}` remembers weights: there it is not.

**What does not sum to 1.** `sigmoid`'s weights sum to anything, `local_p`'s to less than 1 unless it renormalises. Scores that read past
weights (`with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbours`) read them as they are.

**Temperature.** Outside of a memory it divides what is remembered as well; `fading_temporal{1, 0, temperature{τ}}` divides after modulation.

**Draws.** `hard`, `gumbel` and `argmax` compute something whose derivative is 0 almost everywhere. `argmax` gives none; `gumbel` gives that
of a softmax nearby; `hard` learns through `score_function_term`. The table's gradients are not compared with differences there.

**Dropout** thins what the combiner gets. What is returned, what a normalizer remembers, and what coverage reads are the weights before.

**Masks and memory.** A mask of one query hides weights, not history: a normalizer that remembers counts every score, also of what this query
may not see. With `attend.on(annotations, mask)` what is hidden is cleared first, so nothing of it can matter. Lengths do both: behind them
there is no weight, and what is remembered there reaches nothing.

**`score::location`** has one column for each position up to the longest sentence; a longer sentence is a `shape_error`, not cut. The
annotations play no part in it: a score laid over it would add to the numbers of positions.

**A weight for each dimension or group** means one history, one threshold, one draw for each as well. Scores that read past weights read
their mean.

**Combiners.** `attentional` changes the width of the context, from D to H: what reads the context (`with_recurrence`'s unit, a decoder) is made for
H. In a row that may attend to nothing it gives 0, as all others do.

**Heads and hops.** `multi_head` and `multi_hop` give one weight for each head or hop and position, so they need a score per position;
with another they do not compile.
)";

}  // namespace

std::string markdown(const table& lines)
{
    const auto all = where(lines, [](std::size_t) { return true; });
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].legal != nullptr; });
    const auto count = [](std::size_t n) { return std::to_string(n); };
    std::string out =
        "# What composes\n\n"
        "`attention{score, normalize, combine}` takes any score, any normalizer, and any combiner that takes "
        "the weights which the score gives.\n"
        "Normalizers work on all kinds of weights. The test program `unit_composition` wrote this page, and a "
        "test compares them.\n\n";
    out +=
        count(distinct(lines, all, score_of).size()) + " scores × " +
        count(distinct(lines, all, normalizer_of).size()) + " normalizers × " +
        count(distinct(lines, all, combiner_of).size()) + " combiners are " + count(all.size()) +
        " products, of which " + count(legal.size()) + " are legal and " + count(all.size() - legal.size()) +
        " do not compile. Every legal one is instantiated and run:\n"
        "`step` and all queries at once agree, no queries give no contexts, the tape computes what inference computes, "
        "gradients by parameters,\n"
        "annotations and queries agree with differences (not where something is drawn or picked, see below), each of "
        "these parts alone on the tape\n"
        "gets the gradient that it gets beside the others, an empty row gets 0, padding (NaN included) "
        "changes no bit, rows of a state can be\n"
        "selected as beam search does (not where something is drawn), what a boolean or an additive mask hides has "
        "weight 0, hiding the last positions equals\n"
        "shorter lengths (not in windows, whose place depends on the length), and with queries and parameters of the "
        "score 1e4 times as large everything\n"
        "stays finite.\n\n"
        "## The table\n\n"
        "✓: with each of the combiners named above the table.\n\n";
    for (const weight_kind kind : kinds) out += table_of(kind, lines);
    out +=
        "`with_word`, `with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbours`, "
        "`with_positions` and `with_recurrence` go over other scores, also over each other;\n"
        "`connected`, `dropout`, `fading_temporal`, `local_m`, `local_p`, `recent_temporal` and `temperature` over any "
        "normalizer; `attentional` and `gated` over any combiner.\n"
        "`combine::direction_split` is another name of `weighted_sum`.\n\n"
        "## Illegal\n\n";
    out += illegal(lines);
    return out + worth_knowing;
}

}  // namespace composition
