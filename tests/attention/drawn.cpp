// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

#include "../../examples/catalogue/masks.hpp"

using namespace heed;
using support::random;

// Masks that are functions of a place, among as many keys as tiles are for: what the composed form makes of the same
// mask drawn out, [B,S,T], forward and backward.

namespace {

const auto made = attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};

/// The greatest difference in contexts and gradients, relative to numbers above 1.
template <class T>
double distance_from_composed(const auto& mask, const lengths& real, std::size_t S, std::size_t positions)
{
    const auto h = random<T>({real.batch(), positions, 6}, 1), q = random<T>({real.batch(), S, 6}, 2),
               w = random<T>({real.batch(), S, 6}, 3);
    const auto all = [&](const auto& sees) {
        ad::tape<T> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto lifted = ad::lift(on, made);
        const auto contexts = lifted(lifted.on(H, real), Q, sees);
        on.backward(ops::inner(contexts, w));
        std::vector<T> numbers(contexts.value().data, contexts.value().data + contexts.value().size());
        for (const auto& gradient : {on.gradient(H), on.gradient(Q)})
            numbers.insert(numbers.end(), gradient.data, gradient.data + gradient.size());
        return numbers;
    };
    const auto is = all(mask), must = all(heed::detail::drawn_out(mask, real, 0, S, positions));
    double worst = is.size() == must.size() ? 0 : 1e9;
    for (std::size_t i = 0; i < is.size() && worst < 1e9; ++i) {
        const double off = std::abs(double(is[i]) - double(must[i])) / std::max(1.0, std::abs(double(must[i])));
        worst = std::isnan(off) ? 1e9 : std::max(worst, off);
    }
    return worst;
}

const auto near = [](const place& p) { return abs(p.query - p.key) < 5; };
const auto even = [](const place& p) { return (p.query + p.key) % 2 == 0; };

}  // namespace

TEST_CASE("every mask of the catalogue, tile by tile and composed")
{
    const catalogue::known known;
    for (const catalogue::named_mask& each : catalogue::masks(known)) {
        const auto& mask = each.mask;
        CAPTURE(each.name);
        CHECK(distance_from_composed<double>(mask, lengths({203, 61}), 70, 203) < 1e-10);
        CHECK(distance_from_composed<float>(mask, lengths({99, 203}), 131, 203) < 1e-5);
    }
}

TEST_CASE("a function of a place is a mask, and so are two of them, combined")
{
    const auto h = random({2, 70, 6}, 1), q = random({2, 65, 6}, 2);
    const lengths real({70, 33});
    const auto memory = made.on(h, real);
    const seen_if marked{near};
    CHECK(support::same_bits(made(memory, q, near), made(memory, q, marked)));
    CHECK(support::same_bits(made.weights_of(memory, q, near), made.weights_of(memory, q, marked)));
    CHECK(support::same_bits(made(growing(memory), q, near), made(growing(memory), q, marked)));
    CHECK(distance_from_composed<double>(near & !even, real, 65, 70) < 1e-10);

    const auto says = [](const auto& mask, std::int32_t query, std::int32_t key) {
        static_assert(std::is_base_of_v<mask_of_places, std::remove_cvref_t<decltype(mask)>>);
        place p;
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

TEST_CASE("a function of a place, for heads")
{
    const auto W = [](unsigned seed) { return random({6, 6}, seed); };
    const multi_head heads{std::vector{made, made}, W(3), W(4), W(5), W(6)};
    const talking_heads talking{heads, random({2, 2}, 7), random({2, 2}, 8)};
    const auto h = random({2, 70, 6}, 1), q = random({2, 65, 6}, 2);
    const auto by_head = [](const place& p) { return (p.key % 2 == p.head) | near(p); };
    CHECK(support::same_bits(heads(heads.on(h), q, by_head), heads(heads.on(h), q, seen_if{by_head})));
    CHECK(support::same_bits(talking(talking.on(h), q, near), talking(talking.on(h), q, seen_if{near})));
}

TEST_CASE("a memory that grows, in chunks")
{
    const auto h = random({2, 203, 6}, 1), q = random({2, 203, 6}, 2);
    const std::vector<std::int32_t> ids = [] {
        std::vector<std::int32_t> all;
        for (std::int32_t i = 0; i < 203; ++i) all.push_back(i / 40);
        return all;
    }();
    const auto document = looked_up(ids);
    const auto mask = causal{} & [=](const place& p) { return document(p.here) == document(p.key); };
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

TEST_CASE("what no query of a block sees may be anything")
{
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto first = [](const place& p) { return p.key < 96; };
    auto h = random({1, 203, 6}, 1);
    const auto q = random({1, 65, 6}, 2), w = random({1, 65, 6}, 3);
    const auto gradients = [&] {
        ad::tape<double> on;
        const auto H = on.parameter(h), Q = on.parameter(q);
        const auto lifted = ad::lift(on, made);
        const auto contexts = lifted(lifted.on(H), Q, first);
        on.backward(ops::inner(contexts, w));
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
