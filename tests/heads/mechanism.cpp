// SPDX-License-Identifier: BSD-3-Clause
#include <heed/heads/mechanism.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <cstddef>
#include <utility>

#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

namespace mine {

/// An attention with halved contexts: the functions that a custom mechanism must define.
template <class Attention>
struct halved : mechanism<halved<Attention>> {
    Attention attend;

    explicit halved(Attention one) : attend(std::move(one)) {}

    auto memory_of(const auto&... source) const { return attend.on(source...); }
    auto start(const auto& memory) const { return attend.start(memory); }
    template <class Mask = no_mask>
    auto step(const auto& memory, const auto& query, const auto& state, const Mask& mask = {}) const
    {
        auto seen = attend.step(memory, query, state, mask);
        auto context = ops::scale(seen.context, 0.5);
        return step_result{std::move(context), std::move(seen.weights), std::move(seen.state)};
    }
    template <class Mask = no_mask>
    auto read_all(const auto& memory, const auto& queries, const auto& state, const Mask& mask = {}) const
    {
        auto all = attend.read_all(memory, queries, state, mask);
        auto contexts = ops::scale(all.contexts, 0.5);
        return sequence_result{std::move(contexts), std::move(all.state)};
    }
    template <class Mask>
    auto all_weights(const auto& memory, const auto& queries, const auto& state, const Mask& mask) const
    {
        return attend.weights_of(memory, queries, state, mask);
    }

    auto extended(const auto& memory, const auto&... source) const { return attend.extend(memory, source...); }

    static auto parameters(auto& self, auto&& visit) { return mine::halved{visit("attend", self.attend)}; }
};

}  // namespace mine

constexpr std::size_t B = 2, T = 5, S = 3, D = 4;

}  // namespace

TEST_CASE("a custom mechanism has every function of an attention")
{
    const attention whole{score::additive{random({D, 3}, 1), random({D, 3}, 2), random({3}, 3)}, normalize::temporal{},
                          combine::weighted_sum{}};
    const mine::halved half{whole};
    const auto h = random({B, T, D}, 4), values = random({B, T, D}, 5), queries = random({B, S, D}, 6);
    const auto memory = half.on(h, {5, 2});
    CHECK(support::same_bits(half.on(h, values, {5, 2}).values, whole.on(h, values, lengths{5, 2}).values));
    CHECK(half.on(h).positions() == T);

    auto state = half.start(memory);
    auto kept = half.step(memory, ops::step_of(queries, 0), state);
    for (std::size_t s = 0; s < S; ++s) {
        const auto query = ops::step_of(queries, s);
        const auto must = whole.step(memory, query, state);
        const auto read = half.read(memory, query, state);
        half.step_into(kept, memory, query, state);
        CHECK(support::same_bits(read.context, ops::scale(must.context, 0.5)));
        CHECK(support::same_bits(kept.context, read.context));
        CHECK(support::same_bits(kept.weights, must.weights));
        CHECK(read.state.step == s + 1);
        state = must.state;
    }
    CHECK(support::same_bits(half(memory, queries), ops::scale(whole(memory, queries), 0.5)));
    CHECK(support::same_bits(half(memory, queries, causal{}), ops::scale(whole(memory, queries, causal{}), 0.5)));
    CHECK(support::same_bits(half.weights_of(memory, queries), whole.weights_of(memory, queries)));
    CHECK(support::same_bits(half.weights_of(memory, queries, half.start(memory), causal{}),
                             whole.weights_of(memory, queries, causal{})));

    const auto cache = with_cache(memory);
    const auto more = random({B, 2, D}, 7);
    CHECK(support::same_bits(gathered(half.extend(cache, more)).keys, gathered(whole.extend(cache, more)).keys));
    CHECK(support::same_bits(gathered(half.extend(cache, more, {2, 1})).keys,
                             gathered(whole.extend(cache, more, {2, 1})).keys));
    const auto of_values = with_cache(half.on(h, values, {5, 2}));
    CHECK(half.extend(of_values, more, more, {1, 2}).real[1] == 4);
}

TEST_CASE("it trains")
{
    const mine::halved half{
        attention{score::general{random({D, D}, 1)}, normalize::softmax{}, combine::weighted_sum{}}};
    ad::tape<double> on;
    const auto lifted = ad::lift(on, half);
    const auto h = random({B, T, D}, 2), queries = random({B, S, D}, 3), by = random({B, S, D}, 4);
    on.backward(ops::dot(lifted(lifted.on(h), queries), by));
    ad::tape<double> twice;
    const auto whole = ad::lift(twice, half.attend);
    twice.backward(ops::dot(whole(whole.on(h), queries), by));
    const auto is = on.gradient(lifted.attend.score.W), must = twice.gradient(whole.score.W);
    for (std::size_t i = 0; i < D * D; ++i) CHECK(is.data[i] == doctest::Approx(must.data[i] / 2).epsilon(1e-14));
}
