// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/weighted_sum.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <support/kernels.hpp>
#include <support/special_rows.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

}  // namespace

TEST_CASE_TEMPLATE("selected sums: a value of weight 0 may be NaN", T, float, double)
{
    each_row<T>([](const list<T>& x) {
        const std::size_t n = x.size();
        const list<T> ones(n, T(1));
        double sum = 0;
        for (const T e : x) sum += static_cast<double>(e);
        T selected = 0;
        kernels::detail::selected_sum_row(n, 1, ones.data(), x.data(), &selected);
        require_equal(&selected, {sum});
        list<T> weights(n, T(1));
        for (std::size_t i = 0; i < n; ++i) weights[i] = std::isfinite(x[i]) ? T(1) : T(0);
        double finite = 0;
        for (const T e : x) finite += std::isfinite(e) ? static_cast<double>(e) : 0;
        kernels::detail::selected_sum_row(n, 1, weights.data(), x.data(), &selected);
        require_equal(&selected, {finite});
    });
}

TEST_CASE_TEMPLATE("weighted sums: plain loops agree, padding is not read, any number of threads", T, float, double)
{
    for (const std::size_t width : {std::size_t{1}, simd::lanes<T> + 1, std::size_t{257}}) {
        const counts lengths{150, 7, 0, 149};
        const std::size_t batch = lengths.size(), positions = 150;
        list<T> w = some<T>(batch * positions, 1), x = some<T>(batch * positions * width, 2);
        poison(w, lengths, positions);
        poison(x, lengths, positions, width);
        list<double> want(batch * width, 0);
        for (std::size_t b = 0; b < batch; ++b) {
            for (std::size_t j = b * positions; j < b * positions + lengths[b]; ++j) {
                for (std::size_t d = 0; d < width; ++d)
                    want[b * width + d] += static_cast<double>(w[j]) * static_cast<double>(x[j * width + d]);
            }
        }
        list<T> c(batch * width, T(9));
        weighted_sum(batch, positions, width, lengths.data(), w.data(), x.data(), c.data());
        CHECK(far(c, want) <= 10 * tolerance<T>);
        const with_threads scope(3);
        list<T> again(batch * width);
        weighted_sum(batch, positions, width, lengths.data(), w.data(), x.data(), again.data());
        CHECK(same_bits(c, again));
    }
}

TEST_CASE("weighted sums: gradients")
{
    const counts lengths{7, 0, 3};
    const std::size_t batch = 3, positions = 7, width = 11;
    list<double> w = some<double>(batch * positions, 1), x = some<double>(batch * positions * width, 2),
                 g = some<double>(batch * width, 3);
    const auto loss = [&] {
        list<double> c(batch * width);
        weighted_sum(batch, positions, width, lengths.data(), w.data(), x.data(), c.data());
        return dot(c, g);
    };
    list<double> dw(w.size(), 0.25), dx(x.size(), 0.25);
    weighted_sum_backward(batch, positions, width, lengths.data(), w.data(), x.data(), g.data(), dw.data(), dx.data());
    check_gradient("weights", w, loss, dw, 0.25);
    check_gradient("values", x, loss, dx, 0.25);
}

TEST_CASE("weighted sums: the same gradients for any number of threads, although threads share a sentence")
{
    const counts lengths{150, 149, 7};
    const std::size_t batch = lengths.size(), positions = 150, width = 257;
    list<float> w = some<float>(batch * positions, 1), x = some<float>(batch * positions * width, 2);
    const list<float> g = some<float>(batch * width, 3);
    poison(w, lengths, positions);
    poison(x, lengths, positions, width);
    const auto gradients = [&](std::size_t count) {
        const with_threads scope(count);
        list<float> dw(w.size(), 0.25f), dx(x.size(), 0.25f);
        weighted_sum_backward(batch, positions, width, lengths.data(), w.data(), x.data(), g.data(), dw.data(),
                              dx.data());
        return list<list<float>>{dw, dx};
    };
    const auto one = gradients(1);
    for (const std::size_t count : {std::size_t{2}, std::size_t{5}}) {
        const auto several = gradients(count);
        for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], several[i]));
    }
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t j = lengths[b]; j < positions; ++j) CHECK(one[0][b * positions + j] == 0.25f);
}

TEST_CASE_TEMPLATE("selected sums of any width equal weighted sums, and rows of weight 0 are not read", T, float,
                   double)
{
    constexpr std::size_t L = simd::lanes<T>;
    for (const std::size_t width : {L, 2 * L, 4 * L, 8 * L, std::size_t{1}, 3 * L, 5 * L, 5 * L + 1, 9 * L}) {
        for (const std::size_t n : {0u, 1u, 6u, 300u}) {
            list<T> w = some<T>(n, 1), x = some<T>(n * width, 2), clean = x, got(width, T(9)), want(width);
            for (std::size_t j = 1; j < n; j += 3) {
                w[j] = 0;
                std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(j * width), width,
                            std::numeric_limits<T>::quiet_NaN());
            }
            for (const bool ahead : {false, true}) {
                kernels::detail::selected_sum_row(n, width, w.data(), x.data(), got.data(), ahead);
                kernels::detail::weighted_sum_row(n, width, w.data(), clean.data(), want.data(), 0, width);
                CHECK(far(got, list<double>(want.begin(), want.end())) <= 10 * tolerance<T>);
            }
        }
    }
}
