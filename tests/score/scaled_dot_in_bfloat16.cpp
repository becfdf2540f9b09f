// SPDX-License-Identifier: BSD-3-Clause
#include <heed/score/scaled_dot_in_bfloat16.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/heads/multi_head.hpp>
#include <heed/masks/predicates.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/tiles_in_bfloat16.hpp>
#include <heed/score/modified.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random, support::same_bits;

namespace {

constexpr std::size_t S = 70, T = 90, d = 16;  // enough for tiles

template <class Score>
auto attending(const Score& score)
{
    return attention{score, normalize::softmax{}, combine::weighted_sum{}};
}
/// Contexts of many causal queries.
auto contexts_of(const auto& attend, const auto& keys, const auto& queries)
{
    const auto memory = attend.on(keys);
    return attend.read_all(memory, queries, attend.start(memory), causal{}).contexts;
}

}  // namespace

TEST_CASE("many queries are those of attend_tiled_in_bfloat16, forward and backward")
{
    const auto q = random<float>({2, S, d}, 1), k = random<float>({2, T, d}, 2);
    const auto check = [&](const auto& contexts) {
        ad::tape<float> on, other;
        const auto Q = on.parameter(q), K = on.parameter(k), Q2 = other.parameter(q), K2 = other.parameter(k);
        const auto is = contexts(Q, K);
        const auto must = ops::attend_tiled_in_bfloat16_op<kernels::tiles::unmodified, not_behind>{{}, {}}(
            ops::scale(Q2, 0.25), K2, K2, lengths::full(2, T), ops::heads_of{});
        CHECK(same_bits(is.value(), must.value()));
        const auto by = support::uneven<float>(shape_of_rank<3>{2, S, d});
        on.backward(ops::dot(is, by));
        other.backward(ops::dot(must, by));
        CHECK(same_bits(on.gradient(Q), other.gradient(Q2)));
        CHECK(same_bits(on.gradient(K), other.gradient(K2)));
    };
    check([](const auto& Q, const auto& K) { return contexts_of(attending(score::scaled_dot_in_bfloat16{}), K, Q); });
    // The same with a function of the score that changes nothing, and with the scale given.
    const auto same = [](auto e, score_index) { return e; };
    check([&](const auto& Q, const auto& K) {
        return contexts_of(attending(score::modified{score::scaled_dot_in_bfloat16{{0.25}}, same}), K, Q);
    });
}

TEST_CASE("one query, and few, compute in float")
{
    const auto keys = random<float>({2, 20, d}, 2), queries = random<float>({2, 4, d}, 1);
    const auto query = random<float>({2, d}, 1);
    const auto in_bfloat16 = attending(score::scaled_dot_in_bfloat16{});
    const auto in_float = attending(score::scaled_dot{});
    CHECK(same_bits(contexts_of(in_bfloat16, keys, queries), contexts_of(in_float, keys, queries)));
    const auto step = [&](const auto& attend) {
        const auto memory = attend.on(keys);
        return attend.step(memory, query, attend.start(memory)).context;
    };
    CHECK(same_bits(step(in_bfloat16), step(in_float)));
}

TEST_CASE("heads of a multi_head")
{
    const auto W = [](std::uint64_t stream) { return random<float>({d, d}, stream, 0.3); };
    const auto heads = [&](const auto& score) {
        return multi_head{std::vector(2, attending(score)), W(1), W(2), W(3), W(4)};
    };
    const auto queries = random<float>({2, S, d}, 5), keys = random<float>({2, T, d}, 6);
    const auto is = contexts_of(heads(score::scaled_dot_in_bfloat16{}), keys, queries);
    const auto in_float = contexts_of(heads(score::scaled_dot{}), keys, queries);
    CHECK(support::distance(is, in_float) < 0.03);
    CHECK(support::distance(is, in_float) > 1e-4);
}

TEST_CASE("a copy is of the same type, with the same scale")
{
    const score::scaled_dot_in_bfloat16 of{{2.0}};
    const auto copied = transform_parameters(of, [](const std::string&, const auto& x) { return x; });
    static_assert(std::is_same_v<decltype(copied), const score::scaled_dot_in_bfloat16>);
    CHECK(copied.scale == 2.0);
}
