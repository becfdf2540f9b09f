// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include <heed/seq2seq/systems/luong2015.hpp>

#include "recurrent.hpp"
#include "system_of.hpp"

namespace heed::translator::detail {

/// score::general, or score::dot where there is no W: chosen at run time, so that half as many models are compiled.
template <class Matrix>
struct dot_or_general {
    std::vector<Matrix> W;  // [Q,D], or none

    using in_kernels = heed::kernels::inner_product_score;
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;

    template <heed::tensor Query>
    auto project(const Query& query) const
    {
        using result = decltype(heed::ops::linear(query, W[0]));
        return W.empty() ? result(heed::ops::scale(query, 1.0)) : heed::ops::linear(query, W[0]);
    }
    auto match(const heed::tensor auto& projected, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_each(projected, keys);
    }
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return match(project(query), keys);
    }
    auto match_all(const heed::tensor auto& projected, const heed::tensor auto& keys) const
    {
        return heed::ops::dot_all(projected, keys);
    }
    auto asking(const heed::tensor auto& query) const { return query; }

    static auto parameters(auto& self, auto&& visit)
    {
        dot_or_general<decltype(visit("W", self.W[0]))> score;
        for (auto& each : self.W) score.W.push_back(visit("W", each));
        return score;
    }
};

struct new_dot_or_general {
    bool general;

    template <class T>
    auto make(heed::random_source& random, const heed::seq2seq::sizes& n) const
    {
        dot_or_general<heed::array<T, 2>> score;
        if (general) score.W.push_back(heed::nn::glorot<T>(random, n.hidden, n.width()));
        return score;
    }
};

/// The attentional vector is as large as a state.
inline heed::seq2seq::sizes luong_sizes(const options& how, std::size_t source_words, std::size_t target_words)
{
    auto n = recurrent_sizes(how, source_words, target_words);
    n.readout = how.hidden;
    return n;
}

/// The order in which the encoder reads.
inline heed::seq2seq::direction direction_of(const options& how)
{
    return how.reverse_source ? heed::seq2seq::direction::backward : heed::seq2seq::direction::forward;
}

/// With the attention that the options name, on these parts.
std::unique_ptr<system> make_luong_of(const auto& parts, const options& how, const heed::seq2seq::sizes& n)
{
    namespace paper = heed::papers::luong2015;
    const auto with = [&](const auto& attention) {
        return make_system_of(paper::translator<float>(how.seed, n, attention, parts), how);
    };
    const std::string& name = how.attention;
    const new_dot_or_general product{name.ends_with("general")};
    if (name == "location") return with(paper::new_global<float, paper::new_location>{{how.longest}});
    if (name == "concat") return with(paper::new_global<float, paper::new_concat>{});
    if (name.starts_with("local-m")) return with(paper::new_local_m<float, new_dot_or_general>{how.window, product});
    if (name.starts_with("local-p")) return with(paper::new_local_p<float, new_dot_or_general>{how.window, product});
    return with(paper::new_global<float, new_dot_or_general>{product});
}

}  // namespace heed::translator::detail
