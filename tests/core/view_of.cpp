// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/view_of.hpp>

#include <heed/heed.hpp>
#include <heed/nn/gru.hpp>
#include <heed/train/adam.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<eigen3/Eigen/Core>)
#include <eigen3/Eigen/Core>
#endif

using namespace heed;
using support::message_of;
using support::random;
using support::same_bits;

// Views of numbers outside heed's arrays: accepted instead of any tensor, const or not, also mixed with arrays.

namespace {

/// The numbers of a tensor, in a program that does not use heed's types.
template <class T, std::size_t N>
std::vector<T> numbers_of_array(const array<T, N>& x)
{
    return {x.data(), x.data() + x.size()};
}

/// The interface of std::mdspan.
struct grid_view {
    using layout_type = void;
    float* at;
    std::size_t rows, columns, step;

    static constexpr std::size_t rank() { return 2; }
    float* data_handle() const { return at; }
    std::size_t extent(std::size_t axis) const { return axis == 0 ? rows : columns; }
    std::size_t stride(std::size_t axis) const { return axis == 0 ? step : 1; }
};

/// The same with data() and a constant rank, without strides.
struct other_view {
    const float* at;
    static constexpr std::size_t rank = 1;

    const float* data() const { return at; }
    int extent(std::size_t) const { return 3; }
};

}  // namespace

TEST_CASE("views of pointers, containers and types like mdspan")
{
    std::vector<float> numbers(24);
    for (std::size_t i = 0; i < 24; ++i) numbers[i] = static_cast<float>(i);
    const std::vector<float>& constant = numbers;

    const auto pointed = view_of(numbers.data(), 2, 3, 4);
    static_assert(std::is_same_v<decltype(pointed), const tensor_view<float, 3>>);
    CHECK(pointed.shape == shape_of_rank<3>{2, 3, 4});
    CHECK(pointed.data == numbers.data());
    static_assert(std::is_same_v<decltype(view_of(constant.data(), 4, 6)), tensor_view<const float, 2>>);

    static_assert(std::is_same_v<decltype(view_of(numbers)), tensor_view<float, 1>>);
    static_assert(std::is_same_v<decltype(view_of(constant, 4, 6)), tensor_view<const float, 2>>);
    CHECK(view_of(numbers).shape == shape_of_rank<1>{24});
    CHECK(view_of(constant, 4, 6)[1].data == numbers.data() + 6);

    std::array<double, 3> three{1, 2, 3};
    static_assert(std::is_same_v<decltype(view_of(three)), tensor_view<double, 1>>);
    static_assert(std::is_same_v<decltype(view_of(std::as_const(three))), tensor_view<const double, 1>>);
    CHECK(view_of(std::span(three), 3, 1).data == three.data());

    CHECK(view_of(grid_view{numbers.data(), 4, 6, 6}).shape == shape_of_rank<2>{4, 6});
    const auto other = view_of(other_view{numbers.data()});
    static_assert(std::is_same_v<decltype(other), const tensor_view<const float, 1>>);
    CHECK(other.shape == shape_of_rank<1>{3});

    // A view may be empty.
    CHECK(view_of(static_cast<const float*>(nullptr), 0, 5).size() == 0);
    CHECK(view_of(std::vector<float>{}.data(), 0).size() == 0);
}

TEST_CASE("arguments that cannot be viewed are rejected")
{
    std::vector<float> numbers(24);
    CHECK(message_of<shape_error>([&] { (void)view_of(numbers, 5, 5); }) ==
          "view_of: [5,5] needs 25 numbers, but there are 24");
    CHECK(message_of<shape_error>([&] { (void)view_of(numbers, 0); }) ==
          "view_of: [0] needs 0 numbers, but there are 24");
    CHECK(message_of<shape_error>([&] { (void)view_of(numbers.data(), -1, 5); }) ==
          "view_of: a size is -1; sizes must not be negative");
    CHECK(message_of<shape_error>([&] { (void)view_of(static_cast<float*>(nullptr), 2, 3); }) ==
          "view_of: [2,3] numbers from a null pointer");
    CHECK(message_of<shape_error>([&] {
              (void)view_of(grid_view{numbers.data(), 4, 5, 6});
          }) == "view_of: axis 0 of [4,5] has stride 6 but must have 5; heed's tensors are row-major (layout_right)");
}

TEST_CASE("a policy of views, const or not, mixed with arrays gives the same bits as a policy of arrays")
{
    const std::size_t B = 2, T = 5, D = 6, Q = 3, A = 4;
    const auto W = random<float>({Q, A}, 1), U = random<float>({D, A}, 2);
    const auto v = random<float>({A}, 3);
    const auto annotations = random<float>({B, T, D}, 4);
    const auto query = random<float>({B, Q}, 5);
    const lengths real{5, 3};

    std::vector<float> own_W = numbers_of_array(W), own_annotations = numbers_of_array(annotations),
                       own_query = numbers_of_array(query);
    const std::vector<float> own_U = numbers_of_array(U);
    const auto W_view = view_of(own_W, Q, A);
    const auto U_view = view_of(own_U, D, A);  // const

    const attention plain{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = plain.on(annotations, real);
    const auto must = plain.step(memory, query, plain.start(memory));

    const auto check = [&](const auto& attend) {
        const auto given = attend.on(view_of(own_annotations, B, T, D), real);
        const auto found = attend.step(given, view_of(own_query, B, Q), attend.start(given));
        CHECK(same_bits(found.context, must.context));
        CHECK(same_bits(found.weights, must.weights));
        ad::tape<float> on;
        const auto lifted = ad::lift(on, attend);
        const auto keys = lifted.on(view_of(own_annotations, B, T, D), real);
        const auto taped = lifted.step(keys, query, lifted.start(keys));
        CHECK(same_bits(taped.context, must.context));
        CHECK(parameter_count(attend) == Q * A + D * A + A);
    };
    check(attention{score::additive{W_view, U_view, v}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::additive{W, U_view, v}, normalize::softmax{}, combine::weighted_sum{}});

    // An array mixed with a view is copied once, and shared by the policy and its copies.
    const auto kept = [&] {
        const array<float, 2> gone = W;
        return score::additive{gone, U_view, v};
    }();
    CHECK(same_bits(kept.W, W));
    CHECK(kept.U.data() == own_U.data());
}

TEST_CASE("parameters in the caller's memory are trained in place")
{
    const std::size_t I = 3, H = 2;
    std::vector<float> numbers(I * 3 * H + 3 * H + H * 2 * H + H * H);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.1f * static_cast<float>(normal(mix(9), i));
    float* at = numbers.data();
    const auto next = [&at](auto... sizes) {
        const auto view = view_of(at, sizes...);
        at += view.size();
        return view;
    };
    const auto W = next(I, 3 * H);
    const auto b = next(3 * H);
    const auto U = next(H, 2 * H);
    nn::gru cell{W, b, U, next(H, H)};
    const std::vector<float> before = numbers;

    const auto x = random<float>({4, I}, 1);
    const auto h = random<float>({4, H}, 2);  // not zeros: uses all of U
    train::adam<float> optimizer({.rate = 0.05});
    ad::tape<float> on;
    const auto loss = [&] {
        on.clear();
        const auto lifted = ad::lift(on, cell);
        const auto after = lifted.step(lifted.project(x), lifted.begin(on.constant(h)));
        const auto value = ops::mean_squared_error(after, filled<float, 2>({4, H}, 0.5f));
        on.backward(value);
        optimizer.step(cell, lifted, on);
        return value.value().data[0];
    };
    const float first = loss();
    for (int i = 0; i < 30; ++i) (void)loss();
    CHECK(loss() < 0.5f * first);
    for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] != before[i]);
}

#if __has_include(<eigen3/Eigen/Core>)
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
    // x W with both libraries.
    const array<float, 2> x{{1, 2, 3}};
    const auto y = ops::linear(x, view);
    for (int j = 0; j < 4; ++j) CHECK(y(0, static_cast<std::size_t>(j)) == m(0, j) + 2 * m(1, j) + 3 * m(2, j));
    CHECK(message_of<shape_error>([&] { (void)view_of(m.leftCols(2)); }).substr(0, 55) ==
          "view_of: this matrix [3,2] is a block of a wider matrix");
    CHECK(view_of(m.topRows(2)).shape == shape_of_rank<2>{2, 4});
    // A column-major matrix is the transpose of a row-major matrix.
    Eigen::MatrixXf columns_first = m;
    const auto transposed = view_of(columns_first.data(), columns_first.cols(), columns_first.rows());
    CHECK(same_bits(copy_of(transposed), ops::transpose(copy_of(view))));
}
#endif
