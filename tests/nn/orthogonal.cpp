// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#if !defined(HEED_BLAS_CBLAS)

#include <heed/nn/gru.hpp>
#include <heed/nn/orthogonal.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/tensors.hpp>

#include <xtensor-blas/xlinalg.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

using namespace heed;

namespace {

/// The maximum |(Uᵀ U - 1)_ij|, or that of U Uᵀ if there are fewer rows than columns.
template <class T>
double deviation(const array<T, 2>& U)
{
    const std::size_t rows = U.shape(0), columns = U.shape(1), n = std::min(rows, columns);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            double sum = i == j ? -1 : 0;
            for (std::size_t k = 0; k < std::max(rows, columns); ++k) {
                sum += rows < columns ? static_cast<double>(U(i, k)) * static_cast<double>(U(j, k))
                                      : static_cast<double>(U(k, i)) * static_cast<double>(U(k, j));
            }
            worst = std::max(worst, std::isnan(sum) ? std::numeric_limits<double>::infinity() : std::abs(sum));
        }
    }
    return worst;
}

template <class T = double>
array<T, 2> orthogonal(std::uint64_t seed, std::size_t rows, std::size_t columns)
{
    random_source random{seed};
    return nn::orthogonal<T>(random, rows, columns);
}

}  // namespace

TEST_CASE("the columns of a tall matrix and the rows of a wide one are orthonormal")
{
    const std::size_t sizes[] = {1, 2, 7, 64, 129};
    for (const std::size_t rows : sizes) {
        for (const std::size_t columns : sizes) {
            CAPTURE(rows);
            CAPTURE(columns);
            const auto U = orthogonal(rows, rows, columns);
            REQUIRE(U.shape(0) == rows);
            REQUIRE(U.shape(1) == columns);
            CHECK(deviation(U) < 1e-12);
            CHECK(deviation(orthogonal<float>(rows, rows, columns)) < 1e-6);
        }
    }
}

TEST_CASE("a matrix depends on its seed and uses one stream")
{
    CHECK(support::same_bits(orthogonal(1, 5, 5), orthogonal(1, 5, 5)));
    CHECK(support::distance(orthogonal(1, 5, 5), orthogonal(2, 5, 5)) > 0.1);
    random_source random{1};
    const auto first = nn::orthogonal<double>(random, 5, 5), second = nn::orthogonal<double>(random, 5, 5);
    CHECK(random.streams == 2);
    CHECK(support::distance(first, second) > 0.1);
}

TEST_CASE("rotations and reflections are equally likely, and so are both signs of every entry")
{
    constexpr int seeds = 400;
    for (const std::size_t n : {1u, 2u, 3u}) {
        CAPTURE(n);
        array<int, 2> positive(shape_of_rank<2>{n, n}, 0);
        int rotations = 0;
        for (int seed = 0; seed < seeds; ++seed) {
            const auto U = orthogonal(static_cast<std::uint64_t>(seed), n, n);
            rotations += xt::linalg::det(U) > 0;
            for (std::size_t i = 0; i < U.size(); ++i) positive.data()[i] += U.data()[i] > 0;
        }
        // Half of all, within five standard deviations of ten. The Q of LAPACK has Q_00 < 0 for n > 1, and always the
        // same determinant.
        CHECK(std::abs(rotations - seeds / 2) < 50);
        for (const int count : positive) CHECK(std::abs(count - seeds / 2) < 50);
    }
}

TEST_CASE("matrices without rows or columns are rejected")
{
    const auto message = [](std::size_t rows, std::size_t columns) {
        return support::message_of<shape_error>([&] { orthogonal(1, rows, columns); });
    };
    CHECK(support::contains(message(0, 3), "nn::orthogonal: a matrix [0,3] has no entries"));
    CHECK(support::contains(message(3, 0), "nn::orthogonal: a matrix [3,0] has no entries"));
}

TEST_CASE("each recurrent matrix of a gated unit is orthogonal, and no other parameter changes")
{
    constexpr std::size_t H = 6;
    random_source random{7}, same{7};
    const auto unit = nn::make_gru<double>(random, 4, H, nn::orthogonal<double>);
    CHECK(support::same_bits(unit.W, nn::make_gru<double>(same, 4, H).W));
    array<double, 2> U_z(shape_of_rank<2>{H, H}), U_r = U_z;
    for (std::size_t i = 0; i < H; ++i) {
        for (std::size_t j = 0; j < H; ++j) {
            U_z(i, j) = unit.U(i, j);
            U_r(i, j) = unit.U(i, H + j);
        }
    }
    CHECK(deviation(U_z) < 1e-12);
    CHECK(deviation(U_r) < 1e-12);
    CHECK(deviation(unit.U_h) < 1e-12);
    CHECK(support::distance(U_z, U_r) > 0.1);
    CHECK(support::distance(U_r, unit.U_h) > 0.1);
}

TEST_CASE("every recurrent matrix of a translator is drawn by the initializer")
{
    const nn::initializer<double> equal = [](random_source&, std::size_t rows, std::size_t columns) {
        return array<double, 2>(shape_of_rank<2>{rows, columns}, 0.25);
    };
    const seq2seq::sizes n{5, 6, 2, 3, 4};
    const auto all_equal = [](const auto& cell) {
        return xt::all(xt::equal(cell.U, 0.25)) && xt::all(xt::equal(cell.U_h, 0.25));
    };
    const auto search = seq2seq::make_translator<double>(1, n, seq2seq::attentions::additive_factory{}, equal);
    CHECK(all_equal(search.encoder.forward));
    CHECK(all_equal(search.encoder.backward));
    CHECK(all_equal(search.decoder.cell));
    const auto encdec = seq2seq::make_translator<double>(1, n, seq2seq::fixed_context{}, equal);
    CHECK(all_equal(encdec.encoder.cell));
    CHECK(all_equal(encdec.decoder.cell));
}

#endif
