// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <stdexcept>

#include <products/products.hpp>

// docs/explanation/composition.md, generated from the compiler's verdicts.
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

/// The exact text of the static assertion.
std::string sentence(composition_fault fault)
{
    if (fault == composition_fault::different_weights) return HEED_SAYS_DIFFERENT_WEIGHTS;
    if (fault == composition_fault::negative_scores) return HEED_SAYS_NEGATIVE_SCORES;
    throw std::logic_error("composition: a policy of the table is none");
}

std::string code(const std::string& x) { return "`" + x + "`"; }

std::string joined(const std::vector<std::string>& names)
{
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + code(name);
    return all;
}

/// The distinct values of a column of the table, in order.
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

/// Scores × normalizers of one kind, with the combiners that go with them.
std::string table_of(weight_kind kind, const table& lines)
{
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].kind == kind && lines[i].legal(); });
    const auto normalizers = distinct(lines, legal, normalizer_of);
    const auto combiners = distinct(lines, legal, combiner_of);
    std::string out = "### One weight per " + text(kind) + "\n\nCombiners: " + joined(combiners) + ".\n\n";
    out += header(normalizers);
    for (const std::string& score : distinct(lines, legal, score_of)) {
        out += "| " + code(score) + " |";
        for (const std::string& normalizer : normalizers) {
            const auto here = where(lines, [&](std::size_t i) {
                return lines[i].legal() && lines[i].score == score && lines[i].normalizer == normalizer;
            });
            const auto fitting = distinct(lines, here, combiner_of);
            out += " " + (fitting == combiners ? "✓" : fitting.empty() ? "–" : joined(fitting));
            out += " |";
        }
        out += "\n";
    }
    return out + "\n";
}

const char* text(many way)
{
    switch (way) {
    case many::linear:
        return "linear";
    case many::tiles:
        return "tiles";
    case many::products:
        return "products";
    default:
        return " ";
    }
}

/// How many queries are answered: scores × normalizers with weighted_sum. Only where some are not answered in turn.
std::string many_queries(const table& lines)
{
    const auto with_sum =
        where(lines, [&](std::size_t i) { return lines[i].legal() && lines[i].combiner == "weighted_sum"; });
    const auto at_once = where(lines, [&](std::size_t i) {
        return lines[i].legal() && lines[i].combiner == "weighted_sum" && lines[i].queries != many::in_turn;
    });
    const auto normalizers = distinct(lines, at_once, normalizer_of);
    std::string out = header(normalizers);
    for (const std::string& score : distinct(lines, at_once, score_of)) {
        out += "| " + code(score) + " |";
        for (const std::string& normalizer : normalizers) {
            many way{};
            for (const std::size_t i : with_sum)
                if (lines[i].score == score && lines[i].normalizer == normalizer) way = lines[i].queries;
            out += std::string(" ") + text(way) + " |";
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
            const auto same = where(lines, [&](std::size_t i) {
                return lines[i].kind == kind && lines[i].combiner == combiner &&
                       lines[i].fault != composition_fault::negative_scores;
            });
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
    out += "\nAbove, – means: " + code(sentence(composition_fault::negative_scores)) + "\n";
    return out + "\n";
}

constexpr const char* worth_knowing = R"(## Worth knowing

**A constant cancels under temporal modulation.** A term added to position j's score at every step is also in the divisor: from the
second step on it cancels, under `temporal`, `recent_temporal` and any `decayed_temporal` of strength 1. At strength β, a share of 1 − β
remains. So a preference for a position as such (a bias per position, `score::location` with a constant query) only has an effect in the
first step. Terms added after modulation (an `additive_mask`) or multiplied after normalizing (`local_p`'s Gaussian) survive, and so do
terms that depend on the step as well as on the position (relative biases, `with_neighbors`, `with_location`, `with_coverage`).
`learned_temporal` remembers weights and divides by nothing: constants stay.

**A number added to all scores of one step** changes no weight of that step but, under `temporal`, how much that step counts later. Scores
whose magnitude depends on the query (`dot`, `general`) make some steps count more than others; `cosine` does not.

**Local inside temporal, or outside.** `local_m{D, temporal{}}` remembers the scores of all positions and only hides those outside the window
when weights are computed: with a window that covers the sentence it is `temporal`. `decayed_temporal{1, 0, local_m{D}}` is the same with the
nesting reversed. Both process the whole sentence at every step. `local_m{D, temporal{}, history::in_window{}}` remembers only positions in
the window; a position that was never in it has no history, and nothing outside is computed. Around a memory that fades or forgets
(`decayed_temporal`, `recent_temporal`) a window never cuts, since that memory also changes outside of it. All of this holds for `local_p`
as well. A window inside a window that cuts does not compile.

**Sparse normalizers under temporal modulation.** `decayed_temporal{1, 0, sparsemax{}}` remembers scores, so a position with weight
exactly 0 is discounted from then on like any other. `learned_temporal{w, sparsemax{}}` remembers weights, so it is not.

**Weights that do not sum to 1.** The weights of `sigmoid` and `retention` sum to any value, those of `stick_breaking`, `monotonic`, `chunkwise` over it and `softmax_with_sink` to at most 1, `local_p`'s to less than 1 unless it renormalizes. Scores that read
past weights (`with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbors`) read them as they are.

**Ages.** `ratio` and `retention` count the age of a position from the row's end, or, with `causal{}`, from the query's own place; a mask of single
positions hides them without making the others younger.

**Temperature.** Around a memory it also divides the remembered scores; `decayed_temporal{1, 0, temperature{τ}}` divides after modulation.

**Draws.** `hard`, `gumbel` and `argmax` compute functions whose derivative is 0 almost everywhere. `argmax` has no gradient, `gumbel` uses
that of a nearby softmax, and `hard` learns through `score_function_term`. Their gradients in the table are not compared with differences.

**Dropout** only affects the weights that the combiner gets. The returned weights, those that a normalizer remembers, and those that coverage
reads are undropped.

**Masks and memory.** The mask of one query hides weights, not history: a normalizer with a memory counts every score, including those of
positions that this query may not see. `attend.on(annotations, mask)` clears hidden positions first, so their contents have no effect.
Lengths do both: positions beyond them have no weight, and their history affects nothing.

**`score::location`** has one column per position up to the longest sentence; a longer sentence throws `shape_error` and is not cut. It
ignores the annotations: a score that wraps it would only add to the scores of positions.

**Weights per dimension or group** mean one history, one threshold and one draw for each of them as well. Scores that read past weights read
their mean.

**Combiners.** `attentional` changes the width of the context from D to H: whatever reads the context (`with_recurrence`'s unit, a decoder)
must expect H. For a row that may attend to nothing it returns 0, like all others.

**Heads and hops.** `multi_head` and `multi_hop` return one weight per head or hop and position, so they need a score per position;
they do not compile with another.
)";

}  // namespace

std::string markdown(const table& lines)
{
    const auto all = where(lines, [](std::size_t) { return true; });
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].legal(); });
    const auto count = [](std::size_t n) { return std::to_string(n); };
    std::string out =
        "# What composes\n\n"
        "`attention{score, normalize, combine}` takes any score, any normalizer, and any combiner that accepts "
        "the score's kind of weights.\n"
        "Normalizers work on all kinds of weights. The test program `composition_products` generates this page, and a "
        "test compares the two.\n\n";
    out +=
        count(distinct(lines, all, score_of).size()) + " scores × " +
        count(distinct(lines, all, normalizer_of).size()) + " normalizers × " +
        count(distinct(lines, all, combiner_of).size()) + " combiners are " + count(all.size()) +
        " products, of which " + count(legal.size()) + " are legal and " + count(all.size() - legal.size()) +
        " do not compile. Every legal one is instantiated and run:\n"
        "`step` and all queries at once agree, no queries return no contexts, the tape computes the same as inference, "
        "gradients by parameters,\n"
        "annotations and queries agree with finite differences (except for draws and picks, see below), each of "
        "these parts alone on the tape\n"
        "gets the same gradient as beside the others, an empty row gets 0, padding (NaN included) "
        "changes no bit, rows of a state can be\n"
        "selected as in beam search (except for draws), positions hidden by a boolean or additive mask have "
        "weight 0, hiding the last positions equals\n"
        "shorter lengths (except in windows, whose position depends on the length), and everything stays finite with "
        "queries and score parameters\n"
        "1e4 times as large.\n\n"
        "## The table\n\n"
        "✓: with each of the combiners named above the table.\n\n";
    for (const weight_kind kind : kinds) out += table_of(kind, lines);
    out +=
        "`with_word`, `with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbors`, "
        "`with_positions` and `with_recurrence` wrap any score, including each other;\n"
        "`chunkwise`, `learned_temporal`, `dropout`, `decayed_temporal`, `local_m`, `local_p`, `noisy`, "
        "`recent_temporal` and "
        "`temperature` wrap any normalizer; `attentional` and `gated` wrap any combiner.\n"
        "`combine::direction_split` is another name for `weighted_sum`; `combine::relative` goes with any score per "
        "position, and with any normalizer but those that cut windows.\n\n"
        "## Many queries\n\n"
        "Every product answers many queries in one call. With `weighted_sum`, and without a mask of single positions "
        "in "
        "the memory, these do not take one query after the other: *tiles* store no `[S,T]`, forward or backward; "
        "*products* are two matrix products a sentence; *linear* takes time linear in the positions (where keys fade "
        "by gates, `gated_decay`, with `causal{}` and a decay of 1). Functions of scores "
        "(`modified`) and `rotary` are over any of the first.\n\n";
    out += many_queries(lines);
    out += "## Illegal\n\n";
    out += illegal(lines);
    return out + worth_knowing;
}

}  // namespace composition
