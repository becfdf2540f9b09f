// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/operation.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstddef>

using namespace heed;
using support::random;

namespace {

/// x² with an explicit derivative that counts its runs.
struct counted_square_op : ops::operation<counted_square_op> {
    static inline int backwards = 0;

    static auto shape(const auto& x) { return x.shape; }
    template <class T, std::size_t N>
    static void forward(ops::in<T, N> x, ops::out<T, N> y)
    {
        for (std::size_t i = 0; i < x.size(); ++i) y.data[i] = x.data[i] * x.data[i];
    }
    template <class T, std::size_t N>
    static void backward(ops::in<T, N> x, ops::in<T, N>, ops::in<T, N> d_y, ops::adjoint<T, N> d_x)
    {
        ++backwards;
        for (std::size_t i = 0; i < x.size(); ++i) d_x.data[i] += 2 * x.data[i] * d_y.data[i];
    }
};
constexpr counted_square_op counted_square{};

}  // namespace

TEST_CASE("an operation runs backward only if a gradient is required and reaches it")
{
    const auto x = random({3}, 1), c = random({3}, 2);
    ad::tape<double> on;
    const auto v = on.parameter(x);
    (void)counted_square(v);  // not part of the loss
    const auto constant = counted_square(on.constant(c));
    CHECK_FALSE(constant.wanted());
    counted_square_op::backwards = 0;
    on.backward(ops::dot(counted_square(v), constant));
    CHECK(counted_square_op::backwards == 1);
    for (std::size_t i = 0; i < 3; ++i) CHECK(on.gradient(v).data[i] == 2 * x(i) * (c(i) * c(i)));
}

TEST_CASE("a plain argument next to taped arguments is a constant, which may change afterwards")
{
    const auto x = random({2, 3}, 1);
    auto factor = random({2, 3}, 2);
    const auto must = factor;
    ad::tape<double> on;
    const auto v = on.parameter(x);
    const auto y = ops::multiply(v, factor);
    factor.fill(0);
    on.backward(ops::dot(y, filled<double, 2>({2, 3}, 1.0)));
    CHECK(support::same_bits(on.gradient(v), must));
}

TEST_CASE("arguments from two tapes are rejected")
{
    const auto x = random({2}, 1);
    ad::tape<double> one, other;
    const auto a = one.parameter(x), b = other.parameter(x);
    CHECK(support::contains(support::message_of<error>([&] { (void)ops::add(a, b); }),
                            "This variable belongs to another tape"));
}
