// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <support/gradients.hpp>
#include <support/mechanism_tests.hpp>

#include <cmath>
#include <functional>
#include <vector>

// Combiners other than a weighted sum, compared with loops over the papers' equations.

namespace support::combiners {

using namespace heed;

/// A combiner's result for a context c and the query state h, as a loop.
using equation = std::function<scalar::numbers(const scalar::numbers& c, const scalar::numbers& h)>;

/// tanh([c; h] W)                                                      Luong et al. 2015, eq. 5
inline equation attentional_of(const scalar::matrix& W)
{
    return [W](const scalar::numbers& c, const scalar::numbers& h) {
        scalar::numbers both = c;
        both.insert(both.end(), h.begin(), h.end());
        return scalar::hidden({scalar::times(both, W)});
    };
}
/// σ(h W + b) c, with one gate or one per dimension                   Xu et al. 2015, section 4.2.1
inline equation gated_of(const scalar::matrix& W, const scalar::numbers& b)
{
    return [W, b](scalar::numbers c, const scalar::numbers& h) {
        const scalar::numbers z = scalar::times(h, W);
        for (std::size_t d = 0; d < c.size(); ++d) {
            const std::size_t g = z.size() == 1 ? 0 : d;
            c[d] *= 1 / (1 + std::exp(-(z[g] + b[g])));
        }
        return c;
    };
}
/// Applies the first equation, then the second.
inline equation then(const equation& inner, const equation& outer)
{
    return [=](const scalar::numbers& c, const scalar::numbers& h) { return outer(inner(c, h), h); };
}

/// Compares every form and both families with the loops, on several shapes. The outer equation is applied to the
/// contexts that the score's loops return.
inline void check_combiner_values(const auto& attend, const scalar::score& score, bool temporal, const equation& outer,
                                  auto describe)
{
    using running::form;
    const std::size_t width = 5;
    const auto check = [&](const lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = support::made_up(attend, describe, real, positions, steps, width);
        auto must = support::expected(score, temporal, support::batch(p, at));
        for (std::size_t s = 0; s < steps; ++s) {
            const scalar::numbers c = must[2 * s].values;
            must[2 * s].values.clear();
            for (std::size_t b = 0; b < real.batch(); ++b) {
                scalar::numbers h;
                for (std::size_t k = 0; k < p.parts[0].shape()[2]; ++k) h.push_back(p.parts[0](b, s, k));
                scalar::numbers y = outer(
                    {c.begin() + static_cast<long>(b * width), c.begin() + static_cast<long>((b + 1) * width)}, h);
                if (real[b] == 0) y.assign(y.size(), 0.0);  // an empty row gives 0
                must[2 * s].values.insert(must[2 * s].values.end(), y.begin(), y.end());
            }
        }
        check_close(running::results<form::step, double>(p, at), must, 1e-13);
        check_close(running::results<form::compose, double>(p, at), must, 1e-13);
        check_close(running::results<form::step_into, double>(p, at), must, 1e-13);
        check_close(running::results<form::read, double>(p, at), support::contexts_of(must), 1e-13);
        check_close(running::results<form::many_queries, double>(p, at), support::contexts_of(must), 1e-13);
        ad::tape<double> on;
        const auto lifted = ad::lift(on, p);
        check_close(running::results<form::step, double>(lifted, at), must, 1e-13);
        check_close(running::results<form::many_queries, double>(lifted, at), support::contexts_of(must), 1e-13);
    };
    check({5, 2, 0, 1}, 5, 3);
    check({1}, 1, 1);
    check({0}, 0, 2);
}

/// Checks values and heed::verify.
inline void check_combiner(const auto& attend, const scalar::score& score, bool temporal, const equation& outer,
                           auto describe)
{
    check_combiner_values(attend, score, temporal, outer, describe);
    const auto report = verify(attend, {.query = 3, .width = 5}, describe);
    CHECK_MESSAGE(bool(report), report.text());
}

inline const std::size_t Q = 3, D = 5;
inline const auto W_c = random({D + Q, 4}, 41), wide_gate = random({Q, D}, 42), narrow_gate = random({Q, 1}, 43);
inline const auto wide_bias = random({D}, 44), narrow_bias = random({1}, 45);
inline const auto G = random({Q, D}, 46), W = random({Q, 4}, 47), U = random({D, 4}, 48), Y = random({2, 4}, 49);
inline const auto V = random({4, D}, 50);
inline const auto v = random({4}, 51);

}  // namespace support::combiners
