// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/attention/execute/tiled.hpp>
#include <heed/core/family.hpp>
#include <heed/ops/tiles.hpp>
#include <support/exhaustive.hpp>
#include <support/tensors.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

using namespace heed;

// The visible range of a mask, stated or found by evaluating it, saves work and does not change results: contexts and
// gradients equal those of a mask that is evaluated only score by score, where queries of a block see different keys,
// at the edges of registers, blocks and tiles.

namespace {

using kernels::tiles::unmodified;
using support::random;

/// Each group of eight queries sees seventeen keys; the next group sees almost none of the same keys.
struct in_steps : predicate_mask {
    lane_mask operator()(const score_index& p) const
    {
        return (p.key >= p.diagonal / 8 * 13) & (p.key < p.diagonal / 8 * 13 + 17);
    }
    key_range visible_range(std::int32_t first, std::int32_t last) const
    {
        return {first / 8 * 13, last / 8 * 13 + 17};
    }
    key_range full_range(std::int32_t first, std::int32_t last) const { return {last / 8 * 13, first / 8 * 13 + 17}; }
};

/// The same mask without its ranges, which are found by evaluating it.
auto silent(const auto& mask)
{
    return [mask](const score_index& p) { return lane_mask(mask(p)); };
}

/// The same mask, with ranges that rule out testing blocks.
template <class Mask>
struct unasked : predicate_mask {
    Mask mask;

    explicit unasked(const Mask& of) : mask(of) {}
    lane_mask operator()(const score_index& p) const { return lane_mask(mask(p)); }
    key_range visible_range(std::int32_t, std::int32_t) const { return {}; }
    key_range full_range(std::int32_t, std::int32_t) const { return {0, 0}; }
};

/// Contexts, then the gradients of f(q, k, v, p), in one vector.
std::vector<float> contexts_and_gradients(std::size_t S, std::size_t T, const array<float, 1>& p, float spread,
                                          const auto& f)
{
    const auto q0 = random<float>({2, S, 6}, 1), k0 = random<float>({2, T, 6}, 2), v0 = random<float>({2, T, 18}, 3),
               w = random<float>({2, S, 18}, 4, spread);
    ad::tape<float> on;
    const auto q = on.parameter(q0), k = on.parameter(k0), v = on.parameter(v0);
    const auto P = on.parameter(p);
    const auto c = f(q, k, v, P);
    on.backward(ops::dot(c, w));
    std::vector<float> all(c.value().data, c.value().data + c.value().size());
    const auto add = [&](const auto& x) {
        const auto g = on.gradient(x);
        all.insert(all.end(), g.data, g.data + g.size());
    };
    add(q), add(k), add(v), add(P);
    return all;
}

/// `answers(mask, q, k, v, p, lengths, heads)` returns contexts; p is a parameter.
void check(const auto& mask, const array<float, 1>& p, const auto& answers)
{
    const std::pair<std::size_t, std::size_t> sizes[] = {{15, 17}, {60, 60}, {65, 97}, {129, 300}};
    for (const auto& size : sizes) {
        const std::size_t S = size.first, T = size.second;
        for (const std::size_t threads : {1u, 3u}) {
            if (!support::exhaustive() && threads != (S % 2 == 1 ? 3 : 1)) continue;
            set_threads(threads);
            const lengths real({T, T - S / 2});  // also queries before the first key, where S = T
            const auto of = [&](const auto& with, float spread) {
                return contexts_and_gradients(S, T, p, spread,
                                              [&](const auto& q, const auto& k, const auto& v, const auto& P) {
                                                  return answers(with, q, k, v, P, real, ops::heads_of{2, 2, 0.7});
                                              });
            };
            of(unasked(mask), std::numeric_limits<float>::quiet_NaN());  // stale memory must not matter
            const auto is = of(mask, 1), asked = of(silent(mask), 1), must = of(unasked(mask), 1);
            REQUIRE(is.size() == must.size());
            float worst = 0;
            for (std::size_t i = 0; i < is.size(); ++i) {
                const float off = std::abs(is[i] - must[i]);
                worst = std::isnan(off) ? 1e9F : std::max(worst, off);
            }
            CHECK(worst < 1e-5F);
            // Bitwise equal, except for the gradient of the parameter, which is summed in a different order.
            const auto end = must.end() - static_cast<std::ptrdiff_t>(p.size());
            CHECK(std::equal(must.begin(), end, asked.begin()));
            for (std::size_t i = must.size() - p.size(); i < must.size(); ++i)
                CHECK(asked[i] == doctest::Approx(must[i]).epsilon(1e-5));
        }
        set_threads(1);
    }
}

/// The normalizer with inner products; the parameter is not used.
template <class Rule>
void check_rule(const auto& mask, const Rule& rule)
{
    check(mask, array<float, 1>{0.0F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto&, const lengths& real,
              const ops::heads_of& how) {
              return ops::attend_tiled_op{unmodified{}, with, rule}(q, k, v, real, how);
          });
}

/// A score_mod that counts the computed tiles and the pairs of a query and a key.
struct counting final : kernels::tiles::score_mod<float> {
    using head = kernels::tiles::head<float>;
    using visible_tile = kernels::tiles::visible_tile;

    const kernels::tiles::score_mod<float>& of;
    mutable std::size_t tiles = 0, pairs = 0;

    explicit counting(const kernels::tiles::score_mod<float>& counted) : of(counted)
    {
        modifies = true;  // so that it is applied to every tile
        evaluates_mask = of.evaluates_mask;
    }
    key_range visible_range(std::int32_t first, std::int32_t last) const override
    {
        return of.visible_range(first, last);
    }
    key_range full_range(std::int32_t first, std::int32_t last) const override { return of.full_range(first, last); }
    void evaluate_mask(const head& h, std::size_t n, visible_tile& visible) const override
    {
        of.evaluate_mask(h, n, visible);
    }
    void apply(const head& h, const visible_tile& visible, float* tile, float* slopes) const override
    {
        ++tiles;
        for (std::size_t g = 0; g < visible.groups && visible.s + g * lane_count < h.queries_count; ++g)
            if (!visible.rows[g].empty())
                pairs += visible.rows[g].size() * std::min(lane_count, h.queries_count - visible.s - g * lane_count);
        of.apply(h, visible, tile, slopes);
    }
    void table_gradient(const head&, const visible_tile&, const float*, const float*, float*) const override {}
};

constexpr std::size_t most_registers = kernels::tiles::most_registers_of<float>,
                      queries_of_block = kernels::tiles::lanes<float, most_registers>;

/// One head of S queries and T keys.
struct one_head {
    std::size_t S, T;
    array<float, 2> q, k, v, d, contexts, d_q, d_k, d_v;
    std::vector<float> numbers, room;
    heed::detail::lane_memo memo;
    kernels::tiles::head<float> of{};

    one_head(std::size_t queries, std::size_t keys)
        : S(queries),
          T(keys),
          q(random<float>({S, 6}, 1)),
          k(random<float>({T, 6}, 2)),
          v(random<float>({T, 5}, 3)),
          d(random<float>({S, 5}, 4)),
          contexts(random<float>({S, 5}, 5)),
          d_q(q),
          d_k(k),
          d_v(v),
          numbers(2 * S),
          room(heed::detail::lane_memo::room_for(S, T)),
          memo(room.data(), S, T)
    {
        of.queries = {q.data(), 6};
        of.keys = {k.data(), 6};
        of.values = {v.data(), 5};
        of.width = 6;
        of.value_width = 5;
        of.queries_count = S;
        of.positions = T;
        of.scale = 1;
        of.memo = &memo;
    }
    void each_block(const auto& f) const
    {
        for (std::size_t s = 0; s < S; s += queries_of_block) f(s, std::min(queries_of_block, S - s));
    }
    void forward(const kernels::tiles::score_mod<float>& mod)
    {
        each_block([&](std::size_t s, std::size_t n) {
            kernels::tiles::forward<most_registers>(kernels::tiles::query_block<float>{of, s, n, mod},
                                                    kernels::tiles::softmax{}, {contexts.data(), 5}, numbers.data());
        });
    }
    void backward(const kernels::tiles::score_mod<float>& mod)
    {
        const kernels::tiles::forward_results<float> from{{contexts.data(), 5}, numbers.data(), {d.data(), 5}};
        const kernels::tiles::head_gradients<float> to{{d_q.data(), 6}, {d_k.data(), 6}, {d_v.data(), 5}};
        each_block([&](std::size_t s, std::size_t n) {
            kernels::tiles::backward<most_registers>(kernels::tiles::query_block<float>{of, s, n, mod},
                                                     kernels::tiles::softmax{}, from, to,
                                                     [](std::size_t) { return true; });
        });
    }
};

/// The tiles and pairs to compute: for each tile and each lane_count queries, the keys from the first to the last
/// visible key.
std::pair<std::size_t, std::size_t> tiles_and_pairs(const auto& mask, const one_head& x)
{
    std::size_t tiles = 0, pairs = 0;
    x.each_block([&](std::size_t begin, std::size_t n) {
        for (std::size_t tile = 0; tile < x.T; tile += kernels::tiles::keys) {
            bool any = false;
            for (std::size_t g = begin; g < begin + n; g += lane_count) {
                const std::size_t end = std::min(g + lane_count, begin + n);
                std::size_t first = x.T, last = 0;
                for (std::size_t t = tile; t < std::min(x.T, tile + kernels::tiles::keys); ++t) {
                    score_index p;
                    p.query = heed::detail::counted_from(static_cast<std::int32_t>(g));
                    p.diagonal = heed::detail::counted_from(x.of.diagonal_of(g));
                    p.key = static_cast<std::int32_t>(t);
                    const lane_mask visible(mask(p));
                    bool sees = false;
                    for (std::size_t s = g; s < end; ++s) sees = sees || visible.at[s - g] != 0;
                    if (!sees) continue;
                    first = std::min(first, t);
                    last = std::max(last, t);
                }
                if (first == x.T) continue;
                any = true;
                pairs += (last - first + 1) * (end - g);
            }
            tiles += any ? 1 : 0;
        }
    });
    return {tiles, pairs};
}

template <class Mask>
void check_computed(const Mask& mask, std::size_t S = 403, std::size_t T = 403)
{
    one_head x(S, T);
    const auto same = [](auto e, score_index) { return e; };
    const kernels::tiles::score_mod_of<float, std::remove_const_t<decltype(same)>, Mask> by(same, mask);
    const auto [tiles, pairs] = tiles_and_pairs(mask, x);
    CHECK(pairs < S * T);
    counting forward(by), backward(by);
    x.forward(forward);
    CHECK(forward.tiles == tiles);
    CHECK(forward.pairs == pairs);
    x.backward(backward);
    CHECK(backward.tiles == tiles);
    CHECK(backward.pairs == pairs);
}

const auto same_document = [](score_index p) { return p.query / 100 == p.key / 100; };

}  // namespace

TEST_CASE("only keys visible to a block of queries are computed, forward and backward")
{
    check_computed(same_document);
    check_computed(not_behind{} & same_document);
    check_computed(not_behind{} & same_document, 130, 403);  // more keys than queries
    check_computed(!not_behind{});
    check_computed(!not_behind{}, 403, 130);  // queries before the first key
    check_computed(sliding_window{20} | [](score_index p) { return (p.key < 4) | (p.query < 4); });  // Longformer
    check_computed([](score_index p) {  // block diffusion: noised tokens, then the clean tokens, in blocks of 40
        const lane_mask noisy = p.query < 200, noisy_key = p.key < 200, clean = !noisy, clean_key = !noisy_key;
        const auto block = p.query % 200 / 40, block_of_key = p.key % 200 / 40;
        return (noisy & noisy_key & (block == block_of_key)) | (noisy & clean_key & (block > block_of_key)) |
               (clean & clean_key & (block >= block_of_key));
    });
    check_computed([](score_index p) { return p.query / 200 != p.key / 200; });
    check_computed([](score_index) { return false; });
}

TEST_CASE("a mask is evaluated once per score, except near the first and last visible keys")
{
    one_head x(403, 403);
    std::size_t questions = 0;
    const auto mask = [&](const score_index& p) {
        ++questions;
        return same_document(p);
    };
    const unmodified pair;
    const kernels::tiles::score_mod_of<float, unmodified, std::remove_const_t<decltype(mask)>> by(pair, mask);
    const std::size_t groups = (x.S + lane_count - 1) / lane_count,
                      tiles = (x.T + kernels::tiles::keys - 1) / kernels::tiles::keys;
    x.forward(by);
    CHECK(questions <= groups * (x.T + 2 * 16 * tiles));
}

TEST_CASE("with a history, a tile that no query sees has no weights")
{
    one_head x(403, 80 + queries_of_block);
    const unmodified pair;
    const ops::modulated_by_past state;
    const auto visible = [&](const auto& mask, std::size_t key, std::size_t query) {
        const kernels::tiles::remembering_head sentence{x.of, pair, mask, state};
        kernels::tiles::detail::key_block<most_registers, std::remove_const_t<decltype(sentence)>> block(sentence);
        block.go_to(key);
        std::vector<float> tile(kernels::tiles::queries * queries_of_block);
        return block.hide(query, kernels::tiles::queries, tile.data());
    };
    CHECK(visible(same_document, 0, 0));
    CHECK(!visible(same_document, 0, 300));
    const auto behind_all = [&](score_index p) { return p.key >= static_cast<std::int32_t>(x.T); };  // beyond every key
    CHECK(!visible(behind_all, x.T - 5, 0));
}

TEST_CASE("masks")
{
    const kernels::tiles::softmax softmax;
    check_rule(not_behind{}, softmax);
    check_rule(sliding_window{20}, softmax);
    check_rule(in_steps{}, softmax);
    check_rule(in_steps{} | (not_behind{} & sliding_window{3}), softmax);
}

TEST_CASE("normalizers")
{
    check_rule(in_steps{}, kernels::tiles::sigmoid{-1});
    check_rule(in_steps{}, kernels::tiles::sparse_weights<2>{});
    check_rule(not_behind{}, kernels::tiles::top_k{3});
    check_rule(not_behind{} & sliding_window{30}, kernels::tiles::stick_breaking{});
}

TEST_CASE("functions of scores, with a learned table, and sums over dimensions")
{
    const auto f = [](auto e, score_index p, const auto& b) { return 3 * tanh(e / 3) + b(p.key - p.key / 5 * 5); };
    check(in_steps{}, array<float, 1>{0.1F, -0.4F, 0.3F, 0.2F, -0.1F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto& table, const lengths& real,
              const ops::heads_of& how) {
              const auto none = constant_like(q, shape_of_rank<1>{2}, -std::numeric_limits<float>::infinity());
              const ops::attend_tiled_op attend{f, with, kernels::tiles::softmax{}};
              return attend(q, k, v, table, none, table, real, how);
          });
    check(not_behind{} & sliding_window{30}, array<float, 1>{0.1F, -0.4F, 0.3F, 0.2F, -0.1F, 0.7F},
          [&](const auto& with, const auto& q, const auto& k, const auto& v, const auto& factors, const lengths& real,
              const ops::heads_of& how) {
              const auto none = constant_like(q, shape_of_rank<1>{2}, -std::numeric_limits<float>::infinity());
              const ops::attend_tiled_op attend{unmodified{}, with, kernels::tiles::softmax{},
                                                kernels::tiles::additive{}};
              return attend(q, k, v, factors, none, factors, real, how);
          });
}
