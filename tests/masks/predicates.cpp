// SPDX-License-Identifier: BSD-3-Clause
#include <heed/masks/predicates.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <support/approx.hpp>
#include <support/drawn_masks.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::check_empty, support::message_of, support::random;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("add_mask adds, and masks where it is -inf")
{
    const array<double, 2> e{{1.0, not_a_number, 3.0}}, m{{0.5, -infinity, -2.0}};
    CHECK(support::same_bits(ops::add_mask(e, m), array<double, 2>{{1.5, -infinity, 1.0}}));
    const array<double, 3> each{{{1.0, 2.0}, {infinity, not_a_number}, {3.0, 4.0}}};
    CHECK(
        support::same_bits(ops::add_mask(each, m), array<double, 3>{{{1.5, 2.5}, {-infinity, -infinity}, {1.0, 2.0}}}));
    const auto f = [](const auto& x, const auto& mask) { return ops::exp(ops::add_mask(x, mask)); };
    CHECK_GRADIENT(f, random({1, 1}, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f, random({3, 5}, 3), random({3, 5}, 4));
    CHECK_GRADIENT(f, random({2, 4, 3}, 5), random({2, 4}, 6));
    const auto with_some_hidden = [&m](const auto& x) { return ops::exp(ops::add_mask(x, m)); };
    CHECK_GRADIENT(with_some_hidden, random({1, 3}, 7));
    CHECK_GRADIENT(with_some_hidden, random({1, 3, 2}, 8));
    check_empty(f, array<double, 2>(shape_of_rank<2>{2, 0}), array<double, 2>(shape_of_rank<2>{2, 0}));

    ad::tape<double> on;  // neither the mask nor the scores that it masks have a gradient
    const auto scores = on.parameter(e), mask = on.parameter(m);
    on.backward(ops::dot(ops::exp(ops::add_mask(scores, mask)), array<double, 2>{{2.0, 3.0, 5.0}}));
    for (const auto& x : {scores, mask}) {
        CHECK(on.gradient(x).data[0] == support::approx(2 * std::exp(1.5)));
        CHECK(on.gradient(x).data[1] == 0);
        CHECK(on.gradient(x).data[2] == support::approx(5 * std::exp(1.0)));
    }
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(random({2, 4}, 1), m);
          }) == "attention: the additive mask is [1,3] but must be [2,4] (one number for each position)");
    CHECK(message_of<shape_error>([&] {
              (void)ops::add_mask(on.parameter(e), random({1, 2}, 1));
          }) == "attention: the additive mask is [1,2] but must be [1,3] (one number for each position)");
}

namespace masks_of_places {

#include "../../examples/catalogue/masks.hpp"

using support::random;

// Predicate masks with enough keys for tiles: equal to the composed form with the same mask as a tensor, [B,S,T],
// forward and backward.

namespace {

const auto made = attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};

/// The maximum difference of contexts and gradients, relative to numbers above 1.
template <class T>
double distance_from_composed(const auto& mask, const lengths& real, std::size_t S, std::size_t positions)
{
    const auto h = random<T>({real.batch(), positions, 6}, 1), q = random<T>({real.batch(), S, 6}, 2),
               w = random<T>({real.batch(), S, 6}, 3);
    const auto all = [&](const auto& sees) {
        ad::tape<T> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto lifted = ad::lift(on, made);
        const auto memory = lifted.on(H, real);
        const auto contexts = [&] {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(sees)>, boolean_mask<3>>) {
                return support::without_tiles(lifted, memory, Q, sees);
            } else {
                return lifted(memory, Q, sees);
            }
        }();
        on.backward(ops::dot(contexts, w));
        std::vector<T> numbers(contexts.value().data, contexts.value().data + contexts.value().size());
        for (const auto& gradient : {on.gradient(H), on.gradient(Q)})
            numbers.insert(numbers.end(), gradient.data, gradient.data + gradient.size());
        return numbers;
    };
    const auto is = all(mask), must = all(heed::detail::materialize_mask(mask, real, 0, S, positions));
    double worst = is.size() == must.size() ? 0 : 1e9;
    for (std::size_t i = 0; i < is.size() && worst < 1e9; ++i) {
        const double off = std::abs(double(is[i]) - double(must[i])) / std::max(1.0, std::abs(double(must[i])));
        worst = std::isnan(off) ? 1e9 : std::max(worst, off);
    }
    return worst;
}

const auto near = [](const score_index& p) { return abs(p.query - p.key) < 5; };
const auto even = [](const score_index& p) { return (p.query + p.key) % 2 == 0; };

}  // namespace

TEST_CASE("every mask of the catalogue is equal tiled and composed")
{
    const catalogue::known known;
    for (const catalogue::named_mask& each : catalogue::masks(known)) {
        const auto& mask = each.mask;
        CAPTURE(each.name);
        CHECK(distance_from_composed<double>(mask, lengths({203, 61}), 70, 203) < 1e-10);
        CHECK(distance_from_composed<float>(mask, lengths({99, 203}), 131, 203) < 1e-5);
    }
}

TEST_CASE("a function of an index is a mask, and so is a combination of two")
{
    const auto h = random({2, 70, 6}, 1), q = random({2, 65, 6}, 2);
    const lengths real({70, 33});
    const auto memory = made.on(h, real);
    const mask_mod marked{near};
    CHECK(support::same_bits(made(memory, q, near), made(memory, q, marked)));
    CHECK(support::same_bits(made.weights_of(memory, q, near), made.weights_of(memory, q, marked)));
    CHECK(support::same_bits(made(with_cache(memory), q, near), made(with_cache(memory), q, marked)));
    CHECK(distance_from_composed<double>(near & !even, real, 65, 70) < 1e-10);

    const auto says = [](const auto& mask, std::int32_t query, std::int32_t key) {
        static_assert(std::is_base_of_v<predicate_mask, std::remove_cvref_t<decltype(mask)>>);
        score_index p;
        p.query = query;
        p.key = key;
        return lane_mask(mask(p)).at[0] != 0;
    };
    for (std::int32_t key = 0; key < 12; ++key) {
        const bool is_near = key < 5, is_even = key % 2 == 0;
        CHECK(says(near & even, 0, key) == (is_near && is_even));
        CHECK(says(near | even, 0, key) == (is_near || is_even));
        CHECK(says(!near, 0, key) == !is_near);
    }
}

TEST_CASE("a function of an index can depend on the head")
{
    const auto W = [](unsigned seed) { return random({6, 6}, seed); };
    const multi_head heads{std::vector{made, made}, W(3), W(4), W(5), W(6)};
    const talking_heads talking{heads, random({2, 2}, 7), random({2, 2}, 8)};
    const auto h = random({2, 70, 6}, 1), q = random({2, 65, 6}, 2);
    const auto by_head = [](const score_index& p) { return (p.key % 2 == p.head) | near(p); };
    CHECK(support::same_bits(heads(heads.on(h), q, by_head), heads(heads.on(h), q, mask_mod{by_head})));
    CHECK(support::same_bits(talking(talking.on(h), q, near), talking(talking.on(h), q, mask_mod{near})));
}

TEST_CASE("a function of an index works with a growing memory, in chunks")
{
    const auto h = random({2, 203, 6}, 1), q = random({2, 203, 6}, 2);
    const std::vector<std::int32_t> ids = [] {
        std::vector<std::int32_t> all;
        for (std::int32_t i = 0; i < 203; ++i) all.push_back(i / 40);
        return all;
    }();
    const auto document = looked_up(ids);
    const auto mask = causal{} & [=](const score_index& p) { return document(p.diagonal) == document(p.key); };
    const auto all = made(made.on(h), q, mask);
    for (const std::size_t chunk : {1u, 67u, 150u}) {
        auto known = made.on(support::words_of(h, 0, chunk));
        auto state = made.start(known);
        for (std::size_t t = 0; t < 203; t += chunk) {
            const std::size_t n = std::min(chunk, 203 - t);
            if (t > 0) known = made.extend(known, support::words_of(h, t, n));
            auto some = made.read_all(known, support::words_of(q, t, n), state, mask);
            CHECK(support::distance(some.contexts, support::words_of(all, t, n)) < 1e-10);
            state = some.state;
        }
    }
}

TEST_CASE("keys that no query of a block sees may have any values")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto first = [](const score_index& p) { return p.key < 96; };
    auto h = random({1, 203, 6}, 1);
    const auto q = random({1, 65, 6}, 2), w = random({1, 65, 6}, 3);
    const auto gradients = [&] {
        ad::tape<double> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto lifted = ad::lift(on, made);
        const auto contexts = lifted(lifted.on(H), Q, first);
        on.backward(ops::dot(contexts, w));
        std::vector<double> all(contexts.value().data, contexts.value().data + contexts.value().size());
        for (const auto& gradient : {on.gradient(H), on.gradient(Q)})
            all.insert(all.end(), gradient.data, gradient.data + gradient.size());
        return all;
    };
    const auto must = gradients();
    for (std::size_t t = 96; t < 203; ++t)
        for (std::size_t i = 0; i < 6; ++i) h(0, t, i) = t % 2 == 0 ? nan : -1 / 0.0;
    CHECK(gradients() == must);
}

}  // namespace masks_of_places
