// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/translator.hpp>

/// Four sentences, small models with parameters large enough to prefer some words, and searches by several models.
namespace support::searches {

using namespace heed;
using namespace heed::seq2seq;

inline const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4, 7, 8}, {9}};
inline const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4, 4}, {}, {8, 7}};
inline const sizes small{12, 11, 6, 5, 4};

template <class Make>
auto lively(std::uint64_t seed, const Make& make)
{
    auto model = make_translator<double>(seed, small, make);
    for_each_parameter(model, [](const std::string&, auto& x) {
        for (double& w : x) w *= 3;
    });
    return model;
}

inline const auto first = lively(5, attentions::temporal_factory{});
inline const auto second = lively(6, attentions::per_dimension_factory{});
inline const auto blind = lively(7, fixed_context{});

template <class... Model>
ensemble<double> together(const source_batch& source, averaging how, const Model&... models)
{
    std::vector<std::unique_ptr<decoding<double>>> members;
    (members.push_back(decode<double>(models, source)), ...);
    return ensemble<double>(std::move(members), how);
}

/// softmax by its definition.
inline std::vector<double> probabilities(const double* logits, std::size_t count)
{
    std::vector<double> p(count);
    double top = logits[0], sum = 0;
    for (std::size_t i = 0; i < count; ++i) top = std::max(top, logits[i]);
    for (std::size_t i = 0; i < count; ++i) sum += p[i] = std::exp(logits[i] - top);
    for (double& x : p) x /= sum;
    return p;
}

}  // namespace support::searches
