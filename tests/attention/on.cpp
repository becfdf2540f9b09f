// SPDX-License-Identifier: BSD-3-Clause
//
// What `on` copies. A program of its own, since it replaces operator new.

#include <doctest/doctest.h>

#include <heed/attention/on.hpp>
#include <heed/heed.hpp>
#include <support/allocations.hpp>
#include <support/tensors.hpp>

#include <limits>
#include <utility>
#include <vector>

using namespace heed;
using support::random;
using support::same_bits;

namespace {

constexpr std::size_t B = 3, T = 40, D = 64;
constexpr std::size_t bytes = B * T * D * sizeof(float);

/// How many blocks of the size of the annotations f() allocates.
template <class F>
std::size_t large_blocks(F&& f)
{
    support::count_from = bytes;
    const std::size_t before = support::large;
    f();
    support::count_from = 0;
    return support::large - before;
}

const attention by_dot{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};

auto by_network()
{
    return attention{score::additive{random<float>({D, 4}, 1), random<float>({D, 4}, 2), random<float>({4}, 3)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

boolean_mask<2> mask_of(bool last)
{
    array<bool, 2> attend(shape_of_rank<2>{B, T}, true);
    attend(1, 3) = last;
    return boolean_mask<2>(attend);
}

}  // namespace

TEST_CASE("a view is referred to where nothing has to be cleared, and copied once where something has to be")
{
    const auto x = random<float>({B, T, D}, 4);
    const auto network = by_network();
    const auto view = view_of(x);
    const lengths full{T, T, T}, some{T, 7, T};
    CHECK(large_blocks([&] { CHECK(by_dot.on(view).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view).keys.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, full).keys.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, mask_of(true)).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(network.on(view, full).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(network.on(view, view, full).values.data() == x.data()); }) == 0);
    CHECK(large_blocks([&] { CHECK(by_dot.on(view, some).values.data() != x.data()); }) == 1);
    CHECK(large_blocks([&] { CHECK(network.on(view, mask_of(false)).values.data() != x.data()); }) == 1);
    // A copy of a memory of views copies no number either.
    const auto memory = by_dot.on(view, some);
    CHECK(large_blocks([&] {
              const auto copy = memory;
              CHECK(copy.values.data() == memory.values.data());
          }) == 0);
}

TEST_CASE("an array that is given away is cleared where it is; one that is not is copied once for the values")
{
    const auto network = by_network();
    auto x = random<float>({B, T, D}, 4);
    const auto before = x;
    const float* const at = x.data();
    CHECK(large_blocks([&] {
              const auto memory = network.on(std::move(x), lengths{T, 7, 0});
              CHECK(memory.values.data() == at);
              CHECK(memory.values(1, 6, 0) == before(1, 6, 0));
              CHECK(memory.values(1, 7, 0) == 0);
              CHECK(memory.values(2, 0, 0) == 0);
          }) == 0);
    CHECK(large_blocks([&] { (void)network.on(before, lengths{T, 7, 0}); }) == 1);
    CHECK(large_blocks([&] { (void)network.on(before); }) == 1);
    CHECK(large_blocks([&] { (void)by_dot.on(before); }) == 2);  // values and keys
    auto y = before;
    CHECK(large_blocks([&] { (void)by_dot.on(std::move(y)); }) == 1);  // keys
    CHECK(same_bits(before, random<float>({B, T, D}, 4)));
}

TEST_CASE("heads read annotations where they are")
{
    const auto x = random<float>({B, T, D}, 4);
    const auto W = random<float>({D, 8}, 5);
    const multi_head heads{
        std::vector(2, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}), W, W, W,
        random<float>({8, 8}, 6)};
    CHECK(large_blocks([&] { (void)heads.on(x, lengths{T, T, T}); }) == 0);
    CHECK(large_blocks([&] { (void)heads.on(x, lengths{T, 3, T}); }) == 1);
}

TEST_CASE("viewed, given away and copied memories answer with the same bits, whatever is in the padding")
{
    auto x = random<float>({B, T, D}, 4);
    for (std::size_t d = 0; d < D; ++d) x(1, 9, d) = std::numeric_limits<float>::quiet_NaN();
    const auto query = random<float>({B, D}, 7);
    const lengths real{T, 9, 1};
    const auto copied = by_dot.on(x, real);
    const auto must = by_dot.compose(copied, query, by_dot.start(copied));
    const auto look = [&](const auto& memory) {
        const auto found = by_dot.compose(memory, query, by_dot.start(memory));
        CHECK(same_bits(found.context, must.context));
        CHECK(same_bits(found.weights, must.weights));
        const std::vector<std::size_t> which{1, 0};
        const auto rows = memory.rows(which);
        CHECK(rows.real[0] == 9);
        CHECK(rows.values(0, 8, 1) == x(1, 8, 1));
    };
    look(by_dot.on(view_of(x), real));
    auto y = x;
    look(by_dot.on(std::move(y), real));
}

TEST_CASE("a memory of views is extended: what comes behind is copied, what was viewed stays as it is")
{
    const auto x = random<float>({B, T, D}, 4), more = random<float>({B, 2, D}, 5);
    const auto network = by_network();
    auto memory = network.on(view_of(x));
    memory = network.extend(memory, more);
    auto must = network.on(x);
    must = network.extend(must, more);
    CHECK(same_bits(memory.values, must.values));
    CHECK(same_bits(memory.keys, must.keys));
    // And a memory that owns takes views.
    auto other = network.on(x);
    other = network.extend(other, view_of(more));
    CHECK(same_bits(other.values, must.values));
}
