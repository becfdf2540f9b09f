// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "any_policy.hpp"
#include "policies.hpp"

/// The input and the results of the playground.
namespace browser {

/// A word or a query: a point of the plane.
struct point {
    double x = 0, y = 0;
};

/// The words, and the sequence of queries.
struct scene {
    std::vector<point> words, queries;
};

/// The results of a mechanism. Per position there is one number for each word, or one for each dimension, group or
/// head.
struct answers {
    std::size_t numbers = 1;                    // for each word: 1, D, G or n
    std::vector<std::vector<double>> scores;    // [S][T·numbers]; of two heads whose weights are subtracted [S][T·2]
    std::vector<std::vector<double>> weights;   // [S][T·numbers]
    std::vector<std::vector<double>> contexts;  // [S][D]: x, the sum of the weights, y, 0
};

/// A point as a vector (x, 1, y, 0), so that the two groups of two dimensions are x and y.
inline void write_point(const point& p, double* to) { to[0] = p.x, to[1] = 1, to[2] = p.y, to[3] = 0; }

/// Words as annotations, [1,T,D].
inline cube annotations_of(const std::vector<point>& words)
{
    cube h({1, words.size(), width});
    for (std::size_t t = 0; t < words.size(); ++t) write_point(words[t], h.data() + t * width);
    return h;
}

/// The query of step s, and the previous query as the last word (initially zeros).
inline query query_of(const std::vector<point>& queries, std::size_t s)
{
    matrix state({1, width}), word = heed::filled<double, 2>({1, width}, 0.0);
    write_point(queries[s], state.data());
    if (s > 0) write_point(queries[s - 1], word.data());
    return {std::move(state), std::move(word)};
}

inline std::vector<double> list_of(const auto& x) { return {x.data(), x.data() + x.size()}; }

}  // namespace browser
