// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/by_rows.hpp>

#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <cstddef>
#include <tuple>

using namespace heed;
using support::random;

TEST_CASE("a function by rows gives the same bits as the function of the batch")
{
    const auto x = random({5, 3, 4}, 1);
    const auto W = random({4, 6}, 2);
    const auto f = [](const auto& rows, const auto& weights) { return ops::tanh(ops::linear(rows, weights)); };
    const auto must = f(x, W);
    for (const std::size_t count : {std::size_t{1}, std::size_t{2}}) {
        set_threads(count);
        const scratch here;
        const workspace_tensor in(view_of(x));
        const workspace_tensor by(view_of(W));
        const auto y = detail::apply_by_rows(f, 1 << 20, std::tie(std::as_const(in)), std::tie(std::as_const(by)));
        CHECK(support::same_bits(y, must));
        CHECK(support::same_bits(detail::apply_by_rows(f, 1, std::tie(x), std::tie(W)), must));
    }
    set_threads(1);
}

TEST_CASE("a function by rows of a batch without rows")
{
    const auto W = random({4, 6}, 2);
    const array<double, 3> x(shape_of_rank<3>{0, 3, 4});
    const scratch here;
    const workspace_tensor in(view_of(x));
    const workspace_tensor by(view_of(W));
    const auto f = [](const auto& rows, const auto& weights) {
        CHECK(shape_of(rows)[0] == 0);
        return ops::linear(rows, weights);
    };
    const auto y = detail::apply_by_rows(f, 1, std::tie(std::as_const(in)), std::tie(std::as_const(by)));
    CHECK(y.shape() == shape_of_rank<3>{0, 3, 6});
}

TEST_CASE("a shape that does not fit is reported with the batch's shape, not that of one row")
{
    const auto x = random({5, 4}, 1), W = random({3, 6}, 2);
    const scratch here;
    const workspace_tensor in(view_of(x)), by(view_of(W));
    const auto f = [](const auto& rows, const auto& weights) { return ops::linear(rows, weights); };
    const auto message = support::message_of<shape_error>(
        [&] { (void)detail::apply_by_rows(f, 1, std::tie(std::as_const(in)), std::tie(std::as_const(by))); });
    CHECK_MESSAGE(support::contains(message, "[5,4]"), message);
}
