// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/view_of.hpp>
#include <heed/ops/parts.hpp>
#include <heed/ops/products.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

// Views of Eigen's matrices, where Eigen is installed.

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>

using namespace heed;
using support::message_of;
using support::same_bits;

TEST_CASE("Eigen's matrices, vectors and maps")
{
    using rows_first = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    rows_first m(3, 4);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 4; ++j) m(i, j) = static_cast<float>(10 * i + j);
    const auto view = view_of(m);
    static_assert(std::is_same_v<decltype(view), const tensor_view<float, 2>>);
    CHECK(view.shape == shape_of_rank<2>{3, 4});
    CHECK(view[2].data[1] == 21);
    static_assert(std::is_same_v<decltype(view_of(std::as_const(m))), tensor_view<const float, 2>>);

    Eigen::VectorXf v = Eigen::VectorXf::LinSpaced(4, 0, 3);
    CHECK(view_of(v).shape == shape_of_rank<1>{4});
    CHECK(view_of(Eigen::Map<const Eigen::VectorXf>(v.data(), 4)).data == v.data());
    // x W by both.
    const array<float, 2> x{{1, 2, 3}};
    const auto y = ops::linear(x, view);
    for (int j = 0; j < 4; ++j) CHECK(y(0, static_cast<std::size_t>(j)) == m(0, j) + 2 * m(1, j) + 3 * m(2, j));
    CHECK(message_of<shape_error>([&] { (void)view_of(m.leftCols(2)); }).substr(0, 57) ==
          "view_of: this matrix [3,2] is a part of a wider one, whos");
    CHECK(view_of(m.topRows(2)).shape == shape_of_rank<2>{2, 4});
    // A column-major one is the transpose of a row-major one.
    Eigen::MatrixXf columns_first = m;
    const auto transposed = view_of(columns_first.data(), columns_first.cols(), columns_first.rows());
    CHECK(same_bits(copy_of(transposed), ops::transpose(copy_of(view))));
}
#endif
