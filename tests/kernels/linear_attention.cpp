// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/linear_attention.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/reference.hpp>
#include <support/kernels.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

/// The error of sums over the past; left(j, p) is the remaining decay factor of row j at row p.
template <class T>
double off(std::size_t outputs, std::size_t inputs, std::ptrdiff_t shift, const auto& fading, const auto& left)
{
    constexpr std::size_t A = 3, D = 5;
    const list<T> x = some<T>(outputs * A, 1), k = some<T>(inputs * A, 2), v = some<T>(inputs * D, 3);
    list<T> y(outputs * D, T(9));
    const auto rows_of = [](const list<T>& from, std::size_t width) {
        return [&from, width](std::size_t first, std::size_t count, T* to) {
            return static_cast<const T*>(std::copy_n(from.data() + first * width, count * width, to) - count * width);
        };
    };
    sums_of_seen<sees::past, T>({outputs, inputs, shift}, A, D, fading, rows_of(x, A), rows_of(k, A), rows_of(v, D),
                                [&](std::size_t first, std::size_t count, const T* from) {
                                    std::copy_n(from, count * D, y.data() + first * D);
                                });
    list<double> want(outputs * D);
    const auto rows_in = [](const list<T>& from, std::size_t width) {
        return tiles::rows<const T>{from.data(), width};
    };
    tiles::reference::sums_over_past<T>(outputs, inputs, shift, A, D, left, rows_in(x, A), rows_in(k, A), rows_in(v, D),
                                        {want.data(), D});
    list<double> size(outputs * D, 1);  // 1 + Σ_j |left · x_i · k_j|
    for (std::size_t i = 0; i < outputs; ++i) {
        const auto here = static_cast<std::ptrdiff_t>(i) + shift;
        for (std::size_t j = 0; j < inputs && static_cast<std::ptrdiff_t>(j) <= here; ++j) {
            double product = 0;
            for (std::size_t a = 0; a < A; ++a)
                product += static_cast<double>(x[i * A + a]) * static_cast<double>(k[j * A + a]);
            product *= left(j, static_cast<std::size_t>(here));
            for (std::size_t d = 0; d < D; ++d) size[i * D + d] += std::fabs(product);
        }
    }
    double most = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        const double apart = std::fabs(static_cast<double>(y[i]) - want[i]) / size[i];
        if (!(apart <= most)) most = apart;
    }
    return most;
}

}  // namespace

TEST_CASE_TEMPLATE("sums over the past match the definition, for any size, with and without decay", T, float, double)
{
    const struct {
        std::size_t outputs, inputs;
        std::ptrdiff_t shift;
    } cases[] = {{1, 1, 0},      {5, 5, 0}, {200, 200, 0}, {200, 200, -1},
                 {70, 200, 130}, {5, 9, 1}, {64, 128, 3},  {130, 40, 0}};
    for (const auto& each : cases) {
        const std::size_t outputs = each.outputs, inputs = each.inputs;
        const std::ptrdiff_t shift = each.shift;
        CAPTURE(outputs);
        CAPTURE(inputs);
        CAPTURE(shift);
        for (const double gamma : {1.0, 0.97, 0.3}) {
            scratch here;
            const fading_with_age<T> fading(gamma, here);
            CHECK(fading.none() == (gamma == 1));
            CHECK(off<T>(outputs, inputs, shift, fading, [gamma = gamma](std::size_t j, std::size_t p) {
                      return std::pow(gamma, static_cast<double>(p - j));
                  }) <= tolerance<T>);
        }
        list<T> c(outputs + inputs + 131);
        for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<T>(0.03 * static_cast<double>(i / 2));
        CHECK(off<T>(outputs, inputs, shift, fading_by_gates<T>{c.data()}, [&](std::size_t j, std::size_t p) {
                  return std::exp(static_cast<double>(c[j]) - static_cast<double>(c[p]));
              }) <= 4 * tolerance<T>);
    }
}

TEST_CASE("sums over the past are accurate for very many rows")
{
    scratch here;
    const fading_with_age<float> fading(1, here);
    const std::size_t n = 3 * rows_added_plainly;
    CHECK(off<float>(65, n, static_cast<std::ptrdiff_t>(n), fading, [](std::size_t, std::size_t) { return 1.0; }) <=
          tolerance<float>);
}

TEST_CASE_TEMPLATE("a sum keeps numbers below its precision", T, float, double)
{
    const T tiny = std::numeric_limits<T>::epsilon() / 4, none = std::numeric_limits<T>::infinity();
    list<T> sum{1, none}, lost{0, 0};
    const list<T> more{tiny, 1};
    for (int i = 0; i < 1024; ++i) kernels::detail::add_faded<T>(2, T(1), more.data(), lost.data(), sum.data());
    CHECK(sum[0] + lost[0] == 1 + 1024 * tiny);
    CHECK(sum[1] == none);
    CHECK(lost[1] == 0);
    sum[0] = 1, lost[0] = tiny;
    kernels::detail::add_faded<T>(1, T(0.5), more.data(), lost.data(), sum.data());
    CHECK(sum[0] == T(0.5) + tiny * 2);  // (1 + tiny) / 2 + tiny = 0.5 + 1.5 tiny, rounded
}

TEST_CASE("pow_table")
{
    scratch here;
    const float* const x = pow_table<float>(0.5, 10, here);
    for (int i = 0; i <= 10; ++i) CHECK(x[i] == std::ldexp(1.0F, -i));
}
