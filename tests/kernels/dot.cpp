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

/// Compares with plain loops; a sentence alone, in a batch, and with any number of threads gives the same bits.
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

/// Values whose sums fit in registers, compared bitwise with the same columns of wider values, which are summed in
/// memory.
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
            if (j % 5 == 2) {  // must not be read
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

TEST_CASE(
    "a long sentence: plain loops agree; alone, in a batch, and with any number of threads it gives the same bits")
{
    check_long(7, 5);
    check_long(16, 4 * simd::lanes<double>);
}

TEST_CASE("a long sentence with NaN, with only -inf scores, or without positions gives the same bits with any number "
          "of threads")
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

TEST_CASE("values with weight 0 in part of a long sentence are not read")
{
    constexpr std::size_t P = 3000, A = 2;
    for (const std::size_t D : {std::size_t{5}, 2 * simd::lanes<double>}) {
        const std::size_t n = P;
        const array<double, 1> query{1, 0};
        array<double, 2> keys(shape_of_rank<2>{P, A}, 0.0);
        auto values = random({P, D}, 3);
        for (std::size_t j = 0; j < P; ++j) keys(j, 0) = j < 1024 ? 0.0 : 800.0;
        values(7, 1) = std::nan("");                                 // its weight is 0
        values(2000, 2) = 0.9 * std::numeric_limits<double>::max();  // the undivided sum overflows
        values(2001, 2) = 0.9 * std::numeric_limits<double>::max();
        values(2002, 2) = 0.9 * std::numeric_limits<double>::max();
        for (const std::size_t count : {1u, 2u}) {
            set_threads(count);
            std::vector<double> weights(P, -1), context(D, -1);
            kernels::dot_forward(kernels::dot_step<double>{1, P, A, D, &n, query.data(), keys.data(), values.data()},
                                 weights.data(), context.data());
            set_threads(1);
            CHECK(weights[7] == 0);
            CHECK(weights[2000] == doctest::Approx(1.0 / (P - 1024)).epsilon(1e-12));
            CHECK(context[2] ==
                  doctest::Approx(2.7 * (std::numeric_limits<double>::max() / (P - 1024))).epsilon(1e-12));
            double c = 0;
            for (std::size_t j = 1024; j < P; ++j) c += values(j, 1) / (P - 1024);
            CHECK(context[1] == doctest::Approx(c).epsilon(1e-12));
        }
    }
}

/// Keys that are a few registers wide, four of which are multiplied together, compared bitwise with one key at a time.
template <class T>
void check_scores(std::size_t registers)
{
    const std::size_t A = registers * simd::lanes<T>, n = 39;
    const auto query = random<T>({A}, 1);
    const auto keys = random<T>({n, A}, 2);
    for (const bool ahead : {false, true}) {
        std::vector<T> is(n, T(-1));
        kernels::detail::scores_of_keys(std::size_t{1}, n, A, query.data(), keys.data(), is.data(), ahead);
        CHECK(is[0] == T(-1));
        for (std::size_t j = 1; j < n; ++j) CHECK(is[j] == kernels::dot(A, query.data(), keys.data() + j * A));
    }
}

TEST_CASE("gradients: plain loops agree for keys and values wider than a register, of several sentences")
{
    constexpr std::size_t B = 3, P = 5, A = 2 * simd::lanes<double> + 3, D = simd::lanes<double> + 2;
    const std::vector<std::size_t> lengths{5, 3, 0};
    const auto query = random({B, A}, 1), d_context = random({B, D}, 4), d_weights = random({B, P}, 5);
    const auto keys = random({B, P, A}, 2), values = random({B, P, D}, 3);
    const kernels::dot_step<double> step{B, P, A, D, lengths.data(), query.data(), keys.data(), values.data()};
    std::vector<double> weights(B * P), context(B * D);
    kernels::dot_forward(step, weights.data(), context.data());
    std::vector<double> d_query(B * A, 0.25), d_keys(B * P * A, 0.25), d_values(B * P * D, 0.25);
    auto must_query = d_query, must_keys = d_keys, must_values = d_values;
    for (std::size_t b = 0; b < B; ++b) {
        std::vector<double> d_alpha(lengths[b]);
        double mean = 0;
        for (std::size_t j = 0; j < lengths[b]; ++j) {
            d_alpha[j] = d_weights(b, j);
            for (std::size_t i = 0; i < D; ++i) d_alpha[j] += d_context(b, i) * values(b, j, i);
            mean += weights[b * P + j] * d_alpha[j];
        }
        for (std::size_t j = 0; j < lengths[b]; ++j) {
            const double w = weights[b * P + j], d_score = w * (d_alpha[j] - mean);
            for (std::size_t i = 0; i < A; ++i) must_query[b * A + i] += d_score * keys(b, j, i);
            for (std::size_t i = 0; i < A; ++i) must_keys[(b * P + j) * A + i] += d_score * query(b, i);
            for (std::size_t i = 0; i < D; ++i) must_values[(b * P + j) * D + i] += w * d_context(b, i);
        }
    }
    kernels::dot_backward(step, weights.data(), d_context.data(), d_weights.data(), d_query.data(), d_keys.data(),
                          d_values.data());
    const auto check = [](const std::vector<double>& is, const std::vector<double>& must) {
        for (std::size_t i = 0; i < is.size(); ++i) CHECK(is[i] == doctest::Approx(must[i]).epsilon(1e-12));
    };
    check(d_query, must_query);
    check(d_keys, must_keys);
    check(d_values, must_values);
}

TEST_CASE("keys that are some registers wide have the same scores as one key at a time")
{
    for (const std::size_t registers : {1u, 2u, 3u, 4u, 8u}) {
        check_scores<float>(registers);
        check_scores<double>(registers);
    }
}

TEST_CASE("values that are some registers wide are summed in the same order as other values")
{
    for (const std::size_t registers : {1u, 2u, 4u, 8u}) {
        check_narrow<float>(registers);
        check_narrow<double>(registers);
    }
}
