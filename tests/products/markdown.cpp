// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <set>
#include <sstream>
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
    throw std::logic_error("composition: an entry of the table is not a policy");
}

std::string code(const std::string& x) { return "`" + x + "`"; }

/// The words, in lines of at most 120 characters that each begin with `mark`.
std::string filled(const std::vector<std::string>& words, const std::string& mark = "")
{
    const auto width = [](const std::string& x) {  // UTF-8: without continuation bytes
        return std::count_if(x.begin(), x.end(), [](char c) { return (c & 0xc0) != 0x80; });
    };
    std::string all, line = mark;
    for (const std::string& word : words) {
        if (line != mark && width(line) + 1 + width(word) > 120) {
            all += line + "\n";
            line = mark;
        }
        line += (line == mark ? "" : " ") + word;
    }
    return all + line + "\n";
}

/// `start` and a list of names.
std::string list(const std::string& start, const std::vector<std::string>& names)
{
    std::vector<std::string> words{start};
    for (const std::string& name : names) words.push_back(code(name) + ",");
    words.back().back() = '.';
    return filled(words);
}

std::string quoted(const std::string& message)
{
    std::istringstream text(message);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    return filled(words, "> ");
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

const auto score_of = [](const row& line) { return line.score; };
const auto normalizer_of = [](const row& line) { return line.normalizer; };
const auto combiner_of = [](const row& line) { return line.combiner; };

/// The scores, normalizers and combiners of one kind, and the normalizers that only fit some of these scores.
/// Names only the difference to the normalizers of the kind before, `known`.
std::string products_of(weight_kind kind, const table& lines, std::vector<std::string>& known)
{
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].kind == kind && lines[i].legal(); });
    const auto scores = distinct(lines, legal, score_of);
    const auto normalizers = distinct(lines, legal, normalizer_of);
    const auto combiners = distinct(lines, legal, combiner_of);
    std::vector<std::string> missing;
    for (const std::string& name : known)
        if (std::find(normalizers.begin(), normalizers.end(), name) == normalizers.end()) missing.push_back(name);
    const bool new_ones = normalizers.size() + missing.size() != known.size();
    std::string out = "### One weight per " + text(kind) + "\n\n" + list("Scores:", scores) + "\n";
    if (new_ones)
        out += list("Normalizers:", normalizers);
    else if (missing.empty())
        out += "Normalizers: those of the section above.\n";
    else
        out += list("Normalizers: those of the section above without", missing);
    out += "\n" + list("Combiners:", combiners) + "\n";
    known = normalizers;
    for (const std::string& normalizer : normalizers) {
        std::vector<std::string> fitting;
        for (const std::string& score : scores) {
            const auto here = where(lines, [&](std::size_t i) {
                return lines[i].legal() && lines[i].score == score && lines[i].normalizer == normalizer;
            });
            if (here.empty()) continue;
            if (distinct(lines, here, combiner_of) != combiners)
                throw std::logic_error("composition: a normalizer depends on the combiner");
            fitting.push_back(score);
        }
        if (fitting != scores) out += list(code(normalizer) + " works only with", fitting) + "\n";
    }
    return out;
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

/// The executor of many queries: scores × normalizers with weighted_sum. Equal rows and equal columns are one; those
/// that only run in turn are omitted.
std::string many_queries(const table& lines)
{
    const auto at_once = where(lines, [&](std::size_t i) {
        return lines[i].legal() && lines[i].combiner == "weighted_sum" && lines[i].queries != many::in_turn;
    });
    const auto scores = distinct(lines, at_once, score_of);
    using column = std::pair<std::vector<many>, std::vector<std::string>>;  // of all scores; its normalizers
    std::vector<column> columns;
    for (const std::string& normalizer : distinct(lines, at_once, normalizer_of)) {
        std::vector<many> ways;
        for (const std::string& score : scores) {
            many way{};
            for (const std::size_t i : at_once)
                if (lines[i].score == score && lines[i].normalizer == normalizer) way = lines[i].queries;
            ways.push_back(way);
        }
        const auto equal =
            std::find_if(columns.begin(), columns.end(), [&](const column& c) { return c.first == ways; });
        if (equal == columns.end())
            columns.push_back({ways, {normalizer}});
        else
            equal->second.push_back(normalizer);
    }

    std::string out, head = "| score |", rule = "|---|";
    for (auto& [ways, normalizers] : columns) {
        const std::string first = normalizers.front();
        head += " " + code(first) + " |";
        rule += "---|";
        normalizers.erase(normalizers.begin());
        if (!normalizers.empty()) out += list("The column " + code(first) + " is also that of", normalizers);
    }
    std::vector<std::pair<std::string, std::string>> rows;  // the entries of a row; its scores
    for (std::size_t i = 0; i < scores.size(); ++i) {
        std::string entries;
        for (const column& c : columns) entries += std::string(" ") + text(c.first[i]) + " |";
        const auto equal =
            std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.first == entries; });
        if (equal == rows.end())
            rows.push_back({entries, code(scores[i])});
        else
            equal->second += ", " + code(scores[i]);
    }
    out += "\n" + head + "\n" + rule + "\n";
    for (const auto& [entries, names] : rows) out += "| " + names + " |" + entries + "\n";
    return out + "\n";
}

std::string illegal(const table& lines)
{
    std::set<std::pair<weight_kind, std::string>> fitting;
    for (const row& line : lines)
        if (line.legal()) fitting.insert({line.kind, line.combiner});
    std::set<composition_fault> faults;
    for (const row& line : lines) {
        if (line.legal()) continue;
        if (fitting.contains({line.kind, line.combiner}) == (line.fault == composition_fault::different_weights))
            throw std::logic_error("composition: whether a combiner fits depends on more than the kind");
        faults.insert(line.fault);
    }
    std::string out;
    for (const composition_fault fault : faults) {
        out += fault == composition_fault::different_weights
                   ? "A score with a combiner of a different kind of weights does not compile:\n\n"
                   : "Neither does a normalizer with a score that is not in its list above:\n\n";
        out += quoted(sentence(fault)) + "\n";
    }
    return out;
}

constexpr const char* worth_knowing = R"(## Notes

**A constant cancels under temporal modulation.**
A term that is added to position j's score at every step is also in the divisor.
From the second step on it cancels, under `temporal`, `recent_temporal` and any `decayed_temporal` of strength 1.
At strength β, a fraction 1 − β remains.
A preference for a position (a bias per position, `score::location` with a constant query) therefore affects only the first step.
Terms added after modulation (an `additive_mask`) or multiplied after normalizing (`local_p`'s Gaussian) remain.
So do terms that depend on both step and position (relative biases, `with_neighbors`, `with_location`, `with_coverage`).
`learned_temporal` remembers weights and does not divide: constants remain.

**A number added to all scores of one step** changes no weight of that step.
Under `temporal` it changes the influence of that step on later ones.
Scores with a magnitude that depends on the query (`dot`, `general`) give some steps more influence than others; `cosine` does not.

**Local inside temporal, or outside.**
`local_m{D, temporal{}}` remembers the scores of all positions and only hides those outside the window when it computes weights.
With a window that covers the sentence it is `temporal`.
`decayed_temporal{1, 0, local_m{D}}` computes the same with the nesting reversed.
Both process the whole sentence at every step.
`local_m{D, temporal{}, history::in_window{}}` remembers only positions in the window and computes nothing outside.
A position that was never in the window has no history.
A window around a memory that fades or forgets (`decayed_temporal`, `recent_temporal`) never cuts, since that memory also changes outside the window.
All of this holds for `local_p` as well.
A window inside a window that cuts does not compile.

**Sparse normalizers under temporal modulation.**
`decayed_temporal{1, 0, sparsemax{}}` remembers scores, so a position with weight exactly 0 is discounted from then on like any other.
`learned_temporal{w, sparsemax{}}` remembers weights, so such a position is not discounted.

**Weights that do not sum to 1.**
The weights of `sigmoid` and `retention` have any sum.
Those of `stick_breaking`, `monotonic`, `chunkwise` over `monotonic`, and `softmax_with_sink` sum to at most 1.
Those of `local_p` sum to less than 1 unless it renormalizes.
Scores that read past weights (`with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbors`) read them unchanged.

**Ages.**
`ratio` and `retention` count the age of a position from the end of the row or, with `causal{}`, from the query's position.
A mask of single positions hides them without changing the age of the others.

**Temperature.**
Around a memory it also divides the remembered scores; `decayed_temporal{1, 0, temperature{τ}}` divides after modulation.

**Draws.**
`hard`, `gumbel` and `argmax` compute functions with a derivative of 0 almost everywhere.
`argmax` has no gradient, `gumbel` uses the gradient of a nearby softmax, and `hard` learns through `score_function_term`.
Their gradients are not compared with finite differences.

**Dropout** only affects the weights that the combiner reads.
The returned weights, the weights that a normalizer remembers, and those that coverage reads are not dropped.

**Masks and memory.**
The mask of one query hides weights, not history: a normalizer with a memory counts every score, including those of positions hidden from this query.
`attend.on(annotations, mask)` clears hidden positions first, so their contents have no effect.
Lengths do both: positions beyond them have no weight, and their history affects nothing.

**`score::location`** has one column per position up to the longest sentence; a longer sentence throws `shape_error` and is not truncated.
It ignores the annotations: a score that wraps it would only add to the scores of positions.

**Weights per dimension or group** have one history, one threshold and one draw per dimension or group.
Scores that read past weights read their mean.

**Combiners.**
`attentional` changes the width of the context from D to H: every reader of the context (`with_recurrence`'s unit, a decoder) must expect H.
For a row without visible positions it returns 0, like all others.

**Heads and hops.**
`multi_head` and `multi_hop` return one weight per head or hop and position, so they require a score per position and do not compile with any other.
)";

}  // namespace

std::string markdown(const table& lines)
{
    const auto all = where(lines, [](std::size_t) { return true; });
    const auto legal = where(lines, [&](std::size_t i) { return lines[i].legal(); });
    const auto count = [](std::size_t n) { return std::to_string(n); };
    std::string out = "# Valid combinations\n"
                      "\n"
                      "`attention{score, normalize, combine}` takes any score, any normalizer, and any combiner that "
                      "accepts the score's kind of weights.\n"
                      "Normalizers work on all kinds of weights.\n"
                      "The test program `composition_products` generates this page, and a test compares the two.\n"
                      "\n";
    out += count(distinct(lines, all, score_of).size()) + " scores × " +
           count(distinct(lines, all, normalizer_of).size()) + " normalizers × " +
           count(distinct(lines, all, combiner_of).size()) + " combiners are " + count(all.size()) +
           " products: " + count(legal.size()) + " are legal and " + count(all.size() - legal.size()) +
           " do not compile.\n"
           "Every legal product is instantiated and tested:\n"
           "\n"
           "- `step` and all queries at once agree; no queries return no contexts.\n"
           "- The tape computes the same results as inference.\n"
           "- Gradients with respect to parameters, annotations and queries agree with finite differences (except for "
           "draws and `argmax`, see below).\n"
           "- Parameters, annotations and queries, each alone on the tape, get the same gradients as together.\n"
           "- An empty row gets 0, and padding (including NaN) changes no bit.\n"
           "- Rows of a state can be selected as in beam search (except for draws).\n"
           "- Positions hidden by a boolean or additive mask have weight 0.\n"
           "- Hiding the last positions equals shorter lengths (except in windows with a position that depends on the "
           "length).\n"
           "- All results are finite with queries and score parameters 1e4 times as large.\n"
           "\n"
           "## Valid products\n"
           "\n"
           "Every score, normalizer and combiner of one list compose, with the exceptions named below it.\n\n";
    std::vector<std::string> normalizers;
    for (const weight_kind kind : kinds) out += products_of(kind, lines, normalizers);
    out +=
        "`with_word`, `with_coverage`, `with_gated_coverage`, `with_fertility`, `with_location`, `with_neighbors`, "
        "`with_positions` and `with_recurrence`\n"
        "wrap any score, including each other.\n"
        "`chunkwise`, `learned_temporal`, `dropout`, `decayed_temporal`, `local_m`, `local_p`, `noisy`, "
        "`recent_temporal` and `temperature`\n"
        "wrap any normalizer.\n"
        "`attentional` and `gated` wrap any combiner.\n"
        "`combine::direction_split` is another name for `weighted_sum`.\n"
        "`combine::relative` works with any score per position, and with any normalizer except those with a window "
        "that cuts.\n"
        "\n"
        "## Many queries\n"
        "\n"
        "Every product computes many queries in one call.\n"
        "With `weighted_sum`, and without a mask of single positions in the memory, the following products do not "
        "process queries one after the other:\n"
        "\n"
        "- *tiles* store no `[S,T]`, forward or backward;\n"
        "- *products* are two matrix products per sentence;\n"
        "- *linear* takes time linear in the positions (with `gated_decay`, it requires `causal{}` and a decay of 1).\n"
        "\n"
        "Functions of scores (`modified`) and `rotary` can wrap any of the other scores with *tiles*.\n"
        "\n";
    out += many_queries(lines);
    out += "## Invalid combinations\n\n";
    out += illegal(lines);
    return out + worth_knowing;
}

}  // namespace composition
