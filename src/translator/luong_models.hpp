// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/seq2seq/systems/luong2015.hpp>

#include "recurrent.hpp"

/// Templates, so that a file with one model instantiates only that model.
namespace heed::translator {

namespace detail {

/// score::general, or score::dot if W is empty: chosen at run time, which halves the number of compiled models.
template <class Matrix>
struct dot_or_general : heed::score::inner_product<dot_or_general<Matrix>> {
    std::vector<Matrix> W;  // [Q,D], or empty

    template <heed::tensor Query>
    auto project(const Query& query) const
    {
        using result = decltype(heed::ops::linear(query, W[0]));
        return W.empty() ? result(heed::ops::scale(query, 1.0)) : heed::ops::linear(query, W[0]);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        dot_or_general<decltype(visit("W", self.W[0]))> score;
        for (auto& each : self.W) score.W.push_back(visit("W", each));
        return score;
    }
};

struct dot_or_general_factory {
    bool general;

    template <class T>
    auto operator()(const heed::nn::initializers<T>& init, const heed::seq2seq::sizes& n) const
    {
        dot_or_general<heed::array<T, 2>> score;
        if (general) score.W.push_back(init.glorot(n.hidden, n.width()));
        return score;
    }
};

/// The attentional vector has the size of a state.
inline heed::seq2seq::sizes luong_sizes(const options& how, std::size_t source_words, std::size_t target_words)
{
    auto n = recurrent_sizes(how, source_words, target_words);
    n.readout = how.hidden;
    return n;
}

/// The reading order of the encoder.
inline heed::seq2seq::direction direction_of(const options& how)
{
    return how.reverse_source ? heed::seq2seq::direction::backward : heed::seq2seq::direction::forward;
}

/// Parts and attention: functions of the options that return the arguments of the paper's translator.
template <auto parts, auto attention>
struct luong_of {
    static auto make(const options& how, std::size_t source_words, std::size_t target_words)
    {
        return heed::papers::luong2015::translator<float>(how.seed, luong_sizes(how, source_words, target_words),
                                                          attention(how), parts(how));
    }
};

namespace luong_parts {

namespace paper = heed::papers::luong2015;

inline auto fed(const options& how) { return paper::parts(how.layers, direction_of(how)); }
inline auto unfed(const options& how) { return paper::parts_without_feeding(how.layers, direction_of(how)); }
inline auto alone(const options& how) { return paper::parts_without_attention(how.layers, direction_of(how)); }

}  // namespace luong_parts

namespace luong_attentions {

namespace paper = heed::papers::luong2015;
using heed::seq2seq::attention_factory;

inline dot_or_general_factory product(const options& how) { return {how.attention.ends_with("general")}; }

inline auto none(const options&) { return heed::seq2seq::fixed_context{}; }
inline auto location(const options& how) { return attention_factory{paper::location_factory{how.longest}}; }
inline auto concat(const options&) { return attention_factory{paper::concat_factory{}}; }
inline auto global(const options& how) { return attention_factory{product(how)}; }
inline auto local_m(const options& how)
{
    return attention_factory{product(how), heed::normalize::local_m{how.window}};
}
inline auto local_p(const options& how) { return attention_factory{product(how), paper::local_p_factory{how.window}}; }

}  // namespace luong_attentions

}  // namespace detail

namespace makers {

namespace with = detail::luong_attentions;
namespace parts = detail::luong_parts;

using luong_none = detail::luong_of<parts::alone, with::none>;
using luong_location_fed = detail::luong_of<parts::fed, with::location>;
using luong_concat_fed = detail::luong_of<parts::fed, with::concat>;
using luong_global_fed = detail::luong_of<parts::fed, with::global>;
using luong_local_m_fed = detail::luong_of<parts::fed, with::local_m>;
using luong_local_p_fed = detail::luong_of<parts::fed, with::local_p>;
using luong_location = detail::luong_of<parts::unfed, with::location>;
using luong_concat = detail::luong_of<parts::unfed, with::concat>;
using luong_global = detail::luong_of<parts::unfed, with::global>;
using luong_local_m = detail::luong_of<parts::unfed, with::local_m>;
using luong_local_p = detail::luong_of<parts::unfed, with::local_p>;

}  // namespace makers

}  // namespace heed::translator
