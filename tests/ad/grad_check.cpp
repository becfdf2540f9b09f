// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/grad_check.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <string>

using namespace heed;
using support::random;

TEST_CASE("grad_check finds a wrong gradient")
{
    // An operation whose backward pass lacks a factor of 1 + 1e-4.
    support::inputs<array<double, 1>> m{{array<double, 1>{0.3, -0.7, 2.0}}};
    const auto wrong = [&](double factor) {
        return ad::grad_check(m, [&](auto& on, const auto& lifted) {
            const auto& x = std::get<0>(lifted.at);
            auto [y, out] = on.template make<1>(x.shape(), true);
            for (std::size_t i = 0; i < 3; ++i) out[i] = x.data()[i] * x.data()[i];
            on.record([&on, x, y = y, factor] {
                for (std::size_t i = 0; i < 3; ++i) on.adjoint(x)[i] += factor * 2 * x.data()[i] * on.adjoint(y)[i];
            });
            return ops::dot(y, support::uneven(x.shape()));
        });
    };
    CHECK(bool(wrong(1)));
    CHECK(wrong(1).entries == 3);
    const auto found = wrong(1.0001);
    CHECK_FALSE(bool(found));
    CHECK(support::contains(found.text(), "input 0["));
    const auto nan = wrong(std::numeric_limits<double>::quiet_NaN());
    CHECK_FALSE(bool(nan));
}
