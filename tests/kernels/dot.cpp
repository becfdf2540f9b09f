// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/kernels/dot.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

namespace {

/// Plain loops agree; alone, in a batch, and with any number of threads it is the same.
void check_long(std::size_t A, std::size_t D)
{
    constexpr std::size_t B = 3, P = 4200;
    const std::vector<std::size_t> lengths{4200, 1025, 3};
    const auto query = random({B, A}, 1);
    const auto keys = random({B, P, A}, 2), values = random({B, P, D}, 3);
    const auto run = [&](std::size_t count, std::size_t first, std::size_t batch) {
        const std::size_t before = threads();
        set_threads(count);
        std::vector<double> all(batch * (P + D), -1);
        kernels::dot_forward(kernels::dot_step<double>{batch, P, A, D, lengths.data() + first, query.data() + first * A,
                                                       keys.data() + first * P * A, values.data() + first * P * D},
                             all.data(), all.data() + batch * P);
        set_threads(before);
        return all;
    };
    const auto together = run(1, 0, B);
    for (std::size_t b = 0; b < B; ++b) {
        const std::size_t n = lengths[b];
        std::vector<double> weights;
        double sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
            double e = 0;
            for (std::size_t i = 0; i < A; ++i) e += query(b, i) * keys(b, j, i);
            weights.push_back(std::exp(e));
            sum += weights.back();
        }
        for (std::size_t i = 0; i < D; ++i) {
            double c = 0;
            for (std::size_t j = 0; j < n; ++j) c += weights[j] / sum * values(b, j, i);
            CHECK(together[B * P + b * D + i] == doctest::Approx(c).epsilon(1e-12));
        }
        CHECK(together[b * P] == doctest::Approx(weights[0] / sum).epsilon(1e-12));
        if (n < P) CHECK(together[b * P + n] == 0);
        for (const std::size_t count : {1u, 2u, 3u, 8u}) {
            const auto alone = run(count, b, 1);
            CHECK(std::memcmp(alone.data(), together.data() + b * P, P * sizeof(double)) == 0);
            CHECK(std::memcmp(alone.data() + P, together.data() + B * P + b * D, D * sizeof(double)) == 0);
        }
    }
}

/// Values whose sums stay in registers, against the same columns of wider ones, which are summed in memory: every bit.
template <class T>
void check_narrow(std::size_t registers)
{
    const std::size_t D = registers * simd::lanes<T>, wide = (registers + (registers == 1 ? 2 : 1)) * simd::lanes<T>;
    const bool ahead = registers % 2 == 0;
    for (const std::size_t n : {0u, 1u, 3u, 4u, 39u}) {
        auto weights = random<T>({n}, 1);
        auto values = random<T>({n, D}, 2);
        auto wider = random<T>({n, wide}, 3);
        for (std::size_t j = 0; j < n; ++j) {
            if (j % 5 == 2) {  // not to be read
                weights(j) = 0;
                for (std::size_t i = 0; i < D; ++i) values(j, i) = std::numeric_limits<T>::quiet_NaN();
            }
            for (std::size_t i = 0; i < D; ++i) wider(j, i) = values(j, i);
        }
        std::vector<T> is(D, T(-1)), must(wide, T(-1));
        kernels::detail::selected_sum_row(n, D, weights.data(), values.data(), is.data(), ahead);
        kernels::detail::selected_sum_row(n, wide, weights.data(), wider.data(), must.data());
        CHECK(std::memcmp(is.data(), must.data(), D * sizeof(T)) == 0);
        for (std::size_t i = 0; i < D; ++i) {
            double c = 0;
            for (std::size_t j = 0; j < n; ++j) {
                if (weights(j) != 0) c += static_cast<double>(weights(j)) * static_cast<double>(values(j, i));
            }
            CHECK(static_cast<double>(is[i]) == doctest::Approx(c).epsilon(std::is_same_v<T, float> ? 1e-4 : 1e-12));
        }
    }
}

}  // namespace

TEST_CASE("a long sentence: plain loops agree; alone, in a batch, and with any number of threads it is the same")
{
    check_long(7, 5);
    check_long(16, 4 * simd::lanes<double>);
}

TEST_CASE("a long sentence with NaN, with scores of -inf only, without positions: the same with any number of threads")
{
    constexpr std::size_t P = 3000, A = 3, D = 5;
    const double infinity = std::numeric_limits<double>::infinity();
    const array<double, 1> query{1, 1, 1};
    const auto values = random({P, D}, 3);
    for (const std::size_t n : {std::size_t{0}, P}) {
        for (const char* what : {"nothing", "NaN", "-inf", "-inf and NaN"}) {
            auto keys = random({P, A}, 2);
            if (what[0] == '-') keys.fill(-infinity);
            if (std::strstr(what, "NaN") != nullptr) keys(2000, 1) = std::nan("");
            const auto run = [&](std::size_t count) {
                set_threads(count);
                std::vector<double> all(P + D, -1);
                kernels::dot_forward(
                    kernels::dot_step<double>{1, P, A, D, &n, query.data(), keys.data(), values.data()}, all.data(),
                    all.data() + P);
                set_threads(1);
                return all;
            };
            const auto alone = run(1), shared = run(3);
            for (std::size_t i = 0; i < P + D; ++i) {
                CHECK((alone[i] == shared[i] || (std::isnan(alone[i]) && std::isnan(shared[i]))));
            }
            CHECK(std::isnan(alone[P]) == (n == P && std::strstr(what, "NaN") != nullptr));
        }
    }
}

TEST_CASE("values that are some registers wide are summed in the same order as any others")
{
    for (const std::size_t registers : {1u, 2u, 4u, 8u}) {
        check_narrow<float>(registers);
        check_narrow<double>(registers);
    }
}
