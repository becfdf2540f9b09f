// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/delta_rule.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <support/kernels.hpp>

namespace {

using namespace heed;
using namespace heed::kernels;
using namespace heed::test;

/// The error of correct_values against the recurrent definition in double: a state [D,A] that forgets by left(i), the
/// decay between row i − 1 and row i.
template <class T>
double off(std::size_t n, const auto& fading, const auto& left)
{
    constexpr std::size_t A = 5, D = 3;
    list<T> k = some<T>(n * A, 1);
    const list<T> v = some<T>(n * D, 2);
    for (std::size_t i = 0; i < n; ++i) {
        T square = 0;
        for (std::size_t a = 0; a < A; ++a) square += k[i * A + a] * k[i * A + a];
        for (std::size_t a = 0; a < A; ++a) k[i * A + a] /= std::sqrt(square);
    }
    const auto rate = [](std::size_t i) { return static_cast<T>(0.1 + 0.8 * static_cast<double>(i % 7) / 6); };
    list<T> errors(n * D, T(9)), corrected(n * D, T(9));
    const auto rows_of = [](const list<T>& from, std::size_t width) {
        return [&from, width](std::size_t first, std::size_t count, T* to) {
            return first % 2 == 0 ? from.data() + first * width
                                  : static_cast<const T*>(std::copy_n(from.data() + first * width, count * width, to) -
                                                          count * width);
        };
    };
    correct_values<sees::past, T>(n, A, D, fading, rows_of(k, A), rows_of(v, D), rate,
                                  [&](std::size_t first, std::size_t count, const T* e, const T* u) {
                                      std::copy_n(e, count * D, errors.data() + first * D);
                                      std::copy_n(u, count * D, corrected.data() + first * D);
                                  });
    list<double> S(D * A, 0.0);
    double most = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i > 0)
            for (double& s : S) s *= left(i);
        for (std::size_t d = 0; d < D; ++d) {
            double error = static_cast<double>(v[i * D + d]);
            for (std::size_t a = 0; a < A; ++a) error -= S[d * A + a] * static_cast<double>(k[i * A + a]);
            const double u = static_cast<double>(rate(i)) * error;
            for (std::size_t a = 0; a < A; ++a) S[d * A + a] += u * static_cast<double>(k[i * A + a]);
            most = std::max({most, std::fabs(static_cast<double>(errors[i * D + d]) - error),
                             std::fabs(static_cast<double>(corrected[i * D + d]) - u)});
        }
    }
    return most;
}

}  // namespace

TEST_CASE_TEMPLATE("corrected values match the recurrence, for any size, with and without decay", T, float, double)
{
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{200}}) {
        CAPTURE(n);
        for (const double gamma : {1.0, 0.97, 0.3}) {
            scratch here;
            CHECK(off<T>(n, fading_with_age<T>(gamma, here), [gamma = gamma](std::size_t) { return gamma; }) <=
                  10 * tolerance<T>);
        }
        list<T> c(n);
        for (std::size_t i = 0; i < n; ++i) c[i] = static_cast<T>(0.03 * static_cast<double>(i / 2));
        CHECK(off<T>(n, fading_by_gates<T>{c.data()}, [&](std::size_t i) {
                  return std::exp(static_cast<double>(c[i - 1]) - static_cast<double>(c[i]));
              }) <= 10 * tolerance<T>);
    }
}

TEST_CASE("corrected values are accurate for very many rows")
{
    scratch here;
    CHECK(off<float>(3 * rows_added_plainly, fading_with_age<float>(1, here), [](std::size_t) { return 1.0; }) <=
          10 * tolerance<float>);
}
