// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <doctest/doctest.h>

#include <heed/verify.hpp>
#include <support/about.hpp>
#include <support/mechanisms.hpp>
#include <support/second_order.hpp>

/// The tests of every mechanism: batches as in heed::verify, compared with scalar loops.
namespace support {

namespace running = heed::detail::verifying;

/// A batch with these lengths, and its queries.
template <class Attention, class Describe>
auto made_up(const Attention& attend, const Describe& describe, const heed::lengths& real, std::size_t positions,
             std::size_t steps, std::size_t width)
{
    const std::size_t rows = real.batch();
    running::problem<Attention, array<double, 3>> p{attend, random({rows, positions, width}, 31), {}};
    running::setting<Describe> at{describe, running::layout_of(describe), real, steps};
    for (std::size_t i = 0; i < at.layout.size(); ++i) {
        p.parts.push_back(random({rows, steps, at.layout[i].width}, 32 + i));
    }
    return std::pair{p, at};
}

/// The inputs of any mechanism, for the scalar loops.
struct batch {
    const array<double, 3>& annotations;
    const std::vector<array<double, 3>>& parts;
    const heed::lengths& real;
    std::size_t steps, kind;  // weights per position

    batch(const auto& p, const auto& at) : annotations(p.annotations), parts(p.parts), real(at.real), steps(at.steps)
    {
        kind = p.attend.score.traits.weights == heed::weight_kind::per_position ? 1 : annotations.shape()[2];
    }

    /// The real positions of row b.
    scalar::matrix sentence(std::size_t b) const
    {
        const auto [B, T, D] = annotations.shape();
        scalar::matrix rows;
        for (std::size_t j = 0; j < real[b]; ++j) {
            const double* h = annotations.data() + (b * T + j) * D;
            rows.emplace_back(h, h + D);
        }
        return rows;
    }

    /// The query of row b at each step, in parts.
    std::vector<std::vector<scalar::numbers>> queries(std::size_t b) const
    {
        std::vector<std::vector<scalar::numbers>> all(steps);
        for (std::size_t s = 0; s < steps; ++s) {
            for (const auto& part : parts) {
                all[s].emplace_back();
                for (std::size_t k = 0; k < part.shape()[2]; ++k) all[s].back().push_back(part(b, s, k));
            }
        }
        return all;
    }

    /// Names in the order of running::results<form::step>, to be filled.
    running::outcome<double> nothing_yet() const
    {
        running::outcome<double> all;
        for (std::size_t s = 0; s < steps; ++s) {
            all.push_back({running::named("context", s), {}});
            all.push_back({running::named("weights", s), {}});
        }
        return all;
    }
};

/// The results of the scalar loops, in the order of running::results<form::step>.
inline running::outcome<double> expected(const scalar::score& equation, bool temporal, const batch& of)
{
    const auto [B, T, D] = heed::shape_of(of.annotations);
    running::outcome<double> all = of.nothing_yet();
    for (std::size_t b = 0; b < B; ++b) {
        const auto answers = scalar::attend(equation, temporal, of.sentence(b), of.queries(b), D);
        for (std::size_t s = 0; s < of.steps; ++s) {
            auto& contexts = all[2 * s].values;
            auto& weights = all[2 * s + 1].values;
            contexts.insert(contexts.end(), answers[s].context.begin(), answers[s].context.end());
            for (const auto& row : answers[s].weights) weights.insert(weights.end(), row.begin(), row.end());
            weights.insert(weights.end(), (T - of.real[b]) * of.kind, 0.0);
        }
    }
    return all;
}

inline void check_close(const running::outcome<double>& is, const running::outcome<double>& must, double tolerance)
{
    const auto most = running::compare(is, must);
    CHECK_MESSAGE(most.worst <= tolerance, most.where);
}

/// Only the contexts.
inline running::outcome<double> contexts_of(running::outcome<double> all)
{
    std::erase_if(all, [](const auto& s) { return s.name.starts_with("weights"); });
    return all;
}

/// Compares the values of every form and both families with the scalar loops.
inline void check_values(const auto& attend, const scalar::score& equation, bool temporal, const auto& describe,
                         std::size_t width)
{
    using running::form;
    const auto check = [&](const heed::lengths& real, std::size_t positions, std::size_t steps) {
        const auto [p, at] = made_up(attend, describe, real, positions, steps, width);
        const auto must = expected(equation, temporal, batch(p, at));
        check_close(running::results<form::step, double>(p, at), must, 1e-13);
        check_close(running::results<form::compose, double>(p, at), must, 1e-13);
        check_close(running::results<form::step_into, double>(p, at), must, 1e-13);
        check_close(running::results<form::read, double>(p, at), contexts_of(must), 1e-13);
        check_close(running::results<form::many_queries, double>(p, at), contexts_of(must), 1e-13);
        heed::ad::tape<double> on;
        const auto lifted = heed::ad::lift(on, p);
        check_close(running::results<form::step, double>(lifted, at), must, 1e-13);
        check_close(running::results<form::compose, double>(lifted, at), must, 1e-13);
        check_close(running::results<form::read, double>(lifted, at), contexts_of(must), 1e-13);
        check_close(running::results<form::many_queries, double>(lifted, at), contexts_of(must), 1e-13);
    };
    check({5, 2, 0, 1}, 5, 4);
    check({1}, 1, 1);
    check({0}, 0, 2);
    check({0, 3}, 3, 1);
    check({7, 6}, 7, 6);
}

inline void check_all_zero(const running::outcome<double>& all)
{
    for (const auto& some : all) {
        for (const double x : some.values) CHECK(x == 0);
    }
}

inline void check_found(const heed::ad::grad_check_result& found)
{
    CHECK_MESSAGE(bool(found), found.text());
    CHECK(found.worst < 1e-8);
}

/// Checks gradients with respect to parameters, annotations and queries, through the history: of steps by finite
/// differences, of the other forms by comparison with steps.
inline void check_gradients(const auto& attend, const auto& describe, std::size_t width)
{
    using heed::ad::grad_check;
    using running::form;
    const auto check = [&](const heed::lengths& real, std::size_t positions, std::size_t steps) {
        auto [p, at] = made_up(attend, describe, real, positions, steps, width);
        check_found(grad_check(p, running::loss_for<form::step, true>(at)));
        check_close(running::gradients<form::compose, true, double>(p, at),
                    running::gradients<form::step, true, double>(p, at), 1e-12);
        const auto by_contexts = running::gradients<form::step, false, double>(p, at);
        check_close(running::gradients<form::read, false, double>(p, at), by_contexts, 1e-12);
        check_close(running::gradients<form::many_queries, false, double>(p, at), by_contexts, 1e-12);
        const auto loss = [&setting = at]<class T>(heed::ad::tape<T>&, const auto& lifted) {
            return running::loss<form::step, true, T>(lifted, setting);
        };
        check_found(second_order(p, loss, 1e-6));
    };
    check({5, 2, 0, 1}, 5, 4);
    check({1}, 1, 1);
    check({0, 3}, 3, 2);
    // Without positions: the gradient is 0.
    const auto [p, at] = made_up(attend, describe, {0, 0}, 0, 2, width);
    check_all_zero(running::gradients<form::step, true, double>(p, at));
}

}  // namespace support
