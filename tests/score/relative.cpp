// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>
#include <heed/verify.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>
#include <support/relative_positions.hpp>
#include <support/tensors.hpp>

#include <cstddef>
#include <vector>

using namespace heed;
using support::distance;
using support::random;
using support::relative_by_hand;

namespace {

constexpr std::size_t N = 6, R = 3;

auto with(const auto& distances)
{
    return attention{score::relative{score::scaled_dot{}, distances}, normalize::softmax{}, combine::weighted_sum{}};
}

}  // namespace

TEST_CASE("relative positions, few and many queries: the paper's sum")
{
    const auto d = random({N, 2 * R + 1}, 5);
    const auto attend = with(d);
    for (const std::size_t T : {std::size_t{5}, std::size_t{90}}) {
        const auto h = random({3, T, N}, 1), q = random({3, T, N}, 2);
        const lengths real({T, T / 2, 1});
        CHECK(distance(attend(attend.on(h, real), q), relative_by_hand(h, q, d, real, false)) < 1e-12);
        CHECK(distance(attend(attend.on(h), q, causal{}), relative_by_hand(h, q, d, lengths({T, T, T}), true)) < 1e-12);
    }
    CHECK(support::distance_from_one_by_one(with(random({4, 2 * R + 1}, 6)), causal{}, lengths({70, 33, 0}), 70, 70) <
          1e-10);
    const attention general{score::relative{score::general{random({N, N}, 7)}, d}, normalize::sparsemax{},
                            combine::weighted_sum{}};
    const auto h = random({2, 70, N}, 1), q = random({2, 70, N}, 2);
    const auto memory = general.on(h);
    const auto all = general(memory, q);
    auto state = general.start(memory);
    for (std::size_t s = 0; s < 70; ++s) {
        const auto next = general.compose(memory, ops::step_of(q, s), state);
        CHECK(distance(next.context, ops::step_of(all, s)) < 1e-12);
        state = next.state;
    }
}

TEST_CASE("relative positions continue with a growing memory, with a state, within a window")
{
    const auto attend = with(random({N, 2 * R + 1}, 5));
    const auto h = random({2, 80, N}, 1), q = random({2, 80, N}, 2);
    const auto all = attend(attend.on(h), q, causal{});
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{30}})
        CHECK(support::distance_where_it_grows(attend, h, q, all, chunk) < 1e-12);
    const attention near{attend.score, normalize::local_m{2}, combine::weighted_sum{}};
    const auto memory = near.on(h);
    const auto of_window = near(memory, q);
    boolean_mask<3> band(shape_of_rank<3>{2, 80, 80});
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t s = 0; s < 80; ++s)
            for (std::size_t t = 0; t < 80; ++t) band[(b * 80 + s) * 80 + t] = t + 2 >= s && t <= s + 2;
    CHECK(distance(of_window, attend(attend.on(h), q, band)) < 1e-12);
}

TEST_CASE("gradients through relative positions, with few queries and many")
{
    for (const std::size_t T : {std::size_t{4}, std::size_t{66}}) {
        const auto f = [](const auto& d, const auto& q, const auto& h) {
            const auto attend = with(d);
            return ops::step_of(attend(attend.on(h), q, causal{}), shape_of(q)[1] - 2);
        };
        const auto d = random({2, 3}, 5);
        const auto q = random({1, T, 2}, 2), h = random({1, T, 2}, 1);
        for (const auto& found : {support::gradient_of<0b111>(f, d, q, h), support::gradient_of<0b001>(f, d, q, h),
                                  support::gradient_of<0b010>(f, d, q, h)})
            CHECK_MESSAGE(bool(found), found.text());
    }
}

TEST_CASE("an even number of distances is rejected")
{
    const auto attend = with(random({N, 4}, 5));
    const auto h = random({1, 3, N}, 1);
    CHECK_THROWS_WITH_AS(
        attend(attend.on(h), h),
        "score::relative: the matrix of distances, [6,4], has 4 columns; it must have 2 R + 1, for the "
        "distances from -R to R",
        shape_error);
}
