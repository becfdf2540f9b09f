// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <heed/normalize/history_of_words.hpp>
#include <heed/penalty/coverage.hpp>
#include <heed/penalty/doubly_stochastic.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/penalty/monotone.hpp>

#include "any_policy.hpp"
#include "heads.hpp"
#include "policies.hpp"
#include "scene.hpp"

/// Any legal product of the playground's policies on a small sentence, step by step.
namespace browser {

/// The steps of any attention on a scene. `scores()` returns the scores of the last step; `again(state)` the initial
/// state after an earlier sentence with the same words, or after several.
template <class Attention>
answers look(const Attention& attend, const scene& what, const auto& scores, std::size_t sentences_before,
             const auto& again)
{
    answers all;
    const auto source = attend.on(annotations_of(what.words));
    auto state = attend.start(source);
    for (std::size_t i = 0; i < sentences_before; ++i) {
        for (std::size_t s = 0; s < what.queries.size(); ++s)
            state = attend.compose(source, query_of(what.queries, s), state).state;
        auto next = attend.start(source);
        next.normalize = again(state.normalize);
        state = std::move(next);
    }
    for (std::size_t s = 0; s < what.queries.size(); ++s) {
        auto seen = attend.compose(source, query_of(what.queries, s), state);
        all.scores.push_back(scores());
        all.weights.push_back(list_of(seen.weights));
        all.contexts.push_back(list_of(seen.context));
        all.numbers = seen.weights.size() / what.words.size();
        state = std::move(seen.state);
    }
    return all;
}

template <template <weight_kind> class Any>
using of_any_kind =
    std::variant<Any<weight_kind::per_position>, Any<weight_kind::per_dimension>, Any<weight_kind::per_group>>;

struct score_entry {
    description about;
    weight_kind weights;
    bool nonnegative, remembers;
    std::function<of_any_kind<any_score>(settings_of_policy)> make;
};
struct normalizer_entry {
    description about;
    bool requires_nonnegative, remembers;
    std::function<of_any_kind<any_normalizer>(settings_of_policy, weight_kind)> make;
    // begins with the history of temporal attention over earlier sentences; their number is its knob
    bool of_document = false;
};
struct combiner_entry {
    description about;
    weight_kind weights;
    std::function<of_any_kind<any_combiner>(settings_of_policy)> make;
    ask_heads join = {};                  // two heads, not one attention
    std::vector<std::string> takes = {};  // the only supported score and normalizer, if restricted
};

/// The product shown on the page of a mechanism, and a note.
struct page_entry {
    std::string page;
    std::size_t score, normalizer, combiner;
    std::string note;
};

/// "the cat saw the dog .": equal words have equal numbers.
inline heed::word_ids words_of(const scene& what)
{
    heed::word_ids ids(what.words.size(), 1);
    for (std::size_t t = 0; t < what.words.size(); ++t) ids(t, 0) = static_cast<std::uint32_t>(t == 3 ? 0 : t);
    return ids;
}

/// The index of a policy in its list, by name. Throws heed::error if it does not exist.
template <class Entry>
std::size_t diagonal_of(const std::vector<Entry>& list, const std::string& name)
{
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].about.name == name) return i;
    }
    throw heed::error("there is no \"" + name + "\" in the playground");
}

/// All available policies.
class catalogue {
public:
    std::vector<score_entry> scores;
    std::vector<normalizer_entry> normalizers;
    std::vector<combiner_entry> combiners;

    catalogue()
    {
        each_score([this](const description& about, const auto& make) {
            using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
            scores.push_back(
                {about, type::traits.weights, type::traits.nonnegative, heed::remembers<type>,
                 [make](settings_of_policy k) -> of_any_kind<any_score> { return hidden_score(make(k)); }});
        });
        each_normalizer([this](const description& about, const auto& make) {
            using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
            normalizers.push_back({about, heed::normalizer_traits_of<type>().requires_nonnegative,
                                   heed::remembers<type>,
                                   [make](settings_of_policy k, weight_kind kind) -> of_any_kind<any_normalizer> {
                                       if (kind == weight_kind::per_position)
                                           return hidden_normalizer<weight_kind::per_position>(make(k));
                                       if (kind == weight_kind::per_dimension)
                                           return hidden_normalizer<weight_kind::per_dimension>(make(k));
                                       return hidden_normalizer<weight_kind::per_group>(make(k));
                                   }});
        });
        normalizers.push_back(normalizers.at(diagonal_of(normalizers, "temporal")));
        normalizers.back().of_document = true;
        normalizers.back().about = {"document_temporal",
                                    "Temporal, across a document",
                                    "L_1 = log Σ exp(L) of the same word in earlier sentences",
                                    "document-memory",
                                    {{"earlier sentences", 1, 0, 4, 1}}};
        each_combiner([this](const description& about, const auto& make) {
            using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
            combiners.push_back(
                {about, type::traits.weights,
                 [make](settings_of_policy k) -> of_any_kind<any_combiner> { return hidden_combiner(make(k)); }});
        });
        each_joining([this](const description& about, const ask_heads& join, const std::vector<std::string>& takes) {
            combiners.push_back({about, weight_kind::per_position, {}, join, takes});
        });
    }

    /// The reason why a score, a normalizer and a combiner are not a legal product, in the words of the library; empty
    /// if they are.
    std::string fault(std::size_t score, std::size_t normalizer, std::size_t combiner) const
    {
        const score_entry& e = scores.at(score);
        const normalizer_entry& n = normalizers.at(normalizer);
        const combiner_entry& c = combiners.at(combiner);
        if (e.weights != c.weights && c.join)
            return "heed: multi_head returns one weight for each head and position: its heads need a score per "
                   "position";
        if (e.weights != c.weights) return HEED_SAYS_DIFFERENT_WEIGHTS;
        if (n.requires_nonnegative && !e.nonnegative) return HEED_SAYS_NEGATIVE_SCORES;
        if (n.of_document && (c.join || e.weights != weight_kind::per_position))
            return "heed: history_of_words keeps one number for each word: it takes one attention with a score per "
                   "position";
        if (!c.takes.empty() && (c.takes[0] != e.about.name || c.takes[1] != n.about.name))
            return "heed: " + c.about.title +
                   ": their scores must be scaled dot products, and their normalizer softmax";
        return {};
    }

    /// A legal product for each page of docs/mechanisms, by the name of the page: the first product with a policy that
    /// names the page; the other policies are plain.
    std::vector<page_entry> pages() const
    {
        std::map<std::string, page_entry> all;
        const auto add = [&](const std::string& page, const char* score, const char* normalizer, const char* combiner,
                             const std::string& note = {}) {
            all.insert({page,
                        {page, diagonal_of(scores, score), diagonal_of(normalizers, normalizer),
                         diagonal_of(combiners, combiner), note}});
        };
        // Two pages are not about policies: the visible part in a product.
        add("abcnn", "match", "softmax", "weighted_sum",
            "The scores are the entries of A, if the words are one sentence and the queries the other. ABCNN "
            "has "
            "no normalizer: it gives A to a convolution.");
        add("penalties", "additive", "softmax", "weighted_sum",
            "Below all steps: the value of each penalty for the weights.");
        for (const auto& c : combiners) {
            if (c.join) add(c.about.page, "scaled_dot", "softmax", c.about.name.c_str());
        }
        for (const auto& e : scores) {
            for (const auto& c : combiners) {
                if (c.weights == e.weights)
                    add(e.about.page, e.about.name.c_str(), e.nonnegative ? "ratio" : "softmax", c.about.name.c_str());
            }
        }
        for (const auto& n : normalizers)
            add(n.about.page, n.requires_nonnegative ? "kernel" : "additive", n.about.name.c_str(), "weighted_sum");
        for (const auto& c : combiners) {
            if (c.weights == weight_kind::per_position) add(c.about.page, "additive", "softmax", c.about.name.c_str());
        }
        std::vector<page_entry> list;
        for (const auto& [page, entry] : all) list.push_back(entry);
        return list;
    }

    /// The results of a product, with a number for each knob of each policy. Throws heed::error if it is not legal.
    answers ask(std::size_t score, std::size_t normalizer, std::size_t combiner, settings_of_policy of_score,
                settings_of_policy of_normalizer, settings_of_policy of_combiner, const scene& what) const
    {
        if (const std::string why = fault(score, normalizer, combiner); !why.empty()) throw heed::error(why);
        if (what.words.empty() || what.words.size() > most_words)
            throw heed::error("a scene has 1 to " + std::to_string(most_words) + " words, not " +
                              std::to_string(what.words.size()));
        require(scores[score].about, of_score);
        require(normalizers[normalizer].about, of_normalizer);
        require(combiners[combiner].about, of_combiner);
        if (const auto& c = combiners[combiner]; c.join) {
            constexpr weight_kind K = weight_kind::per_position;
            return c.join({std::get<any_score<K>>(scores[score].make(of_score)),
                           [&] { return std::get<any_normalizer<K>>(normalizers[normalizer].make(of_normalizer, K)); }},
                          of_combiner, what);
        }
        const bool of_document = normalizers[normalizer].of_document;
        const std::size_t before = of_document ? detail::whole(of_normalizer[0]) : 0;
        const auto words = words_of(what);
        const heed::lengths real{what.words.size()};
        heed::normalize::history_of_words<double> document(1);
        const auto again = [&](const any_state& past) -> any_state {
            using history = heed::normalize::temporal::state<matrix>;
            document.keep(words, real, std::any_cast<const history&>(past.of));
            return {history(document.recall(words, real))};
        };
        return std::visit(
            [&]<weight_kind K>(const any_score<K>& chosen) {
                auto normalize = std::get<any_normalizer<K>>(normalizers[normalizer].make(of_normalizer, K));
                const auto seen = normalize.seen;
                return look(
                    heed::attention{chosen, std::move(normalize),
                                    std::get<any_combiner<K>>(combiners[combiner].make(of_combiner))},
                    what, [&] { return list_of(*seen); }, before, again);
            },
            scores[score].make(of_score));
    }

private:
    static void require(const description& about, settings_of_policy given)
    {
        if (given.size() != about.knobs.size())
            throw heed::error(about.name + " has " + std::to_string(about.knobs.size()) + " numbers to set, not " +
                              std::to_string(given.size()));
    }
};

inline std::vector<double> initial(const description& about)
{
    std::vector<double> all;
    for (const knob& each : about.knobs) all.push_back(each.initial);
    return all;
}

/// The initial scene of the page.
inline scene first_scene()
{
    return {{{-1.4, 0.7}, {0.2, 1.4}, {1.5, 0.2}, {-1.2, -0.3}, {0.6, -0.9}, {-0.7, -1.5}},
            {{-1.3, 0.6}, {0.3, 1.3}, {1.4, 0.1}, {-1.2, 0.1}, {0.7, -0.8}, {-0.6, -1.4}}};
}

// ---- JSON for a page

inline std::string json(const std::string& text)
{
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (c == '\n') {
            quoted += "\\n";
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}
/// JSON has no infinity: null is used.
inline std::string json(double x)
{
    if (!std::isfinite(x)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", x);
    return text;
}
inline std::string json(float x)
{
    if (!std::isfinite(x)) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.4f", static_cast<double>(x));
    return text;
}
inline std::string json(bool x) { return x ? "true" : "false"; }
inline std::string json(std::size_t x) { return std::to_string(x); }
template <class T>
std::string json(const std::vector<T>& list)
{
    std::string all = "[";
    for (std::size_t i = 0; i < list.size(); ++i) all += (i > 0 ? "," : "") + json(list[i]);
    return all + "]";
}

struct penalty_says {
    std::string name;
    double value;
};

/// The penalties of the weights of all steps; empty if there is more than one weight per word.
inline std::vector<penalty_says> penalties_of(const answers& all)
{
    namespace penalty = heed::penalty;
    if (all.numbers != 1 || all.weights.empty()) return {};
    std::vector<matrix> weights;
    for (const auto& each : all.weights) {
        weights.emplace_back(heed::filled<double, 2>({1, each.size()}, 0.0));
        std::copy(each.begin(), each.end(), weights.back().data());
    }
    const std::size_t T = all.weights[0].size();
    penalty::links diagonal;
    for (std::size_t s = 0; s < std::min(T, weights.size()); ++s)
        diagonal.emplace_back(static_cast<int>(s), static_cast<int>(s));
    const heed::lengths real{T};
    return {{"doubly stochastic", penalty::doubly_stochastic(weights, real)()},
            {"coverage", penalty::coverage(weights, real)()},
            {"monotone", penalty::monotone(weights, real)()},
            {"guided by the diagonal", penalty::guided_alignment(weights, {diagonal}, real)()}};
}

inline std::string json(const penalty_says& each) { return "[" + json(each.name) + "," + json(each.value) + "]"; }
inline std::string json(const answers& all)
{
    return "{\"numbers\":" + json(all.numbers) + ",\"scores\":" + json(all.scores) +
           ",\"weights\":" + json(all.weights) + ",\"contexts\":" + json(all.contexts) +
           ",\"penalties\":" + json(penalties_of(all)) + "}";
}

inline std::string json(const knob& each)
{
    return "{\"name\":" + json(each.name) + ",\"initial\":" + json(each.initial) + ",\"least\":" + json(each.least) +
           ",\"most\":" + json(each.most) + ",\"step\":" + json(each.step) + "}";
}
inline std::string json(const description& about)
{
    return "\"name\":" + json(about.name) + ",\"title\":" + json(about.title) +
           ",\"equation\":" + json(about.equation) + ",\"page\":" + json(about.page) +
           ",\"knobs\":" + json(about.knobs);
}
inline std::string json(const point& p) { return "[" + json(p.x) + "," + json(p.y) + "]"; }

inline const char* name_of(weight_kind kind)
{
    if (kind == weight_kind::per_position) return "position";
    return kind == weight_kind::per_dimension ? "dimension" : "group";
}

inline std::string json(const score_entry& each)
{
    return "{" + json(each.about) + ",\"weights\":\"" + name_of(each.weights) +
           "\",\"neverNegative\":" + json(each.nonnegative) + ",\"remembers\":" + json(each.remembers) + "}";
}
inline std::string json(const normalizer_entry& each)
{
    return "{" + json(each.about) + ",\"asksNeverNegative\":" + json(each.requires_nonnegative) +
           ",\"remembers\":" + json(each.remembers) + "}";
}
inline std::string json(const combiner_entry& each)
{
    return "{" + json(each.about) + ",\"weights\":\"" + name_of(each.weights) +
           "\",\"heads\":" + json(bool(each.join)) + "}";
}
inline std::string json(const page_entry& each)
{
    return "{\"page\":" + json(each.page) + ",\"product\":[" + json(each.score) + "," + json(each.normalizer) + "," +
           json(each.combiner) + "],\"note\":" + json(each.note) + "}";
}
inline std::string json(const catalogue& all)
{
    return "{\"scores\":" + json(all.scores) + ",\"normalizers\":" + json(all.normalizers) +
           ",\"combiners\":" + json(all.combiners) + ",\"words\":" + json(first_scene().words) +
           ",\"queries\":" + json(first_scene().queries) + ",\"pages\":" + json(all.pages()) + "}";
}

}  // namespace browser
