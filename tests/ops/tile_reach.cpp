// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/tiles.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

using namespace heed;

// What a mask says of its reach saves work and changes nothing: contexts and gradients are those of a mask that says
// nothing, where queries of a block see different keys, at the edges of registers, blocks and tiles.

namespace {

using kernels::tiles::unmodified;
using support::random;

/// Each eight queries see seventeen keys, hardly any of which the next eight see.
struct in_steps : mask_of_places {
    lane_mask operator()(const place& p) const { return (p.key >= p.here / 8 * 13) & (p.key < p.here / 8 * 13 + 17); }
    key_range reach(std::int32_t first, std::int32_t last) const { return {first / 8 * 13, last / 8 * 13 + 17}; }
    key_range whole(std::int32_t first, std::int32_t last) const { return {last / 8 * 13, first / 8 * 13 + 17}; }
};

/// The same mask without its reach.
auto silent(const auto& mask)
{
    return [mask](const place& p) { return lane_mask(mask(p)); };
}

/// Contexts, and the gradients of f(q, k, v, p), one behind the other.
std::vector<float> contexts_and_gradients(std::size_t S, std::size_t T, const array<float, 1>& p, float spread,
                                          const auto& f)
{
    const auto q0 = random<float>({2, S, 6}, 1), k0 = random<float>({2, T, 6}, 2), v0 = random<float>({2, T, 18}, 3),
               w = random<float>({2, S, 18}, 4, spread);
    ad::tape<float> on;
    const auto q = on.parameter(q0), k = on.parameter(k0), v = on.parameter(v0);
    const auto P = on.parameter(p);
    const auto c = f(q, k, v, P);
    on.backward(ops::inner(c, w));
    std::vector<float> all(c.value().data, c.value().data + c.value().size());
    const auto add = [&](const auto& x) {
        const auto g = on.gradient(x);
        all.insert(all.end(), g.data, g.data + g.size());
    };
    add(q), add(k), add(v), add(P);
    return all;
}

/// `answers(mask, q, k, v, p, lengths, heads)`: contexts, p being a parameter.
void check(const auto& mask, const array<float, 1>& p, const auto& answers)
{
    const std::pair<std::size_t, std::size_t> sizes[] = {{15, 17}, {60, 60}, {65, 97}, {130, 130}, {129, 300}};
    for (const auto& size : sizes) {
        const std::size_t S = size.first, T = size.second;
        for (const std::size_t threads : {1u, 3u}) {
            set_threads(threads);
            const lengths real({T, T - S / 2});  // queries before the first key, too, where S = T
            const auto of = [&](const auto& with, float spread) {
                return contexts_and_gradients(S, T, p, spread,
                                              [&](const auto& q, const auto& k, const auto& v, const auto& P) {
                                                  return answers(with, q, k, v, P, real, ops::heads_of{2, 2, 0.7});
                                              });
            };
            of(silent(mask), std::numeric_limits<float>::quiet_NaN());  // what stays in memory must not matter
            const auto is = of(mask, 1), must = of(silent(mask), 1);
            REQUIRE(is.size() == must.size());
            float worst = 0;
            for (std::size_t i = 0; i < is.size(); ++i) {
                const float off = std::abs(is[i] - must[i]);
                worst = std::isnan(off) ? 1e9F : std::max(worst, off);
            }
            CHECK(worst < 1e-5F);
        }
        set_threads(1);
    }
}

/// The rule with inner products; the parameter is not used.
template <class Rule>
void check_rule(const auto& mask, const Rule& rule)
{
    check(mask, array<float, 1>{0.0F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto&, const lengths& real,
              const ops::heads_of& how) {
              return ops::attend_tiled_op{unmodified{}, with, rule}(q, k, v, real, how);
          });
}

}  // namespace

TEST_CASE("masks")
{
    const kernels::tiles::softmax softmax;
    check_rule(not_behind{}, softmax);
    check_rule(sliding_window{20}, softmax);
    check_rule(in_steps{}, softmax);
    check_rule(in_steps{} | (not_behind{} & sliding_window{3}), softmax);
}

TEST_CASE("rules")
{
    check_rule(in_steps{}, kernels::tiles::sigmoid{-1});
    check_rule(in_steps{}, kernels::tiles::sparse_weights<2>{});
    check_rule(not_behind{}, kernels::tiles::top_k{3});
    check_rule(not_behind{} & sliding_window{30}, kernels::tiles::stick_breaking{});
}

TEST_CASE("functions of scores, with a table that learns, and sums over dimensions")
{
    const auto f = [](auto e, place p, const auto& b) { return 3 * tanh(e / 3) + b(p.key - p.key / 5 * 5); };
    check(in_steps{}, array<float, 1>{0.1F, -0.4F, 0.3F, 0.2F, -0.1F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto& table, const lengths& real,
              const ops::heads_of& how) {
              const auto none = constant_like(q, shape_of_rank<1>{2}, -std::numeric_limits<float>::infinity());
              const ops::attend_tiled_with_op attend{f, with, kernels::tiles::softmax{}};
              return attend(q, k, v, table, none, table, real, how);
          });
    check(not_behind{} & sliding_window{30}, array<float, 1>{0.1F, -0.4F, 0.3F, 0.2F, -0.1F, 0.7F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto& factors, const lengths& real,
              const ops::heads_of& how) {
              const auto none = constant_like(q, shape_of_rank<1>{2}, -std::numeric_limits<float>::infinity());
              const ops::attend_tiled_with_op attend{unmodified{}, with, kernels::tiles::softmax{},
                                                     kernels::tiles::additive{}};
              return attend(q, k, v, factors, none, factors, real, how);
          });
}
