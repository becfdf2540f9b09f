// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/masks.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/gradients.hpp>

#include <limits>

using namespace heed;
using support::check_empty, support::message_of, support::random;

// Masked values are replaced, even NaN.

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

boolean_mask<2> every_third_hidden(std::size_t rows, std::size_t positions)
{
    boolean_mask<2> mask(shape_of_rank<2>{rows, positions});
    for (std::size_t i = 0; i < rows * positions; ++i) mask[i] = i % 3 != 1;
    return mask;
}

}  // namespace

TEST_CASE("masked_fill selects: a masked value becomes -inf, even if NaN, and gets no gradient")
{
    const boolean_mask<2> mask{array<bool, 2>{{true, false, true}, {false, true, false}}};
    const array<double, 2> e{{1.0, not_a_number, 3.0}, {infinity, 5.0, 6.0}};
    const auto y = ops::masked_fill(e, mask);
    CHECK(support::same_bits(y, array<double, 2>{{1.0, -infinity, 3.0}, {-infinity, 5.0, -infinity}}));
    ad::tape<double> on;
    const auto taped = on.parameter(e);
    const auto hidden = ops::masked_fill(taped, mask);
    CHECK(support::same_bits(hidden, y));
    on.backward(ops::dot(ops::softmax(hidden, lengths{3, 3}), support::uneven(e.shape())));
    const auto g = on.gradient(taped).data;
    for (const std::size_t i : {1u, 3u, 4u, 5u}) CHECK(g[i] == 0);  // the only visible position has weight 1
    CHECK(g[0] != 0);
    CHECK(g[0] == support::approx(-g[2]));

    const auto each = random({2, 3, 4}, 1);
    const auto of_each = ops::masked_fill(each, mask);
    for (std::size_t i = 0; i < each.size(); ++i) {
        CHECK(of_each.data()[i] == (mask[i / 4] ? each.data()[i] : -infinity));
    }
    const auto f = [](std::size_t rows, std::size_t positions) {
        return [m = every_third_hidden(rows, positions)](const auto& x) { return ops::exp(ops::masked_fill(x, m)); };
    };
    CHECK_GRADIENT(f(1, 1), random({1, 1}, 2));
    CHECK_GRADIENT(f(3, 5), random({3, 5}, 3));
    CHECK_GRADIENT(f(2, 4), random({2, 4, 3}, 4));
    check_empty(f(2, 0), array<double, 2>(shape_of_rank<2>{2, 0}));
    check_empty(f(2, 0), array<double, 3>(shape_of_rank<3>{2, 0, 3}));
    CHECK(message_of<shape_error>([&] {
              (void)ops::masked_fill(random({2, 4}, 1), mask);
          }) ==
          "attention: the boolean mask is [2,3] but must be [2,4] (one truth value for each position, true = attend)");
    CHECK(message_of<shape_error>([&] { (void)ops::masked_fill(on.parameter(e), every_third_hidden(1, 3)); }) ==
          "attention: the boolean mask is [1,3] but must be [2,3] (one truth value for each position, true = attend)");
}

TEST_CASE("zero_masked selects zeros")
{
    const auto mask = every_third_hidden(2, 3);
    auto x = random({2, 3, 2}, 1);
    x(0, 1, 0) = not_a_number;
    x(1, 1, 1) = infinity;
    const auto y = ops::zero_masked(x, mask);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(y.data()[i] == (mask[i / 2] ? x.data()[i] : 0));
    ad::tape<double> on;
    const auto taped = on.parameter(x);
    on.backward(ops::dot(ops::zero_masked(taped, mask), support::uneven(x.shape())));
    CHECK(on.gradient(taped).data[2] == 0);
    CHECK(on.gradient(taped).data[4] == support::uneven(x.shape()).data()[4]);
    const auto f = [](std::size_t rows, std::size_t positions) {
        return [m = every_third_hidden(rows, positions)](const auto& v) { return ops::zero_masked(v, m); };
    };
    CHECK_GRADIENT(f(1, 1), random({1, 1, 1}, 2));
    CHECK_GRADIENT(f(3, 5), random({3, 5, 2}, 3));
    check_empty(f(2, 0), array<double, 3>(shape_of_rank<3>{2, 0, 3}));
    CHECK(message_of<shape_error>([&] {
              (void)ops::zero_masked(random({2, 4, 1}, 1), mask);
          }) == "attention::on: the boolean mask is [2,3] but must be [2,4] (one truth value for each position, true = "
                "attend)");
    CHECK(message_of<shape_error>([&] { (void)ops::zero_masked(on.parameter(x), every_third_hidden(2, 2)); }) ==
          "attention::on: the boolean mask is [2,2] but must be [2,3] (one truth value for each position, true = "
          "attend)");
}

TEST_CASE("clear_padding: no gradient beyond the length")
{
    const lengths real{2, 0, 3};
    const auto f = [&](const auto& x) { return ops::clear_padding(x, real); };
    CHECK_GRADIENT(f, random({3, 3, 2}, 1));
    auto x = random({3, 3, 2}, 1);
    x(0, 2, 1) = std::numeric_limits<double>::quiet_NaN();
    x(1, 0, 0) = std::numeric_limits<double>::infinity();
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::dot(ops::square(f(v)), support::uneven(x.shape())));
    const auto gradient = on.gradient(v);
    CHECK(support::all_finite(gradient));
    CHECK(gradient[0][2].data[1] == 0);
    CHECK(gradient[1][0].data[0] == 0);
    CHECK(gradient[0][0].data[0] != 0);
}

TEST_CASE("clear_ended: no gradient beyond the end")
{
    const lengths real{2, 0, 3};
    const auto f = [&](const auto& x) { return ops::clear_ended(x, real); };
    CHECK_GRADIENT(f, random({4, 3, 2}, 1));
    CHECK_GRADIENT([](const auto& x) { return ops::clear_ended(x, lengths{1}); }, random({1, 1, 1}, 2));
    auto x = random({4, 3, 2}, 1);
    const array<double, 3> y = f(x);  // 4 steps of 3 sentences
    CHECK(y(2, 2, 1) == x(2, 2, 1));
    CHECK(y(3, 2, 1) == 0);
    CHECK(y(1, 1, 0) == 0);
    x(2, 0, 1) = std::numeric_limits<double>::quiet_NaN();
    x(0, 1, 0) = std::numeric_limits<double>::infinity();
    ad::tape<double> on;
    const auto v = on.parameter(x);
    on.backward(ops::dot(ops::square(f(v)), support::uneven(x.shape())));
    CHECK(support::all_finite(on.gradient(v)));
    CHECK(on.gradient(v)[2][0].data[1] == 0);
    CHECK(on.gradient(v)[0][1].data[0] == 0);
    CHECK(on.gradient(v)[1][0].data[0] != 0);
    CHECK(support::message_of<shape_error>([&] {
              f(random({2, 3, 2}, 1));
          }) == "clear_ended: the length of row 2 is 3 but there are only 2 positions");
}

TEST_CASE("clear_padding: zeros beyond the length")
{
    const auto x = random({3, 2, 4}, 1);
    const auto cleared = ops::clear_padding(x, lengths{2, 0, 1});
    CHECK(cleared(0, 1, 0) == x(0, 1, 0));
    CHECK(cleared(1, 0, 0) == 0);
    CHECK(cleared(2, 1, 0) == 0);
    CHECK(message_of<shape_error>([&] {
              (void)ops::clear_padding(x, lengths{2, 0, 3});
          }) == "clear_padding: the length of row 2 is 3 but there are only 2 positions");
}

TEST_CASE("add_mask: the same number for all dimensions; -inf even at NaN, without gradient")
{
    auto e = random({2, 3, 4}, 1);
    e(1, 2, 3) = not_a_number;
    auto mask = random({2, 3}, 2);
    mask(0, 1) = mask(1, 2) = -infinity;
    ad::tape<double> on;
    const auto scores = on.parameter(e);
    const auto added = on.parameter(mask);
    const auto y = ops::add_mask(scores, added);
    const auto d_y = support::uneven(e.shape());
    on.backward(ops::dot(y, d_y));
    for (std::size_t i = 0; i < 6; ++i) {
        const bool hidden = mask.data()[i] == -infinity;
        double sum = 0;
        for (std::size_t k = 4 * i; k < 4 * i + 4; ++k) {
            CHECK(y.value().data[k] == (hidden ? -infinity : e.data()[k] + mask.data()[i]));
            CHECK(on.gradient(scores).data[k] == (hidden ? 0 : d_y.data()[k]));
            sum += hidden ? 0 : d_y.data()[k];
        }
        CHECK(on.gradient(added).data[i] == support::approx(sum));
    }
}
