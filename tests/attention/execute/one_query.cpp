// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/execute/one_query.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif

#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, S = 3, T = 6, D = 5;

const score::additive additive{random({D, 4}, 1), random({D, 4}, 2), random({4}, 3)};
const auto annotations = random({B, T, D}, 4), queries = random({B, S, D}, 5);

namespace mine {

/// A history with a tensor that `map` does not visit.
struct hidden_history {
    array<double, 2> sum;
    hidden_history map(auto&&, const auto&...) const { return *this; }
};

/// Temporal attention with such a history.
struct secret {
    auto operator()(const tensor auto& scores, const hidden_history& state, const auto& at) const
    {
        return ops::softmax(at.visible(ops::subtract(scores, state.sum)), at.real);
    }
    hidden_history start(const auto& blank) const { return {blank(0)}; }
    hidden_history advance(const tensor auto&, const tensor auto& weights, const hidden_history& state,
                           const auto&) const
    {
        return {ops::add(state.sum, weights)};
    }
    static auto parameters(auto&, auto&&) { return mine::secret{}; }
};

/// The depth of the call stack; 0 where the platform does not report it.
[[gnu::noinline]] std::size_t frames()
{
#if __has_include(<execinfo.h>)
    void* found[200];
    return static_cast<std::size_t>(backtrace(found, 200));
#else
    return 0;
#endif
}
std::size_t calls = 0, deepest = 0;

/// A dot product that records its calls and their depth.
struct noting {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto match(const tensor auto& query, const tensor auto& keys) const
    {
        ++calls;
        deepest = std::max(deepest, frames());
        return ops::dot_per_position(query, keys);
    }
    auto operator()(const tensor auto& query, const tensor auto& keys) const { return match(query, keys); }
    static auto parameters(auto&, auto&&) { return mine::noting{}; }
};

}  // namespace mine

/// Checks many queries against successive steps, with a mask for each query.
void check_many(const auto& attend, const auto& mask, const auto& mask_of)
{
    const auto memory = attend.on(annotations, lengths{6, 4});
    const auto all = attend.read_all(memory, queries, attend.start(memory), mask);
    const auto weights = attend.weights_of(memory, queries, mask);
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < S; ++s) {
        auto now = attend.step(memory, ops::step_of(queries, s), state, mask_of(s));
        CHECK(support::distance(ops::step_of(all.contexts, s), now.context) < 1e-14);
        CHECK(support::distance(ops::step_of(weights, s), now.weights) < 1e-14);
        state = std::move(now.state);
    }
    CHECK(all.state.step == S);
    // without queries
    const auto none = attend.read_all(memory, random({B, 0, D}, 1), attend.start(memory), mask);
    CHECK(none.contexts.shape() == shape_of(random({B, 0, D}, 1)));
    CHECK(none.state.step == 0);
    CHECK(attend.weights_of(memory, random({B, 0, D}, 1), mask).shape() == shape_of(random({B, 0, T}, 1)));
}

}  // namespace

TEST_CASE("many queries and their weights equal successive steps")
{
    const auto each = [](const auto& attend) {
        check_many(attend, no_mask{}, [](std::size_t) { return no_mask{}; });
        check_many(attend, lengths{2, 5}, [](std::size_t) { return lengths{2, 5}; });
        const auto seen = [](std::size_t s) { return lengths{6 - (S - 1 - s), 4 - (S - 1 - s)}; };
        check_many(attend, causal{}, seen);
        check_many(attend, mask_mod{[](score_index p) { return p.key <= p.query + 1; }}, [](std::size_t s) {
            return lengths{s + 2, s + 2};
        });
    };
    each(attention{score::dot{}, normalize::softmax{}, combine::weighted_sum{}});
    each(attention{additive, normalize::sparsemax{}, combine::weighted_sum{}});
    each(attention{additive, normalize::temporal{}, combine::weighted_sum{}});
    each(attention{additive, mine::secret{}, combine::weighted_sum{}});
}

TEST_CASE("into existing results, with and without weights, also with a state that map does not visit")
{
    const auto check = [](const auto& attend) {
        const auto memory = attend.on(annotations, lengths{6, 4});
        auto state = attend.start(memory);
        auto with = attend.step(memory, ops::step_of(queries, 0), state);
        auto without = attend.read(memory, ops::step_of(queries, 0), state);
        for (std::size_t s = 0; s < S; ++s) {
            const auto must = attend.step(memory, ops::step_of(queries, s), state);
            attend.step_into(with, memory, ops::step_of(queries, s), state);
            attend.step_into(without, memory, ops::step_of(queries, s), state);
            CHECK(support::same_bits(with.context, must.context));
            CHECK(support::same_bits(with.weights, must.weights));
            CHECK(support::same_bits(without.context, must.context));
            CHECK(with.state.step == s + 1);
            CHECK(support::distance(attend.compose(memory, ops::step_of(queries, s), state).context, must.context) <
                  1e-14);
            state = must.state;
        }
    };
    check(attention{additive, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{additive, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{additive, mine::secret{}, combine::weighted_sum{}});
}

TEST_CASE("step calls a custom score once per sentence, at most 8 functions deep")
{
    const attention attend{mine::noting{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(annotations, lengths{6, 4});
    const auto state = attend.start(memory);
    const auto query = ops::step_of(queries, 0);
    mine::calls = mine::deepest = 0;
    const std::size_t here = mine::frames();
    (void)attend.step(memory, query, state);
    CHECK(mine::calls == B);
    if (here > 0) CHECK(mine::deepest - here <= 1 + 8);  // match, and heed's functions
}
