// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/score_hooks.hpp>

#include <doctest/doctest.h>

#include <string>

#include <heed/heed.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random, support::same_bits;
namespace over = heed::score::over;

namespace {

namespace mine {

struct plain {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::dot_per_position(query, keys);
    }
};

/// Has every hook, in the form with the most arguments.
struct full : plain {
    auto prepare(const tensor auto& annotations, std::size_t first) const
    {
        return ops::scale(annotations, static_cast<double>(first + 2));
    }
    auto project(const tensor auto& query) const { return ops::scale(query, 2); }
    auto match(const tensor auto& query, const tensor auto& keys, const no_score_state&) const
    {
        return ops::scale(ops::dot_per_position(query, keys), 3);
    }
    auto continue_keys(const tensor auto& keys, const tensor auto& before) const { return ops::add(keys, before); }
    int start(const auto&) const { return 1; }
    int observe_memory(int state, int at, int memory) const { return state + at + memory; }
    int advance(int state, const tensor auto&, const tensor auto&, int at) const { return state * at; }
};

/// Has every hook, in the form with the fewest arguments.
struct short_forms : plain {
    auto prepare(const tensor auto& annotations) const { return ops::scale(annotations, 2); }
    auto match(const tensor auto& query, const tensor auto& keys) const { return ops::dot_per_position(query, keys); }
    int observe_memory(int state, int at) const { return state + at; }
    int advance(int state, const tensor auto&, int at) const { return state - at; }
};

struct passes_on : full {
    static constexpr score_traits traits{.weights = weight_kind::per_position, .ignores_context = true};
};

/// Doubles the projected query.
template <class Base>
struct doubled : over::score_adaptor<doubled<Base>, Base, over::base_remembers> {
    using over::score_adaptor<doubled<Base>, Base, over::base_remembers>::score_adaptor;

    auto query(const tensor auto& projected, const auto&) const { return ops::scale(projected, 2); }
};
/// Also triples the keys.
template <class Base>
struct with_keys : over::score_adaptor<with_keys<Base>, Base, over::base_remembers> {
    using over::score_adaptor<with_keys<Base>, Base, over::base_remembers>::score_adaptor;

    auto query(const tensor auto& projected, const auto&) const { return ops::scale(projected, 2); }
    auto keys(const tensor auto& keys, const auto&) const { return ops::scale(keys, 3); }
};

}  // namespace mine

const auto x = random({2, 3, 4}, 1), y = random({2, 3, 4}, 2);
const auto q = random({2, 4}, 3), w = random({2, 3}, 4);

}  // namespace

TEST_CASE("a missing hook has a default")
{
    const mine::plain score;
    CHECK(same_bits(over::prepare(score, x, 5), x));
    CHECK(&over::projected(score, q) == &q);
    CHECK(same_bits(over::continue_keys(score, x, y), x));
    CHECK(!over::follows<mine::plain, array<double, 3>>());
    static_assert(std::is_same_v<decltype(over::start(score, x)), no_score_state>);
    CHECK(over::observe_memory(score, 7, 1) == 7);
    CHECK(over::observe_memory(score, 7, 1, 2) == 7);
    CHECK(over::advance(score, 7, w, q, 1) == 7);
    CHECK(same_bits(over::match(score, q, x, no_score_state{}), ops::dot_per_position(q, x)));
    CHECK(!over::advances<mine::plain>());
    CHECK(!over::reads_context<mine::plain>());
    CHECK(!over::reads_word<mine::plain>());
    CHECK(!over::projects_words<mine::plain, array<double, 3>>());
}

TEST_CASE("a hook is called with all arguments that it takes")
{
    const mine::full score;
    CHECK(same_bits(over::prepare(score, x, 5), ops::scale(x, 7)));
    CHECK(same_bits(over::prepare(score, x), ops::scale(x, 2)));
    CHECK(same_bits(over::projected(score, q), ops::scale(q, 2)));
    CHECK(same_bits(over::continue_keys(score, x, y), ops::add(x, y)));
    CHECK(over::follows<mine::full, array<double, 3>>());
    CHECK(over::start(score, x) == 1);
    CHECK(over::observe_memory(score, 7, 1, 2) == 10);
    CHECK(over::advance(score, 7, w, q, 2) == 14);
    CHECK(same_bits(over::match(score, q, x, no_score_state{}), ops::scale(ops::dot_per_position(q, x), 3)));
    CHECK(over::advances<mine::full>());
    CHECK(over::reads_context<mine::full>());
    CHECK(!over::reads_context<mine::passes_on>());
    const mine::short_forms brief;
    CHECK(same_bits(over::prepare(brief, x, 5), ops::scale(x, 2)));
    CHECK(over::observe_memory(brief, 7, 1, 2) == 8);
    CHECK(over::advance(brief, 7, w, q, 2) == 5);
    CHECK(same_bits(over::match(brief, q, x, no_score_state{}), ops::dot_per_position(q, x)));
}

TEST_CASE("wrapping scores add to query and keys, and the innermost compares")
{
    const mine::doubled<mine::with_keys<mine::short_forms>> score;
    static_assert(std::is_same_v<decltype(over::innermost(score)), const mine::short_forms&>);
    CHECK(same_bits(over::query(score, q, no_score_state{}), ops::scale(q, 4)));
    CHECK(same_bits(over::keys(score, x, no_score_state{}), ops::scale(x, 3)));
    CHECK(same_bits(over::match(score, q, x, no_score_state{}),
                    ops::dot_per_position(ops::scale(q, 4), ops::scale(x, 3))));
    using keys = array<double, 3>;
    CHECK(over::changes_keys<mine::doubled<mine::with_keys<mine::short_forms>>, keys, no_score_state>());
    CHECK(!over::changes_keys<mine::doubled<mine::short_forms>, keys, no_score_state>());
    CHECK(over::advances<mine::doubled<mine::short_forms>>());
    CHECK(!over::advances<mine::doubled<mine::plain>>());
    CHECK(!over::follows<mine::doubled<mine::plain>, keys>());
    CHECK(over::follows<mine::doubled<mine::full>, keys>());
}

TEST_CASE("an error names the score and its argument")
{
    const score::additive score{random({3, 4}, 1), random({5, 4}, 2), random({4}, 3)};
    const auto message = support::message_of<shape_error>([&] { (void)over::projected(score, q); });
    CHECK_MESSAGE(message.starts_with("score::additive: the query [2,4] does not fit W [3,4]"), message);
    const auto of_keys = support::message_of<shape_error>([&] { (void)over::prepare(score, x); });
    CHECK_MESSAGE(of_keys.starts_with("score::additive: the annotations [2,3,4] do not fit W [3,4]"), of_keys);
}
