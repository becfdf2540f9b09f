// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>

#include <heed/heed.hpp>
#include <heed/verify/problem.hpp>
#include <support/scalar_attention.hpp>
#include <support/tensors.hpp>

/// The additive scores, under softmax and under temporal modulation, with their equations as plain loops beside them.
/// Other scores are tested alike at their own paths, see scores.hpp.
namespace support {

struct mechanism_sizes {
    std::size_t query = 3, width = 5, alignment = 4, word = 2;
};

/// How a query is built from parts, see heed::verify.
using heed::detail::verifying::plain_query;
struct query_with_word {
    std::size_t query, word;
    auto operator()(auto part) const { return heed::state_and_word{part("state", query), part("word", word)}; }
};

/// Calls f(name, score, equation, describe) for each score with one weight per position.
template <class F>
void each_score_per_position(const mechanism_sizes& n, F&& f)
{
    using namespace heed;
    const auto W = random({n.query, n.alignment}, 11), U = random({n.width, n.alignment}, 12),
               Y = random({n.word, n.alignment}, 13);
    const auto v = random({n.alignment}, 15);
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const score::additive additive{W, U, v};
    f("additive", additive, scalar::additive(rows(W), rows(U), scalar::vector_of(v)), plain_query{n.query});
    f("additive with word", score::with_word{additive, Y},
      scalar::additive_with_word(rows(W), rows(U), scalar::vector_of(v), rows(Y)), query_with_word{n.query, n.word});
}

/// The same for each score with one weight per dimension.
template <class F>
void each_score_per_dimension(const mechanism_sizes& n, F&& f)
{
    using namespace heed;
    const auto W = random({n.query, n.alignment}, 21), U = random({n.width, n.alignment}, 22),
               Y = random({n.word, n.alignment}, 23), V = random({n.alignment, n.width}, 24);
    const auto rows = [](const auto& m) { return scalar::matrix_of(m); };
    const score::additive_per_dimension score{W, U, V};
    f("per dimension", score, scalar::additive_per_dimension(rows(W), rows(U), rows(V)), plain_query{n.query});
    f("per dimension with word", score::with_word{score, Y},
      scalar::additive_per_dimension_with_word(rows(W), rows(U), rows(V), rows(Y)), query_with_word{n.query, n.word});
}

/// Calls f(name, attention, equation, temporal, describe) for each mechanism with one weight per position.
template <class F>
void each_mechanism_per_position(const mechanism_sizes& n, F&& f)
{
    using namespace heed;
    each_score_per_position(n, [&](const std::string& name, const auto& score, const auto& equation, auto describe) {
        f(name + ", softmax", attention{score, normalize::softmax{}, combine::weighted_sum{}}, equation, false,
          describe);
        f(name + ", temporal", attention{score, normalize::temporal{}, combine::weighted_sum{}}, equation, true,
          describe);
    });
}

/// The same for each mechanism with one weight per dimension.
template <class F>
void each_mechanism_per_dimension(const mechanism_sizes& n, F&& f)
{
    using namespace heed;
    each_score_per_dimension(n, [&](const std::string& name, const auto& score, const auto& equation, auto describe) {
        f(name + ", softmax", attention{score, normalize::softmax{}, combine::elementwise_sum{}}, equation, false,
          describe);
        f(name + ", temporal", attention{score, normalize::temporal{}, combine::elementwise_sum{}}, equation, true,
          describe);
    });
}

}  // namespace support
