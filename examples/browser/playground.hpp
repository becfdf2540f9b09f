// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "any_policy.hpp"
#include "policies.hpp"

/// Any legal product of the playground's policies on one small sentence, step by step.
namespace browser {

/// A word or a query: a point of the plane.
struct point {
    double x = 0, y = 0;
};

/// The words, and the queries that ask about them one after the other.
struct scene {
    std::vector<point> words, queries;
};

/// What a mechanism answers. Per position there is one number for each word, else one for each dimension or group.
struct answers {
    std::size_t numbers = 1;                    // for each word: 1, D or G
    std::vector<std::vector<double>> scores;    // [S][T·numbers]
    std::vector<std::vector<double>> weights;   // [S][T·numbers]
    std::vector<std::vector<double>> contexts;  // [S][D]: x, the sum of the weights, y, 0
};

/// A point as a vector: (x, 1, y, 0). So the groups of two dimensions are x and y.
inline void write_point(const point& p, double* to) { to[0] = p.x, to[1] = 1, to[2] = p.y, to[3] = 0; }

/// Words as annotations, [1,T,D].
inline cube annotations_of(const std::vector<point>& words)
{
    cube h({1, words.size(), width});
    for (std::size_t t = 0; t < words.size(); ++t) write_point(words[t], h.data() + t * width);
    return h;
}

/// The query of step s, and as the last word the query before it (zeros at first).
inline query query_of(const std::vector<point>& queries, std::size_t s)
{
    matrix state({1, width}), word = heed::filled<double, 2>({1, width}, 0.0);
    write_point(queries[s], state.data());
    if (s > 0) write_point(queries[s - 1], word.data());
    return {std::move(state), std::move(word)};
}

inline std::vector<double> list_of(const auto& x) { return {x.data(), x.data() + x.size()}; }

/// The steps of any attention on a scene. `scores()` returns the scores of the step before.
template <class Attention>
answers look(const Attention& attend, const scene& what, const auto& scores)
{
    answers all;
    const auto source = attend.on(annotations_of(what.words));
    auto state = attend.start(source);
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
    bool never_negative, remembers;
    std::function<of_any_kind<any_score>(settings_of_policy)> make;
};
struct normalizer_entry {
    description about;
    bool asks_never_negative, remembers;
    std::function<of_any_kind<any_normalizer>(settings_of_policy, weight_kind)> make;
};
struct combiner_entry {
    description about;
    weight_kind weights;
    std::function<of_any_kind<any_combiner>(settings_of_policy)> make;
};

/// Everything to choose from.
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
                {about, type::weights, heed::detail::never_negative<type>, heed::remembers<type>,
                 [make](settings_of_policy k) -> of_any_kind<any_score> { return hidden_score(make(k)); }});
        });
        each_normalizer([this](const description& about, const auto& make) {
            using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
            normalizers.push_back({about, heed::detail::asks_never_negative_of<type>(), heed::remembers<type>,
                                   [make](settings_of_policy k, weight_kind kind) -> of_any_kind<any_normalizer> {
                                       if (kind == weight_kind::per_position)
                                           return hidden_normalizer<weight_kind::per_position>(make(k));
                                       if (kind == weight_kind::per_dimension)
                                           return hidden_normalizer<weight_kind::per_dimension>(make(k));
                                       return hidden_normalizer<weight_kind::per_group>(make(k));
                                   }});
        });
        each_combiner([this](const description& about, const auto& make) {
            using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
            combiners.push_back({about, type::weights, [make](settings_of_policy k) -> of_any_kind<any_combiner> {
                                     return hidden_combiner(make(k));
                                 }});
        });
    }

    /// Why a score, a normalizer and a combiner make no attention, in the library's words; empty if they do.
    std::string fault(std::size_t score, std::size_t normalizer, std::size_t combiner) const
    {
        if (scores.at(score).weights != combiners.at(combiner).weights) return HEED_SAYS_DIFFERENT_WEIGHTS;
        if (normalizers.at(normalizer).asks_never_negative && !scores[score].never_negative)
            return HEED_SAYS_NEGATIVE_SCORES;
        return {};
    }

    /// The answers of a product, with a number for each knob of each policy. Throws heed::error if it is not legal.
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
        return std::visit(
            [&]<weight_kind K>(const any_score<K>& chosen) {
                auto normalize = std::get<any_normalizer<K>>(normalizers[normalizer].make(of_normalizer, K));
                const auto seen = normalize.seen;
                return look(heed::attention{chosen, std::move(normalize),
                                            std::get<any_combiner<K>>(combiners[combiner].make(of_combiner))},
                            what, [&] { return list_of(*seen); });
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

/// The place of a policy in its list, by name. Throws heed::error if there is none.
template <class Entry>
std::size_t place_of(const std::vector<Entry>& list, const std::string& name)
{
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].about.name == name) return i;
    }
    throw heed::error("there is no \"" + name + "\" in the playground");
}

inline std::vector<double> initial(const description& about)
{
    std::vector<double> all;
    for (const knob& each : about.knobs) all.push_back(each.initial);
    return all;
}

/// The scene that the page begins with.
inline scene first_scene()
{
    return {{{-1.4, 0.7}, {0.2, 1.4}, {1.5, 0.2}, {-1.2, -0.3}, {0.6, -0.9}, {-0.7, -1.5}},
            {{-1.3, 0.6}, {0.3, 1.3}, {1.4, 0.1}, {-1.2, 0.1}, {0.7, -0.8}, {-0.6, -1.4}}};
}

// ---- as text for a page
// ------------------------------------------------------------------------------------------------

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
/// JSON has no infinity: null.
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

inline std::string json(const answers& all)
{
    return "{\"numbers\":" + json(all.numbers) + ",\"scores\":" + json(all.scores) +
           ",\"weights\":" + json(all.weights) + ",\"contexts\":" + json(all.contexts) + "}";
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
           "\",\"neverNegative\":" + json(each.never_negative) + ",\"remembers\":" + json(each.remembers) + "}";
}
inline std::string json(const normalizer_entry& each)
{
    return "{" + json(each.about) + ",\"asksNeverNegative\":" + json(each.asks_never_negative) +
           ",\"remembers\":" + json(each.remembers) + "}";
}
inline std::string json(const combiner_entry& each)
{
    return "{" + json(each.about) + ",\"weights\":\"" + name_of(each.weights) + "\"}";
}
inline std::string json(const catalogue& all)
{
    return "{\"scores\":" + json(all.scores) + ",\"normalizers\":" + json(all.normalizers) +
           ",\"combiners\":" + json(all.combiners) + ",\"words\":" + json(first_scene().words) +
           ",\"queries\":" + json(first_scene().queries) +
           ",\"differentWeights\":" + json(std::string(HEED_SAYS_DIFFERENT_WEIGHTS)) +
           ",\"negativeScores\":" + json(std::string(HEED_SAYS_NEGATIVE_SCORES)) + "}";
}

}  // namespace browser
