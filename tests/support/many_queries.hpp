// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <support/tensors.hpp>

/// Many queries at once, compared with one query after another.
namespace support {

/// A loss, and its derivatives with respect to annotations H, queries Q and every parameter, after backward.
std::vector<double> gradients_after(heed::ad::tape<double>& on, double loss, const auto& lifted, const auto& H,
                                    const auto& Q)
{
    std::vector<double> all{loss};
    const auto add = [&](const auto& x) {
        const auto g = on.gradient(x);
        all.insert(all.end(), g.data, g.data + g.size());
    };
    add(H);
    add(Q);
    heed::for_each_parameter(lifted, [&](const std::string&, const auto& x) { add(x); });
    return all;
}

inline double greatest_difference(const std::vector<double>& is, const std::vector<double>& must)
{
    if (is.size() != must.size()) return std::numeric_limits<double>::infinity();
    double worst = 0;
    for (std::size_t i = 0; i < is.size(); ++i) {
        const double off = is[i] == must[i] ? 0 : std::abs(is[i] - must[i]);
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();  // NaN is different
    }
    return worst;
}

/// Positions t … t + n − 1 of x [B,T,N].
inline heed::array<double, 3> words_of(const heed::array<double, 3>& x, std::size_t t, std::size_t n)
{
    heed::array<double, 3> some(heed::shape_of_rank<3>{x.shape()[0], n, x.shape()[2]});
    for (std::size_t b = 0; b < x.shape()[0]; ++b)
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < x.shape()[2]; ++j) some(b, i, j) = x(b, t + i, j);
    return some;
}

/// The maximum difference between all queries at once and one by one, in a loss of the contexts of S queries over T
/// positions [width] and in its derivatives with respect to annotations, queries and every parameter.
template <class Attention, class Mask>
double distance_from_one_by_one(const Attention& attend, const Mask& mask, const heed::lengths& real, std::size_t S,
                                std::size_t T, std::size_t width = 4)
{
    using namespace heed;
    const auto h = random({real.batch(), T, width}, 1), q = random({real.batch(), S, width}, 2),
               w = random({real.batch(), S, width}, 3);
    ad::tape<double> on;
    const auto& known = heed::detail::mask_for(mask, {0, S, real.batch(), 1, T}, real);
    const auto mask_of = [&](std::size_t s) {
        if constexpr (heed::detail::any_predicate_mask<std::remove_cvref_t<decltype(known)>>) {
            const auto drawn = heed::detail::materialize_mask(known, real, 0, S, T);
            boolean_mask<2> row(shape_of_rank<2>{real.batch(), T});
            for (std::size_t i = 0; i < real.batch() * T; ++i) row[i] = drawn[(i / T * S + s) * T + i % T];
            return row;
        } else {
            return heed::detail::mask_of_step(mask, s, S, real);
        }
    };
    const auto gradients = [&](bool at_once) {
        on.clear();
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto lifted = ad::lift(on, attend);
        const auto memory = lifted.on(H, real);
        std::vector<ad::var<double, 2>> contexts;
        auto state = lifted.start(memory);
        const auto loss = [&] {
            if (at_once) return ops::dot(lifted(memory, Q, mask), w);
            for (std::size_t s = 0; s < S; ++s) {
                auto next = lifted.read(memory, ops::step_of(Q, s), state, mask_of(s));
                contexts.push_back(next.context);
                state = next.state;
            }
            return ops::dot(ops::swap_axes(ops::stack(contexts)), w);
        }();
        on.backward(loss);
        return gradients_after(on, loss.value().data[0], lifted, H, Q);
    };
    return greatest_difference(gradients(true), gradients(false));
}

/// The maximum difference from `all`, the contexts of causal queries q [B,T,N] over h at once, for a memory that grows
/// by `chunk` words at a time with a continued state.
double distance_where_it_grows(const auto& attend, const heed::array<double, 3>& h, const heed::array<double, 3>& q,
                               const heed::array<double, 3>& all, std::size_t chunk)
{
    const std::size_t T = h.shape()[1];
    auto known = attend.on(words_of(h, 0, std::min(chunk, T)));
    auto state = attend.start(known);
    double worst = 0;
    for (std::size_t t = 0; t < T; t += chunk) {
        const std::size_t n = std::min(chunk, T - t);
        if (t > 0) known = attend.extend(known, words_of(h, t, n));
        auto some = attend.read_all(known, words_of(q, t, n), state, heed::causal{});
        worst = std::max(worst, distance(some.contexts, words_of(all, t, n)));
        state = std::move(some.state);
    }
    return state.step == T ? worst : 1e9;
}

/// The same for heed::streaming: a prompt, then `chunk` words at a time.
double distance_as_a_stream(const auto& attend, const heed::array<double, 3>& h, const heed::array<double, 3>& q,
                            const heed::array<double, 3>& all, std::size_t prompt, std::size_t chunk)
{
    const auto [B, T, N] = all.shape();
    const heed::streaming generate{attend};
    auto sums = generate.start(attend.on(words_of(h, 0, prompt)));
    double worst = 0;
    for (std::size_t t = prompt; t < T; t += chunk) {
        const std::size_t n = std::min(chunk, T - t);
        sums = generate.extend(sums, words_of(h, t, n));
        const auto context = generate.answer(sums, heed::ops::step_of(q, t + n - 1));
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t i = 0; i < N; ++i) worst = std::max(worst, std::abs(context(b, i) - all(b, t + n - 1, i)));
    }
    return worst;
}

}  // namespace support
